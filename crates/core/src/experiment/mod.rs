//! The interface of an experiment: a question, its axes, and a [`PlannedCell`] for each cell. The engine runs the
//! cell's [`Workload`].

mod transaction;
pub(crate) mod workload;

pub use transaction::{Client, ClientSummary, Notes, Recorder, Span, Transaction};
pub use workload::{After, Before, Checked, DatasetState, Workload};

use crate::axis::{AxisInfo, Cell};
use crate::error::Result;
use crate::metric::Metric;
use crate::planned::PlannedCell;
use serde::{Deserialize, Serialize};
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
