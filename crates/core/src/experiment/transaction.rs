//! The transactions of a client, and what it records of them.

use crate::driver::Session;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::borrow::Cow;
use std::time::Duration;

/// The client that a transaction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its number, from 0.
    pub index: usize,
    /// The number of clients.
    pub count: usize,
    /// Seed of its random inputs: differs between rounds, cells, operations and clients, and is equal for all
    /// targets.
    pub seed: u64,
    /// The number of its trial, from 1. It grows with each trial on the same data.
    pub trial: u64,
}

impl Client {
    /// The version before the first one that this client writes. Versions grow with each trial, so that every write
    /// changes the record, and a lost write cannot be mistaken for a made one.
    pub fn base_version(&self) -> u64 {
        /// A bound on the number of one client's transactions.
        const VERSIONS: u64 = 1 << 32;
        self.trial * VERSIONS
    }
}

/// The results of a client in a trial, warm-up included.
#[derive(Debug)]
pub struct ClientSummary {
    pub client: Client,
    /// The number of its completed transactions.
    pub completed: u64,
    /// Rows whose insertion the server acknowledged.
    pub rows_written: u64,
    /// What its transaction noted.
    pub notes: Option<Notes>,
}

/// Data that a transaction passes to the check after its trial.
pub type Notes = Box<dyn Any + Send>;

impl ClientSummary {
    /// What the client's transaction noted; `None` if it noted nothing of that type.
    pub fn notes<T: Any>(&self) -> Option<&T> {
        self.notes.as_ref()?.downcast_ref()
    }
}

/// What the transactions of one client record besides their times. The engine keeps it.
#[derive(Debug, Default)]
pub struct Recorder {
    rows_written: u64,
    retries: u64,
    spans: Vec<Span>,
    notes: Option<Notes>,
    measures: bool,
}

impl Recorder {
    /// Counts rows whose insertion the server has acknowledged, and which it must count after the trial.
    #[inline]
    pub fn rows_written(&mut self, rows: u64) {
        self.rows_written += rows;
    }

    /// Counts a repetition after an error that asks for one. Repetitions are part of their `run`.
    pub fn retried(&mut self) {
        self.retries += 1;
    }

    /// Adds so many executions of a span: a step of the transaction, or all transactions of one type. It is a metric of
    /// the experiment: its mean time.
    #[inline]
    pub fn span(&mut self, name: &'static str, times: u64, took: Duration) {
        match self.spans.iter_mut().find(|span| span.name == name) {
            Some(span) => span.add(times, took),
            None => self.spans.push(Span { name: Cow::Borrowed(name), times, took }),
        }
    }

    /// What [`Workload::after`](super::Workload::after) gets of this client, warm-up included; `make` begins it.
    #[inline]
    pub fn notes<T: Any + Send>(&mut self, make: impl FnOnce() -> T) -> &mut T {
        if !self.notes.as_ref().is_some_and(|notes| notes.is::<T>()) {
            self.notes = Some(Box::new(make()));
        }
        match self.notes.as_mut().and_then(|notes| notes.downcast_mut()) {
            Some(notes) => notes,
            None => unreachable!("notes were just made"),
        }
    }

    /// Whether the measured phase has begun. Warm-up is not part of any result.
    #[inline]
    pub fn measures(&self) -> bool {
        self.measures
    }

    /// Begins the measured phase: spans and retries of the warm-up are forgotten.
    pub fn begin_measuring(&mut self) {
        (self.measures, self.retries) = (true, 0);
        for span in &mut self.spans {
            (span.times, span.took) = (0, Duration::ZERO);
        }
    }

    /// The spans of the measured phase, and its retries.
    pub fn measured(&self) -> (&[Span], u64) {
        (&self.spans, self.retries)
    }

    /// Takes back what was measured since [`Recorder::measured`] had these values.
    pub fn take_back(&mut self, spans: Vec<Span>, retries: u64) {
        (self.spans, self.retries) = (spans, retries);
    }

    /// What the client did in the trial.
    pub fn into_summary(self, client: Client, completed: u64) -> ClientSummary {
        ClientSummary { client, completed, rows_written: self.rows_written, notes: self.notes }
    }
}

/// A client's unit of application work. The engine calls `attach` once, then `prepare_input`, `run` and `check` in
/// turn.
pub trait Transaction: Send {
    /// Prepares statements on a new session. Called for each connection.
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// Releases what [`Transaction::attach`] prepared, before the connection returns to its pool.
    fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// Chooses the inputs of the next `run` and generates what it writes. An application has these already when a
    /// request starts, so this is not timed.
    fn prepare_input(&mut self) {}

    /// Does the work. This is the timed part; it allocates nothing.
    fn run(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()>;

    /// Compares the reply of the last `run` with the expected one. Not part of its time, but of the client's CPU
    /// time.
    ///
    /// # Errors
    /// [`Mismatch`](crate::ErrorKind::Mismatch): the trial fails.
    fn check(&mut self, recorder: &mut Recorder) -> Result<()>;

    /// Of a page: sets the record for the next `run`, instead of [`Transaction::prepare_input`], if the request names one.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) if the page chooses its record itself;
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such record.
    fn set_key(&mut self, key: u64) -> Result<()> {
        let _ = key;
        Err(Error::usage("this page does not take a record number"))
    }

    /// Of a page: appends the body of the reply, which is what the last `run` read or wrote, in the format of
    /// `docs/app.openapi.yaml`. Called after a successful `check`.
    fn render(&self, out: &mut Vec<u8>) {
        let _ = out;
    }
}

/// A named span of a transaction: a step of it, or all transactions of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The name of its metric.
    pub name: Cow<'static, str>,
    /// How often it was executed.
    pub times: u64,
    /// The total time.
    pub took: Duration,
}

impl Span {
    /// Adds some executions.
    #[inline]
    pub fn add(&mut self, times: u64, took: Duration) {
        self.times += times;
        self.took += took;
    }
}
