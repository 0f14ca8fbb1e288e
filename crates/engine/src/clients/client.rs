//! The life of a client: it connects, warms up, waits for the others, works until it is stopped, and disconnects.

use crate::clients::connections::Connections;
use crate::clients::cpu_partition;
use crate::clients::limits::WARMUP_PART;
use crate::clients::pool::close_and_check;
use crate::clients::worker::{Outcome, Worker};
use crate::trial::course::Course;
use crate::trial::recorded::ClientResult;
use crate::trial::spans::Spans;
use kurabe_core::planned;
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Warm-up takes at most this part of the trial's time.
const WARMUP_TIME_PART: u32 = 10;

impl Worker<'_> {
    /// Runs the client from its connection to its last transaction. It reports to each gate exactly once in all
    /// cases; otherwise the others would wait forever.
    pub(crate) fn run(mut self) -> Box<Outcome> {
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
        self.open_course();
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

    /// Begins the course of the clients of this thread.
    fn open_course(&self) {
        let times = &mut *self.times.borrow_mut();
        let threads = if times.queue.is_some() { 1 } else { self.shared.trial.cell.policy.clients };
        times.course.get_or_insert_with(|| match &self.shared.schedule {
            Some(_) => Course::of_open_loop(threads),
            None => Course::new(threads, self.shared.lane.is_none()),
        });
    }

    /// Takes what the transaction has noted, and closes a kept connection.
    fn end(&mut self) {
        self.settle_last();
        let Outcome { done, recorded, elapsed, .. } = &mut *self.outcome;
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
        // That of the warm-up.
        kurabe_reactor::time_in_queue();
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
