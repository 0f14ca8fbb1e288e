//! Reads the database server's own statistics for a trial over a separate connection: its counters before and after,
//! and, in a separate thread, samples of the clients' sessions.
//!
//! A failure here never fails the trial. What the server does not report is recorded with the reason.

use crate::trial::{Trial, caught};
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::observation::{Endpoint, MonitorGuard, Observation, Observer};
use kurabe_core::planned::Connections;
use kurabe_core::stats_probe::{
    Clients, EngineUse, EngineWaits, Reading, SnapshotPoint, StatsProbe, Unavailable,
};
use kurabe_core::text::printable;
use kurabe_core::{Error, Result};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The pause between two samples: some ten a second. InnoDB answers from a cache if the last query was less than a
/// tenth of a second ago (`storage/innobase/trx/trx0i_s.cc`).
const PAUSE: Duration = Duration::from_millis(105);
/// A pause is at least this multiple of the fastest sample's time. Sampling then uses less than a hundredth
/// of one processor for any number of sessions. The fastest sample counts, since a busy machine may delay the others.
const PAUSE_FACTOR: u32 = 100;
/// Samples taken at the gate to learn how long one takes.
const GATE_SAMPLES: u32 = 2;
/// Time limit of each answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What watches a trial: its observer, and a probe of the server's own statistics.
pub(crate) struct Watch<'a> {
    observer: Option<&'a dyn Observer>,
    endpoint: Endpoint,
    /// `None` without an observer.
    stats: Option<ServerStats>,
    guard: Option<Box<dyn MonitorGuard>>,
    begun: bool,
}

impl<'a> Watch<'a> {
    /// Opens the probe before any client connects, so that it can tell their sessions from others.
    pub(crate) fn open(trial: &Trial<'a>) -> Self {
        let policy = &trial.cell.policy;
        let clients = Clients { count: policy.clients as u64, kept: policy.connections == Connections::Kept };
        Self {
            observer: trial.conditions.observer,
            endpoint: trial.driver.endpoint(),
            stats: trial.conditions.observer.map(|_| ServerStats::open(trial.driver, trial.options, clients)),
            guard: None,
            begun: false,
        }
    }

    /// Begins, while all clients wait at the gate. A panic of the observer must not block them.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
        if let Some(stats) = &mut self.stats {
            stats.gate();
        }
        let port = self.stats.as_ref().and_then(ServerStats::port);
        let begin = |observer: &dyn Observer| {
            catch_unwind(AssertUnwindSafe(|| observer.begin(&self.endpoint, port))).ok()
        };
        self.guard = self.observer.and_then(begin);
        if let Some(stats) = &mut self.stats {
            stats.start_sampling();
        }
    }

    /// Ends, while the connections of all clients are still open.
    pub(crate) fn end(&mut self) -> Option<Observation> {
        let mut stats = self.stats.as_mut().filter(|_| self.begun);
        if let Some(sampler) = stats.as_mut().and_then(|stats| stats.sampler.as_mut()) {
            sampler.stop = None;
        }
        let guard = self.guard.take();
        let observed = guard.and_then(|guard| catch_unwind(AssertUnwindSafe(|| guard.end())).ok());
        if let Some(stats) = stats {
            stats.end();
        }
        observed
    }

    /// Adds what the server reports to the observation, after all clients have disconnected.
    pub(crate) fn finish(self, observed: &mut Option<Box<Observation>>) {
        if let (Some(stats), Some(observed)) = (self.stats, observed) {
            stats.finish(observed);
        }
    }
}

/// The statistics that a server reports for one trial.
struct ServerStats {
    /// `None` after it failed, and while the sampler uses it.
    probe: Option<Box<dyn StatsProbe>>,
    clients: Clients,
    before: Reading,
    gate: Reading,
    reported: EngineUse,
    waits: Option<EngineWaits>,
    /// How long the fastest sample took.
    fastest: Duration,
    sampler: Option<Sampler>,
}

impl ServerStats {
    /// Connects before any client does, and takes the first snapshot.
    fn open(driver: &dyn Driver, options: &ConnectOptions, clients: Clients) -> Self {
        // Never compressed: what the probe reads must cost the server the same in each cell.
        let options = ConnectOptions::within(options.timeout.min(TIMEOUT));
        let mut stats = Self {
            probe: None,
            clients,
            before: Reading::default(),
            gate: Reading::default(),
            reported: EngineUse::default(),
            waits: None,
            fastest: Duration::MAX,
            sampler: None,
        };
        match guarded(|| driver.stats_probe(&options)) {
            Ok(probe) => stats.probe = Some(probe),
            Err(error) => stats.reported = EngineUse::silent(&clause(&error)),
        }
        stats.before = stats.snapshot(SnapshotPoint::Before);
        stats
    }

    /// The local port of its connection.
    fn port(&self) -> Option<u16> {
        self.probe.as_ref().and_then(|probe| probe.port())
    }

    /// Takes a snapshot while all clients wait at the gate.
    fn gate(&mut self) {
        self.gate = self.snapshot(SnapshotPoint::Gate);
        for _ in 0..GATE_SAMPLES {
            let Some(probe) = self.probe.as_mut().filter(|_| self.reported.not_sampled.is_none()) else {
                return;
            };
            let began = Instant::now();
            if let Err(error) = guarded(|| probe.sample_sessions(&self.clients)) {
                self.reported.not_sampled = Some(clause(&error));
            }
            self.fastest = self.fastest.min(began.elapsed());
        }
    }

    /// Starts the sampler, just before the gate opens.
    fn start_sampling(&mut self) {
        if self.reported.not_sampled.is_some() {
            return;
        }
        let Some(probe) = self.probe.take() else { return };
        match Sampler::start(probe, self.clients, self.fastest) {
            Ok(sampler) => self.sampler = Some(sampler),
            Err(why) => self.reported.not_sampled = Some(why),
        }
    }

    /// Waits for the sampler and takes a snapshot, while the connections of all clients are still open.
    fn end(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            match sampler.thread.join() {
                Ok((probe, seen)) => {
                    self.probe = Some(probe);
                    match seen {
                        Ok(waits) if waits.samples > 0 => self.waits = Some(waits),
                        Ok(_) => {
                            self.reported.not_sampled =
                                Some("the trial was too short for a sample".to_owned());
                        }
                        Err(error) => self.reported.not_sampled = Some(clause(&error)),
                    }
                }
                Err(_) => self.reported.not_sampled = Some("sampling them failed".to_owned()),
            }
        }
        let now = self.snapshot(SnapshotPoint::End);
        let then = std::mem::take(&mut self.gate);
        self.reported.add(&then, now);
    }

    /// Takes the last snapshot, after all clients have disconnected, and adds the results to the observation.
    fn finish(mut self, observed: &mut Observation) {
        let now = self.snapshot(SnapshotPoint::After);
        self.reported.add(&self.before, now);
        observed.engine = Some(self.reported);
        observed.waits = self.waits;
    }

    fn snapshot(&mut self, point: SnapshotPoint) -> Reading {
        let Some(probe) = &mut self.probe else { return Reading::default() };
        match guarded(|| probe.snapshot(point, &self.clients)) {
            Ok(reading) => escaped(reading),
            Err(error) => {
                // After a failure, what the server would report to the next query is not known either.
                self.probe = None;
                self.reported
                    .unavailable
                    .push(Unavailable { what: "later statistics".to_owned(), why: clause(&error) });
                Reading::default()
            }
        }
    }
}

/// A thread that samples sessions until it is stopped.
struct Sampler {
    /// Dropped to stop the thread.
    stop: Option<Sender<()>>,
    thread: JoinHandle<(Box<dyn StatsProbe>, Result<EngineWaits>)>,
}

impl Sampler {
    fn start(
        mut probe: Box<dyn StatsProbe>,
        clients: Clients,
        fastest: Duration,
    ) -> std::result::Result<Self, String> {
        let (stop, stopped) = channel();
        let run = move || {
            let seen = sample(&mut *probe, &clients, fastest, &stopped);
            (probe, seen)
        };
        let thread = thread::Builder::new().name("stats probe".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread could be started for it: {error}"))?;
        Ok(Self { stop: Some(stop), thread })
    }
}

fn sample(
    probe: &mut dyn StatsProbe,
    clients: &Clients,
    mut fastest: Duration,
    stop: &Receiver<()>,
) -> Result<EngineWaits> {
    let mut waits = EngineWaits::default();
    let mut pause = PAUSE;
    let started = Instant::now();
    while stop.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let began = Instant::now();
        let mut seen = guarded(|| probe.sample_sessions(clients))?;
        let took = began.elapsed();
        waits.cost_ns += took.as_nanos() as u64;
        for session in &mut seen {
            escape([&mut session.state, &mut session.event, &mut session.statement]);
        }
        let mut background = probe.background();
        escape(&mut background);
        waits.add_at(began.duration_since(started).as_millis() as u64, seen, background);
        fastest = fastest.min(took);
        pause = PAUSE.max(fastest * PAUSE_FACTOR);
    }
    waits.finish();
    Ok(waits)
}

/// Escapes the server's texts for display.
fn escaped(mut reading: Reading) -> Reading {
    escape(reading.counts.iter_mut().map(|count| &mut count.from));
    escape(reading.statements.iter_mut().map(|statement| &mut statement.text));
    escape(reading.unavailable.iter_mut().flat_map(|missing| [&mut missing.what, &mut missing.why]));
    reading
}

fn escape<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    for text in texts {
        if text.contains(['\n', '\t']) {
            // A statement may have several lines.
            *text = text.replace(['\n', '\t'], " ");
        }
        if let Cow::Owned(escaped) = printable(text) {
            *text = escaped;
        }
    }
}

/// Turns a panic of the driver into an error.
fn guarded<T>(query: impl FnOnce() -> Result<T>) -> Result<T> {
    caught("the stats probe", query)
}

/// An error's message as a clause, without the hint.
fn clause(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::stats_probe::{SessionSample, WaitState};

    /// Answers after a delay.
    struct Slow(Duration);

    impl StatsProbe for Slow {
        fn snapshot(&mut self, _: SnapshotPoint, _: &Clients) -> Result<Reading> {
            Ok(Reading::default())
        }

        fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
            thread::sleep(self.0);
            let (state, event, statement) = (String::new(), String::new(), String::new());
            Ok(vec![SessionSample { wait_state: WaitState::Running, state, event, statement }])
        }

        fn background(&self) -> Vec<String> {
            Vec::new()
        }

        fn port(&self) -> Option<u16> {
            None
        }
    }

    fn samples(takes: Duration, time: Duration) -> EngineWaits {
        let clients = Clients { count: 1, kept: true };
        let mut sampler = Sampler::start(Box::new(Slow(takes)), clients, Duration::MAX).unwrap();
        thread::sleep(time);
        sampler.stop = None;
        sampler.thread.join().unwrap().1.unwrap()
    }

    #[test]
    fn slow_server_is_sampled_seldom() {
        let seen = samples(Duration::from_millis(20), Duration::from_millis(700));
        // The next sample would be due two seconds later.
        assert_eq!((seen.samples, seen.active), (1, 1), "{seen:?}");
        assert!(seen.cost_ns >= 20_000_000, "{seen:?}");
    }

    #[test]
    fn fast_server_is_sampled_at_most_ten_times_a_second() {
        let began = Instant::now();
        let seen = samples(Duration::ZERO, Duration::from_millis(700));
        // A busy machine may take longer than the requested time.
        let most = began.elapsed().as_millis() as u64 / 100 + 2;
        assert!((1..=most).contains(&seen.samples), "{seen:?}, at most {most} expected");
    }
}
