//! What the tool itself costs: the experiment's own transactions on a target that answers at once.

use crate::cancellable::cancellable;
use crate::house::House;
use crate::plan::{Target, axes, dataset, operations, unavailable};
use crate::trial::{Pace, Trial};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::{Dataset, Experiment, Stop};
use kurabe_core::load::RATE;
use kurabe_core::operation::Operation;
use kurabe_core::run::{OverheadRecord, RunSpec};
use kurabe_core::{ErrorKind, Result};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// How long each operation of each cell is measured.
const TIME: Duration = Duration::from_millis(25);
/// The most records that it is measured on.
const RECORDS: u64 = 100_000;

/// Measures every operation at every value of the experiment's chart axis, all other axes at their baseline and one
/// client at work. `null` is the target that answers at once; what it cannot do is not measured.
///
/// # Errors
/// Whatever stops a trial.
pub fn measure(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    null: &Target,
    cancel: &AtomicBool,
) -> Result<Vec<OverheadRecord>> {
    // In a closed loop: an open one would measure how long the tool waits.
    let axes: Vec<_> =
        axes(experiment, spec)?.into_iter().filter(|(axis, _)| axis.name != RATE.name).collect();
    let chart = experiment.info().chart_axis;
    let values = axes.iter().find(|(axis, _)| axis.name == chart).map(|(_, values)| values.clone());
    let mut records = Vec::new();
    for value in values.unwrap_or_default() {
        let cell = Cell::new(axes.iter().map(|(axis, values)| {
            let value = match axis.name {
                name if name == chart => value.clone(),
                // Threads that take turns on few processors would measure the scheduler.
                "clients" => AxisValue::Number(1),
                _ => values[0].clone(),
            };
            (axis.name.to_owned(), value)
        }));
        // What a draw, a comparison and the clocks cost hardly depends on how many records there are; filling does.
        let dataset = dataset(spec, 0);
        let dataset = Dataset { records: dataset.records.map(|records| records.min(RECORDS)), ..dataset };
        let workload = experiment.workload(&cell, &dataset)?;
        let demand = workload.demand();
        // A user's own statements, which nothing but their database understands; and transactions of several clients,
        // which this target does not keep apart, so that their checks would fail.
        let together = workload.clients() > 1 && demand.operations.contains(&Operation::Begin);
        if together || unavailable(&demand, null).is_some() {
            continue;
        }
        let mut house = House::open(null, 0, 1, "overhead")?;
        workload.load(&mut *house.namespace, &mut cancellable(&mut *house.session, cancel))?;
        for operation in operations(experiment, spec)? {
            workload.before(
                operation.name,
                &mut *house.namespace,
                &mut cancellable(&mut *house.session, cancel),
            )?;
            let trial = Trial {
                driver: &*null.driver,
                options: &ConnectOptions::default(),
                workload: &*workload,
                operation,
                number: house.next_trial(),
                stop: Stop { duration: Some(TIME), ..Stop::default() },
                pace: Pace::Closed,
                seed: spec.seed,
                cancel,
                progress: &AtomicU64::new(0),
                observer: None,
                sides: None,
                rewrites: false,
            };
            let measured = trial
                .run(|done| {
                    workload.after(operation.name, &mut cancellable(&mut *house.session, cancel), done)
                })
                .map_err(|failure| match failure.error.kind() {
                    ErrorKind::Interrupted => failure.error,
                    _ => failure.error.context("measuring the tool itself on null"),
                })?;
            records.push(OverheadRecord {
                axes: cell.clone(),
                operation: operation.name.to_owned(),
                ns_per_op: 1e9 / measured.ops_per_second(),
            });
        }
        house.clean_up()?;
    }
    Ok(records)
}
