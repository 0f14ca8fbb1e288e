//! The answer to a run's question: what was compared at each place, the best first, with ratios against one of them.

use crate::attribution::Attribution;
use crate::cell::{CellResult, Latency, Status, reported};
use crate::comparison::{TARGET, places};
use crate::finding::{Comparison, Finding, Progress, Section, Statement, Values};
use crate::format::{figure, list, micros, percent, short_figure};
use crate::group::{distinct, grouped};
use crate::labels::{Axis, Kind, Labels, OperationLabels};
use crate::messages::{Language, Message};
use crate::metrics::is_speed;
use crate::summary::Summary;
use crate::table::{Table, dash, limit, p95, p99, rate};
use crate::verdict::{Verdict, Why};
use crate::wording::{class_name, ratio_in_table, say, with_settings};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::load::Load;
use kurabe_core::sort;
use kurabe_stats::{Decision, Estimate};

/// What was compared in one place, or all that was measured of one operation if nothing was compared.
pub(crate) struct Ranking<'a> {
    /// `Writes at 1 kB, 16 clients`.
    pub heading: String,
    /// The best first.
    pub rows: Vec<Row<'a>>,
    /// Whether the chart axis has its first value there.
    pub is_first: bool,
}

/// One of the things compared.
pub(crate) struct Row<'a> {
    /// What tells it from the other rows: the values of all axes in which they differ.
    pub name: String,
    pub cell: &'a CellResult,
    /// Whether the others are compared with it.
    pub is_reference: bool,
    /// Its comparison with the reference of its ranking, if it is compared.
    pub against: Option<Against<'a>>,
}

/// The comparison with the reference.
pub(crate) struct Against<'a> {
    pub verdict: &'a Verdict,
    /// Whether the row is side `a` of it.
    pub forward: bool,
}

impl Against<'_> {
    /// The ratio of the row and its reference.
    pub fn ratio(&self) -> Option<Estimate> {
        let verdict = self.verdict;
        let ratio = verdict.ratio?;
        Some(if self.forward { ratio } else { ratio.inverse() })
    }
}

impl<'a> Row<'a> {
    fn new(cell: &'a CellResult, against: Option<Against<'a>>) -> Self {
        Self { name: String::new(), cell, is_reference: false, against }
    }
}

impl<'a> Ranking<'a> {
    /// The rows that are compared; all if none is.
    pub fn compared(&self) -> impl Iterator<Item = &Row<'a>> {
        let has_reference = self.rows.iter().any(|row| row.is_reference);
        self.rows.iter().filter(move |row| !has_reference || row.is_reference || row.against.is_some())
    }

    /// Drops the other rows.
    pub fn keep_compared(&mut self) {
        if self.compared().count() < self.rows.len() {
            self.rows.retain(|row| row.is_reference || row.against.is_some());
        }
    }
}

/// The rankings of a run: those of targets first.
pub(crate) fn rankings(summary: &Summary) -> Vec<Ranking<'_>> {
    let labels = &summary.labels;
    let mut all = Vec::new();
    for operation in &labels.operations {
        if labels.question.compares_targets() && labels.several_targets() {
            all.extend(places(labels).iter().filter_map(|place| of_targets(summary, operation, place)));
        }
        all.extend(of_axes(summary, operation));
    }
    if all.is_empty() {
        labels.operations.iter().filter_map(|operation| unranked(summary, operation)).collect()
    } else {
        all
    }
}

/// The targets at one place, against the best.
fn of_targets<'a>(
    summary: &'a Summary,
    operation: &'a OperationLabels,
    (axes, x, is_first): &(Cell, Option<AxisValue>, bool),
) -> Option<Ranking<'a>> {
    let labels = &summary.labels;
    let here =
        |cell: &&CellResult| cell.operation == operation.name && cell.axes == *axes && !cell.aa_control;
    let mut cells: Vec<&CellResult> = summary.cells.iter().filter(here).collect();
    if cells.iter().all(|cell| cell.status != Status::Ok) {
        return None;
    }
    sort::by(&mut cells, |a, b| speed(labels, b).total_cmp(&speed(labels, a)));
    let fastest = cells[0];
    let verdict = |cell: &CellResult, best: &CellResult| {
        summary.verdicts.iter().find_map(|verdict| {
            let is_of = |a: &CellResult, b: &CellResult| verdict.cells == [Some(a.index), Some(b.index)];
            let here = verdict.pair.axis == TARGET && verdict.pair.metric == best.metric;
            let forward = is_of(cell, best);
            (here && (forward || is_of(best, cell))).then_some(Against { verdict, forward })
        })
    };
    let rank = |cell: &CellResult| rank(labels, cell, verdict(cell, fastest).as_ref(), fastest);
    sort::by(&mut cells, |a, b| rank(b).total_cmp(&rank(a)));
    let best = cells[0];
    let row = |cell: &'a CellResult| {
        let is_reference = cell.index == best.index;
        Row { is_reference, ..Row::new(cell, verdict(cell, best).filter(|_| !is_reference)) }
    };
    let rows = named(labels, cells.into_iter().map(row).collect());
    let place = at(labels, &rows, x.as_ref(), None);
    let language = labels.language;
    let mut classes = grouped(rows.iter().map(|row| (row.cell.durability, row.name.clone())));
    sort::by_key(&mut classes, |(_, names)| names.len());
    let last = classes.len() - 1;
    let class = |(n, (class, names)): (usize, &(_, Vec<String>))| {
        let names = if n == last && (last > 1 || names.len() > 1) {
            Message::Others.text(language).to_owned()
        } else {
            list(names)
        };
        let of_class = rows.iter().filter(|row| row.cell.durability == *class);
        let settings = of_class.filter_map(|row| summary.targets.get(row.cell.target.at()));
        let settings = distinct(settings.flat_map(|target| target.own_durability(&summary.targets)));
        format!("{names} {}{}", class_name(*class), with_settings(&settings))
    };
    let differ = operation.writes && last > 0;
    let classes =
        classes.iter().enumerate().map(class).collect::<Vec<_>>().join(Message::Comma.text(language));
    let durability = Message::Durability.with(language, &[("classes", &classes)]);
    let durability = if differ { durability } else { String::new() };
    let heading = format!("{}{place}{durability}", labels.begun(&operation.plural));
    Some(Ranking { heading, rows, is_first: *is_first })
}

/// The values of compared axes, each against the axis's first value.
fn of_axes<'a>(summary: &'a Summary, operation: &OperationLabels) -> Vec<Ranking<'a>> {
    let labels = &summary.labels;
    let own = summary.verdicts.iter().filter(|verdict| {
        verdict.operation == operation.name
            && verdict.target.is_some()
            && crate::metrics::is_speed(&verdict.pair.metric)
    });
    let compared = own.filter_map(|verdict| Some((verdict.cells(&summary.cells)?, verdict)));
    let groups = grouped(compared.map(|([a, b], verdict)| (b.index, (a, b, verdict))));
    let first =
        |x: Option<&AxisValue>| labels.xs().first().is_none_or(|first| first.as_ref() == x || x.is_none());
    let is_compared = |axis: &&Axis| axis.varies() && labels.question.compares(&axis.name);
    // Cells of one place differ in compared axes only.
    let place = |cell: &CellResult| {
        let held = labels.axes.iter().filter(|axis| !is_compared(axis));
        (cell.target.at(), Axis::values_of(held, &cell.axes))
    };
    let sides =
        groups.iter().flat_map(|(_, members)| members.iter().flat_map(|(a, b, _)| [a.index, b.index]));
    let seen: Vec<usize> = sides.collect();
    let mut places = Vec::new();
    let ranking = |(_, members): (usize, Vec<(&'a CellResult, &'a CellResult, &'a Verdict)>)| {
        let (_, reference, one) = *members.first()?;
        let mut rows = vec![Row { is_reference: true, ..Row::new(reference, None) }];
        let against = |verdict| Some(Against { verdict, forward: true });
        rows.extend(members.iter().map(|(cell, _, verdict)| Row::new(cell, against(verdict))));
        // What else was measured there is shown once.
        let here = place(reference);
        if !places.contains(&here) {
            let others = reported(&summary.cells, &operation.name);
            let others = others.filter(|cell| !seen.contains(&cell.index) && place(cell) == here);
            rows.extend(others.map(|cell| Row::new(cell, None)));
        }
        places.push(here);
        let rank = |row: &Row<'_>| rank(labels, row.cell, row.against.as_ref(), reference);
        sort::by(&mut rows, |a, b| rank(b).total_cmp(&rank(a)));
        let target = labels.several_targets().then_some(reference.target.at());
        let heading = labels.begun(&operation.plural) + &at(labels, &rows, one.x.as_ref(), target);
        Some(Ranking { heading, rows: named(labels, rows), is_first: first(one.x.as_ref()) })
    };
    groups.into_iter().filter_map(ranking).collect()
}

/// Whether the cells of some rows differ in an axis.
fn differs(rows: &[Row<'_>], axis: &Axis) -> bool {
    rows.iter().any(|row| row.cell.axes.get(&axis.name) != rows[0].cell.axes.get(&axis.name))
}

/// The rows, each named by all in which they differ; by what varies in the run if they differ in nothing.
fn named<'a>(labels: &Labels, mut rows: Vec<Row<'a>>) -> Vec<Row<'a>> {
    let targets = rows.iter().any(|row| row.cell.target.at() != rows[0].cell.target.at());
    let mut axes: Vec<&Axis> = labels.axes.iter().filter(|axis| differs(&rows, axis)).collect();
    if axes.is_empty() && !targets {
        axes = labels.axes.iter().filter(|axis| axis.varies()).collect();
    }
    // A word that two axes have stands with its axis.
    let is_shared = |axis: &Axis| {
        let others = || axes.iter().filter(|other| other.name != axis.name);
        axis.values.iter().any(|value| others().any(|other| other.values.contains(value)))
    };
    let shared: Vec<bool> = axes.iter().map(|axis| is_shared(axis)).collect();
    for row in &mut rows {
        let target = targets.then(|| labels.targets[row.cell.target.at()].clone());
        let values = axes.iter().zip(&shared).filter_map(|(axis, shared)| {
            let value = row.cell.axes.get(&axis.name)?;
            Some(if *shared { axis.name_value(value) } else { short(axis, value) })
        });
        let parts: Vec<String> = target.into_iter().chain(values).collect();
        let only = || labels.targets[row.cell.target.at()].clone();
        row.name = if parts.is_empty() { only() } else { parts.join(", ") };
    }
    rows
}

/// All results of an operation at its places, in order.
fn unranked<'a>(summary: &'a Summary, operation: &OperationLabels) -> Option<Ranking<'a>> {
    let labels = &summary.labels;
    let shown = |cell: &&CellResult| cell.operation == operation.name && cell.is_reported();
    let cells = summary.cells.iter().filter(shown);
    let rows = named(labels, cells.map(|cell| Row::new(cell, None)).collect());
    let is_named = labels.several_targets() || !labels.axes.iter().any(Axis::varies);
    let on = labels.targets.first().filter(|_| !is_named);
    let on = on.map_or_else(String::new, |target| on_target(labels, target));
    (!rows.is_empty()).then(|| Ranking {
        heading: labels.begun(&operation.plural) + &on,
        rows,
        is_first: true,
    })
}

/// The place of a ranking: what its rows have in common, of all that was asked for: ` on SQLite at 1 kB, 16 clients`.
fn at(labels: &Labels, rows: &[Row<'_>], x: Option<&AxisValue>, target: Option<usize>) -> String {
    let question = &labels.question;
    let chart = labels.chart_axis().filter(|_| x.is_some());
    let is_chart = |axis: &Axis| chart.is_some_and(|chart| chart.name == axis.name);
    let common = labels.axes.iter().filter(|axis| {
        let is_asked = axis.varies() && (question.is_within(&axis.name) || question.compares(&axis.name));
        (is_asked || axis.kind == Kind::Size) && !is_chart(axis) && !differs(rows, axis)
    });
    let values = common.filter_map(|axis| Some(axis.name_value(rows[0].cell.axes.get(&axis.name)?)));
    let values: Vec<String> =
        chart.zip(x).map(|(axis, x)| axis.name_value(x)).into_iter().chain(values).collect();
    let target = target.or_else(|| (!labels.several_targets()).then_some(0));
    let target = target.and_then(|target| labels.targets.get(target));
    let on = target.map_or_else(String::new, |target| on_target(labels, target));
    let values = values.join(Message::Comma.text(labels.language));
    if values.is_empty() { on } else { on + &Message::At.with(labels.language, &[("values", &values)]) }
}

fn on_target(labels: &Labels, target: &str) -> String {
    Message::On.with(labels.language, &[("target", target)])
}

/// A value of an axis: words stand alone, if they say something alone.
fn short(axis: &Axis, value: &AxisValue) -> String {
    if axis.kind == Kind::Word && !value.is_yes_or_no() { axis.show(value) } else { axis.name_value(value) }
}

/// A cell's metric of speed, so that more is better; the least if it has none.
fn speed(labels: &Labels, cell: &CellResult) -> f64 {
    let good = cell.status == Status::Ok && !cell.is_overloaded() && !cell.is_generator_late();
    let value = cell.metric(cell.metric).filter(|_| good);
    value
        .zip(labels.metric(cell.metric))
        .map_or(f64::NEG_INFINITY, |(found, metric)| metric.higher_is_better(found.figure.value))
}

/// How many times as fast as another a cell is, by which it is ranked: the ratio where one is decided, otherwise the quotient
/// of the rates, which may be of one trial each.
fn rank(labels: &Labels, cell: &CellResult, against: Option<&Against<'_>>, reference: &CellResult) -> f64 {
    let decided = against.filter(|against| against.verdict.result.is_outside());
    let ratio = decided.and_then(|against| Some(against.ratio()?.value));
    let [cell, reference] = [cell, reference].map(|cell| speed(labels, cell));
    ratio.unwrap_or(if reference.is_finite() { cell / reference } else { cell })
}

/// The statements of the verdict that the rankings do not say, and those that they do.
pub(crate) fn statements(summary: &Summary, has_rankings: bool) -> [Vec<&Statement>; 2] {
    let said = |one: &&Statement| match &one.finding {
        // Rankings are by speed.
        Finding::Comparison(Comparison::Better { pair, .. }) => has_rankings && is_speed(&pair.metric),
        Finding::Comparison(_) | Finding::Progress(Progress::NothingCompared) => has_rankings,
        _ => false,
    };
    let (said, mut others): (Vec<_>, Vec<_>) = summary.statements(Section::Verdict).partition(said);
    // What the targets differ in stands on top, then differences that were decided.
    sort::by_key(&mut others, |one| match one.finding {
        Finding::Values(Values::Settings { .. }) => 0,
        Finding::Comparison(_) => 1,
        _ => 2,
    });
    [others, said]
}

/// The column of ratios in a table of rankings: after the names, rates and percentiles.
const RATIOS: usize = 5;

/// The rankings as one table, with the heading of each ranking and its first row.
pub(crate) fn table(
    head: &str,
    rankings: &[&Ranking<'_>],
    language: Language,
) -> (Table, Vec<(usize, String)>) {
    let text = |message: Message| message.text(language);
    let rows: Vec<&Row<'_>> = rankings.iter().flat_map(|ranking| &ranking.rows).collect();
    let mut at = 0;
    let mut headings = Vec::new();
    for ranking in rankings {
        headings.push((at, ranking.heading.clone()));
        at += ranking.rows.len();
    }
    let mut table = Table { rows: vec![Vec::new(); rows.len()], ..Table::default() };
    table.cells = rows.iter().map(|row| row.cell.index).collect();
    let mut add = |head: &str, right: bool, spare: u8, text: &dyn Fn(&Row<'_>) -> String| {
        table.add(head, right, spare, rows.iter().map(|row| text(row)));
    };
    add(head, false, 0, &|row| row.name.clone());
    add(text(Message::OpsPerSecond), true, 0, &|row| rate(row.cell));
    let time = |cell: &CellResult, show: fn(&CellResult, Latency) -> String| match cell.times() {
        _ if cell.is_overloaded() || cell.is_generator_late() => dash(),
        times => times.map_or_else(dash, |times| show(cell, times)),
    };
    add("p50", true, 4, &|row| time(row.cell, |_, times| micros(times.p50)));
    add("p95", true, 5, &|row| time(row.cell, |cell, times| p95(cell, times.p95)));
    add("p99", true, 2, &|row| time(row.cell, |cell, times| p99(cell, times.p99)));
    let has_ratios = rows.iter().any(|row| row.against.is_some());
    if has_ratios {
        let targets =
            rows.iter().any(|row| row.against.as_ref().is_some_and(|one| one.verdict.target.is_none()));
        let head = if targets { Message::AgainstFirst } else { Message::AgainstFirstValue };
        let shown = |row: &Row<'_>| match &row.against {
            None if row.is_reference => reference(row.cell, language),
            None => dash(),
            Some(one) => against(one, language),
        };
        add(text(head), false, 0, &shown);
    }
    if rows.iter().any(|row| row.cell.retries > 0) {
        add(text(Message::Retries), true, 1, &|row| {
            let completed = row.cell.totals.as_ref().map_or(0, |totals| totals.completed);
            if completed == 0 { dash() } else { short_figure(row.cell.retries as f64 / completed as f64) }
        });
    }
    if rows.iter().any(|row| row.cell.attribution.is_some()) {
        let shown = |found: &Attribution| limit(found, language);
        add(text(Message::LimitedBy), false, 3, &|row| {
            row.cell.attribution.as_ref().map_or_else(dash, shown)
        });
    }
    table.ratios = has_ratios.then_some(RATIOS);
    (table, headings)
}

/// What stands for the comparison of a reference with itself.
fn reference(cell: &CellResult, language: Language) -> String {
    let message = match cell.status {
        Status::Ok if cell.is_overloaded() => Message::Overloaded,
        Status::Ok => return "1".to_owned(),
        Status::Failed => Message::Failed,
        Status::Unavailable => Message::NotAvailable,
    };
    message.text(language).to_owned()
}

/// The ratio of a row and its reference, with its interval, and the decision unless it is that they differ.
pub(crate) fn against(one: &Against<'_>, language: Language) -> String {
    let verdict = one.verdict;
    let shown = one.ratio().map_or_else(String::new, ratio_in_table);
    match verdict.result {
        Decision::Above | Decision::Below if verdict.lower_bound => {
            let winner_is_row = (verdict.result == Decision::Above) == one.forward;
            format!("{} {shown}", if winner_is_row { "≥" } else { "≤" })
        }
        Decision::Above | Decision::Below => shown,
        Decision::Within => {
            let margin = [("margin", &*percent(verdict.margin))];
            format!("{shown} {}", Message::EqualWithin.with(language, &margin))
        }
        Decision::Undecided => verdict
            .says_nothing(language)
            .unwrap_or_else(|| format!("{shown} {}", Message::Undecided.text(language))),
        Decision::NotTestable => verdict.why.as_ref().map_or(Message::NoRatio, why).text(language).to_owned(),
    }
}

/// Why a pair is not compared, in few words.
fn why(why: &Why) -> Message {
    match why {
        Why::Failed { .. } => Message::Failed,
        Why::Unavailable { .. } => Message::NotAvailable,
        Why::NotMeasured { .. } | Why::Unfinished { .. } => Message::NotMeasured,
        Why::NotPositive | Why::NoCommonRound | Why::FewOperations => Message::NoRatio,
        Why::ClientBound { .. } => Message::ClientFull,
        Why::Overloaded { .. } => Message::Overloaded,
        Why::GeneratorLate { .. } => Message::ClientsLate,
        Why::Disturbed { .. } => Message::OtherLoad,
    }
}

/// A result and its limit.
pub(crate) struct Threshold {
    /// Which result, and what it reached: `PostgreSQL, reads at 1 kB: p99 4.2 ms`.
    pub text: String,
    pub passed: bool,
}

/// All results of a run with a limit, those that fail first; empty without one.
pub(crate) fn thresholds(summary: &Summary) -> Vec<Threshold> {
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
pub(crate) fn threshold_sentence(summary: &Summary) -> Option<String> {
    let all = thresholds(summary);
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
    let language = labels.language;
    let values = labels.varying_of(&cell.axes).join(Message::Comma.text(language));
    let at = if values.is_empty() { values } else { Message::At.with(language, &[("values", &values)]) };
    let times = cell.times().filter(|_| cell.status == Status::Ok);
    let (reached, passed) = match times {
        None => (say!(language, "no result", "結果なし"), false),
        Some(_) if cell.is_overloaded() => {
            (say!(language, "the load was not served", "負荷に応じきれず"), false)
        }
        Some(_) if cell.is_generator_late() => {
            let late =
                say!(language, "the clients were too late to measure it", "クライアントの遅れで測れず");
            (late, false)
        }
        // A search found the highest rate that keeps the limit.
        Some(times) if Load::of(&cell.axes) == Load::Highest => {
            let rate = cell.ops_per_second.map_or(0.0, |rate| rate.value);
            let (per_second, p99) = (figure(rate), micros(times.p99));
            let most =
                say!(language, "up to {per_second}/s, p99 {p99}", "最大 {per_second} 回/秒、p99 は {p99}");
            (most, rate > 0.0)
        }
        Some(times) => (format!("p99 {}", micros(times.p99)), times.p99 <= limit_us),
    };
    let (target, operation) = (&labels.targets[cell.target.at()], labels.plural(&cell.operation));
    let text =
        say!(language, "{target}, {operation}{at}: {reached}", "{target}、{operation}{at}: {reached}",);
    Threshold { text, passed }
}
