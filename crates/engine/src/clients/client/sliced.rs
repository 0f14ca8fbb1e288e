//! The part of a client in an interleaved trial: it works in slices, and takes back what it did in a void one.

use super::{Mark, PROGRESS_INTERVAL, Worker};
use crate::interleave::slices::Lane;
use crate::trial::recorded::Recorded;
use kurabe_core::Result;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Worker<'_> {
    /// Runs in slices. Its time is the sum of those that count.
    pub(super) fn in_slices(&mut self, lane: &Lane<'_>) -> Result<()> {
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

    /// Settles the last slice, once all clients have ended.
    pub(super) fn settle_last(&mut self) {
        let Some(slice) = self.mark.as_ref().map(|mark| mark.slice).filter(|slice| *slice > 0) else {
            return;
        };
        let is_void = self.shared.lane.is_some_and(|lane| lane.is_void(slice));
        self.settle(is_void);
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
