//! Tables of the server's own statistics: counters, wait states of sessions, and statements.

use crate::cell::{CellResult, SessionShare, reported};
use crate::format::{figure, micros, percent, short_figure};
use crate::labels::OperationLabels;
use crate::messages::Message;
use crate::summary::Summary;
use crate::table::{Table, dash};
use crate::target::TargetId;
use kurabe_core::observation::Observation;
use kurabe_core::query_plan::QueryPlan;
use kurabe_core::sort;
use kurabe_core::stats_probe::{Counter, StatementUse};
use kurabe_core::units;

/// The minimum share of session time for a row.
const MIN: f64 = 0.03;
/// The maximum number of rows per cell.
const ROWS: usize = 4;

pub(crate) fn tables(summary: &Summary) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    for operation in &summary.labels.operations {
        let cells: Vec<&CellResult> = reported(&summary.cells, &operation.name).collect();
        all.extend(counters(summary, operation, &cells));
        all.extend(wait_states(summary, operation, &cells));
        all.extend(statements(summary, operation, &cells));
        all.extend(plans(summary, operation, &cells));
    }
    // A legend is shown once.
    for at in (1..all.len()).rev() {
        if all[..at].iter().any(|before| before.legend == all[at].legend) {
            all[at].legend = None;
        }
    }
    all
}

/// A table with a row for each of these cells, so far without columns; `None` if there are none.
fn of_cells(
    summary: &Summary,
    operation: &OperationLabels,
    title: Message,
    legend: Message,
    rows: &[&CellResult],
) -> Option<Table> {
    let language = summary.labels.language;
    let title = title.with(language, &[("operations", &operation.plural)]);
    let legend = Some(legend.text(language).to_owned());
    (!rows.is_empty()).then(|| Table { legend, ..Table::of(title, summary, rows) })
}

/// The counters; only columns with values.
fn counters(summary: &Summary, operation: &OperationLabels, cells: &[&CellResult]) -> Option<Table> {
    type Value = Box<dyn Fn(&CellResult) -> Option<f64>>;
    type CounterColumn = (&'static str, u8, Value, fn(f64) -> String);
    let each = |what| -> Value { Box::new(move |cell| Some(cell.counter(what)?.per_operation)) };
    // Bytes and nanoseconds are shown as whole ones.
    let whole = |what| -> Value { Box::new(move |cell| Some(cell.counter(what)?.per_operation.round())) };
    let total = |what| -> Value { Box::new(move |cell| Some(cell.counter(what)?.total as f64)) };
    let ratio = |a: Counter, b: Counter| {
        move |cell: &CellResult| {
            let (a, b) = (cell.counter(a)?.total, cell.counter(b)?.total);
            (b > 0).then(|| a as f64 / b as f64)
        }
    };
    let missed = ratio(Counter::PagesMissed, Counter::PagesRequested);
    let hits: Value = Box::new(move |cell| missed(cell).map(|missed| 1.0 - missed.min(1.0)));
    let examined: Value = Box::new(ratio(Counter::RowsExamined, Counter::RowsReturned));
    let bytes = |bytes: f64| units::size(bytes as u64);
    let count = |total: f64| units::count(total as u64);
    let time = |ns: f64| micros(ns / 1e3);
    let columns: [CounterColumn; 14] = [
        ("log/op", 0, whole(Counter::LogBytes), bytes),
        ("binlog/op", 1, whole(Counter::BinlogBytes), bytes),
        ("files/op", 0, whole(Counter::FileBytes), bytes),
        ("syncs/op", 2, each(Counter::LogSyncs), short_figure),
        ("buffer hits", 1, hits, percent),
        ("examined/op", 3, each(Counter::RowsExamined), short_figure),
        ("examined/returned", 2, examined, short_figure),
        ("lock waits", 1, total(Counter::LockWaits), count),
        ("locked/op", 2, whole(Counter::LockNs), time),
        ("changed/op", 3, each(Counter::PagesChanged), short_figure),
        ("transactions/op", 3, each(Counter::Transactions), short_figure),
        ("temporary", 4, total(Counter::Temporary), count),
        ("checkpoints", 3, total(Counter::Checkpoints), count),
        ("evicted", 3, total(Counter::Evictions), count),
    ];
    // Columns of zeros and rows of dashes are omitted.
    let is_told = |cell: &&CellResult, value: &Value| value(cell).is_some_and(|value| value > 0.0);
    let shown: Vec<_> = columns
        .into_iter()
        .filter(|(_, _, value, _)| cells.iter().any(|cell| is_told(cell, value)))
        .collect();
    let has_any = |cell: &&CellResult| shown.iter().any(|(_, _, value, _)| value(cell).is_some());
    let rows: Vec<&CellResult> = cells.iter().copied().filter(has_any).collect();
    let mut table = of_cells(summary, operation, Message::ReportedOn, Message::CounterLegend, &rows)?;
    for (head, spare, value, show) in shown {
        table.add(head, true, spare, rows.iter().map(|cell| value(cell).map_or_else(dash, show)));
    }
    Some(table)
}

fn wait_states(summary: &Summary, operation: &OperationLabels, cells: &[&CellResult]) -> Option<Table> {
    let rows: Vec<(&CellResult, &SessionShare)> = cells
        .iter()
        .flat_map(|cell| {
            let worth = cell.sessions.iter().filter(|session| session.share >= MIN);
            worth.take(ROWS).map(move |session| (*cell, session))
        })
        .collect();
    let places: Vec<&CellResult> = rows.iter().map(|(cell, _)| *cell).collect();
    let mut table = of_cells(summary, operation, Message::SamplesDuring, Message::SamplesLegend, &places)?;
    let language = summary.labels.language;
    let session = |show: &dyn Fn(&SessionShare) -> String| -> Vec<String> {
        rows.iter().map(|(_, session)| show(session)).collect()
    };
    table.add(Message::Share.text(language), true, 0, session(&|s| percent(s.share)));
    table.add(Message::WaitState.text(language), false, 0, session(&|s| s.wait_state.word().to_owned()));
    table.add(Message::WaitingFor.text(language), false, 0, session(&|s| or_dash(&s.event)));
    table.add(Message::State.text(language), false, 3, session(&|s| or_dash(&s.state)));
    let cpu = |of: fn(&Observation) -> Option<u64>| -> Vec<String> {
        let mean = |cell: &CellResult| {
            let used: Vec<f64> = cell
                .observed
                .iter()
                .filter_map(|seen| Some(of(seen)? as f64 / (seen.wall_ns as f64).max(1.0)))
                .collect();
            (!used.is_empty()).then(|| used.iter().sum::<f64>() / used.len() as f64)
        };
        rows.iter().map(|(cell, _)| mean(cell).map_or_else(dash, figure)).collect()
    };
    let server = cpu(|seen| seen.server_seen().map(|server| server.cpu_ns));
    table.add(Message::ServerCpus.text(language), true, 1, server);
    table.add(Message::ClientCpus.text(language), true, 2, cpu(|seen| Some(seen.client.cpu_ns)));
    let statement = |s: &SessionShare| or_dash(&s.statement.chars().take(70).collect::<String>());
    table.add(Message::Statement.text(language), false, 4, session(&statement));
    Some(table)
}

fn statements(summary: &Summary, operation: &OperationLabels, cells: &[&CellResult]) -> Option<Table> {
    let all: Vec<(&CellResult, StatementUse)> = cells
        .iter()
        .flat_map(|cell| statements_of(&cell.observed).into_iter().take(ROWS).map(move |used| (*cell, used)))
        .collect();
    let places: Vec<&CellResult> = all.iter().map(|(cell, _)| *cell).collect();
    let mut table = of_cells(summary, operation, Message::StatementsOf, Message::StatementsLegend, &places)?;
    let language = summary.labels.language;
    let used = |show: &dyn Fn(&StatementUse) -> String| -> Vec<String> {
        all.iter().map(|(_, used)| show(used)).collect()
    };
    let each = |n: u64, used: &StatementUse| n as f64 / (used.calls as f64).max(1.0);
    table.add(Message::Calls.text(language), true, 0, used(&|s| units::count(s.calls)));
    table.add("time/call", true, 0, used(&|s| micros(each(s.time_ns, s) / 1e3)));
    if all.iter().any(|(_, used)| used.cpu_ns.is_some()) {
        let cpu = |s: &StatementUse| s.cpu_ns.map_or_else(dash, |cpu| micros(each(cpu, s) / 1e3));
        table.add("CPU/call", true, 1, used(&cpu));
    }
    let examined = used(&|s| s.rows_examined.map_or_else(dash, |rows| short_figure(each(rows, s))));
    table.add("examined/call", true, 2, examined);
    table.add("rows/call", true, 1, used(&|s| short_figure(each(s.rows, s))));
    table.add(Message::Statement.text(language), false, 0, used(&|s| s.text.chars().take(90).collect()));
    Some(table)
}

/// The plans of statements, a line a row; those of cells that differ in nothing else once.
fn plans(summary: &Summary, operation: &OperationLabels, cells: &[&CellResult]) -> Option<Table> {
    let mut told: Vec<(&TargetId, &str)> = Vec::new();
    let mut rows: Vec<(&CellResult, &QueryPlan, usize)> = Vec::new();
    for cell in cells {
        for plan in &cell.plans {
            let this = (&cell.target, plan.text.as_str());
            if !told.contains(&this) {
                told.push(this);
                rows.extend((0..plan.lines.len()).map(|line| (*cell, plan, line)));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let language = summary.labels.language;
    let title = Message::PlansOf.with(language, &[("operations", &operation.plural)]);
    let mut table = Table { title, rows: vec![Vec::new(); rows.len()], ..Table::default() };
    let first = |at: usize| at == 0 || rows[at].2 == 0;
    let once = |of: &dyn Fn(&CellResult, &QueryPlan) -> String| -> Vec<String> {
        let text = |(at, (cell, plan, _)): (usize, &(&CellResult, &QueryPlan, usize))| {
            if first(at) { of(cell, plan) } else { String::new() }
        };
        rows.iter().enumerate().map(text).collect()
    };
    if summary.labels.several_targets() {
        table.add(Message::Target.text(language), false, 0, once(&|cell, _| cell.target.to_string()));
    }
    table.add(Message::Query.text(language), false, 0, once(&|_, plan| plan.statement.clone()));
    // Spaces at the beginning are kept everywhere.
    let line = |(_, plan, line): &(&CellResult, &QueryPlan, usize)| {
        let text = plan.lines[*line].trim_start();
        let depth = plan.lines[*line].len() - text.len();
        format!("{}{text}", "\u{a0}".repeat(depth))
    };
    table.add(Message::Plan.text(language), false, 0, rows.iter().map(line));
    Some(table)
}

/// A cell's statements over its rounds, by total time.
pub(crate) fn statements_of(observed: &[Observation]) -> Vec<StatementUse> {
    let mut all: Vec<StatementUse> = Vec::new();
    for one in observed.iter().filter_map(|seen| seen.engine.as_ref()).flat_map(|engine| &engine.statements) {
        match all.iter_mut().find(|known| known.text == one.text) {
            Some(known) => known.add(one),
            None => all.push(one.clone()),
        }
    }
    sort::by_key(&mut all, |statement| std::cmp::Reverse(statement.time_ns));
    all
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { dash() } else { text.to_owned() }
}
