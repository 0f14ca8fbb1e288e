//! One replay of a capture: a task for each lane of connections, which sends what was recorded and compares the answers.

use super::bindings::{Bindings, Learnt};
use super::cached::{Cached, Counts, Versions};
use super::client::Client;
use super::commands::Sent;
use super::compare::{Compared, HALVES, LEFT_OUT, MANY, MEAN, P99, VARIES, Varies};
use super::mongodb::Cursors;
use super::order::Order;
use super::traffic::{self, Connection, Traffic};
use crate::prelude::*;
use kurabe_capture::file::Known;
use kurabe_core::driver::{Access, ConnectOptions, Driver};
use kurabe_core::job::{Ended, Job, JobContext};
use kurabe_reactor::Reactor;
use kurabe_stats::Histogram;
use kurabe_wire::view::{Exchange, Step, Watch};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The stack of a task, in bytes: connecting with TLS is deep.
const STACK: usize = 512 * 1024;
/// Codes of what a read-only transaction refuses: PostgreSQL's, MySQL's.
const REFUSED: [&str; 2] = ["25006", "1792"];
/// The longest sleep, after which a task sees that the run was stopped.
const NAP: Duration = Duration::from_millis(50);

pub(super) struct Replay {
    pub(super) traffic: Arc<Traffic>,
    /// The metric of each kind of statement, by its place.
    pub(super) metrics: Vec<&'static str>,
    /// The metrics of the kinds of transactions that have one.
    pub(super) of_transactions: Vec<&'static str>,
    /// How many times as fast as it was recorded; `None`: as fast as possible.
    pub(super) speed: Option<f64>,
    /// Where answers are cached.
    pub(super) cache: Option<Arc<Collection>>,
    /// What each connection [leaves](super::pooled::left) in its session; empty: none is kept.
    pub(super) left: Vec<Option<Vec<String>>>,
    /// Whether statements are prepared.
    pub(super) prepares: bool,
    /// Whether databases or collections of the capture are removed before it.
    pub(super) emptied: bool,
    /// Whether the means of both halves are reported.
    pub(super) halves: bool,
    pub(super) ended: Mutex<Seen>,
}

/// What was seen of a replay, or of one of its lanes.
#[derive(Default)]
pub(super) struct Seen {
    compared: Compared,
    /// Times by kind of statement, and of all.
    times: Vec<Histogram>,
    /// How long each transaction waited for answers, by kind.
    transactions: Vec<Histogram>,
    all: Histogram,
    /// Times of every second eighth of the requests, and of the others, with those of opening all but a lane's first connection.
    halves: [Histogram; 2],
    requests: u64,
    cached: Counts,
}

/// What the lanes of a replay share.
struct Shared<'a> {
    replay: &'a Replay,
    driver: &'a dyn Driver,
    options: &'a ConnectOptions,
    cancel: &'a AtomicBool,
    order: Order,
    cursors: Cursors,
    wrong: AtomicU64,
    versions: Versions,
    bindings: Bindings,
    watch: Watch,
    /// The templates that are sent as they were recorded; `None`: all.
    as_recorded: Option<HashSet<usize>>,
}

/// An open connection.
struct Open<'a> {
    session: Box<dyn Session>,
    client: Client<'a>,
    cached: Option<Cached>,
    /// How long opening it took.
    took: Duration,
}

impl Job for Replay {
    /// Each replay begins with an empty cache, and without what it makes.
    fn before(&self, Before { namespace, session, .. }: Before<'_>) -> Result<()> {
        if let Some(cache) = &self.cache {
            namespace.create(cache)?;
            namespace.clear(cache)?;
        }
        self.traffic.check_kept()?;
        if !self.emptied {
            return Ok(());
        }
        let (messages, cursors) = (session.raw_messages()?, Cursors::default());
        Client::new(&self.traffic, messages, &cursors)?.empty(messages)
    }

    fn run(&self, _: &str, _: &DatasetState, context: &mut JobContext<'_>) -> Result<()> {
        let mut shared = Shared {
            replay: self,
            driver: context.driver(),
            options: context.options(),
            cancel: context.cancel(),
            order: Order::new(&self.traffic),
            cursors: Cursors::default(),
            wrong: AtomicU64::new(0),
            versions: Versions::new(&self.traffic),
            bindings: Bindings::default(),
            watch: Watch { keeps_rows: true, ..Watch::now() },
            as_recorded: None,
        };
        if self.prepares {
            shared.as_recorded = Some(shared.refused()?);
        }
        let lanes = (0..self.traffic.lanes.len()).map(|lane| {
            let shared = &shared;
            move || {
                let mut seen = Seen::default();
                let ended = shared.lane(lane, &mut seen);
                if ended.is_err() {
                    shared.order.fail();
                }
                (seen, ended)
            }
        });
        let reactor = Reactor::new(lanes.collect(), STACK).map_err(|why| {
            Error::new(
                ErrorKind::Limit,
                format!("no memory for the tasks of {} connections: {why}", self.traffic.lanes.len()),
            )
        })?;
        let (mut all, mut failed) = (Seen::default(), None);
        for ended in reactor.run() {
            let (seen, ended) =
                ended.map_err(|_| Error::new(ErrorKind::Internal, "a task of the replay panicked"))?;
            all.add(seen);
            // A lane that only stopped because another failed says nothing.
            failed = failed.or(ended.err().flatten());
        }
        // The session writes, so that nothing else is worth knowing.
        if let Some(error) = failed.take_if(|error| error.kind() == ErrorKind::ReadOnly) {
            return Err(error);
        }
        if let Some(error) = all.compared.error(&self.traffic) {
            return Err(if self.cache.is_some() { error.context("through the cache") } else { error });
        }
        if let Some(error) = failed {
            return Err(error);
        }
        context.work(all.requests, 0)?;
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = all;
        Ok(())
    }

    fn verify(&self, _: Ended<'_>) -> Result<Checked> {
        let seen = std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner));
        let compared = &seen.compared;
        let mut by_metric: Vec<(&'static str, Histogram)> = Vec::new();
        for (name, times) in self.metrics.iter().zip(&seen.times) {
            match by_metric.iter_mut().find(|(known, _)| known == name) {
                Some((_, all)) => all.merge(times),
                None => by_metric.push((*name, times.clone())),
            }
        }
        by_metric.extend(self.of_transactions.iter().copied().zip(seen.transactions));
        let mean = |(name, times): &(&'static str, Histogram)| {
            times.mean().map(|mean| MetricValue::new(*name, Unit::Nanoseconds, mean))
        };
        let mut metrics: Vec<MetricValue> = by_metric.iter().filter_map(mean).collect();
        metrics.extend(seen.all.mean().map(|mean| MEAN.value(mean)));
        let halves = HALVES.iter().zip(&seen.halves);
        metrics.extend(halves.filter_map(|(metric, times)| Some(metric.value(times.mean()?))));
        metrics.extend(seen.all.quantile(0.99).map(|ns| P99.value(ns as f64)));
        metrics.extend(Varies::ALL.iter().zip(&VARIES).filter_map(|(varies, metric)| {
            compared.varies.get(varies).map(|count| metric.value(*count as f64))
        }));
        metrics.extend(seen.cached.metrics());
        metrics.extend((self.traffic.left_out > 0).then(|| LEFT_OUT.value(self.traffic.left_out as f64)));
        let has_answers = self.traffic.about.known == Known::All;
        let partial = compared.varies.get(&Varies::Part).copied().unwrap_or(0);
        let verification = Verification {
            answers: if has_answers { compared.answers - partial } else { 0 },
            writes: compared.changes,
            records: compared.changes,
            ..Verification::default()
        };
        Ok(Checked { verification, metrics, ..Checked::default() })
    }
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.compared.add(other.compared);
        self.all.merge(&other.all);
        self.halves.iter_mut().zip(&other.halves).for_each(|(half, other)| half.merge(other));
        self.requests += other.requests;
        self.cached.add(other.cached);
        merge(&mut self.times, &other.times);
        merge(&mut self.transactions, &other.transactions);
    }
}

/// Names the statement that writes in a session which only reads.
fn with_text(error: Error, traffic: &Traffic, unit: &traffic::Unit) -> Error {
    match unit.requests.last().filter(|_| error.kind() == ErrorKind::ReadOnly) {
        Some(last) => error.context(format!("'{}'", traffic.text(last))),
        None => error,
    }
}

fn merge(all: &mut Vec<Histogram>, own: &[Histogram]) {
    all.resize_with(all.len().max(own.len()), Histogram::new);
    all.iter_mut().zip(own).for_each(|(all, own)| all.merge(own));
}

/// The error of a lane; `None`: another lane has failed.
type Failed = Option<Error>;

impl Shared<'_> {
    /// Replays the connections of a lane, one after the other.
    fn lane(&self, lane: usize, seen: &mut Seen) -> Result<(), Failed> {
        let traffic = &self.replay.traffic;
        seen.times.resize_with(traffic.kinds.len(), Histogram::new);
        seen.transactions.resize_with(traffic.transactions.len(), Histogram::new);
        let mut kept: Option<(usize, Open<'_>)> = None;
        for (place, number) in traffic.lanes[lane].iter().enumerate() {
            let connection = &traffic.connections[*number];
            self.sleep_until(connection.opened)?;
            let mut open = match kept.take() {
                Some((before, open)) if self.may_follow(before, *number) => open,
                before => {
                    before.map_or(Ok(()), |(_, open)| open.session.close())?;
                    self.open(connection)?
                }
            };
            // A pool has to open the first one too.
            let connecting = std::mem::take(&mut open.took) * u32::from(place > 0);
            self.connection((lane, connecting), connection, &mut open, seen)?;
            if self.left(*number).is_some() {
                kept = Some((*number, open));
            } else {
                open.session.close()?;
            }
        }
        kept.map_or(Ok(()), |(_, open)| open.session.close()).map_err(Some)
    }

    fn left(&self, number: usize) -> Option<&Vec<String>> {
        self.replay.left.get(number)?.as_ref()
    }

    /// Whether a connection may have the session of another one: it would set the same.
    fn may_follow(&self, before: usize, next: usize) -> bool {
        let connections = &self.replay.traffic.connections;
        self.left(before) == self.left(next) && connections[before].said == connections[next].said
    }

    fn open(&self, connection: &Connection) -> Result<Open<'_>> {
        let began = Instant::now();
        let mut session = self.driver.connect(self.options)?;
        let took = began.elapsed();
        let cache = self.replay.cache.as_ref();
        let cached = cache.map(|cache| Cached::new(&mut *session, cache)).transpose()?;
        let messages = session.raw_messages()?;
        let mut client = Client::new(&self.replay.traffic, messages, &self.cursors)?;
        client.as_recorded = self.as_recorded.as_ref();
        client.set_up(messages, &connection.said, self.options.access)?;
        Ok(Open { session, client, cached, took })
    }

    /// The templates that the server does not prepare.
    fn refused(&self) -> Result<HashSet<usize>> {
        let traffic = &self.replay.traffic;
        let Some(first) = traffic.connections.iter().find(|one| one.has_requests) else {
            return Ok(HashSet::new());
        };
        let Open { mut session, mut client, .. } = self.open(first)?;
        let refused = client.refused(session.raw_messages()?)?;
        session.close()?;
        Ok(refused)
    }

    fn connection(
        &self,
        (lane, mut connecting): (usize, Duration),
        connection: &Connection,
        Open { session, client, cached, .. }: &mut Open<'_>,
        seen: &mut Seen,
    ) -> Result<(), Failed> {
        let traffic = &*self.replay.traffic;
        let messages = session.raw_messages()?;
        // Of MySQL: whether updates count rows that were found, or that were changed.
        let found = connection.said.iter().any(|(name, _)| name == "found_rows");
        let other_counts = traffic.language.is_mysql() && found != (messages.flags() & 2 != 0);
        // How long the transaction has waited for answers, and the tables that it has changed.
        let (mut waited, mut changed) = (0, Vec::new());
        let mut learnt: Vec<Learnt> = Vec::new();
        for unit in connection.units.iter().map(|unit| &traffic.units[*unit]) {
            let due = self.sleep_until(unit.at)?;
            if !self.order.wait(lane, unit) {
                return Err(None);
            }
            let recorded = traffic.about.began_ms as i64 * 1_000;
            let recorded = [recorded, recorded.saturating_add((unit.at / 1_000) as i64)];
            let is_text = unit.requests.first().is_some_and(|sent| sent.request.step == Step::Text);
            let as_text = self.replay.prepares && is_text;
            let watch = Watch { recorded: Some(recorded), as_text, ..self.watch };
            client.watch(watch);
            let filled = self.bindings.filled(traffic, unit);
            let answers = match cached {
                None => {
                    let sent = client.send(session.raw_messages()?, &filled);
                    sent.map_err(|error| with_text(error, traffic, unit))?
                }
                Some(cached) => {
                    let of = (traffic, connection);
                    cached.send(&mut **session, client, of, &self.versions, &filled)?
                }
            };
            self.check_refused(unit, &answers)?;
            let spans = |answer: &Exchange| [watch, self.watch].map(|watch| watch.spans(answer.began));
            let pairs = unit.requests.iter().zip(&answers);
            learnt.clear();
            learnt.extend(
                pairs.map(|(sent, answer)| self.bindings.learn(traffic, sent, answer, spans(answer))),
            );
            self.versions.answered(traffic, unit, &answers, &mut changed);
            self.order.answered(unit);
            let ends = answers.iter().filter_map(|answer| answer.ended).max();
            let took = answers.first().and_then(|answer| answer.began).zip(ends);
            waited +=
                took.map_or(0, |(began, ended)| ended.saturating_duration_since(began).as_nanos() as u64);
            match unit.transaction {
                Some((kind, true)) => seen.transactions[kind].record(std::mem::take(&mut waited)),
                Some((_, false)) => {}
                None => waited = 0,
            }
            for (place, (sent, answer)) in unit.requests.iter().zip(&answers).enumerate() {
                seen.requests += 1;
                if let (Some(began), Some(ended)) = (due.or(answer.began), answer.ended) {
                    let time = ended.saturating_duration_since(began).as_nanos() as u64;
                    seen.times[traffic.templates[sent.template].kind].record(time);
                    seen.all.record(time);
                    if self.replay.halves {
                        let eighth = 8 * unit.rank / traffic.units.len().max(1);
                        let connecting = std::mem::take(&mut connecting).as_nanos() as u64;
                        seen.halves[eighth % 2].record(time + connecting);
                    }
                }
                let before = seen.compared.wrong;
                let of = (&self.bindings, learnt[place]);
                let may_have_ties = || {
                    let messages = session.raw_messages().ok();
                    messages.is_none_or(|messages| {
                        client.may_have_ties(messages, &filled.requests[place]).unwrap_or(true)
                    })
                };
                seen.compared.answer(traffic, unit, (sent, answer), other_counts, of, may_have_ties);
                let wrong = seen.compared.wrong - before;
                if wrong > 0 && self.wrong.fetch_add(wrong, Ordering::Relaxed) + 1 >= MANY {
                    return Err(None);
                }
            }
        }
        if let Some(cached) = cached {
            seen.cached.add(std::mem::take(&mut cached.counts));
        }
        Ok(())
    }

    /// Ends the replay where the server refuses what would write in a session that only reads.
    fn check_refused(&self, unit: &traffic::Unit, answers: &[Exchange]) -> Result<(), Failed> {
        let is_refused = |(sent, answer): (&Sent, &Exchange)| {
            let code = answer.error.as_ref()?;
            let is_new = sent.request.error.as_ref() != Some(code) && REFUSED.contains(&code.as_str());
            is_new.then(|| (self.replay.traffic.text(sent), code.clone()))
        };
        let refused = || unit.requests.iter().zip(answers).find_map(is_refused);
        match Some(()).filter(|()| self.options.access == Access::ReadOnly).and_then(|()| refused()) {
            Some((text, code)) => {
                let what = format!("the server refuses to execute '{text}' in a read-only session");
                Err(Some(Error::new(ErrorKind::ReadOnly, what).code(code)))
            }
            None => Ok(()),
        }
    }

    /// Waits until something is due, if the replay keeps recorded times, and gives that time.
    fn sleep_until(&self, at: u64) -> Result<Option<Instant>, Failed> {
        let stopped = || Some(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        let due = self
            .replay
            .speed
            .map(|speed| self.watch.began.0 + Duration::from_nanos((at as f64 / speed) as u64));
        loop {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(stopped());
            }
            let left = due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(due);
            }
            kurabe_reactor::sleep(left.min(NAP));
        }
    }
}
