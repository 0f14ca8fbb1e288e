//! The raw windows of every trial: one row for each equal part of a trial's measured phase, with the transactions completed
//! in it. A trial without windows has one row with its total.

use crate::trials::measured;
use csv::{Terminator, WriterBuilder};
use kurabe_core::axis::AxisValue;
use kurabe_core::run::{CellRecord, Measurement, Run, TrialRecord};

/// A column of the table of windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub values: Values,
}

/// The value of each window; `None`: it has none.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<u64>>),
    /// Numbers, and their digits after the point in a text.
    Real(Vec<Option<f64>>, usize),
    Flag(Vec<Option<bool>>),
}

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

/// The columns of all trials' windows, in the order of execution. Failed trials have none.
pub fn columns(run: &Run) -> Vec<Column> {
    let rows: Vec<Window<'_>> = measured(run).flat_map(|trial| windows(run, trial)).collect();
    let column = |name: &str, values| Column { name: name.to_owned(), values };
    let text = |name: &str, of: &dyn Fn(&Window<'_>) -> Option<String>| {
        column(name, Values::Text(rows.iter().map(of).collect()))
    };
    let whole = |name: &str, of: &dyn Fn(&Window<'_>) -> Option<u64>| {
        column(name, Values::Whole(rows.iter().map(of).collect()))
    };
    let real = |name: &str, digits: usize, of: fn(&Window<'_>) -> f64| {
        column(name, Values::Real(rows.iter().map(|row| Some(of(row))).collect(), digits))
    };
    let target = |row: &Window<'_>| Some(run.header.targets.get(row.cell.target)?.name.clone());
    let mut all = vec![
        text("run", &|_| Some(run.header.run.clone())),
        whole("round", &|row| Some(u64::from(row.trial.round) + 1)),
        text("rerun_reason", &|row| row.trial.rerun_reason.clone()),
        text("target", &target),
    ];
    all.extend(run.header.spec.axes.keys().map(|axis| {
        // An axis whose values are all numbers is a column of numbers.
        if rows.iter().any(|row| matches!(row.cell.axes.get(axis), Some(AxisValue::Word(_)))) {
            return text(axis, &|row| row.cell.axes.get(axis).map(ToString::to_string));
        }
        whole(axis, &|row| match row.cell.axes.get(axis) {
            Some(AxisValue::Number(number)) => Some(*number),
            _ => None,
        })
    }));
    all.extend([
        column("aa_control", Values::Flag(rows.iter().map(|row| Some(row.cell.aa_control)).collect())),
        text("operation", &|row| Some(row.trial.operation.clone())),
        // Milliseconds since the run started.
        whole("trial_start_ms", &|row| Some(row.trial.at_ms)),
        whole("window", &|row| Some(u64::from(row.at) + 1)),
        // Seconds since the start of the measured phase.
        real("from_s", 6, |row| f64::from(row.at) * row.width),
        real("to_s", 6, |row| f64::from(row.at + 1) * row.width),
        whole("completed", &|row| Some(row.completed)),
        real("ops_per_second", 3, |row| if row.width > 0.0 { row.completed as f64 / row.width } else { 0.0 }),
    ]);
    all
}

impl Values {
    /// The text of the value in this row, which is empty if it is missing; `None` after the last row.
    fn text(&self, row: usize) -> Option<String> {
        fn of<T>(values: &[Option<T>], row: usize, show: impl Fn(&T) -> String) -> Option<String> {
            values.get(row).map(|value| value.as_ref().map(show).unwrap_or_default())
        }
        match self {
            Self::Text(values) => of(values, row, String::clone),
            Self::Whole(values) => of(values, row, ToString::to_string),
            Self::Real(values, digits) => of(values, row, |value| format!("{value:.digits$}")),
            Self::Flag(values) => of(values, row, ToString::to_string),
        }
    }
}

/// The windows as CSV (RFC 4180) with a header line. Lines end with CR LF, and missing values are empty.
pub fn render(run: &Run) -> String {
    let columns = columns(run);
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    // Writing to memory cannot fail, and all rows have the same length.
    let _ = writer.write_record(columns.iter().map(|column| &column.name));
    let texts = |row| columns.iter().map(|column| column.values.text(row)).collect::<Option<Vec<String>>>();
    for row in (0..).map_while(texts) {
        let _ = writer.write_record(row);
    }
    writer.into_inner().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
