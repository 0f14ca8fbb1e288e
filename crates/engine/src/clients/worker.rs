//! What a client has, in a thread of its own or as one of many tasks of a thread, and how it runs transactions.

use crate::clients::clock::Tick;
use crate::clients::connections::Connections;
use crate::clients::limits::Limits;
use crate::clients::pool::Pool;
use crate::clients::schedule::Schedule;
use crate::clients::semaphore::Semaphore;
use crate::interleave::slices::Lane;
use crate::trial::Trial;
use crate::trial::gate::Gate;
use crate::trial::recorded::{Recorded, Times};
use crate::trial::warmup_detector::WarmupDetector;
use kurabe_core::driver::Session;
use kurabe_core::experiment::{Client, ClientSummary, Recorder, Span, Transaction};
use kurabe_core::statements;
use kurabe_core::{Error, Result};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One of this many checks is timed, so that timing costs nothing.
const TIMED_CHECKS: u64 = 64;
/// How often a client reports its progress.
pub(crate) const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// What all clients of a trial share.
pub(crate) struct Shared<'a> {
    pub(crate) trial: &'a Trial<'a>,
    /// The connection pool that all clients share, if there is one.
    pub(crate) pool: Option<Pool>,
    /// Requests of one transaction that are sent before the first reply is read.
    pub(crate) pipeline: u64,
    /// The schedule of an open loop; `None` for a closed loop.
    pub(crate) schedule: Option<Schedule>,
    /// The warm-up of an open loop; `None` for a closed loop.
    pub(crate) warmup: Option<Warmup>,
    /// Detects when a long trial has warmed up.
    pub(crate) warmup_detector: Option<WarmupDetector>,
    /// The trial's lane among interleaved trials; `None` if it is not interleaved.
    pub(crate) lane: Option<Lane<'a>>,
    /// The processors for the clients; all if empty.
    pub(crate) cpus: &'a [u32],
    /// Bounds how many clients connect at a time.
    pub(crate) connecting: Semaphore,
    pub(crate) gate: Gate,
    /// Where clients wait at the end for the others, so that all connections are still open for the last observation.
    pub(crate) finish: Gate,
    /// Set when a client fails or the user stops the run. All clients end at their next transaction.
    pub(crate) stop: &'a AtomicBool,
}

/// The warm-up of an open loop: transactions at the trial's rate, started once every client is connected.
pub(crate) struct Warmup {
    pub(crate) schedule: Schedule,
    /// Opens when every client is connected.
    pub(crate) gate: Gate,
}

/// The results of a client.
pub(crate) struct Outcome {
    pub(crate) done: ClientSummary,
    pub(crate) recorded: Recorded,
    pub(crate) elapsed: Duration,
    pub(crate) error: Option<Error>,
}

/// The results of a client when its last slice began.
#[derive(Default)]
pub(crate) struct Mark {
    pub(crate) slice: u64,
    pub(crate) elapsed: Duration,
    pub(crate) offered: u64,
    pub(crate) completed: u64,
    pub(crate) connections: Connections,
    pub(crate) spans: Vec<Span>,
    pub(crate) retries: u64,
}

pub(crate) struct Worker<'a> {
    pub(crate) shared: &'a Shared<'a>,
    pub(crate) transaction: Box<dyn Transaction>,
    pub(crate) recorder: Recorder,
    pub(crate) session: Option<Box<dyn Session>>,
    pub(crate) limits: Limits,
    /// Borrowed only while a time is recorded.
    pub(crate) times: &'a RefCell<Times>,
    /// Boxed: it would be on the stack several times.
    pub(crate) outcome: Box<Outcome>,
    /// Of an interleaved trial: the results when the last slice began.
    pub(crate) mark: Option<Box<Mark>>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        client: Client,
        transaction: Box<dyn Transaction>,
        limits: Limits,
        times: &'a RefCell<Times>,
    ) -> Self {
        let done = ClientSummary { client, completed: 0, rows_written: 0, notes: None };
        let recorded = Recorded::default();
        let outcome = Box::new(Outcome { done, recorded, elapsed: Duration::ZERO, error: None });
        Self {
            shared,
            transaction,
            recorder: Recorder::default(),
            session: None,
            limits,
            times,
            outcome,
            mark: None,
        }
    }

    pub(crate) fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            if !self.shared.stop.swap(true, Ordering::Relaxed) {
                statements::end_of_failed(self.shared.trial.options.trial);
            }
            self.outcome.error.get_or_insert(error);
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
            || self.shared.trial.conditions.cancel.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn transact(&mut self) -> Result<()> {
        if let Some(session) = &mut self.session {
            return self.transaction.run(&mut **session, &mut self.recorder);
        }
        let Self { transaction, recorder, outcome, .. } = self;
        let costs = &mut outcome.recorded.connections;
        let began = Tick::now();
        if let Some(pool) = &self.shared.pool {
            let session = pool.take()?;
            costs.waited(began.elapsed());
            return pool.lend(session, |session| {
                transaction.attach(session)?;
                transaction.run(session, recorder)?;
                transaction.detach(session)
            });
        }
        let trial = self.shared.trial;
        let mut session = trial.driver.connect(trial.options)?;
        costs.opened(began.elapsed(), session.connect_times());
        transaction.attach(&mut *session)?;
        transaction.run(&mut *session, recorder)?;
        let done = Tick::now();
        session.close()?;
        costs.closed(done.elapsed());
        Ok(())
    }

    pub(crate) fn ended(&self) -> bool {
        let early = self.shared.trial.stop.min.is_some_and(|min| self.outcome.elapsed < min);
        self.outcome.recorded.offered >= self.limits.requests.unwrap_or(u64::MAX) && !early || self.stopped()
    }

    /// Whether another warm-up transaction leaves enough records for the measured phase.
    pub(crate) fn may_warm_up(&self) -> bool {
        let pipeline = self.shared.pipeline;
        self.outcome.recorded.warmup.saturating_add(pipeline) <= self.limits.warmup(pipeline)
    }

    /// Whether there are no records left for another transaction.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        let made = self.outcome.recorded.warmup + self.outcome.recorded.offered;
        made.saturating_add(self.shared.pipeline) > self.limits.capacity
    }

    pub(crate) fn transactions(&mut self, time: Option<Duration>) -> Result<()> {
        let mut ended = Tick::now();
        let deadline = time.map(|time| ended + time);
        // Of earlier slices, too.
        let start = ended.checked_sub(self.outcome.elapsed).unwrap_or(ended);
        let min = self.shared.trial.stop.min.map(|min| start + min);
        let quota = self.limits.requests.unwrap_or(u64::MAX);
        let pipeline = self.shared.pipeline;
        let mut reported = (ended, self.outcome.recorded.completed);
        let early = |now: Tick| min.is_some_and(|min| now < min);
        while (self.outcome.recorded.offered < quota || early(ended)) && !self.stopped() {
            if self.is_exhausted() {
                // All clients end here: fewer clients would be a different load.
                self.outcome.recorded.exhausted = true;
                self.shared.stop.store(true, Ordering::Relaxed);
                break;
            }
            self.transaction.prepare_input();
            self.outcome.recorded.offered += pipeline;
            // Clients of the same thread receive first what has arrived for them.
            kurabe_reactor::take_turn();
            let began = Tick::now();
            let answer = self.transact();
            ended = Tick::now();
            self.note_queue();
            if let Err(error) = answer.and_then(|()| self.check(ended)) {
                self.outcome.recorded.failed += pipeline;
                return Err(error);
            }
            let took = (ended - began).as_nanos() as u64;
            let times = &mut *self.times.borrow_mut();
            times.service.record_many(took, pipeline);
            if let Some(course) = &mut times.course {
                course.record((ended - start).as_nanos() as u64, took, pipeline);
            }
            self.outcome.recorded.completed += pipeline;
            self.report_progress(ended, &mut reported);
            if deadline.is_some_and(|deadline| ended >= deadline) {
                break;
            }
        }
        Ok(())
    }

    /// Records how long the last transaction waited in the queue of its thread, if clients share one.
    #[inline]
    pub(crate) fn note_queue(&mut self) {
        if let Some(time) = kurabe_reactor::time_in_queue()
            && let Some(queue) = &mut self.times.borrow_mut().queue
        {
            queue.record(time.as_nanos() as u64);
        }
    }

    /// Reports its progress now and then.
    #[inline]
    pub(crate) fn report_progress(&self, now: Tick, last: &mut (Tick, u64)) {
        if now - last.0 > PROGRESS_INTERVAL {
            let progress = self.shared.trial.conditions.progress;
            progress.fetch_add(self.outcome.recorded.completed - last.1, Ordering::Relaxed);
            *last = (now, self.outcome.recorded.completed);
        }
    }

    #[inline]
    pub(crate) fn check(&mut self, ended: Tick) -> Result<()> {
        let checked = self.transaction.check(&mut self.recorder);
        if self.outcome.recorded.completed.is_multiple_of(TIMED_CHECKS) {
            let took = ended.elapsed().as_nanos() as u64 / self.shared.pipeline;
            self.times.borrow_mut().checks.record(took);
        }
        checked
    }
}
