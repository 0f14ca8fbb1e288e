//! `/metrics`: the newest continuous trial of each cell of running runs, in the text format of `OpenMetrics`, which Prometheus reads.

use crate::answer::{Response, of_type};
use crate::call::Call;
use crate::shared::Shared;
use kurabe_core::run::{Measurement, Outcome, Run};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_record::{Entry, RunState};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

type Labels = Vec<(String, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

#[derive(Default)]
struct Families {
    running: Gauge<f64, AtomicU64>,
    trials: Gauges,
    failed: Gauges,
    rate: Gauges,
    p99: Gauges,
}

pub(crate) fn page(Call { shared, .. }: &Call) -> Result<Response> {
    Ok(of_type("application/openmetrics-text; version=1.0.0; charset=utf-8", of_store(shared)?))
}

fn of_store(shared: &Shared) -> Result<String> {
    let families = Families::default();
    let mut running = 0.0;
    for entry in shared.store.list()? {
        if let Entry::Run(summary) = entry
            && summary.state == RunState::Running
            && let Ok(recorded) = kurabe_record::read(&summary.path)
        {
            running += 1.0;
            families.add(&recorded.run);
        }
    }
    families.running.set(running);
    families.text()
}

impl Families {
    fn add(&self, run: &Run) {
        let name = |labels: &[(&str, &str)]| -> Labels {
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let of_run = name(&[("run", &run.header.run), ("experiment", &run.header.spec.experiment)]);
        self.trials.get_or_create(&of_run).set(run.trials.len() as f64);
        let failed =
            run.trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Failed { .. })).count();
        self.failed.get_or_create(&of_run).set(failed as f64);
        // Later trials replace earlier ones.
        let newest: BTreeMap<(usize, &str), &Measurement> = run
            .figures()
            .map(|(trial, measured)| ((trial.cell, trial.operation.as_str()), measured))
            .collect();
        for ((cell, operation), measured) in newest {
            let Some(cell) = run.header.cells.get(cell) else { continue };
            if cell.aa_control {
                continue;
            }
            let target = run.header.targets.get(cell.target).map_or("", |target| target.name.as_str());
            let mut labels = of_run.clone();
            labels.extend(name(&[("target", target), ("operation", operation)]));
            labels.extend(
                cell.axes
                    .values()
                    .iter()
                    .map(|(axis, value)| (format!("axis_{}", plain(axis)), value.to_string())),
            );
            self.rate.get_or_create(&labels).set(measured.ops_per_second());
            let times = measured.open.as_ref().map_or(&measured.service, |open| &open.response);
            if let Some(p99) = times.quantile(0.99) {
                self.p99.get_or_create(&labels).set(p99 as f64 / 1e9);
            }
        }
    }

    fn text(self) -> Result<String> {
        let mut registry = Registry::with_prefix("kurabe");
        registry.register("running_runs", "Runs that a process is writing", self.running);
        for (name, help, family) in [
            ("run_trials", "Trials of a running run that have ended", self.trials),
            ("run_failed_trials", "Trials of a running run that have failed", self.failed),
            ("trial_operations_per_second", "Throughput of the newest continuous trial of a cell", self.rate),
            (
                "trial_p99_seconds",
                "99th percentile of the newest trial's service times, or response times in an open loop",
                self.p99,
            ),
        ] {
            registry.register(name, help, family);
        }
        let mut text = String::new();
        encode(&mut text, &registry).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("the metrics cannot be written: {error}"))
        })?;
        Ok(text)
    }
}

/// The name of an axis as a part of a label's name.
fn plain(axis: &str) -> String {
    axis.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
