//! How axes, values, operations and targets are called in a report.

use crate::format::plural;
use kurabe_core::axis::{AxisKind, AxisValue, Cell};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::{DEFAULT_SLO_NS, RATE};
use kurabe_core::run::{Run, RunHeader};
use kurabe_core::units;
use std::collections::BTreeSet;
use std::time::Duration;

/// What an axis's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Size,
    Count,
    Percent,
    Word,
}

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub name: String,
    pub kind: Kind,
    /// The run's values, the baseline's first; numbers behind it stand as they were given.
    pub values: Vec<AxisValue>,
    /// What each word means, where that is known.
    meanings: Vec<(String, String)>,
}

impl Axis {
    pub fn baseline(&self) -> Option<&AxisValue> {
        self.values.first()
    }

    pub fn varies(&self) -> bool {
        self.values.len() > 1
    }

    /// A value as people write it: `100 kB`, `16`, `blob`.
    pub fn show(&self, value: &AxisValue) -> String {
        match (self.kind, value) {
            (Kind::Size, AxisValue::Number(bytes)) => units::size(*bytes),
            (Kind::Percent, AxisValue::Number(share)) => format!("{share} %"),
            (_, AxisValue::Number(n)) => units::count(*n),
            (_, AxisValue::Word(word)) => word.clone(),
        }
    }

    /// A value with its axis, where it would not be understood alone: `100 kB`, `16 clients`, `pool 4`, `layout blob`.
    pub fn name_value(&self, value: &AxisValue) -> String {
        match self.kind {
            Kind::Size => self.show(value),
            Kind::Count if self.name == RATE.name => match value {
                AxisValue::Number(rate) => format!("{}/s", units::count(*rate)),
                AxisValue::Word(_) => "the highest rate".to_owned(),
            },
            // What is counted stands behind its number, if it is the plural of something.
            Kind::Count if self.name.ends_with('s') && matches!(value, AxisValue::Number(_)) => {
                let one = *value == AxisValue::Number(1);
                let name = self.name.strip_suffix('s').filter(|_| one).unwrap_or(&self.name);
                format!("{} {name}", self.show(value))
            }
            Kind::Count | Kind::Percent | Kind::Word => format!("{} {}", self.name, self.show(value)),
        }
    }

    pub fn meaning(&self, value: &AxisValue) -> Option<&str> {
        let word = self.show(value);
        self.meanings.iter().find(|(name, _)| *name == word).map(|(_, meaning)| meaning.as_str())
    }

    /// The value of this axis in a cell, as people write it; empty where the cell has none.
    pub fn show_of(&self, cell: &Cell) -> String {
        cell.get(&self.name).map_or_else(String::new, |value| self.show(value))
    }

    /// The values, numbers in order.
    pub fn sorted(&self) -> Vec<AxisValue> {
        let mut values = self.values.clone();
        if values.iter().all(|value| matches!(value, AxisValue::Number(_))) {
            values.sort();
        }
        values
    }
}

#[derive(Clone, Debug)]
pub(crate) struct OperationWords {
    pub name: String,
    /// `reads`.
    pub plural: String,
    /// Whether it changes data.
    pub writes: bool,
}

/// All words of a run.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    /// In the experiment's order.
    pub axes: Vec<Axis>,
    pub operations: Vec<OperationWords>,
    /// The horizontal axis of the charts, by position in `axes`.
    pub chart: Option<usize>,
    /// The targets as people call them: the engine, where no other target has it.
    pub targets: Vec<String>,
    /// The file of published figures.
    pub published: Option<&'static str>,
    /// What verdicts compare where it is not throughput: "by the p99 of response times".
    pub measure: Option<String>,
}

impl Words {
    pub fn of(run: &Run, info: Option<&ExperimentInfo>) -> Self {
        let axes = axes(&run.header, info);
        let chart = match info {
            // Latency against load is what a list of rates is for.
            _ if axes.iter().any(|axis| axis.name == RATE.name && axis.varies()) => {
                axes.iter().position(|axis| axis.name == RATE.name)
            }
            Some(info) => axes.iter().position(|axis| axis.name == info.chart_axis),
            None => {
                (0..axes.len()).filter(|i| axes[*i].kind != Kind::Word).max_by_key(|i| axes[*i].values.len())
            }
        };
        Self {
            chart,
            axes,
            operations: run.header.spec.operations.iter().map(|name| operation(run, name, info)).collect(),
            targets: target_names(&run.header),
            published: info.and_then(|info| info.published),
            measure: measure(&run.header),
        }
    }

    pub fn chart_axis(&self) -> Option<&Axis> {
        self.chart.map(|chart| &self.axes[chart])
    }

    /// The axes that vary beside the horizontal one.
    pub fn varying(&self) -> impl Iterator<Item = &Axis> {
        self.axes
            .iter()
            .enumerate()
            .filter(|(i, axis)| Some(*i) != self.chart && axis.varies())
            .map(|(_, axis)| axis)
    }

    pub fn operation(&self, name: &str) -> Option<&OperationWords> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    pub fn writes(&self, operation: &str) -> bool {
        self.operation(operation).is_some_and(|operation| operation.writes)
    }

    /// `reads`.
    pub fn plural(&self, operation: &str) -> String {
        self.operation(operation).map_or_else(|| plural(operation), |operation| operation.plural.clone())
    }

    pub fn several_targets(&self) -> bool {
        self.targets.len() > 1
    }
}

/// What verdicts compare in an open loop.
fn measure(header: &RunHeader) -> Option<String> {
    let rates = header.spec.axes.get(RATE.name)?;
    let slo = Duration::from_nanos(header.spec.slo_ns.unwrap_or(DEFAULT_SLO_NS));
    let given = rates.iter().any(|rate| matches!(rate, AxisValue::Number(_)));
    let highest = rates.iter().any(|rate| matches!(rate, AxisValue::Word(_)));
    Some(match (given, highest) {
        (true, true) => {
            "by the p99 of response times, or the highest rate where that was looked for".to_owned()
        }
        (false, true) => {
            format!("by the highest rate whose p99 of response times stays under {}", units::time(slo))
        }
        _ => "by the p99 of response times".to_owned(),
    })
}

fn axes(header: &RunHeader, info: Option<&ExperimentInfo>) -> Vec<Axis> {
    let spec = &header.spec.axes;
    let known: Vec<Axis> = info
        .into_iter()
        .flat_map(|info| info.axes)
        .chain([&RATE])
        .filter_map(|axis| {
            let (kind, meanings) = match axis.kind {
                AxisKind::Size { .. } => (Kind::Size, &[][..]),
                AxisKind::Count { .. } => (Kind::Count, &[][..]),
                AxisKind::Percent { .. } => (Kind::Percent, &[][..]),
                AxisKind::CountOr { words, .. } | AxisKind::CountOrFile { words, .. } => (Kind::Count, words),
                AxisKind::Choice(words) => (Kind::Word, words),
            };
            let meanings =
                meanings.iter().map(|(word, what)| ((*word).to_owned(), (*what).to_owned())).collect();
            Some(Axis { name: axis.name.to_owned(), kind, values: distinct(spec.get(axis.name)?), meanings })
        })
        .collect();
    let named: BTreeSet<String> = known.iter().map(|axis| axis.name.clone()).collect();
    // A run of another version may have axes that this one does not know: they are shown all the same.
    let others = spec.iter().filter(|(name, _)| !named.contains(*name)).map(|(name, values)| {
        let number = values.iter().all(|value| matches!(value, AxisValue::Number(_)));
        let kind = if number { Kind::Count } else { Kind::Word };
        Axis { name: name.clone(), kind, values: distinct(values), meanings: Vec::new() }
    });
    let others: Vec<Axis> = others.collect();
    known.into_iter().chain(others).collect()
}

fn distinct(values: &[AxisValue]) -> Vec<AxisValue> {
    let mut seen = BTreeSet::new();
    values.iter().filter(|value| seen.insert(*value)).cloned().collect()
}

fn operation(run: &Run, name: &str, info: Option<&ExperimentInfo>) -> OperationWords {
    let known = info.and_then(|info| info.operations.iter().find(|operation| operation.name == name));
    let writes = known.map_or_else(|| wrote(run, name), |operation| operation.writes);
    OperationWords { name: name.to_owned(), plural: plural(name), writes }
}

/// Whether anything was written by this operation.
fn wrote(run: &Run, operation: &str) -> bool {
    use kurabe_core::run::Outcome::Measured;
    run.trials
        .iter()
        .filter(|trial| trial.operation == operation)
        .any(|trial| matches!(&trial.outcome, Measured(figures) if figures.verified.is_some_and(|proven| proven.writes > 0)))
}

fn target_names(header: &RunHeader) -> Vec<String> {
    let engines: Vec<&str> = header.targets.iter().map(|target| target.facts.engine.as_str()).collect();
    header
        .targets
        .iter()
        .map(|target| {
            let engine = &target.facts.engine;
            let alone = engines.iter().filter(|other| *other == engine).count() == 1;
            if alone && !engine.is_empty() { engine.clone() } else { target.name.clone() }
        })
        .collect()
}
