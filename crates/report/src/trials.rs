//! The trials of a run.

use kurabe_core::run::{Measurement, Outcome, Run, TrialRecord};
use std::collections::BTreeMap;

/// The trials that were measured.
pub(crate) fn measured(run: &Run) -> impl Iterator<Item = (&TrialRecord, &Measurement)> {
    run.trials.iter().filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) => Some((trial, &**measured)),
        Outcome::Failed { .. } => None,
    })
}

/// Trials by cell and operation, and by round: the last record of each, since earlier ones were disturbed.
pub(crate) fn latest(run: &Run) -> BTreeMap<(usize, &str), BTreeMap<u32, &TrialRecord>> {
    let mut trials: BTreeMap<(usize, &str), BTreeMap<u32, &TrialRecord>> = BTreeMap::new();
    for trial in &run.trials {
        trials.entry((trial.cell, &trial.operation)).or_default().insert(trial.round, trial);
    }
    trials
}
