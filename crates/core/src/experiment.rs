//! What an experiment is: a question, its axes, and for each cell a [`PlannedCell`] whose [`Workload`] the engine runs.

use crate::axis::{AxisInfo, Cell};
use crate::driver::{Namespace, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::metric::{Metric, MetricValue};
use crate::page::Pages;
use crate::planned::PlannedCell;
use crate::verification::Verification;
use std::any::Any;
use std::time::Duration;

/// A question about databases, with what is varied to answer it.
pub trait Experiment: Sync {
    /// What it is: name, question, axes, operations, charts.
    fn info(&self) -> &'static ExperimentInfo;

    /// Whether its cells may have a cache in front of the store ([`Provision::cache`](crate::planned::Provision::cache)).
    fn takes_cache(&self) -> bool {
        false
    }

    /// Plans one cell: what it needs and what it does. The same values give the same plan, and no target is asked.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) or [`Unsupported`](crate::ErrorKind::Unsupported) where the values of the
    /// cell do not go together, with the reason.
    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell>;

    /// Its form through an application; `None` where it has no such form.
    fn pages(&self) -> Option<&dyn Pages> {
        None
    }
}

/// What is known of an experiment before it runs. Help, docs, charts and the test matrix come from it.
#[derive(Debug)]
pub struct ExperimentInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// The question it answers, one sentence.
    pub question: &'static str,
    /// What it does, for `kurabe list`: a few sentences.
    pub about: &'static str,
    /// What it varies. The first values of all axes make the baseline cell.
    pub axes: &'static [AxisInfo],
    /// What it measures, each apart.
    pub operations: &'static [OperationInfo],
    /// What its trials yield beside [what all do](crate::metric::COMMON), in the order in which it is shown; one of those
    /// that all have may stand here too, to be primary or not.
    pub metrics: &'static [Metric],
    /// Which axis is the horizontal one of its charts.
    pub chart_axis: &'static str,
    /// What answers the question: the first finding of its reports.
    pub answer: Answer,
    /// The file of published figures that can be laid under its charts, where there are any.
    pub published: Option<&'static str>,
}

impl ExperimentInfo {
    /// The first value of every axis: the baseline cell, but for the axes whose values are given.
    ///
    /// # Errors
    /// Where a value is none of its axis.
    pub fn baseline(&self, given: &[(&str, &str)]) -> Result<Cell> {
        let value = |axis: &AxisInfo| {
            let given = given.iter().find(|(name, _)| *name == axis.name).map(|(_, text)| *text);
            let text = given.or(axis.default.first().copied()).unwrap_or_default();
            Ok((axis.name.to_owned(), axis.parse(text)?))
        };
        self.axes.iter().map(value).collect::<Result<Vec<_>>>().map(Cell::new)
    }

    /// The names of all operations.
    pub fn operation_names(&self) -> Vec<String> {
        self.operations.iter().map(|operation| operation.name.to_owned()).collect()
    }
}

/// What answers an experiment's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Which target is the fastest, and which values of the axes, and by how much.
    Comparison,
    /// Transactions per second of each target.
    Throughput,
    /// The values of its primary metrics.
    Metrics,
}

/// Something that an experiment measures apart from the rest: `write`, `read`.
#[derive(Debug)]
pub struct OperationInfo {
    /// Its name.
    pub name: &'static str,
    /// What one such operation is.
    pub about: &'static str,
    /// How many the original experiment made, over all clients: the default number of requests.
    pub requests: u64,
    /// Whether it changes data: whether durability classes matter to it.
    pub writes: bool,
}

/// What all cells of a run share.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The run's seed: every row is a pure function of (seed, key, version).
    pub seed: u64,
    /// How many records the store holds before it is read; `None`: the experiment's own rule.
    pub records: Option<u64>,
    /// Goes into the names of collections, so that two targets on one server do not share them.
    pub slot: usize,
}

/// What comes before the trials of a loop or a job. It holds nothing that changes: what is known of the data is a
/// [`DatasetState`] that the engine keeps with it and lends.
pub trait Prepare: Send + Sync {
    /// Makes the collections and fills them: deterministic, called once per run for each [`PlannedCell::dataset`].
    ///
    /// # Errors
    /// The server's error, or a mismatch between what was sent and what the server counts.
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        let _ = (namespace, session);
        Ok(DatasetState::default())
    }

    /// Makes ready for one trial of an operation: say, empties the collection that it writes to. Not measured.
    ///
    /// # Errors
    /// The server's error.
    fn before(&self, trial: Before<'_>) -> Result<()> {
        let _ = trial;
        Ok(())
    }
}

/// The work of a loop: each client makes its transaction over and over.
pub trait Workload: Prepare {
    /// The transaction of one client.
    ///
    /// # Errors
    /// Where the client's buffers cannot be made.
    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>>;

    /// Checks on the server, after a trial, that what the clients were told is true: reads back what they wrote, and has the
    /// server count it where it can. Not measured.
    ///
    /// # Errors
    /// [`Mismatch`](crate::ErrorKind::Mismatch) where it is not true; or the server's error.
    fn after(&self, trial: After<'_>) -> Result<Checked> {
        let _ = trial;
        Ok(Checked::default())
    }
}

/// A trial that is about to begin.
pub struct Before<'a> {
    /// What is measured.
    pub operation: &'a str,
    /// The state of its data.
    pub state: &'a mut DatasetState,
    /// Where collections are made and emptied.
    pub namespace: &'a mut dyn Namespace,
    /// A session that is no client's.
    pub session: &'a mut dyn Session,
}

/// A trial that has ended.
pub struct After<'a> {
    /// What was measured.
    pub operation: &'a str,
    /// The state of its data.
    pub state: &'a DatasetState,
    /// A session that is no client's.
    pub session: &'a mut dyn Session,
    /// What each client did, warm-up included.
    pub clients: &'a [ClientSummary],
}

/// What was found once a trial had ended: by [`Workload::after`], or by [`Job::verify`](crate::job::Job::verify).
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

/// What an experiment knows of a dataset beyond its name. The engine keeps it with the data that [`Prepare::load`] made, and
/// lends it to each trial on these data.
pub struct DatasetState(Box<dyn Any + Send + Sync>);

impl DatasetState {
    /// The state of a dataset.
    pub fn new<T: Any + Send + Sync>(state: T) -> Self {
        Self(Box::new(state))
    }

    /// The state, as the type that it was made of.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) where it is of another type.
    pub fn get<T: Any>(&self) -> Result<&T> {
        self.0.downcast_ref().ok_or_else(other_state)
    }

    /// The state, to be changed.
    ///
    /// # Errors
    /// As for [`DatasetState::get`].
    pub fn get_mut<T: Any>(&mut self) -> Result<&mut T> {
        self.0.downcast_mut().ok_or_else(other_state)
    }
}

impl Default for DatasetState {
    /// The state of a dataset of which only its name is known.
    fn default() -> Self {
        Self::new(())
    }
}

fn other_state() -> Error {
    Error::new(ErrorKind::Internal, "the state of a dataset is of another experiment")
}

/// Which client a transaction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its number, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    /// Seeds what it draws: differs between rounds, cells, operations and clients; equal between targets.
    pub seed: u64,
    /// The number of its trial, from 1. It goes up from trial to trial on the same data.
    pub trial: u64,
}

impl Client {
    /// The version before the first that this client writes. A record has a higher version in each later trial, so that no
    /// write repeats what is there already, and one that never happened cannot be taken for one that did.
    pub fn base_version(&self) -> u64 {
        /// More than the transactions of any client.
        const VERSIONS: u64 = 1 << 32;
        self.trial * VERSIONS
    }
}

/// What a client did in a trial, warm-up included.
#[derive(Debug)]
pub struct ClientSummary {
    /// The client.
    pub client: Client,
    /// Its completed transactions.
    pub completed: u64,
    /// Rows that the server acknowledged to have added ([`Transaction::rows_written`]).
    pub rows_written: u64,
    /// What its transaction noted ([`Transaction::notes`]).
    pub notes: Option<Notes>,
}

/// What a transaction hands to the check after its trial.
pub type Notes = Box<dyn Any + Send>;

impl ClientSummary {
    /// What the client's transaction noted.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) where it noted nothing of that type.
    pub fn notes<T: Any>(&self) -> Result<&T> {
        let notes = self.notes.as_ref().and_then(|notes| notes.downcast_ref());
        notes.ok_or_else(|| Error::new(ErrorKind::Internal, "a client ended without its notes"))
    }
}

/// One client's unit of application work. The engine calls `attach`, then `draw`, `run` and `check` in turn.
pub trait Transaction: Send {
    /// Prepares on a new session what is prepared once. Called again for each new connection.
    ///
    /// # Errors
    /// The server's error.
    fn attach(&mut self, session: &mut dyn Session) -> Result<()>;

    /// Gives back what [`Transaction::attach`] prepared, before the connection goes back to its pool.
    ///
    /// # Errors
    /// The server's error.
    fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// The measured phase begins: what there was before was warm-up, which is in no figure.
    fn warmed_up(&mut self) {}

    /// Chooses what the next `run` asks for and makes what it writes: what in an application is there already when
    /// the request begins, so it is not timed.
    fn draw(&mut self);

    /// Does the work: this is what is timed. Allocates nothing.
    ///
    /// # Errors
    /// The server's error.
    fn run(&mut self, session: &mut dyn Session) -> Result<()>;

    /// Compares the answer of the last `run` with what it must be; not in its time, but in the client's CPU figure.
    ///
    /// # Errors
    /// [`Mismatch`](crate::ErrorKind::Mismatch): the trial fails.
    fn check(&mut self) -> Result<()>;

    /// How often named parts of all runs so far were made and how long they took, where a transaction has parts: each is a
    /// metric of the experiment, the mean time of the part where it was made.
    fn parts(&self) -> &[Part] {
        &[]
    }

    /// Rows that the server has acknowledged so far: what it must count after the trial. Reads leave it at 0.
    fn rows_written(&self) -> u64 {
        0
    }

    /// What it saw, for [`Workload::after`]: called once, when the client has ended.
    fn notes(&mut self) -> Option<Notes> {
        None
    }

    /// How often it was begun again after an error that asks for it, so far; each time within the `run` that it was.
    fn retries(&self) -> u64 {
        0
    }
}

/// A named part of a transaction: a step of it, or transactions of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of its metric.
    pub name: &'static str,
    /// How often it was made.
    pub times: u64,
    /// How long that took together.
    pub took: Duration,
}

impl Part {
    /// A part that was not made yet.
    pub const fn new(name: &'static str) -> Self {
        Self { name, times: 0, took: Duration::ZERO }
    }

    /// Adds one that took so long.
    #[inline]
    pub fn add(&mut self, took: Duration) {
        self.times += 1;
        self.took += took;
    }
}

/// When a trial's measured phase ends: at whichever of `requests` and `duration` comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// So many transactions, over all clients.
    pub requests: Option<u64>,
    /// So long after its start.
    pub duration: Option<Duration>,
    /// Not before this time, though all requests be made.
    pub least: Option<Duration>,
}
