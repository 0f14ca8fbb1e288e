//! The input of all findings.

use crate::cell::CellResult;
use crate::comparison::sides;
use crate::labels::{Axis, Labels};
use crate::noise::Noise;
use crate::rule::Rule;
use crate::target::TargetSummary;
use crate::verdict::Verdict;
use kurabe_core::axis::Cell;
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
    /// The two cells of a comparison.
    pub fn sides(&self, verdict: &Verdict) -> Option<[&CellResult; 2]> {
        sides(self.cells, verdict)
    }

    /// The values of the varying axes, except the chart axis, that the sides of a comparison share.
    pub fn others(&self, verdict: &Verdict) -> Cell {
        Axis::values_of(self.labels.varying(), &verdict.at)
    }
}
