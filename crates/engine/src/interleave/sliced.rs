//! The part of a client in an interleaved trial: it works in slices, and takes back what it did in a void one.

use crate::clients::client::Worker;
use crate::clients::connections::Connections;
use crate::interleave::slices::Lane;
use crate::trial::course::Course;
use crate::trial::recorded::{Recorded, Times};
use kurabe_core::Result;
use kurabe_core::experiment::Span;
use kurabe_stats::Histogram;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The times of earlier slices that count. Those of the last slice are apart until it is known whether it is void.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    /// The last slice whose times were kept or dropped.
    slice: u64,
    service: Histogram,
    queue: Histogram,
    course: Option<Course>,
}

/// The results of a client when its last slice began.
#[derive(Default)]
pub(crate) struct Mark {
    slice: u64,
    elapsed: Duration,
    offered: u64,
    completed: u64,
    connections: Connections,
    spans: Vec<Span>,
    retries: u64,
}

impl Times {
    /// Keeps the times of a slice, or drops them. The first client of the thread does it for all: none of them works in
    /// the next slice before each has ended this one.
    fn settle(&mut self, slice: u64, is_void: bool) {
        let kept = self.kept.get_or_insert_default();
        if kept.slice >= slice {
            return;
        }
        kept.slice = slice;
        if !is_void {
            kept.service.merge(&self.service);
        }
        self.service.clear();
        if let Some(queue) = &mut self.queue {
            if !is_void {
                kept.queue.merge(queue);
            }
            queue.clear();
        }
        if let Some(course) = &mut self.course {
            if !is_void {
                kept.course.get_or_insert_with(|| course.empty()).merge(course);
            }
            course.clear();
        }
    }

    /// The times of all slices that count.
    pub(crate) fn of_counted_slices(mut self) -> Self {
        if let Some(kept) = self.kept.take() {
            let Kept { service, queue, course, .. } = *kept;
            (self.service, self.course) = (service, course);
            self.queue = self.queue.map(|_| Box::new(queue));
        }
        self
    }
}

impl Worker<'_> {
    /// Runs in slices. Its time is the sum of those that count.
    pub(crate) fn in_slices(&mut self, lane: &Lane<'_>) -> Result<()> {
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
            if slice <= crate::clients::client::PROGRESS_INTERVAL {
                // Too short for a separate progress report.
                let made = self.outcome.recorded.completed - completed;
                self.shared.trial.progress.fetch_add(made, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Settles the last slice, once all clients have ended.
    pub(crate) fn settle_last(&mut self) {
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
