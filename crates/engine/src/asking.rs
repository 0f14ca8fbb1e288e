//! Asking the engine itself about a trial, over a connection of its own: its counters around it, and in a thread of its own
//! what the clients' sessions are doing meanwhile.
//!
//! Nothing of it can fail a trial: what is not told is recorded with the reason.

use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::observation::Observation;
use kurabe_core::text::printable;
use kurabe_core::witness::{Clients, EngineUse, EngineWaits, Moment, NotTold, Reading, Witness};
use kurabe_core::{Error, Result};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Some ten looks a second. Not fewer milliseconds: InnoDB answers from what it gathered for the question before, where that
/// was less than a tenth of a second ago (`storage/innobase/trx/trx0i_s.cc`).
const PAUSE: Duration = Duration::from_millis(105);
/// A pause is at least so many times as long as the quickest look took. While an answer is awaited, client and server use
/// one processor's time together at most: less than a hundredth of one, however many sessions there are. That the quickest
/// counts, and not the last, is for machines that let everybody wait.
const COST: u32 = 100;
/// Looks that are made at the gate, to learn how long one takes.
const TRIED: u32 = 2;
/// No answer is awaited longer than this.
const PATIENCE: Duration = Duration::from_secs(5);

/// A trial about which the engine is asked.
pub(crate) struct Asking {
    /// None once it failed.
    witness: Option<Box<dyn Witness>>,
    clients: Clients,
    before: Reading,
    gate: Reading,
    told: EngineUse,
    waits: Option<EngineWaits>,
    /// How long the quickest look took.
    quickest: Duration,
    looking: Option<Looking>,
}

impl Asking {
    /// Connects, before any client does.
    pub(crate) fn open(driver: &dyn Driver, options: &ConnectOptions, clients: Clients) -> Self {
        let options = ConnectOptions { timeout: options.timeout.min(PATIENCE), ..*options };
        let mut asking = Self {
            witness: None,
            clients,
            before: Reading::default(),
            gate: Reading::default(),
            told: EngineUse::default(),
            waits: None,
            quickest: Duration::MAX,
            looking: None,
        };
        match guarded(|| driver.witness(&options)) {
            Ok(witness) => asking.witness = Some(witness),
            Err(error) => asking.told = EngineUse::silent(&clause(&error)),
        }
        asking.before = asking.read(Moment::Before);
        asking
    }

    /// The local port of the connection.
    pub(crate) fn port(&self) -> Option<u16> {
        self.witness.as_ref().and_then(|witness| witness.port())
    }

    /// All clients stand at the gate.
    pub(crate) fn gate(&mut self) {
        self.gate = self.read(Moment::Gate);
        for _ in 0..TRIED {
            let Some(witness) = self.witness.as_mut().filter(|_| self.told.not_looked.is_none()) else {
                return;
            };
            let began = Instant::now();
            if let Err(error) = guarded(|| witness.look(&self.clients)) {
                self.told.not_looked = Some(clause(&error));
            }
            self.quickest = self.quickest.min(began.elapsed());
        }
    }

    /// The gate is about to open: begins to look what sessions do.
    pub(crate) fn look(&mut self) {
        if self.told.not_looked.is_some() {
            return;
        }
        let Some(witness) = self.witness.take() else { return };
        match Looking::start(witness, self.clients, self.quickest) {
            Ok(looking) => self.looking = Some(looking),
            Err(why) => self.told.not_looked = Some(why),
        }
    }

    /// The last client has ended: no further look is begun.
    pub(crate) fn stop(&mut self) {
        if let Some(looking) = &mut self.looking {
            looking.stop = None;
        }
    }

    /// All clients stand again.
    pub(crate) fn end(&mut self) {
        if let Some(looking) = self.looking.take() {
            match looking.thread.join() {
                Ok((witness, seen)) => {
                    self.witness = Some(witness);
                    match seen {
                        Ok(waits) if waits.samples > 0 => self.waits = Some(waits),
                        Ok(_) => self.told.not_looked = Some("the trial was too short for a look".to_owned()),
                        Err(error) => self.told.not_looked = Some(clause(&error)),
                    }
                }
                Err(_) => self.told.not_looked = Some("looking at them failed".to_owned()),
            }
        }
        let now = self.read(Moment::End);
        let then = std::mem::take(&mut self.gate);
        self.told.add(&then, now);
    }

    /// All clients are gone; puts what was told into what was seen.
    pub(crate) fn finish(mut self, observed: &mut Observation) {
        let now = self.read(Moment::After);
        self.told.add(&self.before, now);
        observed.engine = Some(self.told);
        observed.waits = self.waits;
    }

    fn read(&mut self, moment: Moment) -> Reading {
        let Some(witness) = &mut self.witness else { return Reading::default() };
        match guarded(|| witness.read(moment, &self.clients)) {
            Ok(reading) => shown(reading),
            Err(error) => {
                // What an answer that never came would have said is not known of the next one either.
                self.witness = None;
                self.told.not_told.push(NotTold { what: "anything more".to_owned(), why: clause(&error) });
                Reading::default()
            }
        }
    }
}

/// Looks until it is told to stop.
struct Looking {
    /// Dropped to stop it.
    stop: Option<Sender<()>>,
    thread: JoinHandle<(Box<dyn Witness>, Result<EngineWaits>)>,
}

impl Looking {
    fn start(
        mut witness: Box<dyn Witness>,
        clients: Clients,
        quickest: Duration,
    ) -> std::result::Result<Self, String> {
        let (stop, stopped) = channel();
        let run = move || {
            let seen = look(&mut *witness, &clients, quickest, &stopped);
            (witness, seen)
        };
        let thread = thread::Builder::new().name("witness".to_owned()).spawn(run);
        let thread = thread.map_err(|error| format!("no thread could be started for it: {error}"))?;
        Ok(Self { stop: Some(stop), thread })
    }
}

fn look(
    witness: &mut dyn Witness,
    clients: &Clients,
    mut quickest: Duration,
    stop: &Receiver<()>,
) -> Result<EngineWaits> {
    let mut waits = EngineWaits::default();
    let mut pause = PAUSE;
    while stop.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let began = Instant::now();
        let mut seen = guarded(|| witness.look(clients))?;
        let took = began.elapsed();
        waits.cost_ns += took.as_nanos() as u64;
        for session in &mut seen {
            escape([&mut session.state, &mut session.event, &mut session.statement]);
        }
        waits.add(seen);
        quickest = quickest.min(took);
        pause = PAUSE.max(quickest * COST);
    }
    waits.finish();
    Ok(waits)
}

/// What the engine told, in text that can be shown.
fn shown(mut reading: Reading) -> Reading {
    escape(reading.counts.iter_mut().map(|count| &mut count.from));
    escape(reading.statements.iter_mut().map(|statement| &mut statement.text));
    escape(reading.not_told.iter_mut().flat_map(|not| [&mut not.what, &mut not.why]));
    reading
}

fn escape<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    for text in texts {
        if text.contains(['\n', '\t']) {
            // A statement may have lines.
            *text = text.replace(['\n', '\t'], " ");
        }
        if let Cow::Owned(escaped) = printable(text) {
            *text = escaped;
        }
    }
}

/// A driver's panic is an answer that did not come.
fn guarded<T>(ask: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(ask))
        .unwrap_or_else(|panic| Err(crate::trial::panicked("asking the engine", &*panic)))
}

/// An error as a clause: its message, without what to do.
fn clause(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::witness::{Doing, Sighting};

    /// Answers, and takes its time.
    struct Slow(Duration);

    impl Witness for Slow {
        fn read(&mut self, _: Moment, _: &Clients) -> Result<Reading> {
            Ok(Reading::default())
        }

        fn look(&mut self, _: &Clients) -> Result<Vec<Sighting>> {
            thread::sleep(self.0);
            let (state, event, statement) = (String::new(), String::new(), String::new());
            Ok(vec![Sighting { doing: Doing::Working, state, event, statement }])
        }
    }

    fn looks(takes: Duration, time: Duration) -> EngineWaits {
        let clients = Clients { count: 1, kept: true };
        let mut looking = Looking::start(Box::new(Slow(takes)), clients, Duration::MAX).unwrap();
        thread::sleep(time);
        looking.stop = None;
        looking.thread.join().unwrap().1.unwrap()
    }

    #[test]
    fn an_engine_that_takes_its_time_is_asked_seldom() {
        let seen = looks(Duration::from_millis(20), Duration::from_millis(700));
        // The next look would be due two seconds later.
        assert_eq!((seen.samples, seen.active), (1, 1), "{seen:?}");
        assert!(seen.cost_ns >= 20_000_000, "{seen:?}");
    }

    #[test]
    fn one_that_answers_at_once_is_asked_ten_times_a_second_at_most() {
        let began = Instant::now();
        let seen = looks(Duration::ZERO, Duration::from_millis(700));
        // On a busy machine it took longer than it was meant to.
        let most = began.elapsed().as_millis() as u64 / 100 + 2;
        assert!((1..=most).contains(&seen.samples), "{seen:?} where {most} are the most");
    }
}
