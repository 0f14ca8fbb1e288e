//! The results as tables of text, for all formats.

use crate::attribution::{Attribution, Bottleneck, Confidence};
use crate::catalogue::{self, translated};
use crate::cell::{
    CellResult, FEW_OPERATIONS, Latency, MetricInfo, MetricResult, OpenLoopResult, Status,
    TOO_FEW_OPERATIONS, reported,
};
use crate::format::{figure, micros, short_figure, value_of};
use crate::group::grouped;
use crate::labels::OperationLabels;
use crate::messages::{Language, Message};
use crate::summary::Summary;
use crate::verdict::ends;
use crate::wording::{joined, listed, say};
use kurabe_core::metric::{Source, Unit};
use kurabe_core::units;
use kurabe_stats::Estimate;

/// A table with a heading.
#[derive(Clone, Default)]
pub(crate) struct Table {
    pub title: String,
    /// The legend, for other than the main tables.
    pub legend: Option<String>,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
    /// The cell of each row, by its position in the summary; empty if rows are no cells.
    pub cells: Vec<usize>,
    /// The column of ratios, if there is one.
    pub ratios: Option<usize>,
}

#[derive(Clone)]
pub(crate) struct Column {
    pub head: String,
    /// Whether its cells are numbers, aligned right.
    pub right: bool,
    /// The priority of dropping it if there is not enough width: the highest is dropped first.
    pub spare: u8,
}

/// The tables of cells with results, one for each operation. A/A controls are omitted: they are the noise floor.
pub(crate) fn tables(summary: &Summary) -> Vec<Table> {
    let labels = &summary.labels;
    let mut tables = Vec::new();
    for operation in &labels.operations {
        let cells: Vec<&CellResult> = reported(&summary.cells, &operation.name).collect();
        if cells.is_empty() {
            continue;
        }
        let mut table = Table::of(labels.begun(&operation.plural), summary, &cells);
        let mut add = |head: &str, right: bool, spare: u8, text: &dyn Fn(&CellResult) -> String| {
            table.add(head, right, spare, cells.iter().map(|cell| text(cell)));
        };
        let text = |message: Message| message.text(labels.language);
        add(text(Message::OpsPerSecond), true, 0, &rate);
        let interval = |rate: Estimate| ends(rate, &short_figure);
        add(text(Message::Interval), true, 0, &|cell| cell.ops_per_second.map_or_else(dash, interval));
        let open = cells.iter().any(|cell| cell.open_loop.is_some());
        // In an open loop the first columns are response times, and service times have their own column.
        // Times with a backlog grow with the trial, and those of a late generator are invalid.
        let shown = |cell: &CellResult, show: fn(&CellResult, Latency) -> String| match cell.times() {
            _ if cell.is_overloaded() => text(Message::Overloaded).to_owned(),
            _ if cell.is_generator_late() => text(Message::Invalid).to_owned(),
            times => times.map_or_else(dash, |times| show(cell, times)),
        };
        add("p50", true, 2, &|cell| shown(cell, |_, times| micros(times.p50)));
        add("p95", true, 4, &|cell| shown(cell, |cell, times| p95(cell, times.p95)));
        add("p99", true, u8::from(!open), &|cell| shown(cell, |cell, times| p99(cell, times.p99)));
        add("max", true, 5, &|cell| shown(cell, |_, times| micros(times.max)));
        if open {
            let of = |cell: &CellResult, show: &dyn Fn(&OpenLoopResult) -> String| {
                cell.open_loop.as_ref().map_or_else(dash, show)
            };
            add("service p99", true, 2, &|cell| cell.latency_us.map_or_else(dash, |l| p99(cell, l.p99)));
            let lag = |open: &OpenLoopResult| open.dispatch_lag_p99_us.map_or_else(dash, micros);
            add(text(Message::LagP99), true, 4, &|cell| of(cell, &lag));
            add(text(Message::Backlog), true, 3, &|cell| of(cell, &|open| units::count(open.backlog)));
            add(text(Message::Dropped), true, 1, &|cell| of(cell, &|open| units::count(open.dropped)));
        }
        if cells.iter().any(|cell| cell.attribution.is_some()) {
            let shown = |found: &Attribution| limit(found, labels.language);
            add(Message::LimitedBy.text(labels.language), false, 1, &|cell| {
                cell.attribution.as_ref().map_or_else(dash, shown)
            });
        }
        add("CPU/op", true, 3, &|cell| cell.client_cpu_us_per_op.map_or_else(dash, micros));
        // What saves client CPU may cost server CPU, so both are shown.
        if cells.iter().any(|cell| cell.server_cpu_us_per_op.is_some()) {
            add("server CPU/op", true, 2, &|cell| cell.server_cpu_us_per_op.map_or_else(dash, micros));
        }
        add("bytes/record", true, 4, &|cell| cell.stored_bytes.map_or_else(dash, units::size));
        tables.push(table);
        tables.extend(more(summary, operation, &cells));
    }
    tables
}

/// The metrics that some cells have, with their descriptions.
fn more(summary: &Summary, operation: &OperationLabels, cells: &[&CellResult]) -> Option<Table> {
    let labels = &summary.labels;
    let has = |metric: &&MetricInfo| cells.iter().any(|cell| cell.metric(&metric.name).is_some());
    let metrics: Vec<&MetricInfo> =
        labels.metrics.iter().filter(|metric| !metric.is_usual()).filter(has).collect();
    if metrics.is_empty() {
        return None;
    }
    let any = |cell: &&CellResult| metrics.iter().any(|metric| cell.metric(&metric.name).is_some());
    let cells: Vec<&CellResult> = cells.iter().copied().filter(any).collect();
    let about = metrics.iter().filter(|metric| !metric.about.is_empty());
    let about = about.filter_map(|metric| {
        let about = catalogue::find(&metric.about, labels.language)?;
        Some(format!("{}: {about}", metric.name))
    });
    let about: Vec<String> = about.collect();
    let is_mean = |metric: &&MetricInfo| {
        matches!(metric.unit, Unit::Nanoseconds | Unit::Bytes) && !matches!(metric.source, Source::Slope(_))
    };
    let more = match (about.is_empty(), metrics.iter().all(is_mean)) {
        (true, _) => "",
        (false, true) => Message::MoreMeans.text(labels.language),
        (false, false) => Message::MoreMetrics.text(labels.language),
    };
    let mut table = Table::of(labels.begun(&operation.plural) + more, summary, &cells);
    table.legend = (!about.is_empty()).then(|| {
        let about = joined(&about, "; ", labels.language);
        say!(labels.language, "{about}.", "{about}。")
    });
    for metric in &metrics {
        let show = |of: &dyn Fn(&MetricResult) -> String| -> Vec<String> {
            cells.iter().map(|cell| cell.metric(&metric.name).map_or_else(dash, of)).collect()
        };
        // A slope is the same in all rows of its line, and is in a sentence.
        let spare = if metric.source.is_per_cell() { u8::from(!metric.primary) } else { 3 };
        table.add(&metric.name, true, spare, show(&|figures| value_of(metric.unit, figures.figure.value)));
        if metric.primary {
            let ends = |found: &MetricResult| ends(found.figure, &|value| value_of(metric.unit, value));
            table.add(Message::Interval.text(labels.language), true, spare + 2, show(&ends));
        }
    }
    Some(table)
}

impl Table {
    /// A table whose first columns identify the cell of each row.
    pub fn of(title: String, summary: &Summary, cells: &[&CellResult]) -> Self {
        let labels = &summary.labels;
        let rows = cells.iter().map(|_| Vec::new()).collect();
        let ids = cells.iter().map(|cell| cell.index).collect();
        let mut table = Self { title, rows, cells: ids, ..Self::default() };
        if labels.several_targets() {
            let names = cells.iter().map(|cell| labels.targets[cell.target.at()].clone());
            table.add(Message::Target.text(labels.language), false, 0, names);
        }
        for axis in labels.chart_axis().into_iter().chain(labels.varying()) {
            let right = axis.kind != crate::labels::Kind::Word;
            table.add(&axis.name, right, 0, cells.iter().map(|cell| axis.show_of(&cell.axes)));
        }
        table
    }

    /// The groups of its rows as tables of their own, each with its heading as the title.
    pub fn groups(&self, headings: &[(usize, String)]) -> Vec<Self> {
        let part = |(n, (from, heading)): (usize, &(usize, String))| {
            let to = headings.get(n + 1).map_or(self.rows.len(), |(next, _)| *next);
            let (title, columns, rows) =
                (heading.clone(), self.columns.clone(), self.rows[*from..to].to_vec());
            Self { title, columns, rows, ..Self::default() }
        };
        headings.iter().enumerate().map(part).collect()
    }

    /// Adds a column.
    pub fn add(&mut self, head: &str, right: bool, spare: u8, cells: impl IntoIterator<Item = String>) {
        self.columns.push(Column { head: head.to_owned(), right, spare });
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }
}

/// The rate of a cell, or why it has none.
pub(crate) fn rate(cell: &CellResult) -> String {
    // The client was saturated: the server's capacity is higher.
    let least = if cell.is_lower_bound() { "≥ " } else { "" };
    // Throughput changed until the trial ended: a longer one would have another result.
    let mark = if cell.steady.is_some_and(|steady| steady.is_never()) { "~ " } else { "" };
    cell.ops_per_second.map_or_else(dash, |rate| format!("{least}{mark}{}", figure(rate.value)))
}

/// `server CPU`; in brackets if it is only the most likely one.
pub(crate) fn limit(attribution: &Attribution, language: Language) -> String {
    let likely = attribution.confidence == Confidence::Low
        && !matches!(attribution.bottleneck, Bottleneck::Unknown | Bottleneck::Load);
    let word = attribution.bottleneck.message().text(language);
    if likely { format!("({word})") } else { word.to_owned() }
}

/// A high percentile in microseconds: marked if it is of few operations.
pub(crate) fn p95(cell: &CellResult, us: f64) -> String {
    micros(us) + if cell.timed() < FEW_OPERATIONS { "†" } else { "" }
}

/// A 99th percentile in microseconds: not shown if it is of very few operations.
pub(crate) fn p99(cell: &CellResult, us: f64) -> String {
    if cell.timed() < TOO_FEW_OPERATIONS { dash() } else { p95(cell, us) }
}

pub(crate) fn dash() -> String {
    "–".to_owned()
}

/// The constant axes with their values, shown above the table.
pub(crate) fn fixed_axes(summary: &Summary) -> Vec<String> {
    let labels = &summary.labels;
    let shown = labels.chart_axis().map(|axis| axis.name.clone());
    labels
        .axes
        .iter()
        .filter(|axis| !axis.varies() && Some(&axis.name) != shown.as_ref())
        .filter_map(|axis| Some(format!("{} {}", axis.name, axis.show(axis.baseline()?))))
        .collect()
}

/// Cells without results, each with a sentence of what lacks them and why. Cells of one target with the same reason have one.
pub(crate) fn lacking(summary: &Summary) -> Vec<(Status, String)> {
    let cells = summary.cells.iter().filter(|cell| cell.status != Status::Ok);
    let groups =
        grouped(cells.map(|cell| ((cell.target.at(), cell.status, &cell.reason, cell.aa_control), cell)));
    groups.into_iter().flat_map(|(_, group)| entries(summary, group)).collect()
}

/// One entry if the cells are a product of axis values, otherwise one for each cell.
fn entries(summary: &Summary, group: Vec<&CellResult>) -> Vec<(Status, String)> {
    let labels = &summary.labels;
    let axes = || labels.chart_axis().into_iter().chain(labels.varying()).filter(|axis| axis.varies());
    let mut size = 1;
    let mut places = Vec::new();
    for axis in axes() {
        let here: Vec<_> = axis
            .sorted()
            .into_iter()
            .filter(|value| group.iter().any(|cell| cell.axes.get(&axis.name) == Some(value)))
            .collect();
        size *= here.len();
        match here.as_slice() {
            [one] => places.push(axis.name_value(one)),
            some if some.len() < axis.values.len() => {
                let shown: Vec<String> = some.iter().map(|value| axis.show(value)).collect();
                places.push(format!("{} {}", axis.name, listed(&shown, labels.language)));
            }
            _ => {}
        }
    }
    let operations: Vec<&str> = labels
        .operations
        .iter()
        .map(|operation| operation.name.as_str())
        .filter(|name| group.iter().any(|cell| cell.operation == *name))
        .collect();
    let Some(first) = group.first() else { return Vec::new() };
    if size * operations.len() != group.len() && group.len() > 1 {
        return group.into_iter().flat_map(|cell| entries(summary, vec![cell])).collect();
    }
    if first.aa_control {
        places.push(Message::AaControl.text(labels.language).to_owned());
    }
    let language = labels.language;
    let operations: Vec<String> = operations.iter().map(|name| labels.plural(name)).collect();
    let parts: Vec<String> = [labels.targets[first.target.at()].clone(), joined(&places, ", ", language)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .chain([listed(&operations, language)])
        .collect();
    let status = match first.status {
        Status::Failed => Message::Failed,
        Status::Ok | Status::Unavailable => Message::NotAvailable,
    };
    let (parts, status) = (joined(&parts, ", ", language), status.text(language));
    let reason = translated(first.reason.as_deref().unwrap_or_default(), language);
    vec![(first.status, format!("{parts}: {status}: {reason}"))]
}
