//! The raw windows of every trial: one row for each equal part of a trial's measured phase, with the transactions completed
//! in it. A trial without windows has one row with its total.

use csv::{Terminator, WriterBuilder};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::run::{Outcome, Run};

/// One part of a trial's measured phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The round, from 1.
    pub round: u32,
    /// Why the trial was repeated, if it was.
    pub rerun_reason: Option<String>,
    /// The target's name.
    pub target: String,
    /// The axis values.
    pub axes: Cell,
    /// Whether the trial is an A/A control.
    pub aa_control: bool,
    pub operation: String,
    /// The start of the trial: milliseconds since the run started.
    pub trial_start_ms: u64,
    /// The number of the part, from 1.
    pub window: u32,
    /// Its begin: seconds since the start of the measured phase.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Transactions completed in it.
    pub completed: u64,
    /// Their number per second.
    pub ops_per_second: f64,
}

/// The names of the axes, in the order of columns.
pub fn axes(run: &Run) -> impl Iterator<Item = &String> {
    run.header.spec.axes.keys()
}

/// All parts of all trials, in the order of execution. Failed trials have none.
pub fn rows(run: &Run) -> Vec<Window> {
    let mut rows = Vec::new();
    for trial in &run.trials {
        let (Some(cell), Outcome::Measured(measured)) = (run.header.cells.get(trial.cell), &trial.outcome)
        else {
            continue;
        };
        let windows = match measured.windows.as_slice() {
            [] => &[measured.completed],
            windows => windows,
        };
        let width = measured.windows_time_ns() as f64 / 1e9 / windows.len() as f64;
        let target = run.header.targets.get(cell.target).map_or("", |target| &target.name);
        rows.extend((0_u32..).zip(windows).map(|(at, completed)| Window {
            round: trial.round + 1,
            rerun_reason: trial.rerun_reason.clone(),
            target: target.to_owned(),
            axes: cell.axes.clone(),
            aa_control: cell.aa_control,
            operation: trial.operation.clone(),
            trial_start_ms: trial.at_ms,
            window: at + 1,
            from_s: f64::from(at) * width,
            to_s: f64::from(at + 1) * width,
            completed: *completed,
            ops_per_second: if width > 0.0 { *completed as f64 / width } else { 0.0 },
        }));
    }
    rows
}

/// The rows as CSV (RFC 4180) with a header line. Lines end with CR LF, and missing values are empty.
pub fn render(run: &Run) -> String {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    let before = ["run", "round", "rerun_reason", "target"].into_iter();
    let names = before.chain(axes(run).map(String::as_str)).chain([
        "aa_control", "operation", "trial_start_ms", "window", "from_s", "to_s", "completed",
        "ops_per_second",
    ]);
    // Writing to memory cannot fail, and all rows have the same length.
    let _ = writer.write_record(names);
    for row in rows(run) {
        let mut fields = vec![
            run.header.run.clone(),
            row.round.to_string(),
            row.rerun_reason.unwrap_or_default(),
            row.target,
        ];
        fields.extend(axes(run).map(|axis| match row.axes.get(axis) {
            Some(AxisValue::Number(number)) => number.to_string(),
            Some(AxisValue::Word(word)) => word.clone(),
            None => String::new(),
        }));
        fields.extend([
            row.aa_control.to_string(),
            row.operation,
            row.trial_start_ms.to_string(),
            row.window.to_string(),
            format!("{:.6}", row.from_s),
            format!("{:.6}", row.to_s),
            row.completed.to_string(),
            format!("{:.3}", row.ops_per_second),
        ]);
        let _ = writer.write_record(fields);
    }
    writer.into_inner().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
