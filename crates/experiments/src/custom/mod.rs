//! Custom workloads: experiments that are read from files, in Kurabe's own language or in pgbench's.
//!
//! `read` and `script` both produce `declared::Declared`; `workload` and `transaction` run it.

mod check;
mod declared;
mod draws;
mod evaluate;
mod expression;
mod known;
mod random;
mod read;
mod reads;
mod relations;
pub(crate) mod rows;
mod script;
mod section;
mod slot;
mod sql;
mod steps;
mod transaction;
mod types;
mod workload;

use crate::axes::{CLIENTS, CONNECTION, STATEMENT};
use crate::prelude::*;
use declared::Declared;
use known::Known;
use kurabe_core::custom::{CustomWorkload, Language};
use std::sync::{Mutex, PoisonError};

pub use read::{KEYS, value_files};
pub use script::{BUILTIN, counts_scale};
pub(crate) use section::position;

/// The measured operation: one whole transaction with all its steps.
const TRANSACTION: &str = "transaction";
/// Default number of requests: more than most trials reach.
const REQUESTS: u64 = 1_000_000;

static AXES: [AxisInfo; 3] = [
    CLIENTS,
    STATEMENT,
    AxisInfo {
        kind: AxisKind::Choice(&[
            ("kept", "each client keeps its own"),
            ("per-request", "opened and closed for every transaction"),
        ]),
        ..CONNECTION
    },
];

/// The axes of every custom workload.
pub fn axes() -> &'static [AxisInfo] {
    &AXES
}

/// An experiment that was read from files.
struct CustomExperiment {
    source: CustomWorkload,
    info: &'static ExperimentInfo,
    declared: Arc<Declared>,
}

impl Experiment for CustomExperiment {
    fn info(&self) -> &'static ExperimentInfo {
        self.info
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        workload::CustomCell::plan(&self.declared, cell, dataset)
    }
}

/// The experiments read so far. They are few and live as long as the program, as built-in ones do.
static MADE: Mutex<Vec<&'static CustomExperiment>> = Mutex::new(Vec::new());

/// The experiment that a workload's files describe.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the file, the place in it and the cause.
pub fn experiment(source: &CustomWorkload) -> Result<&'static dyn Experiment> {
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = made().iter().find(|made| made.source == *source).copied();
    if let Some(known) = known {
        return Ok(known);
    }
    let Described { name, question, about, declared } = match source.language {
        Language::Toml => read::read(source)?,
        Language::Pgbench => script::read(source)?,
    };
    if declared.programs.is_empty() {
        return Err(Error::usage(format!("{name}: the workload has no transaction")));
    }
    let known = Known::of(&declared, &declared.variables.initial);
    for made in declared.relations.iter().filter_map(|relation| relation.made.as_ref()) {
        known.rows(&made.rows).map_err(|error| error.context(&made.place))?;
    }
    known.check(&declared)?;
    let all: u64 = declared.programs.iter().map(|program| program.weight).sum();
    let part = |program: &declared::Program| format!("{} ({} of {all})", program.name, program.weight);
    let parts = declared.programs.iter().map(part).collect::<Vec<_>>().join(", ");
    let writes = declared.programs.iter().flat_map(|program| &program.steps).any(|step| match step {
        declared::Step::Execute(execute) => execute.request.writes(),
        _ => false,
    });
    let operations =
        vec![OperationInfo { name: TRANSACTION, about: parts.leak(), requests: REQUESTS, writes }];
    let info: &'static ExperimentInfo = Box::leak(Box::new(ExperimentInfo {
        name: name.leak(),
        question: question.leak(),
        about: about.leak(),
        axes: &AXES,
        operations: operations.leak(),
        metrics: types::metrics(&declared.programs).leak(),
        chart_axis: "clients",
        answer: Answer::Throughput,
        published: None,
    }));
    let (source, declared) = (source.clone(), Arc::new(declared));
    let new: &'static CustomExperiment = Box::leak(Box::new(CustomExperiment { source, info, declared }));
    made().push(new);
    Ok(new)
}

/// The content of a file.
struct Described {
    name: String,
    question: String,
    about: String,
    declared: Declared,
}
