//! Runs as gauges in the text format of `OpenMetrics` 1.0, which Prometheus and Grafana read
//! (<https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>).
//!
//! The samples of a cell are of its compared trials so far: the mean of their rates, and percentiles over all of
//! their times.

use kurabe_core::run::{Measurement, Outcome, Run};
use kurabe_stats::{Histogram, mean};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The content type of [`render`]'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The percentiles of times.
const QUANTILES: [(f64, &str); 4] = [(0.5, "0.5"), (0.95, "0.95"), (0.99, "0.99"), (0.999, "0.999")];

/// A run, and whether a process is writing it.
pub type RunAndState<'a> = (&'a Run, bool);

/// The exposition of these runs.
pub fn render(runs: &[RunAndState<'_>]) -> String {
    let mut text = String::new();
    let mut family = |about, samples: &[(String, f64)]| family(&mut text, about, samples);
    let running = runs.iter().filter(|(_, running)| *running).count();
    let about = ["kurabe_running_runs", "", "Runs that a process is writing"];
    family(about, &[(String::new(), running as f64)]);
    let each = |of: fn(&Run) -> f64| -> Vec<(String, f64)> {
        runs.iter().map(|(run, _)| (of_run(run), of(run))).collect()
    };
    let began = "When the run began, in seconds since 1970-01-01 UTC";
    let about = ["kurabe_run_start_timestamp_seconds", "seconds", began];
    family(about, &each(|run| run.header.began as f64));
    let about = ["kurabe_run_trials", "", "Trials of the run that have ended"];
    family(about, &each(|run| run.trials.len() as f64));
    family(["kurabe_run_failed_trials", "", "Trials of the run that have failed"], &each(failed));
    let cells: Vec<Sampled> = runs.iter().flat_map(|(run, _)| cells(run)).collect();
    let samples = |of: &dyn Fn(&Sampled) -> Option<f64>| -> Vec<(String, f64)> {
        cells.iter().filter_map(|cell| Some((cell.labels.clone(), of(cell)?))).collect()
    };
    let rate = "Throughput: the mean of the compared trials";
    family(["kurabe_operations_per_second", "", rate], &samples(&Sampled::rate));
    let times = cells.iter().flat_map(|cell| {
        QUANTILES.iter().filter_map(|(at, name)| {
            let seconds = cell.times.quantile(*at)? as f64 / 1e9;
            Some((format!("{},quantile=\"{name}\"", cell.labels), seconds))
        })
    });
    let about =
        "Percentiles of service times, or of response times in an open loop, over the compared trials";
    family(["kurabe_operation_duration_seconds", "seconds", about], &times.collect::<Vec<_>>());
    let cpu = samples(&|cell| cell.per_operation(cell.cpu_ns as f64 / 1e9));
    let about = "CPU time of the client per operation, over the compared trials";
    family(["kurabe_client_cpu_seconds_per_operation", "", about], &cpu);
    let retries = samples(&|cell| cell.per_operation(cell.retries as f64));
    let about = "Transactions that were begun again per operation, over the compared trials";
    family(["kurabe_retries_per_operation", "", about], &retries);
    text + "# EOF\n"
}

fn failed(run: &Run) -> f64 {
    run.trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Failed { .. })).count() as f64
}

/// The compared trials of a cell and operation, in sum.
struct Sampled {
    labels: String,
    rates: Vec<f64>,
    times: Histogram,
    cpu_ns: u64,
    retries: u64,
    completed: u64,
}

impl Sampled {
    fn rate(&self) -> Option<f64> {
        mean(&self.rates)
    }

    fn per_operation(&self, all: f64) -> Option<f64> {
        (self.completed > 0).then(|| all / self.completed as f64)
    }
}

fn cells(run: &Run) -> Vec<Sampled> {
    let mut trials: BTreeMap<(usize, &str), Vec<&Measurement>> = BTreeMap::new();
    for (trial, measured) in run.figures() {
        trials.entry((trial.cell, &trial.operation)).or_default().push(measured);
    }
    let of = |((cell, operation), measured): ((usize, &str), Vec<&Measurement>)| {
        let cell = run.header.cells.get(cell).filter(|cell| !cell.aa_control)?;
        let target = run.header.targets.get(cell.target);
        let name = target.map_or("", |target| target.name.as_str());
        let engine = target.map_or("", |target| target.facts.engine.as_str());
        let version = target.map_or("", |target| target.facts.version.as_str());
        let mut labels = of_run(run);
        for (label, value) in
            [("target", name), ("engine", engine), ("version", version), ("operation", operation)]
        {
            let _ = write!(labels, ",{label}=\"{}\"", escaped(value));
        }
        for (axis, value) in cell.axes.values() {
            let _ = write!(labels, ",axis_{}=\"{}\"", plain(axis), escaped(&value.to_string()));
        }
        let mut times = Histogram::new();
        for one in &measured {
            times.merge(one.open.as_ref().map_or(&one.service, |open| &open.response));
        }
        Some(Sampled {
            labels,
            rates: measured.iter().map(|one| one.ops_per_second()).collect(),
            times,
            cpu_ns: measured.iter().map(|one| one.client_cpu_ns).sum(),
            retries: measured.iter().map(|one| one.retries).sum(),
            completed: measured.iter().map(|one| one.completed).sum(),
        })
    };
    trials.into_iter().filter_map(of).collect()
}

fn of_run(run: &Run) -> String {
    let (name, experiment) = (escaped(&run.header.run), escaped(&run.header.spec.experiment));
    format!("run=\"{name}\",experiment=\"{experiment}\"")
}

/// Appends a family of gauges, with its name, its unit if it has one, and its description; and its samples: labels and values.
fn family(text: &mut String, [name, unit, help]: [&str; 3], samples: &[(String, f64)]) {
    let _ = writeln!(text, "# TYPE {name} gauge");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
    for (labels, value) in samples {
        let _ = match labels.as_str() {
            "" => writeln!(text, "{name} {value}"),
            labels => writeln!(text, "{name}{{{labels}}} {value}"),
        };
    }
}

/// The name of an axis as a part of a label's name.
fn plain(axis: &str) -> String {
    axis.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// The value of a label: backslashes, quotes and line breaks are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
