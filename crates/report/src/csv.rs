//! CSV output (RFC 4180): one row per cell and operation. The columns are the same for all runs of an experiment
//! whose cells have the same metrics.
//!
//! `ops_per_second` is the mean of the rounds; `ops_per_second_pooled` is over all rounds together.

use crate::attribution::Attribution;
use crate::cell::{CellResult, MetricInfo};
use crate::format::name_of;
use crate::summary::Summary;
use csv::{Terminator, WriterBuilder};
use kurabe_core::metric::Unit;
use kurabe_core::run::{CellRecord, Measurement, Run, TrialRecord};
use kurabe_core::stats_probe::Counter;

/// A column: its name, and its value.
type Column = (&'static str, fn(&Summary, &CellResult) -> String);

/// The columns after the axes.
const COLUMNS: &[Column] = &[
    ("operation", |_, cell| cell.operation.clone()),
    ("status", |_, cell| name_of(&cell.status)),
    ("reason", |_, cell| cell.reason.clone().unwrap_or_default()),
    ("aa_control", |_, cell| cell.aa_control.to_string()),
    ("second_instance", |_, cell| cell.second_instance.to_string()),
    ("noise_floor", |_, cell| cell.noise_floor.map_or_else(String::new, |floor| format!("{floor:.6}"))),
    ("rounds", |_, cell| cell.rounds.to_string()),
    ("ops_per_second", |_, cell| number(cell.ops_per_second.map(|rate| rate.value))),
    ("ops_per_second_low", |_, cell| number(cell.ops_per_second.and_then(|rate| rate.low))),
    ("ops_per_second_high", |_, cell| number(cell.ops_per_second.and_then(|rate| rate.high))),
    ("ops_per_second_pooled", |_, cell| number(cell.totals.as_ref().map(|totals| totals.pooled()))),
    ("latency_p50_us", |_, cell| number(cell.latency_us.map(|times| times.p50))),
    ("latency_p90_us", |_, cell| number(cell.latency_us.map(|times| times.p90))),
    ("latency_p99_us", |_, cell| number(cell.latency_us.map(|times| times.p99))),
    ("latency_p999_us", |_, cell| number(cell.latency_us.map(|times| times.p999))),
    ("latency_max_us", |_, cell| number(cell.latency_us.map(|times| times.max))),
    ("client_cpu_us_per_op", |_, cell| number(cell.client_cpu_us_per_op)),
    ("verify_ns_per_op", |_, cell| number(cell.verify_ns_per_op)),
    ("overhead_ns_per_op", |_, cell| number(cell.overhead_ns_per_op)),
    ("verified", |_, cell| cell.verified.proven.map_or_else(String::new, |all| all.how().name().to_owned())),
    ("answers_compared", |_, cell| whole(cell.verified.proven.map(|all| all.answers))),
    ("writes_acknowledged", |_, cell| whole(cell.verified.proven.map(|all| all.writes))),
    ("writes_counted", |_, cell| whole(cell.verified.proven.map(|all| all.counted))),
    ("records_read_back", |_, cell| whole(cell.verified.proven.map(|all| all.read_back))),
    ("mismatches", |_, cell| cell.verified.mismatches.to_string()),
    ("failed_operations", |_, cell| cell.failed_operations.to_string()),
    ("retries", |_, cell| cell.retries.to_string()),
    ("stored_bytes", |_, cell| whole(cell.stored_bytes)),
    ("durability", |_, cell| cell.durability.map_or_else(String::new, |class| class.name().to_owned())),
    ("bottleneck", |_, cell| attributed(cell, |found| found.bottleneck.name())),
    ("publishing", publishing),
    ("due_per_second", |_, cell| number(cell.open_loop.map(|open| open.due_per_second))),
    ("response_p50_us", |_, cell| number(cell.open_loop.map(|open| open.response_us.p50))),
    ("response_p99_us", |_, cell| number(cell.open_loop.map(|open| open.response_us.p99))),
    ("response_p999_us", |_, cell| number(cell.open_loop.map(|open| open.response_us.p999))),
    ("response_max_us", |_, cell| number(cell.open_loop.map(|open| open.response_us.max))),
    ("dispatch_lag_p99_us", |_, cell| number(cell.open_loop.and_then(|open| open.dispatch_lag_p99_us))),
    ("backlog", |_, cell| whole(cell.open_loop.map(|open| open.backlog))),
    ("dropped", |_, cell| whole(cell.open_loop.map(|open| open.dropped))),
    ("bottleneck_confidence", |_, cell| attributed(cell, |found| found.confidence.name())),
    ("bottleneck_evidence", |_, cell| attributed(cell, |found| found.evidence.to_string())),
    ("disturbed", |_, cell| attributed(cell, |found| found.disturbed.clone().unwrap_or_default())),
    ("log_bytes_per_op", |_, cell| number(cell.counter(Counter::LogBytes).map(|one| one.per_operation))),
    ("binlog_bytes_per_op", |_, cell| {
        number(cell.counter(Counter::BinlogBytes).map(|one| one.per_operation))
    }),
    ("file_bytes_per_op", |_, cell| number(cell.counter(Counter::FileBytes).map(|one| one.per_operation))),
    ("lock_waits", |_, cell| whole(cell.counter(Counter::LockWaits).map(|one| one.total))),
    ("server_cpu_us_per_op", |_, cell| number(cell.server_cpu_us_per_op)),
];

/// The CSV text with a header line. Lines end with CR LF, numbers are plain, and missing values are empty.
pub fn render(summary: &Summary) -> String {
    let axes: Vec<&str> = summary.labels.axes.iter().map(|axis| axis.name.as_str()).collect();
    // Rates have their own columns.
    let metrics: Vec<&MetricInfo> =
        summary.metrics.iter().filter(|metric| metric.unit != Unit::PerSecond).collect();
    let names = ["run", "target", "engine", "version"].into_iter().chain(axes.iter().copied());
    let names = names.chain(COLUMNS.iter().map(|(name, _)| *name)).map(str::to_owned);
    let metric_names = metrics.iter().flat_map(|metric| {
        ["", " low", " high"].map(|end| format!("{}{end} ({})", metric.name, unit_name(metric.unit)))
    });
    let mut lines = vec![names.chain(metric_names).collect::<Vec<String>>()];
    for cell in &summary.cells {
        let place = [&*summary.run, cell.target.name(), &cell.engine, &cell.version].map(str::to_owned);
        let values =
            axes.iter().map(|axis| cell.axes.get(axis).map_or_else(String::new, ToString::to_string));
        let columns = COLUMNS.iter().map(|(_, show)| show(summary, cell));
        let metrics = metrics.iter().flat_map(|metric| {
            let exact = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
            let found = cell.metric(&metric.name).map(|found| found.figure);
            found.map_or_else(Default::default, |found| [Some(found.value), found.low, found.high].map(exact))
        });
        lines.push(place.into_iter().chain(values).chain(columns).chain(metrics).collect());
    }
    written(&lines)
}

/// Formats lines according to RFC 4180.
fn written(lines: &[Vec<String>]) -> String {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    for line in lines {
        // Writing to memory cannot fail, and all lines have the same number of fields.
        let _ = writer.write_record(line.iter().map(|field| no_formula(field)));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Prefixes text that a spreadsheet would take for a formula with an apostrophe.
fn no_formula(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err();
    if formula { format!("'{field}") } else { field.to_owned() }
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.3}"))
}

fn whole(value: Option<u64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn attributed(cell: &CellResult, show: fn(&Attribution) -> String) -> String {
    cell.attribution.as_ref().map_or_else(String::new, show)
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Share => "share",
        Unit::PerSecond => "per second",
        Unit::Ratio => "ratio",
    }
}

/// The publishing restriction of the target's licence, in each row: a comment line would stop programs that read the
/// file, and rows are copied individually.
fn publishing(summary: &Summary, cell: &CellResult) -> String {
    let clause = summary.targets.get(cell.target.at()).and_then(|target| target.publishing.as_ref());
    clause.map_or_else(String::new, |clause| {
        format!("restricted: {} ({}; {})", clause.says, clause.name, clause.source)
    })
}

/// A column of windows: its name, and its value.
type WindowColumn = (&'static str, fn(&Run, &Window<'_>) -> String);

/// The columns before those of the axes.
const BEFORE_AXES: [WindowColumn; 4] = [
    ("run", |run, _| run.header.run.clone()),
    ("round", |_, row| (row.trial.round + 1).to_string()),
    ("rerun_reason", |_, row| row.trial.rerun_reason.clone().unwrap_or_default()),
    ("target", |run, row| {
        run.header.targets.get(row.cell.target).map_or_else(String::new, |target| target.name.clone())
    }),
];

/// The columns after those of the axes.
const AFTER_AXES: [WindowColumn; 8] = [
    ("aa_control", |_, row| row.cell.aa_control.to_string()),
    ("operation", |_, row| row.trial.operation.clone()),
    // Milliseconds since the run started.
    ("trial_start_ms", |_, row| row.trial.at_ms.to_string()),
    ("window", |_, row| (row.at + 1).to_string()),
    // Seconds since the start of the measured phase.
    ("from_s", |_, row| format!("{:.6}", f64::from(row.at) * row.width)),
    ("to_s", |_, row| format!("{:.6}", f64::from(row.at + 1) * row.width)),
    ("completed", |_, row| row.completed.to_string()),
    ("ops_per_second", |_, row| {
        format!("{:.3}", if row.width > 0.0 { row.completed as f64 / row.width } else { 0.0 })
    }),
];

/// One part of a trial's measured phase.
struct Window<'a> {
    trial: &'a TrialRecord,
    cell: &'a CellRecord,
    /// Its number, from 0.
    at: u32,
    /// The length of each part in seconds.
    width: f64,
    /// Transactions completed in it.
    completed: u64,
}

/// All parts of a trial; none if its cell is not known.
fn windows_of<'a>(
    run: &'a Run,
    (trial, measured): (&'a TrialRecord, &'a Measurement),
) -> impl Iterator<Item = Window<'a>> {
    let windows = match measured.windows.as_slice() {
        [] => std::slice::from_ref(&measured.completed),
        windows => windows,
    };
    let width = measured.windows_time_ns() as f64 / 1e9 / windows.len() as f64;
    let cell = run.header.cells.get(trial.cell);
    let of_cell = cell.into_iter().flat_map(move |cell| (0_u32..).zip(windows).map(move |one| (cell, one)));
    of_cell.map(move |(cell, (at, completed))| Window { trial, cell, at, width, completed: *completed })
}

/// The raw windows of every trial as CSV (RFC 4180) with a header line, in the order of execution: one row for each equal part of a
/// trial's measured phase, with the transactions completed in it. A trial without windows has one row with its total. Lines end with CR LF, and missing values are
/// empty. Failed trials have no windows.
pub fn windows(run: &Run) -> String {
    let axes: Vec<&String> = run.header.spec.axes.keys().collect();
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    let names = BEFORE_AXES.iter().map(|(name, _)| *name).chain(axes.iter().map(|axis| axis.as_str()));
    // Writing to memory cannot fail, and all rows have the same length.
    let _ = writer.write_record(names.chain(AFTER_AXES.iter().map(|(name, _)| *name)));
    for row in run.measured().flat_map(|trial| windows_of(run, trial)) {
        let values =
            axes.iter().map(|axis| row.cell.axes.get(axis).map_or_else(String::new, ToString::to_string));
        let of = |columns: &'static [WindowColumn]| columns.iter().map(|(_, value)| value(run, &row));
        let _ = writer.write_record(of(&BEFORE_AXES).chain(values).chain(of(&AFTER_AXES)));
    }
    writer.into_inner().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formula_stays_text_and_markup_is_quoted() {
        assert_eq!(no_formula("=1+1"), "'=1+1");
        assert_eq!(no_formula("-1.5"), "-1.5");
        let fields = ["a,b", "say \"no\"", "two\nlines"].map(str::to_owned).to_vec();
        assert_eq!(written(&[fields]), "\"a,b\",\"say \"\"no\"\"\",\"two\nlines\"\r\n");
    }
}
