//! A user's own workload: an experiment that is made from a file, in Kurabe's own language or in pgbench's.
//!
//! `read` and `script` make the same `declared::Declared` of either; `workload` and `transaction` run it.

mod check;
mod declared;
mod draws;
mod evaluate;
mod expression;
mod homes;
mod place;
mod random;
mod read;
pub(crate) mod rows;
mod script;
mod section;
mod slot;
mod sql;
mod steps;
mod transaction;
mod workload;

use crate::axes::{CLIENTS, CONNECTION, STATEMENT};
use declared::Declared;
use kurabe_core::axis::{AxisInfo, AxisKind, Cell};
use kurabe_core::experiment::{Dataset, Experiment, ExperimentInfo, OperationInfo, Workload};
use kurabe_core::own::{Language, OwnWorkload};
use kurabe_core::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

pub use read::{KEYS, value_files};
pub use script::BUILTIN;

/// What is measured, whatever its steps.
const TRANSACTION: &str = "transaction";
/// Requests unless the user says otherwise: more than most trials have time for.
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

/// The axes of every workload of a user's own.
pub fn axes() -> &'static [AxisInfo] {
    &AXES
}

/// An experiment that was made from files.
struct OwnExperiment {
    made_of: OwnWorkload,
    info: &'static ExperimentInfo,
    declared: Arc<Declared>,
}

impl Experiment for OwnExperiment {
    fn info(&self) -> &'static ExperimentInfo {
        self.info
    }

    fn workload(&self, cell: &Cell, dataset: &Dataset) -> Result<Box<dyn Workload>> {
        Ok(Box::new(workload::OwnWorkload::new(&self.declared, cell, dataset)?))
    }
}

/// The experiments that were made so far: few, and kept for as long as the program lives, as built-in ones are.
static MADE: Mutex<Vec<&'static OwnExperiment>> = Mutex::new(Vec::new());

fn find_made(own: &OwnWorkload) -> Option<&'static OwnExperiment> {
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.iter().find(|made| made.made_of == *own).copied()
}

/// The experiment that a workload's files describe.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the file, the place in it and what is wrong there.
pub fn experiment(own: &OwnWorkload) -> Result<&'static dyn Experiment> {
    if let Some(made) = find_made(own) {
        return Ok(made);
    }
    let Described { name, question, about, declared } = match own.language {
        Language::Toml => read::read(own)?,
        Language::Pgbench => script::read(own)?,
    };
    if declared.programs.is_empty() {
        return Err(Error::usage(format!("{name}: there is no transaction")));
    }
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
        chart_axis: "clients",
        published: None,
    }));
    let made: &'static OwnExperiment =
        Box::leak(Box::new(OwnExperiment { made_of: own.clone(), info, declared: Arc::new(declared) }));
    MADE.lock().unwrap_or_else(PoisonError::into_inner).push(made);
    Ok(made)
}

/// What a file says.
struct Described {
    name: String,
    question: String,
    about: String,
    declared: Declared,
}
