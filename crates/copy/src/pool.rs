//! What is left of a copy, which threads take one by one: ranges of rows, then the rest of a table.

use crate::event::TableDone;
use crate::plan::TablePlan;
use crate::state::{OfTable, Phase};
use crate::wanted::Parts;
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Whether the copy ends early: the user stops it, or a part of it failed.
pub struct Halt<'h> {
    stop: &'h AtomicBool,
    error: OnceLock<Error>,
}

impl<'h> Halt<'h> {
    /// As long as `stop` is not set, and nothing fails.
    pub fn new(stop: &'h AtomicBool) -> Self {
        Self { stop, error: OnceLock::new() }
    }

    /// Fails after the user has stopped the program, or another part of the copy has failed.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        if self.error.get().is_some() {
            return Err(Error::new(ErrorKind::Interrupted, "another part of the copy has failed"));
        }
        Ok(())
    }

    /// Ends the copy. The first error is the one to report.
    pub fn fail(&self, error: Error) {
        let _ = self.error.set(error);
    }

    pub fn error(&self) -> Option<Error> {
        self.error.get().cloned()
    }
}

/// A table, and what is left of it.
pub struct Work<'p> {
    table: &'p TablePlan,
    now: OfTable,
    ranges: Vec<OfTable>,
    /// Ranges that no thread has taken yet, the last one first.
    waiting: Vec<usize>,
    /// The number of ranges that are not copied.
    open: usize,
    finishing: bool,
    rows: u64,
    start: Option<Instant>,
    done: TableDone,
}

impl<'p> Work<'p> {
    /// A table whose ranges are as far as this.
    pub fn new(table: &'p TablePlan, now: OfTable, ranges: Vec<OfTable>) -> Self {
        let is_open = |at: &usize| now.phase < Phase::Copied && ranges[*at].phase < Phase::Copied;
        let waiting: Vec<usize> = (0..ranges.len()).rev().filter(is_open).collect();
        let (rows, open) = (ranges.iter().map(|range| range.rows).sum(), waiting.len());
        let done = TableDone::default();
        let mut work = Self { table, now, ranges, waiting, open, finishing: false, rows, start: None, done };
        if work.now.phase < Phase::Copied {
            work.sum();
        }
        work
    }

    /// How many rows of each range the target has refused so far.
    pub fn rejected(&self) -> impl Iterator<Item = ((String, usize), u64)> {
        let name = &self.table.name;
        self.ranges.iter().enumerate().map(move |(at, range)| ((name.clone(), at), range.rejected))
    }

    /// The table's new state, once all its ranges are copied.
    fn sum(&mut self) -> Option<OfTable> {
        if self.open > 0 {
            return None;
        }
        let mut now = OfTable::new(Phase::Copied);
        now.splits.clone_from(&self.now.splits);
        self.ranges.iter().for_each(|range| now.add(range));
        self.done.copy = self.start.map_or(Duration::ZERO, |start| start.elapsed());
        self.now = now;
        Some(self.now.clone())
    }
}

/// A range of a table whose rows are to be copied.
pub struct RowRange<'p> {
    pub at: usize,
    pub table: &'p TablePlan,
    pub range: usize,
    /// How far the table was when this process began.
    pub whole: OfTable,
    pub now: OfTable,
}

/// What a thread does next.
pub enum Item<'p> {
    /// Copies a range.
    Rows(RowRange<'p>),
    /// Verifies a table and makes its indexes.
    Finish { at: usize, table: &'p TablePlan, now: OfTable, done: TableDone },
}

/// The tables of a copy, for all threads.
pub struct Pool<'p> {
    works: Mutex<Vec<Work<'p>>>,
    refused: Mutex<Vec<(String, Error)>>,
    ready: Condvar,
    pub halt: &'p Halt<'p>,
    pub parts: Parts,
}

impl<'p> Pool<'p> {
    /// These tables, in this order.
    pub fn new(works: Vec<Work<'p>>, halt: &'p Halt<'p>, parts: Parts) -> Self {
        Self { works: Mutex::new(works), refused: Mutex::default(), ready: Condvar::new(), halt, parts }
    }

    fn works(&self) -> MutexGuard<'_, Vec<Work<'p>>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done next, after what this thread has done, for which others may wait. Waits while other threads copy the last
    /// ranges. `None` at the end, or after an error.
    pub fn next(&self) -> Option<Item<'p>> {
        self.ready.notify_all();
        let mut works = self.works();
        loop {
            if let Err(error) = self.halt.check() {
                self.halt.fail(error);
                return None;
            }
            // Before the rows of all are copied, a trigger of another table may change one.
            let waits = self.parts == Parts::Data && works.iter().any(|work| work.open > 0);
            for (at, work) in works.iter_mut().enumerate() {
                let table = work.table;
                if let Some(range) = work.waiting.pop() {
                    work.start.get_or_insert_with(Instant::now);
                    let (whole, now) = (work.now.clone(), work.ranges[range].clone());
                    return Some(Item::Rows(RowRange { at, table, range, whole, now }));
                }
                if work.open == 0 && !work.finishing && !waits {
                    work.finishing = true;
                    let (now, done) = (work.now.clone(), std::mem::take(&mut work.done));
                    return Some(Item::Finish { at, table, now, done });
                }
            }
            if works.iter().all(|work| work.finishing) {
                return None;
            }
            // The user may stop the program meanwhile.
            let waited = self.ready.wait_timeout(works, Duration::from_millis(200));
            works = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Adds rows to those of a table, and returns their number.
    pub fn add(&self, at: usize, rows: u64) -> u64 {
        let mut works = self.works();
        works[at].rows += rows;
        works[at].rows
    }

    /// Records that a range was copied. Returns the table's new state if it was the last one.
    pub fn copied(&self, at: usize, range: usize, now: OfTable, done: &TableDone) -> Option<OfTable> {
        let mut works = self.works();
        let work = &mut works[at];
        work.ranges[range] = now;
        work.open -= 1;
        work.done.copied += done.copied;
        work.done.bytes += done.bytes;
        work.done.proven = done.proven;
        work.sum()
    }

    /// Records what was done of a table.
    pub fn finish(&self, at: usize, done: TableDone) {
        self.works()[at].done = done;
    }

    /// What was done of all tables, and the indexes that the target refused.
    pub fn end(self) -> (Vec<TableDone>, Vec<(String, Error)>) {
        let done = self.works().iter_mut().map(|work| std::mem::take(&mut work.done)).collect();
        (done, self.refused.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records an index that the target refused.
    pub fn refuse(&self, refused: (String, Error)) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(refused);
    }
}
