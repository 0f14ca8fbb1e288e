//! The figures as CSV (RFC 4180): one row per cell and operation. The columns are the same for all runs of an experiment
//! whose cells have the same metrics.
//!
//! `ops_per_second` is the median of the rounds; `ops_per_second_pooled` is all rounds together, as `--format ab` prints it.

use crate::summary::{CellFigures, Status, Summary};
use kurabe_core::figure::Unit;
use kurabe_core::witness::Meter;
use std::fmt::Write as _;

/// The columns behind the axes.
const FIGURES: &[&str] = &[
    "operation",
    "status",
    "reason",
    "baseline_repeat",
    "rounds",
    "ops_per_second",
    "ops_per_second_low",
    "ops_per_second_high",
    "ops_per_second_pooled",
    "latency_p50_us",
    "latency_p90_us",
    "latency_p99_us",
    "latency_p999_us",
    "latency_max_us",
    "client_cpu_us_per_op",
    "verify_ns_per_op",
    "overhead_ns_per_op",
    "verified",
    "answers_compared",
    "writes_acknowledged",
    "writes_counted",
    "records_read_back",
    "mismatches",
    "failed_operations",
    "retries",
    "stored_bytes",
    "durability",
    "bottleneck",
    "publishing",
    "due_per_second",
    "response_p50_us",
    "response_p99_us",
    "response_p999_us",
    "response_max_us",
    "dispatch_lag_p99_us",
    "backlog",
    "dropped",
    "bottleneck_confidence",
    "bottleneck_evidence",
    "disturbed",
    "log_bytes_per_op",
    "binlog_bytes_per_op",
    "file_bytes_per_op",
    "lock_waits",
    "server_cpu_us_per_op",
];

/// The figures with a header line; lines end with CR LF, numbers are plain, and what there is not is empty.
pub fn render(summary: &Summary) -> String {
    let axes: Vec<&str> = summary.labels.axes.iter().map(|axis| axis.name.as_str()).collect();
    let mut text = String::new();
    let mut head = vec!["run", "target", "engine", "version"];
    head.extend(&axes);
    head.extend(FIGURES);
    let metrics = metrics(summary);
    let metric_heads = metrics.iter().map(|(name, unit)| format!("{} ({})", name, unit_name(*unit)));
    line(&mut text, head.iter().map(|name| (*name).to_owned()).chain(metric_heads));
    for cell in &summary.cells {
        let value = |(name, _): &(&str, Unit)| {
            let figure = cell.figures.iter().find(|figure| figure.name == **name);
            figure.map_or_else(String::new, |figure| format!("{:.6}", figure.value))
        };
        line(&mut text, row(summary, cell, &axes).into_iter().chain(metrics.iter().map(value)));
    }
    text
}

/// The experiment's own metrics that some cell has: a column each, the last ones.
fn metrics(summary: &Summary) -> Vec<(&str, Unit)> {
    let mut all: Vec<(&str, Unit)> = Vec::new();
    for figure in summary.cells.iter().flat_map(|cell| &cell.figures) {
        if !all.iter().any(|(name, _)| *name == figure.name) {
            all.push((&figure.name, figure.unit));
        }
    }
    all
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Share => "share",
    }
}

fn row(summary: &Summary, cell: &CellFigures, axes: &[&str]) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    let status = match cell.status {
        Status::Ok => "ok",
        Status::Failed => "failed",
        Status::Unavailable => "unavailable",
    };
    let mut row = vec![summary.run.clone(), cell.target.clone(), cell.engine.clone(), cell.version.clone()];
    row.extend(axes.iter().map(|axis| cell.axes.get(axis).map_or_else(String::new, ToString::to_string)));
    row.extend([
        cell.operation.clone(),
        status.to_owned(),
        cell.reason.clone().unwrap_or_default(),
        cell.baseline_repeat.to_string(),
        cell.rounds.to_string(),
        number(cell.ops_per_second.map(|rate| rate.median)),
        number(cell.ops_per_second.and_then(|rate| rate.low)),
        number(cell.ops_per_second.and_then(|rate| rate.high)),
        number(cell.totals.as_ref().map(|totals| totals.pooled())),
    ]);
    let latency = cell.latency_us;
    row.extend([
        number(latency.map(|l| l.p50)),
        number(latency.map(|l| l.p90)),
        number(latency.map(|l| l.p99)),
        number(latency.map(|l| l.p999)),
        number(latency.map(|l| l.max)),
    ]);
    row.extend([
        number(cell.client_cpu_us_per_op),
        number(cell.verify_ns_per_op),
        number(cell.overhead_ns_per_op),
    ]);
    row.extend(verified(cell));
    row.extend([
        cell.verified.mismatches.to_string(),
        cell.failed_operations.to_string(),
        cell.retries.to_string(),
        cell.stored_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
        cell.durability.map_or_else(String::new, |class| class.name().to_owned()),
        cell.attribution.as_ref().map_or_else(String::new, |found| found.bottleneck.name().to_owned()),
        publishing(summary, cell),
    ]);
    let open = cell.open_loop;
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    row.extend([
        number(open.map(|open| open.due_per_second)),
        number(open.map(|open| open.response_us.p50)),
        number(open.map(|open| open.response_us.p99)),
        number(open.map(|open| open.response_us.p999)),
        number(open.map(|open| open.response_us.max)),
        number(open.and_then(|open| open.dispatch_lag_p99_us)),
        whole(open.map(|open| open.backlog)),
        whole(open.map(|open| open.dropped)),
    ]);
    let attribution = cell.attribution.as_ref();
    row.extend([
        attribution.map_or_else(String::new, |attribution| attribution.confidence.name().to_owned()),
        attribution.map_or_else(String::new, |attribution| attribution.evidence.clone()),
        attribution.and_then(|attribution| attribution.disturbed.clone()).unwrap_or_default(),
    ]);
    let counter = |what: Meter| cell.counters.iter().find(|counter| counter.what == what);
    let each = [Meter::LogBytes, Meter::BinlogBytes, Meter::FileBytes];
    row.extend(each.map(|what| number(counter(what).map(|counter| counter.per_operation))));
    row.push(whole(counter(Meter::LockWaits).map(|counter| counter.total)));
    row.push(number(cell.server_cpu_us_per_op));
    row
}

/// How the cell was verified, and the numbers behind that.
fn verified(cell: &CellFigures) -> [String; 5] {
    let Some(proven) = cell.verified.proven else { return Default::default() };
    let numbers = [proven.answers, proven.writes, proven.counted, proven.read_back].map(|n| n.to_string());
    let [answers, writes, counted, read_back] = numbers;
    [proven.how().name().to_owned(), answers, writes, counted, read_back]
}

/// What the licence of the cell's target says of publishing its figures: in each row, since a comment line would stop
/// programs that read the file, and rows are copied without their neighbours.
fn publishing(summary: &Summary, cell: &CellFigures) -> String {
    let clause = summary.targets.get(cell.target_index).and_then(|target| target.publishing.as_ref());
    clause.map_or_else(String::new, |clause| {
        format!("restricted: {} ({}; {})", clause.says, clause.name, clause.source)
    })
}

fn line(text: &mut String, fields: impl Iterator<Item = String>) {
    for (n, field) in fields.enumerate() {
        let _ = write!(text, "{}{}", if n > 0 { "," } else { "" }, quoted(&field));
    }
    text.push_str("\r\n");
}

/// A field as RFC 4180 writes it: quoted where it holds a quote, a comma or a line's end. What a spreadsheet would take
/// for a formula gets an apostrophe in front.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err();
    let field = if formula { format!("'{field}") } else { field.to_owned() };
    if field.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads one line as RFC 4180 does.
    fn parse(text: &str) -> Vec<String> {
        let (mut fields, mut field, mut inside) = (Vec::new(), String::new(), false);
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '"' if inside && letters.peek() == Some(&'"') => field.extend(letters.next()),
                '"' => inside = !inside,
                ',' if !inside => fields.push(std::mem::take(&mut field)),
                '\r' if !inside => break,
                other => field.push(other),
            }
        }
        fields.push(field);
        fields
    }

    proptest! {
        #[test]
        fn any_text_survives_quoting(fields in prop::collection::vec("[ -~äµ\n\r\",]{0,12}", 1..6)) {
            let mut text = String::new();
            line(&mut text, fields.iter().cloned());
            let found = parse(&text);
            prop_assert_eq!(found.len(), fields.len());
            for (found, wanted) in found.iter().zip(&fields) {
                prop_assert_eq!(found.strip_prefix('\'').unwrap_or(found), wanted.strip_prefix('\'').unwrap_or(wanted));
            }
        }
    }

    #[test]
    fn a_formula_stays_text() {
        assert_eq!(quoted("=1+1"), "'=1+1");
        assert_eq!(quoted("-1.5"), "-1.5");
    }
}
