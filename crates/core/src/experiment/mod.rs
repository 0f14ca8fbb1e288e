//! The interface of an experiment: a question, its axes, and a [`PlannedCell`] for each cell. The engine runs the
//! cell's [`Workload`].

mod transaction;

pub use transaction::{Client, ClientSummary, Notes, Recorder, Span, Transaction};

use crate::axis::{AxisInfo, Cell};
use crate::driver::{Namespace, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::metric::{Metric, MetricValue};
use crate::planned::PlannedCell;
use crate::query_plan::QueryPlan;
use crate::verification::Verification;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::time::Duration;

/// A question about databases, with the factors that are varied to answer it: its description, and the functions that
/// plan its cells.
pub struct Experiment {
    /// Its name, question, axes, operations and charts.
    pub info: &'static ExperimentInfo,
    /// Plans one cell: what it requires and what it does. It is a pure function of the values, and contacts no
    /// target. Fails with [`Usage`](crate::ErrorKind::Usage) or [`Unsupported`](crate::ErrorKind::Unsupported) and the
    /// reason if the values of the cell are incompatible.
    pub plan: &'static PlanCell,
    /// Plans one cell on a target that is an application, in which each transaction is a page; `None` if the experiment
    /// has no such form.
    pub plan_via: Option<fn(&Cell) -> Result<PlannedCell>>,
    /// Whether its cells can use a cache in front of the store
    /// ([`Need::Cache`](crate::planned::Need::Cache)).
    pub takes_cache: bool,
    /// Whether its cells can use a second server ([`Need::Remote`](crate::planned::Need::Remote)).
    pub takes_remote: bool,
    /// The default time of a run for each target; `None`: that of most experiments.
    pub budget: Option<Duration>,
}

/// Plans a cell.
pub type PlanCell = dyn Fn(&Cell, &Dataset) -> Result<PlannedCell> + Send + Sync;

impl Experiment {
    /// An experiment on databases, without a cache, a second server and a form through an application.
    pub const fn new(info: &'static ExperimentInfo, plan: &'static PlanCell) -> Self {
        Self { info, plan, plan_via: None, takes_cache: false, takes_remote: false, budget: None }
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
    /// What most experiments have in common: no metrics of their own, an answer by comparison, nothing published.
    pub const BASE: Self = Self {
        name: "",
        question: "",
        about: "",
        axes: &[],
        operations: &[],
        metrics: &[],
        chart_axis: "clients",
        answer: Answer::Comparison,
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

/// The work of a loop: each client repeats its transaction. It is immutable: the state of the data is a
/// [`DatasetState`] that the engine keeps and lends.
pub trait Workload: Send + Sync {
    /// Creates the collections and fills them. It is deterministic, and called once per run for each
    /// [`PlannedCell::dataset`](crate::planned::PlannedCell::dataset).
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

    /// The transaction of one client: of an operation, or of another [page](crate::page::ServedPages).
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
    /// How the server executed the trial's statements, where the experiment asks for it.
    pub plans: Vec<QueryPlan>,
}

impl From<Verification> for Checked {
    fn from(verification: Verification) -> Self {
        Self { verification, metrics: Vec::new(), plans: Vec::new() }
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
