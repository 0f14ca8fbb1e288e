//! Work that is no loop: it begins, does its parts, and ends, as a bulk load, a dump or a copy.

use crate::driver::{ConnectOptions, Driver, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::experiment::{Checked, DatasetState, Prepare};
use crate::metric::{MetricValue, Unit};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// What one trial of a cell does, once.
pub trait Job: Prepare {
    /// Does the work: this is what is timed.
    ///
    /// # Errors
    /// Any: the trial fails.
    fn run(&self, operation: &str, state: &DatasetState, context: &mut JobContext<'_>) -> Result<()>;

    /// Checks that what was done is true. Not measured.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) where it is not true; or the server's error.
    fn verify(&self, operation: &str, state: &DatasetState, session: &mut dyn Session) -> Result<Checked>;
}

/// What a job works with, and what it says of itself.
pub struct JobContext<'a> {
    driver: &'a dyn Driver,
    options: &'a ConnectOptions,
    cancel: &'a AtomicBool,
    progress: &'a AtomicU64,
    sessions: Vec<(&'static str, Box<dyn Session>)>,
    done: JobDone,
}

/// What a job did.
#[derive(Debug, Default)]
pub struct JobDone {
    /// Rows that it moved, or whatever else its work is counted in.
    pub rows: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Each of its spans, in the order in which they ended, and its samples.
    pub metrics: Vec<MetricValue>,
}

impl<'a> JobContext<'a> {
    /// The context of a job on one target, before it begins.
    pub fn new(
        driver: &'a dyn Driver,
        options: &'a ConnectOptions,
        cancel: &'a AtomicBool,
        progress: &'a AtomicU64,
    ) -> Self {
        Self { driver, options, cancel, progress, sessions: Vec::new(), done: JobDone::default() }
    }

    /// The session of a role, such as `reader`: opened when it is first asked for, and open until the job has ended.
    ///
    /// # Errors
    /// As for [`Driver::connect`].
    pub fn session(&mut self, role: &'static str) -> Result<&mut dyn Session> {
        let known = self.sessions.iter().position(|(known, _)| *known == role);
        let at = known.unwrap_or(self.sessions.len());
        if known.is_none() {
            let session = self.driver.connect(self.options).map_err(|error| error.context(role))?;
            self.sessions.push((role, session));
        }
        Ok(&mut *self.sessions[at].1)
    }

    /// Does a part of the work, and notes how long it took.
    ///
    /// # Errors
    /// That of the part, which its name goes before; [`Interrupted`](ErrorKind::Interrupted) once the user has stopped the
    /// run.
    pub fn span<T>(&mut self, name: &'static str, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check_cancelled()?;
        let began = Instant::now();
        let done = part(self).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            _ => error.context(name),
        });
        self.sample(name, Unit::Nanoseconds, began.elapsed().as_nanos() as f64);
        done
    }

    /// Notes the value of a metric in this trial.
    pub fn sample(&mut self, metric: &'static str, unit: Unit, value: f64) {
        self.done.metrics.push(MetricValue::new(metric, unit, value));
    }

    /// Counts work that is done. To be called every few milliseconds: it is where a job that the user stops ends.
    ///
    /// # Errors
    /// [`Interrupted`](ErrorKind::Interrupted) once the user has stopped the run.
    pub fn work(&mut self, rows: u64, bytes: u64) -> Result<()> {
        self.done.rows += rows;
        self.done.bytes += bytes;
        self.progress.fetch_add(rows, Ordering::Relaxed);
        self.check_cancelled()
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        Ok(())
    }

    /// What was done, and the sessions, which are still open.
    pub fn end(self) -> (JobDone, Vec<Box<dyn Session>>) {
        (self.done, self.sessions.into_iter().map(|(_, session)| session).collect())
    }
}
