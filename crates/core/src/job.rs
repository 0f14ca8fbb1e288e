//! The interface of a job: work that runs once, such as a bulk load, a dump or a copy.

use crate::driver::{ConnectOptions, Driver, Namespace, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::experiment::{Before, Checked, DatasetState};
use crate::metric::{MetricValue, Points, Unit};
use crate::observation::{Endpoint, Observation};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What one trial of a cell does, once.
pub trait Job: Send + Sync {
    /// As [`Workload::load`](crate::experiment::Workload::load).
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        let _ = (namespace, session);
        Ok(DatasetState::default())
    }

    /// As [`Workload::before`](crate::experiment::Workload::before).
    fn before(&self, trial: Before<'_>) -> Result<()> {
        let _ = trial;
        Ok(())
    }

    /// Does the work. This is the timed part.
    ///
    /// # Errors
    /// Any error: the trial fails.
    fn run(&self, operation: &str, state: &DatasetState, context: &mut JobContext<'_>) -> Result<()>;

    /// Verifies the result. Not measured.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) if it is wrong; or the server's error.
    fn verify(&self, ended: Ended<'_>) -> Result<Checked>;
}

/// A job that has ended.
pub struct Ended<'a> {
    /// The operation that was measured.
    pub operation: &'a str,
    /// The state of its data.
    pub state: &'a DatasetState,
    /// A session that the job did not use.
    pub session: &'a mut dyn Session,
    /// Where the target's server listens.
    pub endpoint: &'a Endpoint,
    /// How long the job took.
    pub elapsed: Duration,
    /// What was observed of it; `None` without an observer.
    pub observed: Option<&'a Observation>,
    /// Restricts the calling thread to the processors of the clients, or of the servers, if they are separate.
    pub pin: &'a (dyn Fn(Side) + Sync),
}

/// A side of the machine, whose processors may be separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Clients,
    Servers,
}

/// What a job uses to work and to report its progress.
pub struct JobContext<'a> {
    driver: &'a dyn Driver,
    options: &'a ConnectOptions,
    sessions: Vec<(&'static str, Box<dyn Session>)>,
    work: Work<'a>,
}

/// The result of a job.
#[derive(Debug, Default)]
pub struct JobDone {
    /// Rows that it moved, or another unit of its work.
    pub rows: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Its spans, in the order in which they ended, and its samples.
    pub metrics: Vec<MetricValue>,
    /// Its points, by metric.
    pub points: Vec<Points>,
}

impl<'a> JobContext<'a> {
    /// The context of a job on one target, before it starts.
    pub fn new(
        driver: &'a dyn Driver,
        options: &'a ConnectOptions,
        cancel: &'a AtomicBool,
        progress: &'a AtomicU64,
    ) -> Self {
        let work = Work { done: JobDone::default(), cancel, progress };
        Self { driver, options, sessions: Vec::new(), work }
    }

    /// The target's driver, for what is not done over a session.
    pub fn driver(&self) -> &'a dyn Driver {
        self.driver
    }

    /// How its sessions are opened.
    pub fn options(&self) -> &'a ConnectOptions {
        self.options
    }

    /// Whether the user has stopped the run, for work on other threads.
    pub fn cancel(&self) -> &'a AtomicBool {
        self.work.cancel
    }

    /// The session of a role, such as `reader`. It is opened on first use and stays open until the job ends.
    pub fn session(&mut self, role: &'static str) -> Result<&mut dyn Session> {
        Ok(self.session_and_work(role)?.0)
    }

    /// The session of a role, and what counts the work that is done while it is in use.
    pub fn session_and_work(&mut self, role: &'static str) -> Result<(&mut dyn Session, &mut Work<'a>)> {
        let known = self.sessions.iter().position(|(known, _)| *known == role);
        let at = known.unwrap_or(self.sessions.len());
        if known.is_none() {
            let session = self.driver.connect(self.options).map_err(|error| error.context(role))?;
            self.sessions.push((role, session));
        }
        Ok((&mut *self.sessions[at].1, &mut self.work))
    }

    /// Does a part of the work, and records how long it took.
    ///
    /// # Errors
    /// The part's error, with its name as context; [`Interrupted`](ErrorKind::Interrupted) after the user has stopped
    /// the run.
    pub fn span<T>(&mut self, name: &'static str, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.work.check_cancelled()?;
        let began = Instant::now();
        let done = part(self).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            _ => error.context(name),
        });
        self.sample(name, Unit::Nanoseconds, began.elapsed().as_nanos() as f64);
        done
    }

    /// Records the value of a metric in this trial.
    pub fn sample(&mut self, metric: &'static str, unit: Unit, value: f64) {
        self.work.done.metrics.push(MetricValue::new(metric, unit, value));
    }

    /// Records a point of a metric whose source is [`Source::Scatter`](crate::metric::Source::Scatter): `value` of the
    /// metric, where its reference is `reference`.
    pub fn point(&mut self, metric: &'static str, reference: f64, value: f64) {
        let known = self.work.done.points.iter().position(|points| points.metric == metric);
        let at = known.unwrap_or(self.work.done.points.len());
        if known.is_none() {
            self.work.done.points.push(Points { metric: metric.to_owned(), points: Vec::new() });
        }
        self.work.done.points[at].points.push((reference, value));
    }

    /// Counts finished work. Call it every few milliseconds: a job that the user stops ends here.
    ///
    /// # Errors
    /// [`Interrupted`](ErrorKind::Interrupted) after the user has stopped the run.
    pub fn work(&mut self, rows: u64, bytes: u64) -> Result<()> {
        self.work.add(rows, bytes)
    }

    /// The result, and the sessions, which are still open.
    pub fn end(self) -> (JobDone, Vec<Box<dyn Session>>) {
        (self.work.done, self.sessions.into_iter().map(|(_, session)| session).collect())
    }
}

/// Counts the work of a job.
pub struct Work<'a> {
    done: JobDone,
    cancel: &'a AtomicBool,
    progress: &'a AtomicU64,
}

impl Work<'_> {
    /// As [`JobContext::work`].
    pub fn add(&mut self, rows: u64, bytes: u64) -> Result<()> {
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
}
