//! A client of a trial, in a thread of its own or as one of many tasks of a thread: it connects, warms up, waits for the
//! others, works until it is stopped, and disconnects.

use crate::clients::connections::{Connections, Pool, Semaphore, close_and_check};
use crate::clients::cpu_partition;
use crate::clients::launch::Gate;
use crate::clients::schedule::{Schedule, Tick, sleep_sharply, tick_of};
use crate::clients::slices::Lane;
use crate::trial::Trial;
use crate::trial::course::Course;
use crate::trial::recorded::{ClientResult, OpenTimes, Recorded, Spans, Times};
use crate::trial::warmup_detector::WarmupDetector;
use kurabe_core::driver::Session;
use kurabe_core::experiment::{Client, ClientSummary, Recorder, Span, Transaction};
use kurabe_core::{Error, ErrorKind, Result, planned, statements};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One of this many checks is timed, so that timing costs nothing.
const TIMED_CHECKS: u64 = 64;
/// The queue of the thread is timed for one of this many transactions.
const TIMED_QUEUES: u64 = 8;
/// How often a client reports its progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// What all clients of a trial share.
pub(crate) struct ClientsShared<'a> {
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
pub(crate) struct ClientOutcome {
    pub(crate) done: ClientSummary,
    pub(crate) recorded: Recorded,
    pub(crate) elapsed: Duration,
    pub(crate) error: Option<Error>,
}

/// The results of a client when its last slice began.
#[derive(Default)]
struct Mark {
    slice: u64,
    elapsed: Duration,
    offered: u64,
    completed: u64,
    connections: Connections,
    spans: Vec<Span>,
    retries: u64,
}

pub(crate) struct Worker<'a> {
    shared: &'a ClientsShared<'a>,
    transaction: Box<dyn Transaction>,
    recorder: Recorder,
    session: Option<Box<dyn Session>>,
    limits: Limits,
    /// Borrowed only while a time is recorded.
    times: &'a RefCell<Times>,
    /// Boxed: it would be on the stack several times.
    outcome: Box<ClientOutcome>,
    /// Of an interleaved trial: the results when the last slice began.
    mark: Option<Box<Mark>>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        shared: &'a ClientsShared<'a>,
        client: Client,
        transaction: Box<dyn Transaction>,
        limits: Limits,
        times: &'a RefCell<Times>,
    ) -> Self {
        let done = ClientSummary { client, completed: 0, rows_written: 0, notes: None };
        let recorded = Recorded::default();
        let outcome = Box::new(ClientOutcome { done, recorded, elapsed: Duration::ZERO, error: None });
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

    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            if !self.shared.stop.swap(true, Ordering::Relaxed) {
                statements::end_of_failed(self.shared.trial.options.trial);
            }
            self.outcome.error.get_or_insert(error);
        }
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
            || self.shared.trial.conditions.cancel.load(Ordering::Relaxed)
    }

    #[inline]
    fn transact(&mut self) -> Result<()> {
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

    fn ended(&self) -> bool {
        let early = self.shared.trial.stop.min.is_some_and(|min| self.outcome.elapsed < min);
        self.outcome.recorded.offered >= self.limits.requests.unwrap_or(u64::MAX) && !early || self.stopped()
    }

    /// Whether another warm-up transaction leaves enough records for the measured phase.
    fn may_warm_up(&self) -> bool {
        let pipeline = self.shared.pipeline;
        self.outcome.recorded.warmup.saturating_add(pipeline) <= self.limits.warmup(pipeline)
    }

    /// Whether there are no records left for another transaction.
    #[inline]
    fn is_exhausted(&self) -> bool {
        let made = self.outcome.recorded.warmup + self.outcome.recorded.offered;
        made.saturating_add(self.shared.pipeline) > self.limits.capacity
    }

    fn transactions(&mut self, time: Option<Duration>) -> Result<()> {
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
            self.time_queue();
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

    /// Times the queue of one in [`TIMED_QUEUES`] transactions, or pipelines of them, if clients share a thread. Clients differ
    /// in which.
    #[inline]
    fn time_queue(&self) {
        let place =
            self.outcome.recorded.completed / self.shared.pipeline + self.outcome.done.client.index as u64;
        if place.is_multiple_of(TIMED_QUEUES) {
            kurabe_reactor::time_queue();
        }
    }

    /// Records how long the last transaction waited in the queue of its thread, if clients share one and it was timed.
    #[inline]
    fn note_queue(&mut self) {
        if let Some(time) = kurabe_reactor::time_in_queue()
            && let Some(queue) = &mut self.times.borrow_mut().queue
        {
            queue.record(time.as_nanos() as u64);
        }
    }

    /// Reports its progress now and then.
    #[inline]
    fn report_progress(&self, now: Tick, last: &mut (Tick, u64)) {
        if now - last.0 > PROGRESS_INTERVAL {
            let progress = self.shared.trial.conditions.progress;
            progress.fetch_add(self.outcome.recorded.completed - last.1, Ordering::Relaxed);
            *last = (now, self.outcome.recorded.completed);
        }
    }

    #[inline]
    fn check(&mut self, ended: Tick) -> Result<()> {
        let checked = self.transaction.check(&mut self.recorder);
        if self.outcome.recorded.completed.is_multiple_of(TIMED_CHECKS) {
            let took = ended.elapsed().as_nanos() as u64 / self.shared.pipeline;
            self.times.borrow_mut().checks.record(took);
        }
        checked
    }
}

/// Warm-up takes at most this part of the trial's time.
const WARMUP_TIME_PART: u32 = 10;

impl Worker<'_> {
    /// Runs the client from its connection to its last transaction. It reports to each gate exactly once in all
    /// cases; otherwise the others would wait forever.
    pub(crate) fn run(mut self) -> Box<ClientOutcome> {
        let failed = !self.shared.connecting.pass(|| self.begin());
        kurabe_reactor::trim_stack();
        let warmed_up = match &self.shared.warmup {
            Some(warmup) => {
                warmup.gate.report();
                let start = warmup.gate.pass().filter(|_| !failed);
                start.map_or(Ok(()), |start| self.warm_up_open_loop(start, warmup))
            }
            None if failed => Ok(()),
            None => self.warm_up(),
        };
        let failed = failed || warmed_up.is_err();
        self.note(warmed_up);
        {
            // The course of the clients of this thread.
            let times = &mut *self.times.borrow_mut();
            let threads = if times.queue.is_some() { 1 } else { self.shared.trial.cell.policy.clients };
            times.course.get_or_insert_with(|| match &self.shared.schedule {
                Some(_) => Course::of_open_loop(threads),
                None => Course::new(threads, self.shared.lane.is_none()),
            });
        }
        self.shared.gate.report();
        if let Some(start) = self.shared.gate.pass()
            && !failed
        {
            let measured = self.measure(start);
            self.note(measured);
        }
        self.shared.finish.report();
        let _ = self.shared.finish.pass();
        self.end();
        self.outcome
    }

    /// Takes what the transaction has noted, and closes a kept connection.
    fn end(&mut self) {
        // The last slice, once all clients have ended.
        if let Some(slice) = self.mark.as_ref().map(|mark| mark.slice).filter(|slice| *slice > 0) {
            self.settle(self.shared.lane.is_some_and(|lane| lane.is_void(slice)));
        }
        let ClientOutcome { done, recorded, elapsed, .. } = &mut *self.outcome;
        let recorder = std::mem::take(&mut self.recorder);
        if recorder.measures() {
            let (spans, retries) = recorder.measured();
            (recorded.spans, recorded.retries) = (Spans(spans.to_vec()), retries);
        }
        *done = recorder.into_summary(done.client, recorded.warmup + recorded.completed);
        recorded.clients.push(ClientResult {
            index: done.client.index,
            completed: done.completed,
            rows_written: done.rows_written,
            elapsed_ns: elapsed.as_nanos() as u64,
            measured: recorded.completed,
        });
        if let Some(session) = self.session.take() {
            self.note(close_and_check(session));
        }
    }

    /// Connects, unless another client has failed. Returns whether it is connected. An error is noted here, before the next
    /// client connects: thousands of clients would wait for a server that does not answer, a few at a time.
    fn begin(&mut self) -> bool {
        if self.stopped() {
            return false;
        }
        let connected = cpu_partition::pin_thread(self.shared.cpus).and_then(|()| self.connect());
        let is_connected = connected.is_ok();
        self.note(connected);
        is_connected
    }

    fn connect(&mut self) -> Result<()> {
        let trial = self.shared.trial;
        if trial.cell.policy.connections == planned::Connections::Kept {
            let mut session = trial.driver.connect(trial.options)?;
            self.transaction.attach(&mut *session)?;
            self.session = Some(session);
        }
        Ok(())
    }

    /// Warms up as a closed loop does.
    fn warm_up(&mut self) -> Result<()> {
        let max = self.limits.requests.map_or(u64::MAX, |quota| (quota / WARMUP_PART).max(1));
        let began = Instant::now();
        let until = self.shared.trial.stop.duration.map(|duration| began + duration / WARMUP_TIME_PART);
        let min = self.shared.trial.stop.min.unwrap_or_default() / WARMUP_TIME_PART;
        while (self.outcome.recorded.warmup < max || began.elapsed() < min)
            && self.may_warm_up()
            && !self.stopped()
        {
            self.transaction.prepare_input();
            kurabe_reactor::take_turn();
            self.transact()?;
            self.transaction.check(&mut self.recorder)?;
            self.outcome.recorded.warmup += self.shared.pipeline;
            let Some(until) = until else { continue };
            let now = Instant::now();
            let even = self.shared.warmup_detector.as_ref().is_none_or(|warmup_detector| {
                warmup_detector.done(self.shared.pipeline, now) || now >= began + warmup_detector.max()
            });
            if now >= until && even {
                break;
            }
        }
        Ok(())
    }

    fn measure(&mut self, start: Instant) -> Result<()> {
        let shared = self.shared;
        // Warm-up is not part of any result.
        self.outcome.recorded.connections = Connections::default();
        self.recorder.begin_measuring();
        let measured = if let Some(schedule) = &shared.schedule {
            self.open_loop(start, schedule)
        } else if let Some(lane) = &shared.lane {
            self.in_slices(lane)
        } else {
            let measured = self.transactions(shared.trial.stop.duration);
            self.outcome.elapsed = start.elapsed();
            measured
        };
        measured?;
        if shared.trial.conditions.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        Ok(())
    }
}

/// In nanoseconds. For shorter waits the client spins, since going to sleep takes about as long.
const SPIN: u64 = 5_000;
/// The maximum length of one sleep, in nanoseconds, so that a client notices when the others have stopped.
const NAP: u64 = 50_000_000;

/// The open loop of a client: starts transactions when they are due, whether or not it is late.
///
/// All clients take from one schedule, as workers take from a queue: a free client holds the next transaction and
/// sleeps until it is due. If all clients wait for replies, due transactions wait too. Response times include that
/// wait, since they start when a transaction is due. Ignoring it is called "coordinated omission" (Gil Tene, "How NOT
/// to Measure Latency").
impl Worker<'_> {
    /// Warms up at the rate of the trial. A burst at full speed would fill the server's logs and queues before the
    /// measured phase. Transactions still waiting at the end of the warm-up are not started.
    fn warm_up_open_loop(&mut self, start: Instant, warmup: &Warmup) -> Result<()> {
        sleep_sharply();
        let start = tick_of(start);
        let end = warmup.schedule.due_until();
        while !self.stopped() && self.may_warm_up() {
            let Some(due) = warmup.schedule.take() else { break };
            let Some(began) = self.wait_until(start, due, end, &warmup.schedule, false) else { break };
            if began > end {
                break;
            }
            self.transaction.prepare_input();
            self.transact()?;
            self.transaction.check(&mut self.recorder)?;
            self.outcome.recorded.warmup += 1;
        }
        Ok(())
    }

    /// Changes the results of this thread.
    fn with_open_loop(&self, what: impl FnOnce(&mut OpenTimes)) {
        what(self.times.borrow_mut().open_loop.get_or_insert_default());
    }

    /// Records the response time of a transaction that ended, or was dropped, at `end`.
    fn respond(&self, end: u64, due: u64, what: impl FnOnce(&mut OpenTimes)) {
        let (times, took) = (&mut *self.times.borrow_mut(), end.saturating_sub(due));
        let open_loop = times.open_loop.get_or_insert_default();
        open_loop.response.record(took);
        what(open_loop);
        if let Some(course) = &mut times.course {
            course.record(end, took, 1);
        }
    }

    /// Runs transactions as they are due. `start` may be in the future.
    fn open_loop(&mut self, start: Instant, schedule: &Schedule) -> Result<()> {
        sleep_sharply();
        let start = tick_of(start);
        // There are results even if no transaction is due.
        self.with_open_loop(|_| ());
        let last_begin = schedule.last_begin();
        let mut last = (Tick::now(), 0);
        let mut drawn = false;
        // A client without records leaves due transactions to the others, which have enough for all.
        while !self.stopped() && !self.is_exhausted() {
            if !drawn {
                self.transaction.prepare_input();
                drawn = true;
            }
            let Some(due) = schedule.take() else { break };
            self.outcome.recorded.offered += 1;
            let Some(began) = self.wait_until(start, due, last_begin, schedule, true) else {
                self.outcome.recorded.offered -= 1;
                break;
            };
            if began > last_begin {
                self.respond(began, due, |open_loop| open_loop.dropped += 1);
                continue;
            }
            drawn = false;
            self.time_queue();
            let answer = self.transact();
            let ended = Tick::now();
            self.note_queue();
            let end = nanos(start, ended);
            if let Err(error) = answer.and_then(|()| self.check(ended)) {
                self.outcome.recorded.failed += 1;
                return Err(error);
            }
            self.respond(end, due, |open_loop| open_loop.last_end = open_loop.last_end.max(end));
            self.times.borrow_mut().service.record(end.saturating_sub(began));
            self.outcome.elapsed = Duration::from_nanos(end);
            self.outcome.recorded.completed += 1;
            self.report_progress(ended, &mut last);
        }
        Ok(())
    }

    /// Waits until a transaction is due, and records lag or backlog if it is `measured`. Returns its start in nanoseconds from the
    /// trial's start; `None` if the trial was stopped.
    fn wait_until(
        &self,
        start: Tick,
        due: u64,
        last_begin: u64,
        schedule: &Schedule,
        measured: bool,
    ) -> Option<u64> {
        let now = nanos(start, Tick::now());
        if now > due {
            if measured && now <= last_begin && !schedule.has_ready_client() {
                self.with_open_loop(|open_loop| {
                    open_loop.backlog = open_loop.backlog.max(schedule.waiting(now));
                });
            }
            return Some(now);
        }
        let _ready = schedule.ready_client();
        loop {
            // Offsets before the start are 0: the remaining time is computed from the instant.
            let left =
                (start + Duration::from_nanos(due)).saturating_duration_since(Tick::now()).as_nanos() as u64;
            if left == 0 {
                let now = nanos(start, Tick::now());
                if measured {
                    self.with_open_loop(|open_loop| open_loop.lag.record(now.saturating_sub(due)));
                }
                return Some(now);
            }
            if self.stopped() {
                return None;
            }
            // A reactor spins for all of its clients.
            if left > SPIN || kurabe_reactor::current() != 0 {
                kurabe_reactor::sleep(Duration::from_nanos(left.min(NAP)));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Nanoseconds since the start; 0 before it.
fn nanos(start: Tick, now: Tick) -> u64 {
    now.saturating_duration_since(start).as_nanos() as u64
}

/// An interleaved client: it works in slices, and takes back what it did in a void one.
impl Worker<'_> {
    /// Runs in slices. Its time is the sum of those that count.
    fn in_slices(&mut self, lane: &Lane<'_>) -> Result<()> {
        let (mut worker, mut last) = (lane.client(), 0);
        self.mark = Some(Box::default());
        while !self.ended()
            && let Some((slice, was_void)) = worker.next(last)
        {
            self.settle(was_void);
            self.set_mark(worker.slice());
            let (began, completed) = (Instant::now(), self.outcome.recorded.completed);
            let measured = self.transactions(Some(slice));
            self.outcome.elapsed += began.elapsed();
            measured?;
            last = (self.outcome.recorded.completed - completed) / self.shared.pipeline.max(1);
            if slice <= PROGRESS_INTERVAL {
                // Too short for a separate progress report.
                let made = self.outcome.recorded.completed - completed;
                self.shared.trial.conditions.progress.fetch_add(made, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn set_mark(&mut self, slice: u64) {
        let Some(mark) = &mut self.mark else { return };
        let Recorded { offered, completed, connections, .. } = self.outcome.recorded;
        let (spans, retries) = self.recorder.measured();
        let (spans, elapsed) = (spans.to_vec(), self.outcome.elapsed);
        **mark = Mark { slice, elapsed, offered, completed, connections, spans, retries };
    }

    /// Keeps what the last slice gave. If it is void, its transactions are as those of the warm-up: made and verified, and
    /// no part of the results.
    fn settle(&mut self, is_void: bool) {
        let Some(mark) = self.mark.as_mut().filter(|mark| mark.slice > 0) else { return };
        self.times.borrow_mut().settle(mark.slice, is_void);
        if !is_void {
            return;
        }
        self.recorder.take_back(std::mem::take(&mut mark.spans), mark.retries);
        let recorded = &mut self.outcome.recorded;
        self.outcome.elapsed = mark.elapsed;
        recorded.warmup += recorded.completed - mark.completed;
        (recorded.completed, recorded.offered) = (mark.completed, mark.offered);
        recorded.connections = mark.connections;
    }
}

/// Warm-up is a twentieth of the client's requests, but at least one request, …
pub(crate) const WARMUP_PART: u64 = 20;
/// … and at most a tenth of the records that it may change, if the measured phase could need them all.
const WARMUP_CAPACITY_PART: u64 = 10;

/// The limits of a client's part of a trial, besides time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Requests of the measured phase; `None`: no limit.
    pub(crate) requests: Option<u64>,
    /// Requests that it has records for, including warm-up.
    pub(crate) capacity: u64,
}

/// The maximum requests of one client in a trial of that many, including warm-up.
pub(crate) fn requests_of_client(requests: u64, clients: usize, pipeline: u64) -> u64 {
    let quota = requests.div_ceil(clients.max(1) as u64);
    quota.next_multiple_of(pipeline) + (quota / WARMUP_PART).max(1).next_multiple_of(pipeline)
}

impl Limits {
    /// Requests for its warm-up: what the measured phase leaves, or a small share.
    pub(crate) fn warmup(&self, pipeline: u64) -> u64 {
        let measured = self.requests.map(|requests| requests.next_multiple_of(pipeline));
        match measured {
            Some(measured) if measured < self.capacity => self.capacity - measured,
            _ => self.capacity / WARMUP_CAPACITY_PART,
        }
    }
}
