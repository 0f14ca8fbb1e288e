//! The raw windows of every trial: one row for each equal part of a trial's measured phase, with the transactions completed
//! in it. A trial without windows has one row with its total.

use crate::results::measured;
use csv::{Terminator, WriterBuilder};
use kurabe_core::run::{CellRecord, Measurement, Run, TrialRecord};

/// A column: its name, and its value.
type Column = (&'static str, fn(&Run, &Window<'_>) -> String);

/// The columns before those of the axes.
const FIRST: [Column; 4] = [
    ("run", |run, _| run.header.run.clone()),
    ("round", |_, row| (row.trial.round + 1).to_string()),
    ("rerun_reason", |_, row| row.trial.rerun_reason.clone().unwrap_or_default()),
    ("target", |run, row| {
        run.header.targets.get(row.cell.target).map_or_else(String::new, |target| target.name.clone())
    }),
];

/// The columns after those of the axes.
const LAST: [Column; 8] = [
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
fn windows<'a>(
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

/// The windows as CSV (RFC 4180) with a header line, in the order of execution. Lines end with CR LF, and missing values are
/// empty. Failed trials have no windows.
pub fn render(run: &Run) -> String {
    let axes: Vec<&String> = run.header.spec.axes.keys().collect();
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    let names = FIRST.iter().map(|(name, _)| *name).chain(axes.iter().map(|axis| axis.as_str()));
    // Writing to memory cannot fail, and all rows have the same length.
    let _ = writer.write_record(names.chain(LAST.iter().map(|(name, _)| *name)));
    for row in measured(run).flat_map(|trial| windows(run, trial)) {
        let values =
            axes.iter().map(|axis| row.cell.axes.get(axis).map_or_else(String::new, ToString::to_string));
        let of = |columns: &'static [Column]| columns.iter().map(|(_, value)| value(run, &row));
        let _ = writer.write_record(of(&FIRST).chain(values).chain(of(&LAST)));
    }
    writer.into_inner().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
