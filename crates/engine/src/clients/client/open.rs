//! The open loop of one client: starts transactions when they are due, whether or not it is late.
//!
//! All clients take from one schedule, as workers take from a queue: a free client holds the next transaction and
//! sleeps until it is due. If all clients wait for replies, due transactions wait too. Response times include that
//! wait, since they start when a transaction is due. Ignoring it is called "coordinated omission" (Gil Tene, "How NOT
//! to Measure Latency").

use super::{Warmup, Worker};
use crate::clients::clock::{Tick, sleep_sharply, tick_of};
use crate::clients::schedule::Schedule;
use crate::trial::recorded::OpenTimes;
use kurabe_core::Result;
use std::time::{Duration, Instant};

/// In nanoseconds. For shorter waits the client spins, since going to sleep takes about as long.
const SPIN: u64 = 5_000;
/// The maximum length of one sleep, in nanoseconds, so that a client notices when the others have stopped.
const NAP: u64 = 50_000_000;

impl Worker<'_> {
    /// Warms up at the rate of the trial. A burst at full speed would fill the server's logs and queues before the
    /// measured phase. Transactions still waiting at the end of the warm-up are not started.
    pub(super) fn warm_up_open_loop(&mut self, start: Instant, warmup: &Warmup) -> Result<()> {
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
    pub(super) fn open_loop(&mut self, start: Instant, schedule: &Schedule) -> Result<()> {
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
