//! Measures the tool's own cost: the experiment's transactions on the null target, which answers at once.

use crate::plan::Plan;
use crate::prepare::fixture::{Fixture, cancellable};
use crate::prepare::target::Target;
use crate::run::Conditions;
use crate::trial::Trial;
use kurabe_core::axis::Cell;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::{Dataset, Stop};
use kurabe_core::load::RATE;
use kurabe_core::run::OverheadRecord;
use kurabe_core::{ErrorKind, Result};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long each operation of each cell is measured.
const TIME: Duration = Duration::from_millis(25);
/// The maximum number of records.
const RECORDS: u64 = 100_000;

/// Measures every operation of the first target's baseline, and of the cells that differ from it in one axis. One
/// client runs, since several would measure the scheduler. What `null` does not support is skipped.
///
/// # Errors
/// Any error of a trial.
pub(crate) fn measure(plan: &Plan, null: &Target, cancel: &AtomicBool) -> Result<Vec<OverheadRecord>> {
    // The cost of random inputs, comparisons and clocks hardly depends on the number of records; loading does.
    let records = plan.spec.records.map(|records| records.min(RECORDS));
    let dataset = Dataset { seed: plan.spec.seed, records, slot: 0 };
    let mut overheads = Vec::new();
    let mut fixture = Fixture::open(null, 0, 1, "overhead")?;
    for axes in cells(plan) {
        let mut cell = match (plan.experiment.plan)(&axes, &dataset) {
            Ok(cell) => cell,
            Err(error) if error.kind() == ErrorKind::Unsupported => continue,
            Err(error) => return Err(error),
        };
        // A user's own statements work only on their database.
        if null.refusal(&cell.demand).is_some() {
            continue;
        }
        cell.policy.clients = 1;
        cell.needs.clear();
        // A job has no transactions that could be separated from its work.
        if cell.is_job() {
            continue;
        }
        let work = cell.trial_work();
        if !fixture.has(&cell) {
            fixture.clean_up()?;
            fixture.load(&cell, cancel, |namespace, session| work.load(namespace, session))?;
        }
        for operation in &plan.operations {
            fixture.before(&cell, operation.name, cancel, |trial| work.before(trial))?;
            let number = fixture.next_trial();
            let (state, session) = fixture.lend(&cell)?;
            let options = ConnectOptions::default();
            let trial = Trial {
                number,
                stop: Stop { duration: Some(TIME), ..Stop::default() },
                seed: plan.spec.seed,
                conditions: Conditions { cancel, ..Conditions::default() },
                ..Trial::new(&*null.driver, &options, &cell, &work, operation)
            };
            let measured = trial.run(state, &mut cancellable(session, cancel)).map_err(|failure| {
                match failure.error.kind() {
                    ErrorKind::Interrupted => failure.error,
                    _ => failure.error.context("measuring the tool itself on null"),
                }
            })?;
            overheads.push(OverheadRecord {
                axes: axes.clone(),
                operation: operation.name.to_owned(),
                ns_per_op: 1e9 / measured.ops_per_second(),
            });
        }
    }
    Ok(overheads)
}

/// The baseline of the first target, and its cells that differ from it in one axis, in a closed loop: an open one
/// would measure waiting.
fn cells(plan: &Plan) -> Vec<Cell> {
    let closed = |cell: &Cell| {
        let kept = cell.values().iter().filter(|(axis, _)| axis.as_str() != RATE.name);
        Cell::new(kept.map(|(axis, value)| (axis.clone(), value.clone())))
    };
    let mut cells: Vec<Cell> = Vec::new();
    for record in plan.cells.iter().map(|cell| &cell.record).filter(|record| record.target == 0) {
        let axes = closed(&record.axes);
        let baseline = cells.first().unwrap_or(&axes);
        let differ = axes.values().iter().filter(|(axis, value)| baseline.get(axis) != Some(value)).count();
        if differ <= 1 && !cells.contains(&axes) {
            cells.push(axes);
        }
    }
    cells
}
