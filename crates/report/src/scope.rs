//! Where a finding holds, and how sentences name that.

use crate::cell::CellResult;
use crate::labels::{Axis, Kind, Labels};
use crate::messages::Language;
use crate::wording::{joined, listed, say};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::load::RATE;
use serde::Serialize;

/// The axis of clients.
pub(crate) const CLIENTS: &str = "clients";

/// Where a finding holds: for all of these operations, targets and values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scope {
    pub operations: Vec<String>,
    /// The targets, by name; empty if the finding compares targets.
    pub targets: Vec<String>,
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

    pub fn targets_of(&self, names: &[String]) -> String {
        self.names_of(names, Self::target)
    }

    pub fn operations_of(&self, names: &[String]) -> String {
        self.names_of(names, Self::plural)
    }

    fn names_of(&self, names: &[String], name: fn(&Self, &str) -> String) -> String {
        let names: Vec<String> = names.iter().map(|one| name(self, one)).collect();
        if self.language == Language::Japanese { names.join("と") } else { listed(&names, self.language) }
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
