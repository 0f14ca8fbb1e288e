//! The open loop of one client: takes transactions from the schedule when they are due, whether or not it is late.
//!
//! All clients take from one schedule, as a pool of workers takes from a queue: a free client holds the next
//! transaction and sleeps until it is due. Where all clients wait for answers, transactions that are due wait too, and
//! their response times say so, since they are taken from when each was due ("coordinated omission" is what hides that;
//! Gil Tene, "How NOT to Measure Latency").

use crate::client::{Tick, Worker};
use crate::schedule::Schedule;
use kurabe_core::Result;
use kurabe_stats::Histogram;
use std::num::NonZeroU64;
use std::thread;
use std::time::Duration;

/// Closer than this the processor waits for the time instead of going to sleep, which would take about as long.
const SPIN: u64 = 5_000;
/// A sleep is no longer than this at once, so that a client notices when the others have stopped.
const NAP: u64 = 50_000_000;

/// What one client's open loop shows.
pub(crate) struct Paced {
    pub(crate) response: Histogram,
    pub(crate) lag: Histogram,
    pub(crate) backlog: u64,
    pub(crate) dropped: u64,
    /// When its last transaction ended, in nanoseconds from the start.
    pub(crate) last_end: u64,
}

impl Paced {
    pub(crate) fn new() -> Self {
        let (response, lag) = (Histogram::new(), Histogram::new());
        Self { response, lag, backlog: 0, dropped: 0, last_end: 0 }
    }

    /// Adds another client's.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.lag.merge(&other.lag);
        self.backlog = self.backlog.max(other.backlog);
        self.dropped += other.dropped;
        self.last_end = self.last_end.max(other.last_end);
    }
}

/// Lets this thread's sleeps end when they should: the kernel is free to add 50 µs (`prctl(2)`, `PR_SET_TIMERSLACK`).
pub(crate) fn sleep_sharply() {
    // Where it cannot be set, dispatch lag shows it.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

impl Worker<'_> {
    /// Runs transactions as they are due. `start` may lie ahead.
    pub(crate) fn paced(&mut self, start: Tick, schedule: &Schedule, paced: &mut Paced) -> Result<()> {
        let last_begin = schedule.last_begin();
        let mut told = (Tick::now(), 0);
        let mut drawn = false;
        while !self.stopped() {
            if !drawn {
                self.transaction.draw();
                drawn = true;
            }
            let Some(due) = schedule.take() else { break };
            self.outcome.offered += 1;
            let Some(began) = self.wait_until(start, due, last_begin, schedule, paced) else {
                self.outcome.offered -= 1;
                break;
            };
            if began > last_begin {
                paced.dropped += 1;
                paced.response.record(began - due);
                continue;
            }
            drawn = false;
            let answer = self.transact();
            let ended = Tick::now();
            let end = nanos(start, ended);
            if let Err(error) = answer.and_then(|()| self.check(ended)) {
                self.outcome.failed += 1;
                return Err(error);
            }
            self.outcome.service.record(end.saturating_sub(began));
            paced.response.record(end.saturating_sub(due));
            paced.last_end = end;
            self.outcome.completed += 1;
            self.tell(ended, &mut told);
        }
        Ok(())
    }

    /// Waits until a transaction is due, where it is not yet, and notes lag or backlog. Gives when it is begun, in
    /// nanoseconds from the start; `None` where the trial was stopped meanwhile.
    fn wait_until(
        &self,
        start: Tick,
        due: u64,
        last_begin: u64,
        schedule: &Schedule,
        paced: &mut Paced,
    ) -> Option<u64> {
        let now = nanos(start, Tick::now());
        if now > due {
            if now <= last_begin {
                paced.backlog = paced.backlog.max(schedule.waiting(now - due));
            }
            return Some(now);
        }
        loop {
            // Before the start, offsets are 0: the time left is worked out from the instant.
            let left =
                (start + Duration::from_nanos(due)).saturating_duration_since(Tick::now()).as_nanos() as u64;
            if left == 0 {
                let now = nanos(start, Tick::now());
                paced.lag.record(now.saturating_sub(due));
                return Some(now);
            }
            if self.stopped() {
                return None;
            }
            if left > SPIN {
                thread::sleep(Duration::from_nanos(left.min(NAP)));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Nanoseconds from the start; 0 before it.
fn nanos(start: Tick, now: Tick) -> u64 {
    now.saturating_duration_since(start).as_nanos() as u64
}
