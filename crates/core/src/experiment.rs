//! The interface of an experiment: a question, its axes, and a [`PlannedCell`] for each cell. The engine runs the
//! cell's [`Workload`].

use crate::axis::{AxisInfo, Cell};
use crate::driver::{Namespace, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::metric::{Metric, MetricValue};
use crate::planned::PlannedCell;
use crate::verification::Verification;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::borrow::Cow;
use std::time::Duration;

/// A question about databases, with the factors that are varied to answer it.
pub trait Experiment: Sync {
    /// Its name, question, axes, operations and charts.
    fn info(&self) -> &'static ExperimentInfo;

    /// Whether its cells can use a cache in front of the store
    /// ([`Need::Cache`](crate::planned::Need::Cache)).
    fn takes_cache(&self) -> bool {
        false
    }

    /// Whether its cells can use a second server ([`Need::Remote`](crate::planned::Need::Remote)).
    fn takes_remote(&self) -> bool {
        false
    }

    /// The default time of a run for each target; `None`: that of most experiments.
    fn budget(&self) -> Option<Duration> {
        None
    }

    /// Plans one cell: what it requires and what it does. It is a pure function of the values, and contacts no
    /// target.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) or [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if the
    /// values of the cell are incompatible.
    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell>;

    /// Plans one cell on a target that is an application, in which each transaction is a page; `None` if the experiment
    /// has no such form.
    fn pages(&self) -> Option<fn(&Cell) -> Result<PlannedCell>> {
        None
    }
}

/// The static description of an experiment. Help, docs, charts and the test matrix are generated from it.
#[derive(Debug)]
pub struct ExperimentInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// The question it answers, one sentence.
    pub question: &'static str,
    /// A description in a few sentences, for `kurabe list`.
    pub about: &'static str,
    /// What it varies. The first values of all axes make the baseline cell.
    pub axes: &'static [AxisInfo],
    /// The operations, which are measured separately.
    pub operations: &'static [OperationInfo],
    /// Its metrics beside the [common ones](crate::metric::COMMON), in display order. A common metric may be listed
    /// here to make it primary or not.
    pub metrics: &'static [Metric],
    /// The axis that its charts show horizontally.
    pub chart_axis: &'static str,
    /// What answers the question: the first finding of a report.
    pub answer: Answer,
    /// The file of published results that can be shown under its charts, if there is one.
    pub published: Option<&'static str>,
}

impl ExperimentInfo {
    /// What most experiments have in common: no metrics of their own, an answer by throughput, nothing published.
    pub const BASE: Self = Self {
        name: "",
        question: "",
        about: "",
        axes: &[],
        operations: &[],
        metrics: &[],
        chart_axis: "clients",
        answer: Answer::Throughput,
        published: None,
    };

    /// The baseline cell: the first value of every axis, except for the axes whose values are given.
    ///
    /// # Errors
    /// If a value is not valid for its axis.
    pub fn baseline(&self, given: &[(&str, &str)]) -> Result<Cell> {
        let value = |axis: &AxisInfo| {
            let given = given.iter().find(|(name, _)| *name == axis.name).map(|(_, text)| *text);
            let text = given.or(axis.default.first().copied()).unwrap_or_default();
            Ok((axis.name.to_owned(), axis.parse(text)?))
        };
        self.axes.iter().map(value).collect::<Result<Vec<_>>>().map(Cell::new)
    }

    pub fn operation_names(&self) -> Vec<String> {
        self.operations.iter().map(|operation| operation.name.to_owned()).collect()
    }
}

/// What answers an experiment's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Which target is fastest, at which values of the axes, and by how much.
    Comparison,
    /// The transaction rate of each target.
    Throughput,
    /// The values of its primary metrics.
    Metrics,
}

/// Something that an experiment measures separately: `write`, `read`.
#[derive(Debug)]
pub struct OperationInfo {
    pub name: &'static str,
    /// What one such operation is.
    pub about: &'static str,
    /// The default number of requests over all clients; that of the original experiment.
    pub requests: u64,
    /// Whether it changes data, so that durability classes matter.
    pub writes: bool,
}

/// What all cells of a run share.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The run's seed: every row is a pure function of (seed, key, version).
    pub seed: u64,
    /// The number of records in the store before it is read; `None`: the experiment's default.
    pub records: Option<u64>,
    /// A part of the collections' names, so that two targets on one server do not share them.
    pub slot: usize,
}

/// The work of a loop: each client repeats its transaction. It is immutable: the state of the data is a
/// [`DatasetState`] that the engine keeps and lends.
pub trait Workload: Send + Sync {
    /// Creates the collections and fills them. It is deterministic, and called once per run for each
    /// [`PlannedCell::dataset`].
    ///
    /// # Errors
    /// The server's error, or [`Mismatch`](ErrorKind::Mismatch) if the server's row count differs.
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        let _ = (namespace, session);
        Ok(DatasetState::default())
    }

    /// Prepares one trial of an operation, for example empties the collection that it writes to. Not measured.
    fn before(&self, trial: Before<'_>) -> Result<()> {
        let _ = trial;
        Ok(())
    }

    /// The transaction of one client.
    ///
    /// # Errors
    /// If the client's buffers cannot be allocated.
    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>>;

    /// Verifies the clients' results on the server after a trial: reads back their writes, and compares the server's
    /// row count if it has one. Not measured.
    ///
    /// # Errors
    /// [`Mismatch`](crate::ErrorKind::Mismatch) if anything differs; or the server's error.
    fn after(&self, trial: After<'_>) -> Result<Checked> {
        let _ = trial;
        Ok(Checked::default())
    }
}

/// The context of a trial that is about to start.
pub struct Before<'a> {
    /// The operation that is measured.
    pub operation: &'a str,
    /// The state of its data.
    pub state: &'a mut DatasetState,
    /// Creates and empties collections.
    pub namespace: &'a mut dyn Namespace,
    /// A session that no client uses.
    pub session: &'a mut dyn Session,
}

/// The context of a trial that has ended.
pub struct After<'a> {
    /// The operation that was measured.
    pub operation: &'a str,
    /// The state of its data.
    pub state: &'a DatasetState,
    /// A session that no client uses.
    pub session: &'a mut dyn Session,
    /// The results of each client, warm-up included.
    pub clients: &'a [ClientSummary],
}

/// The result of the check after a trial, from [`Workload::after`] or [`Job::verify`](crate::job::Job::verify).
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// How answers and writes were verified.
    pub verification: Verification,
    /// The trial's values of the experiment's own metrics.
    pub metrics: Vec<MetricValue>,
}

impl From<Verification> for Checked {
    fn from(verification: Verification) -> Self {
        Self { verification, metrics: Vec::new() }
    }
}

/// What an experiment knows of a dataset beyond its name. The engine keeps it with the data that [`Workload::load`]
/// created, and lends it to each trial on that data.
pub struct DatasetState(Box<dyn Any + Send + Sync>);

impl DatasetState {
    /// The state of a dataset.
    pub fn new<T: Any + Send + Sync>(state: T) -> Self {
        Self(Box::new(state))
    }

    /// The state, as its original type.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if it has another type.
    pub fn get<T: Any>(&self) -> Result<&T> {
        self.0.downcast_ref().ok_or_else(other_state)
    }

    /// The state, mutable, as its original type.
    pub fn get_mut<T: Any>(&mut self) -> Result<&mut T> {
        self.0.downcast_mut().ok_or_else(other_state)
    }
}

impl Default for DatasetState {
    /// An empty state.
    fn default() -> Self {
        Self::new(())
    }
}

fn other_state() -> Error {
    Error::new(ErrorKind::Internal, "the state of the dataset belongs to another experiment")
}

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

    /// What [`Workload::after`] gets of this client, warm-up included; `make` begins it.
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
    fn attach(&mut self, session: &mut dyn Session) -> Result<()>;

    /// Releases what [`Transaction::attach`] prepared, before the connection returns to its pool.
    fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// Chooses the inputs of the next `run` and generates what it writes. An application has these already when a
    /// request starts, so this is not timed.
    fn prepare_input(&mut self);

    /// Does the work. This is the timed part; it allocates nothing.
    fn run(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()>;

    /// Compares the reply of the last `run` with the expected one. Not part of its time, but of the client's CPU
    /// time.
    ///
    /// # Errors
    /// [`Mismatch`](crate::ErrorKind::Mismatch): the trial fails.
    fn check(&mut self, recorder: &mut Recorder) -> Result<()>;
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

/// When a trial's measured phase ends: when `requests` or `duration` is reached, whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The number of transactions over all clients.
    pub requests: Option<u64>,
    /// The time limit.
    pub duration: Option<Duration>,
    /// The minimum time, even if all requests are done.
    pub min: Option<Duration>,
}
