//! The input of all findings.

use crate::cell::CellResult;
use crate::comparison::sides;
use crate::labels::{Axis, Labels};
use crate::noise::Noise;
use crate::rule::Rule;
use crate::scope::Scope;
use crate::target::TargetSummary;
use crate::verdict::Verdict;
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::Run;

pub(crate) struct Context<'a> {
    pub run: &'a Run,
    pub info: Option<&'a ExperimentInfo>,
    pub labels: &'a Labels,
    pub targets: &'a [TargetSummary],
    pub cells: &'a [CellResult],
    pub verdicts: &'a [Verdict],
    pub noise: &'a Noise,
    pub rule: &'a Rule,
    /// The number of rounds with measurements.
    pub rounds: u32,
    /// The numbers of comparisons of primary metrics, whose intervals hold together, and of other metrics.
    pub comparisons: [u32; 2],
}

impl Context<'_> {
    /// The cell of a target with all axes at their baselines except the chart axis.
    pub fn baseline(&self, target: usize, operation: &str, x: Option<&AxisValue>) -> Option<&CellResult> {
        let chart = self.labels.chart_axis().map(|axis| axis.name.as_str());
        self.cells.iter().find(|cell| {
            let is = |axis: &Axis| {
                let wanted = if chart == Some(axis.name.as_str()) { x } else { axis.baseline() };
                cell.axes.get(&axis.name) == wanted
            };
            cell.target_index == target
                && cell.operation == operation
                && !cell.aa_control
                && self.labels.axes.iter().all(is)
        })
    }

    /// The two cells of a comparison.
    pub fn sides(&self, verdict: &Verdict) -> Option<[&CellResult; 2]> {
        sides(self.cells, verdict)
    }

    /// The values of the varying axes, except the chart axis, that the sides of a comparison share.
    pub fn others(&self, verdict: &Verdict) -> Cell {
        Axis::values_of(self.labels.varying(), &verdict.at)
    }

    /// The baselines of all varying axes except the chart axis and `but`.
    pub fn held(&self, but: &str) -> Cell {
        Axis::baselines(self.labels.varying().filter(|axis| axis.name != but))
    }

    /// A scope of one operation on one target, at baselines.
    pub fn scope(&self, operation: &str, target: usize, at: Vec<AxisValue>) -> Scope {
        Scope {
            operations: vec![operation.to_owned()],
            targets: self.labels.names.get(target).cloned().into_iter().collect(),
            at,
            axes: self.held(""),
        }
    }
}
