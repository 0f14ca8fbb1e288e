//! The raw windows of every trial as CSV (RFC 4180): one row for each equal part of a trial's measured phase, with the
//! transactions completed in it. A trial without windows has one row with its total.

use csv::{Terminator, WriterBuilder};
use kurabe_core::axis::AxisValue;
use kurabe_core::run::{Outcome, Run};

/// The CSV text with a header line. Lines end with CR LF, and missing values are empty. Failed trials have no rows.
pub fn render(run: &Run) -> String {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    let axes: Vec<&String> = run.header.spec.axes.keys().collect();
    let names =
        ["run", "round", "rerun_reason", "target"].into_iter().chain(axes.iter().map(|name| name.as_str()));
    let after = [
        "aa_control",
        "operation",
        "trial_start_ms",
        "window",
        "from_s",
        "to_s",
        "completed",
        "ops_per_second",
    ];
    let mut rows: Vec<Vec<String>> = vec![names.chain(after).map(str::to_owned).collect()];
    for trial in &run.trials {
        let (Some(cell), Outcome::Measured(measured)) = (run.header.cells.get(trial.cell), &trial.outcome)
        else {
            continue;
        };
        let windows = match measured.windows.as_slice() {
            [] => &[measured.completed],
            windows => windows,
        };
        let width = measured.elapsed_ns as f64 / 1e9 / windows.len() as f64;
        for (at, completed) in windows.iter().enumerate() {
            let target = run.header.targets.get(cell.target).map_or("", |target| &target.name);
            let mut row = vec![
                run.header.run.clone(),
                (trial.round + 1).to_string(),
                trial.rerun_reason.clone().unwrap_or_default(),
                target.to_owned(),
            ];
            row.extend(axes.iter().map(|axis| match cell.axes.get(axis) {
                Some(AxisValue::Number(number)) => number.to_string(),
                Some(AxisValue::Word(word)) => word.clone(),
                None => String::new(),
            }));
            let rate = if width > 0.0 { *completed as f64 / width } else { 0.0 };
            row.extend([
                cell.aa_control.to_string(),
                trial.operation.clone(),
                trial.at_ms.to_string(),
                (at + 1).to_string(),
                format!("{:.6}", at as f64 * width),
                format!("{:.6}", (at + 1) as f64 * width),
                completed.to_string(),
                format!("{rate:.3}"),
            ]);
            rows.push(row);
        }
    }
    for row in rows {
        // Writing to memory cannot fail, and all rows have the same length.
        let _ = writer.write_record(row);
    }
    writer.into_inner().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
