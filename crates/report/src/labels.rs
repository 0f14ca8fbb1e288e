//! Display names of axes, values, operations and targets.

use crate::catalogue;
use crate::cell::{CellResult, MetricInfo};
use crate::format::{capital, joined_up, plural};
use crate::group::{distinct, grouped};
use crate::messages::{Language, Message};
use crate::target::TargetId;
use crate::wording::{joined, listed, say};
use kurabe_core::axis::{AxisValue, Cell, NumberUnit};
use kurabe_core::compression::COMPRESSION;
use kurabe_core::cpus::{CPU_PLACEMENT, CPUS};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::{DEFAULT_SLO_NS, RATE};
use kurabe_core::question::{Question, TARGETS};
use kurabe_core::run::{Run, RunHeader, TargetRecord};
use kurabe_core::target::{TargetUrl, names};
use kurabe_core::{sort, units};
use serde::Serialize;
use std::time::Duration;

/// The type of an axis's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Size,
    Count,
    Percent,
    Word,
    /// Sizes that are named with their axis, or words.
    NamedSize,
}

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub name: String,
    pub kind: Kind,
    /// The run's values, the baseline's first, then numbers as given.
    pub values: Vec<AxisValue>,
    /// Sizes that would be rounded to the text of another value of the run: they are shown in bytes.
    exact: Vec<u64>,
    /// The meaning of each word, if known.
    meanings: &'static [(&'static str, &'static str)],
    language: Language,
}

impl Axis {
    pub fn baseline(&self) -> Option<&AxisValue> {
        self.values.first()
    }

    pub fn varies(&self) -> bool {
        self.values.len() > 1
    }

    /// Whether its only value is a count of 1, which is not displayed.
    pub fn is_one(&self) -> bool {
        self.kind == Kind::Count && self.baseline() == Some(&AxisValue::Number(1))
    }

    /// Formats a value: `100 kB`, `16`, `blob`.
    pub fn show(&self, value: &AxisValue) -> String {
        match (self.kind, value) {
            (Kind::Size | Kind::NamedSize, AxisValue::Number(bytes)) if self.exact.contains(bytes) => {
                format!("{} B", units::count(*bytes))
            }
            (Kind::Size | Kind::NamedSize, AxisValue::Number(bytes)) => units::size(*bytes),
            (Kind::Percent, AxisValue::Number(share)) => format!("{share} %"),
            (_, AxisValue::Number(n)) => units::count(*n),
            (_, AxisValue::Word(word)) => word.clone(),
        }
    }

    /// Formats a value with its axis if needed: `100 kB`, `16 clients`, `pool 4`, `layout blob`.
    pub fn name_value(&self, value: &AxisValue) -> String {
        match self.kind {
            Kind::Size => self.show(value),
            Kind::Count if self.name == RATE.name => match value {
                AxisValue::Number(rate) => format!("{}/s", units::count(*rate)),
                AxisValue::Word(_) => Message::HighestRate.text(self.language).to_owned(),
            },
            Kind::Count if self.language == Language::Japanese => {
                let name = if self.name == CLIENTS { "クライアント" } else { &self.name };
                format!("{name} {}", self.show(value))
            }
            // Plural names follow their number.
            Kind::Count if self.name.ends_with('s') && matches!(value, AxisValue::Number(_)) => {
                let one = *value == AxisValue::Number(1);
                let name = self.name.strip_suffix('s').filter(|_| one).unwrap_or(&self.name);
                format!("{} {name}", self.show(value))
            }
            Kind::Count | Kind::Percent | Kind::Word | Kind::NamedSize => {
                format!("{} {}", self.name, self.show(value))
            }
        }
    }

    pub fn meaning(&self, value: &AxisValue) -> Option<&str> {
        let AxisValue::Word(word) = value else { return None };
        self.meanings.iter().find(|(name, _)| name == word).map(|(_, meaning)| *meaning)
    }

    /// Formats the value of this axis in a cell; empty if the cell has none.
    pub fn show_of(&self, cell: &Cell) -> String {
        cell.get(&self.name).map_or_else(String::new, |value| self.show(value))
    }

    /// The values of these axes in a cell.
    pub fn values_of<'a>(axes: impl IntoIterator<Item = &'a Self>, cell: &Cell) -> Cell {
        let value = |axis: &Self| Some((axis.name.clone(), cell.get(&axis.name)?.clone()));
        Cell::new(axes.into_iter().filter_map(value))
    }

    /// The baselines of these axes.
    pub fn baselines<'a>(axes: impl IntoIterator<Item = &'a Self>) -> Cell {
        let value = |axis: &Self| Some((axis.name.clone(), axis.baseline()?.clone()));
        Cell::new(axes.into_iter().filter_map(value))
    }

    /// The values, numbers in ascending order.
    pub fn sorted(&self) -> Vec<AxisValue> {
        let mut values = self.values.clone();
        if values.iter().all(|value| matches!(value, AxisValue::Number(_))) {
            sort::by(&mut values, Ord::cmp);
        }
        values
    }
}

#[derive(Clone, Debug)]
pub(crate) struct OperationLabels {
    pub name: String,
    /// `reads`.
    pub plural: String,
    /// Whether it changes data.
    pub writes: bool,
}

/// The display names of a run.
#[derive(Clone, Debug)]
pub(crate) struct Labels {
    /// In the experiment's order.
    pub axes: Vec<Axis>,
    pub operations: Vec<OperationLabels>,
    /// The horizontal axis of the charts, by position in `axes`.
    pub chart: Option<usize>,
    /// The display names of targets: the engine, if no other target has it.
    pub targets: Vec<String>,
    /// Their identities.
    pub ids: Vec<TargetId>,
    /// The metrics that any cell has.
    pub metrics: Vec<MetricInfo>,
    /// The declared metrics that are drawn point by point.
    pub scatters: Vec<MetricInfo>,
    /// The file of published results.
    pub published: Option<&'static str>,
    /// The limit for response times in a rate search.
    pub objective: String,
    /// What the run compares.
    pub question: Question,
    /// The language of sentences, tables and pages.
    pub language: Language,
}

impl Labels {
    /// Names axes and operations in another language.
    pub fn speak(&mut self, language: Language) {
        self.language = language;
        for axis in &mut self.axes {
            axis.language = language;
        }
        for operation in &mut self.operations {
            operation.plural = match language {
                Language::English => plural(&operation.name),
                Language::Japanese => catalogue::translated(&operation.name, language),
            };
        }
    }

    pub fn of(run: &Run, info: Option<&ExperimentInfo>) -> Self {
        let axes = axes(&run.header, info);
        let position = |name: &str| axes.iter().position(|axis| axis.name == name);
        // A list of rates is for a chart of latency against load, one of processors for a chart of scaling.
        let varying = |name: &str| position(name).filter(|at| axes[*at].varies());
        let chart = varying(RATE.name).or_else(|| varying(CPUS.name)).or_else(|| match info {
            Some(info) => position(info.chart_axis),
            None => {
                (0..axes.len()).filter(|i| axes[*i].kind != Kind::Word).max_by_key(|i| axes[*i].values.len())
            }
        });
        let question = run.header.spec.question.clone().unwrap_or_else(|| of_earlier_version(&axes, chart));
        Self {
            question,
            language: Language::default(),
            chart,
            axes,
            operations: run.header.spec.operations.iter().map(|name| operation(run, name, info)).collect(),
            targets: target_names(&run.header),
            metrics: Vec::new(),
            scatters: Vec::new(),
            published: info.and_then(|info| info.published),
            ids: run
                .header
                .targets
                .iter()
                .enumerate()
                .map(|(at, one)| TargetId::new(at, &one.name))
                .collect(),
            objective: units::time(Duration::from_nanos(run.header.spec.slo_ns.unwrap_or(DEFAULT_SLO_NS))),
        }
    }

    pub fn chart_axis(&self) -> Option<&Axis> {
        self.chart.map(|chart| &self.axes[chart])
    }

    /// The values of the horizontal axis, in order; one `None` if there is no such axis.
    pub fn xs(&self) -> Vec<Option<AxisValue>> {
        self.chart_axis().map_or_else(|| vec![None], |axis| axis.sorted().into_iter().map(Some).collect())
    }

    /// The varying axes except the horizontal one.
    pub fn varying(&self) -> impl Iterator<Item = &Axis> {
        self.axes
            .iter()
            .enumerate()
            .filter(|(i, axis)| Some(*i) != self.chart && axis.varies())
            .map(|(_, axis)| axis)
    }

    pub fn operation(&self, name: &str) -> Option<&OperationLabels> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// The display name of a target; its name in its run if it is one of another run.
    pub fn target(&self, target: &TargetId) -> String {
        self.targets.get(target.at()).map_or_else(|| target.name().to_owned(), String::clone)
    }

    pub fn metric(&self, name: &str) -> Option<&MetricInfo> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// Formats the values of a cell: `layout blob`, `16 clients`.
    pub fn axes_of(&self, cell: &Cell) -> Vec<String> {
        self.axes.iter().filter_map(|axis| Some(axis.name_value(cell.get(&axis.name)?))).collect()
    }

    /// The same of the axes that vary.
    pub fn varying_of(&self, cell: &Cell) -> Vec<String> {
        let varying = self.axes.iter().filter(|axis| axis.varies());
        varying.filter_map(|axis| Some(axis.name_value(cell.get(&axis.name)?))).collect()
    }

    pub fn writes(&self, operation: &str) -> bool {
        self.operation(operation).is_some_and(|operation| operation.writes)
    }

    /// `reads`.
    pub fn plural(&self, operation: &str) -> String {
        self.operation(operation).map_or_else(|| plural(operation), |operation| operation.plural.clone())
    }

    /// A sentence or a heading: in English with a capital; in Japanese names stay as they are.
    pub fn begun(&self, text: &str) -> String {
        match self.language {
            Language::English => capital(text),
            Language::Japanese => joined_up(text),
        }
    }

    pub fn several_targets(&self) -> bool {
        self.targets.len() > 1
    }
}

/// What runs of earlier versions compare: targets and all axes, each at the first values of the others, at every value of
/// the chart axis.
fn of_earlier_version(axes: &[Axis], chart: Option<usize>) -> Question {
    let names = |in_chart: bool| {
        let axes = axes.iter().enumerate().filter(move |(at, _)| (Some(*at) == chart) == in_chart);
        axes.map(|(_, axis)| axis.name.clone())
    };
    Question { compare: names(false).chain([TARGETS.to_owned()]).collect(), within: names(true).collect() }
}

fn axes(header: &RunHeader, info: Option<&ExperimentInfo>) -> Vec<Axis> {
    let spec = &header.spec.axes;
    let own = info.map_or(&[][..], |info| info.axes);
    let common = [&RATE, &CPUS, &CPU_PLACEMENT, &COMPRESSION].into_iter();
    let common = common.filter(|axis| !own.iter().any(|known| known.name == axis.name));
    let axis = |name: &str, kind, meanings, values: &[AxisValue]| {
        let values = distinct(values.iter().cloned());
        let exact = alike_when_rounded(&values);
        Axis { name: name.to_owned(), kind, values, exact, meanings, language: Language::default() }
    };
    let known = own.iter().chain(common).filter_map(|info| {
        let meanings = info.kind.words;
        let kind = match info.kind.numbers.map(|numbers| numbers.unit) {
            Some(NumberUnit::Size) if meanings.is_empty() => Kind::Size,
            Some(NumberUnit::Size) => Kind::NamedSize,
            Some(NumberUnit::Count) => Kind::Count,
            Some(NumberUnit::Percent) => Kind::Percent,
            Some(NumberUnit::Decimal) | None => Kind::Word,
        };
        Some(axis(info.name, kind, meanings, spec.get(info.name)?))
    });
    let mut all: Vec<Axis> = known.collect();
    // Axes of another version that are unknown here are shown too.
    for (name, values) in spec {
        if !all.iter().any(|known| known.name == *name) {
            let number = values.iter().all(|value| matches!(value, AxisValue::Number(_)));
            all.push(axis(name, if number { Kind::Count } else { Kind::Word }, &[], values));
        }
    }
    all
}

/// The numbers that have the same text as another one if they are formatted as sizes.
fn alike_when_rounded(values: &[AxisValue]) -> Vec<u64> {
    let numbers = values.iter().filter_map(|value| match value {
        AxisValue::Number(bytes) => Some((units::size(*bytes), *bytes)),
        AxisValue::Word(_) => None,
    });
    let groups = grouped(numbers).into_iter().filter(|(_, alike)| alike.len() > 1);
    groups.flat_map(|(_, alike)| alike).collect()
}

fn operation(run: &Run, name: &str, info: Option<&ExperimentInfo>) -> OperationLabels {
    let known = info.and_then(|info| info.operations.iter().find(|operation| operation.name == name));
    let writes = known.map_or_else(|| wrote(run, name), |operation| operation.writes);
    OperationLabels { name: name.to_owned(), plural: plural(name), writes }
}

/// Whether anything was written by this operation.
fn wrote(run: &Run, operation: &str) -> bool {
    run.measured()
        .filter(|(trial, _)| trial.operation == operation)
        .any(|(_, measured)| measured.verified.is_some_and(|proven| proven.writes > 0))
}

/// The engine, if no other target has it; otherwise what tells the target from the others of its engine.
fn target_names(header: &RunHeader) -> Vec<String> {
    let urls: Vec<TargetUrl> =
        header.targets.iter().filter_map(|target| TargetUrl::parse(&target.url).ok()).collect();
    let differing = (urls.len() == header.targets.len()).then(|| names(&urls));
    let name = |(at, target): (usize, &TargetRecord)| {
        let engine = &target.facts.engine;
        let is_alone = header.targets.iter().filter(|other| other.facts.engine == *engine).count() == 1;
        let differing = || differing.as_ref().map_or(&target.name, |names| &names[at]);
        if is_alone && !engine.is_empty() { engine } else { differing() }.clone()
    };
    header.targets.iter().enumerate().map(name).collect()
}

/// The axis of clients.
const CLIENTS: &str = "clients";

/// Where a finding holds: for all of these operations, targets and values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scope {
    pub operations: Vec<String>,
    /// The targets; empty if the finding compares targets.
    pub targets: Vec<TargetId>,
    /// Values of the chart axis; empty if the experiment has none.
    pub at: Vec<AxisValue>,
    /// Values of other axes that vary.
    pub axes: Cell,
}

impl Scope {
    /// The scope of a cell and of those that differ from it only in axis `but`.
    pub(crate) fn of_cell(labels: &Labels, cell: &CellResult, but: &str) -> Self {
        let axes = labels.axes.iter().filter(|axis| axis.varies() && axis.name != but);
        let (operations, targets) = (vec![cell.operation.clone()], vec![cell.target.clone()]);
        Self { operations, targets, at: Vec::new(), axes: Axis::values_of(axes, &cell.axes) }
    }
}

impl Labels {
    /// The operations of a scope, and where it is: `reads on SQLite at 1 kB`.
    pub fn results_of(&self, scope: &Scope) -> String {
        self.operations_of(&scope.operations) + &self.place(scope)
    }

    pub fn targets_of(&self, targets: &[TargetId]) -> String {
        self.together(targets.iter().map(|target| self.target(target)))
    }

    pub fn operations_of(&self, names: &[String]) -> String {
        self.together(names.iter().map(|name| self.plural(name)))
    }

    fn together(&self, names: impl Iterator<Item = String>) -> String {
        let names: Vec<String> = names.collect();
        if self.language == Language::Japanese {
            joined_up(&names.join(" と "))
        } else {
            listed(&names, self.language)
        }
    }

    /// Formats the constant values of a finding: ` (layout blob, compress none)`.
    pub fn held(&self, scope: &Scope) -> String {
        let held = self.axes_of(&scope.axes);
        if held.is_empty() { String::new() } else { format!(" ({})", held.join(", ")) }
    }

    /// Where a finding holds: ` on SQLite from 10 kB on (layout blob)`; in Japanese `(SQLite、10 kB、layout blob)`.
    pub fn place(&self, scope: &Scope) -> String {
        let named = self.several_targets() && !scope.targets.is_empty();
        let targets = named.then(|| self.targets_of(&scope.targets));
        if self.language == Language::Japanese {
            let parts: Vec<String> =
                targets.into_iter().chain(self.at(&scope.at)).chain(self.axes_of(&scope.axes)).collect();
            return if parts.is_empty() { String::new() } else { format!("({})", parts.join("、")) };
        }
        let on = targets.map(|targets| format!(" on {targets}")).unwrap_or_default();
        let at = self.range(&scope.at);
        let at = if at.is_empty() { at } else { format!(" {at}") };
        format!("{on}{at}{}", self.held(scope))
    }

    /// The chart axis where its values say something: not a single client, nor the clients that keep a given rate.
    fn told_axis(&self) -> Option<&Axis> {
        let is_open =
            self.axis(RATE.name).is_some_and(|rate| matches!(rate.baseline(), Some(AxisValue::Number(_))));
        let axis = self.chart_axis()?;
        (axis.varies() || !(axis.is_one() || is_open && axis.name == CLIENTS)).then_some(axis)
    }

    /// Values of the chart axis in Japanese.
    fn at(&self, chosen: &[AxisValue]) -> Vec<String> {
        let Some(axis) = self.told_axis() else { return Vec::new() };
        if axis.varies() && chosen.len() == axis.values.len() {
            return vec![format!("すべての {}", axis.name)];
        }
        chosen.iter().map(|value| axis.name_value(value)).collect()
    }

    /// Values of the chart axis: `at 1 kB`, `up to 10 kB`, `from 100 kB on`, `at every payload tested`.
    fn range(&self, chosen: &[AxisValue]) -> String {
        let Some(axis) = self.told_axis() else { return String::new() };
        let values = axis.sorted();
        let name = |at: usize| axis.name_value(&values[at]);
        let last = values.len().saturating_sub(1);
        let chosen: Vec<usize> = (0..values.len()).filter(|at| chosen.contains(&values[*at])).collect();
        if chosen.len() == values.len() && values.len() > 1 {
            let counted = axis.kind == Kind::Count && axis.name != RATE.name;
            return format!("at every {}{} tested", if counted { "number of " } else { "" }, axis.name);
        }
        let pieces: Vec<String> = chosen
            .chunk_by(|a, b| a + 1 == *b)
            .map(|run| match (run[0], run[run.len() - 1]) {
                (start, end) if start == end => format!("at {}", name(start)),
                (0, end) => format!("up to {}", name(end)),
                (start, end) if end == last => format!("from {} on", name(start)),
                (start, end) => format!("from {} to {}", name(start), name(end)),
            })
            .collect();
        listed(&pieces, self.language)
    }

    /// What varied and what was constant, as clauses: `; payload 1 kB and 10 kB`; `; constant: clients 1`.
    pub fn tested(&self) -> String {
        let (varied, held): (Vec<&Axis>, Vec<&Axis>) = self.axes.iter().partition(|axis| axis.varies());
        let all = |axis: &&Axis| {
            let values: Vec<String> = axis.sorted().iter().map(|value| axis.show(value)).collect();
            format!("{} {}", axis.name, listed(&values, self.language))
        };
        let varied = varied.iter().map(all).map(|one| say!(self.language, "; {one}", "、{one}"));
        let held = joined(&held.iter().map(all).collect::<Vec<_>>(), ", ", self.language);
        let held = (!held.is_empty()).then(|| say!(self.language, "; constant: {held}", "、固定: {held}"));
        varied.chain(held).collect()
    }
}
