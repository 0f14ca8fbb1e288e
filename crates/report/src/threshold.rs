//! Results against the limit of response times that the run was given (`--slo`).

use crate::cell::{CellResult, Status};
use crate::format::{figure, micros};
use crate::messages::Message;
use crate::summary::Summary;
use kurabe_core::load::Load;
use kurabe_core::sort;

/// A result and its limit.
pub(crate) struct Threshold {
    /// Which result, and what it reached: `PostgreSQL, reads at 1 kB: p99 4.2 ms`.
    pub text: String,
    pub passed: bool,
}

/// All results of a run with a limit, those that fail first; empty without one.
pub(crate) fn all(summary: &Summary) -> Vec<Threshold> {
    let Some(limit) = summary.spec.slo_ns else { return Vec::new() };
    let limit = limit as f64 / 1e3;
    let mut all: Vec<Threshold> = summary
        .cells
        .iter()
        .filter(|cell| !cell.aa_control)
        .map(|cell| of_cell(summary, cell, limit))
        .collect();
    sort::by_key(&mut all, |one| one.passed);
    all
}

/// Whether the results keep the limit, in one sentence with one that does not; `None` without a limit.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    let all = all(summary);
    let first = all.first()?;
    let passed = all.iter().filter(|one| one.passed).count();
    let limit = &summary.labels.objective;
    let (count, kept) = (all.len().to_string(), passed.to_string());
    let message = if passed == all.len() { Message::LimitKept } else { Message::LimitMissed };
    let values = [("limit", limit.as_str()), ("passed", &kept), ("count", &count), ("first", &first.text)];
    Some(message.with(summary.labels.language, &values))
}

fn of_cell(summary: &Summary, cell: &CellResult, limit_us: f64) -> Threshold {
    let labels = &summary.labels;
    let values = labels.varying_of(&cell.axes);
    let at = if values.is_empty() { String::new() } else { format!(" at {}", values.join(", ")) };
    let times = cell.times().filter(|_| cell.status == Status::Ok);
    let (reached, passed) = match times {
        None => ("no result".to_owned(), false),
        Some(_) if cell.is_overloaded() => ("the load was not served".to_owned(), false),
        Some(_) if cell.is_generator_late() => ("the clients were too late to measure it".to_owned(), false),
        // A search found the highest rate that keeps the limit.
        Some(times) if Load::of(&cell.axes) == Load::Highest => {
            let rate = cell.ops_per_second.map_or(0.0, |rate| rate.value);
            (format!("up to {}/s, p99 {}", figure(rate), micros(times.p99)), rate > 0.0)
        }
        Some(times) => (format!("p99 {}", micros(times.p99)), times.p99 <= limit_us),
    };
    let target = &labels.targets[cell.target_index];
    Threshold { text: format!("{target}, {}{at}: {reached}", labels.plural(&cell.operation)), passed }
}
