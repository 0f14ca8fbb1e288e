//! Derives [findings](crate::finding) from results and verdicts.
//!
//! | module | finds |
//! |---|---|
//! | [`answer`] | what answers the experiment's question |
//! | [`pairs`] | which of two sides is faster, and where |
//! | [`open_loop`] | response times by rate, overload, a late load generator |
//! | [`published`] | how the run's ratios compare with published ones |
//! | [`bottlenecks`] | the bottleneck of each cell |
//! | [`warnings`] | what a reader must know before relying on a figure |
//! | [`basis`] | the basis of the results |

mod answer;
mod basis;
mod bottlenecks;
mod open_loop;
mod pairs;
mod published;
mod warnings;

use crate::comparison::{TARGET, sides};
use crate::finding::{Comparison, Finding, Progress, Promise, Scope, Section, Statement};
use crate::group::{distinct, grouped};
use crate::labels::Labels;
use crate::noise::Noise;
use crate::rule::Rule;
use crate::summary::{CellResult, Status, TargetSummary, Verdict};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Answer, ExperimentInfo};
use kurabe_core::run::Run;

/// The input of all findings.
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

/// All findings, in the order of their sections.
pub(crate) fn all(context: &Context<'_>) -> Vec<Statement> {
    let (verdict, details) = verdicts(context);
    let sections = [
        (Section::Publishing, basis::publishing(context)),
        (Section::Verdict, verdict),
        (Section::Detail, details),
        (Section::Bottleneck, bottlenecks::findings(context)),
        (Section::Warning, warnings::findings(context)),
        (Section::NotReported, basis::not_reported(context)),
        (Section::Basis, basis::findings(context)),
    ];
    let stated = |(section, findings): (Section, Vec<Finding>)| {
        findings.into_iter().map(move |finding| finding.state(section, context.labels))
    };
    sections.into_iter().flat_map(stated).collect()
}

/// The answer to the question with further results; and the individual pairs.
fn verdicts(context: &Context<'_>) -> (Vec<Finding>, Vec<Finding>) {
    if !context.cells.iter().any(|cell| cell.status == Status::Ok) {
        return (vec![Progress::NoResults.into()], Vec::new());
    }
    if let Some(next) = context.rule.next() {
        return (vec![Progress::NotAnalysed { next }.into()], Vec::new());
    }
    let answer = context.info.map_or(Answer::Comparison, |info| info.answer);
    let (mut first, answered) = answer::findings(context, answer);
    let (by_rate, mut details) = open_loop::findings(context);
    first.extend(by_rate);
    let (primary, others): (Vec<&Verdict>, Vec<&Verdict>) =
        context.verdicts.iter().filter(|verdict| !answered(verdict)).partition(|verdict| verdict.primary);
    let (targets, levels): (Vec<&Verdict>, Vec<&Verdict>) =
        primary.iter().copied().partition(|verdict| verdict.pair.axis == TARGET);
    let (targets, levels) = (pairs::findings(context, &targets), pairs::findings(context, &levels));
    let has_interval = |verdict: &Verdict| verdict.low.is_some();
    if context.verdicts.iter().any(|verdict| verdict.ratio.is_some())
        && !context.verdicts.iter().any(has_interval)
    {
        first.push(Progress::OneRound.into());
        details.extend(targets.into_iter().chain(levels));
    } else {
        first.extend(targets);
        let asked =
            |finding: &Finding| !matches!(finding, Finding::Comparison(Comparison::NotComparable { .. }));
        let (asked, other): (Vec<Finding>, Vec<Finding>) = levels.into_iter().partition(asked);
        first.extend(asked);
        details.extend(other);
    }
    // There are many verdicts on other metrics; only significant differences are shown.
    let called: Vec<&Verdict> = others.into_iter().filter(|verdict| verdict.result.is_called()).collect();
    details.extend(pairs::findings(context, &called));
    if answer != Answer::Metrics {
        first.extend(answer::values(context));
    }
    first.extend(published::findings(context));
    if first.is_empty() {
        first.extend(answer::throughput(context));
    }
    if first.is_empty() {
        first = std::mem::take(&mut details);
    }
    if first.is_empty() {
        first.push(Progress::NoBaseline.into());
    }
    first.extend(bottlenecks::limits_of_scaling(context));
    first.extend(answer::settings(context));
    (first, details)
}

impl Context<'_> {
    /// The cell of a target with all axes at their baselines except the chart axis.
    pub fn baseline(&self, target: usize, operation: &str, x: Option<&AxisValue>) -> Option<&CellResult> {
        let chart = self.labels.chart_axis().map(|axis| axis.name.as_str());
        self.cells.iter().find(|cell| {
            let is = |axis: &crate::labels::Axis| {
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
        sides(self.labels, self.cells, verdict)
    }

    /// The values of the varying axes, except the chart axis, that the sides of a comparison share.
    pub fn others(&self, verdict: &Verdict) -> Cell {
        let varying = self.labels.varying();
        Cell::new(varying.filter_map(|axis| Some((axis.name.clone(), verdict.at.get(&axis.name)?.clone()))))
    }

    /// The baselines of all varying axes except the chart axis and `but`.
    pub fn held(&self, but: &str) -> Cell {
        let varying = self.labels.varying().filter(|axis| axis.name != but);
        Cell::new(varying.filter_map(|axis| Some((axis.name.clone(), axis.baseline()?.clone()))))
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

    /// The durability classes of these targets, if the operation writes and they differ or are unknown.
    pub fn promises(&self, operation: &str, names: &[&String]) -> Vec<Promise> {
        if !self.labels.writes(operation) {
            return Vec::new();
        }
        let class = |name: &str| self.targets.iter().find(|target| target.name == name)?.durability;
        let classes = grouped(names.iter().map(|name| (class(name), (*name).clone())));
        let all: Vec<Promise> =
            classes.into_iter().map(|(class, targets)| self.promise(class, targets)).collect();
        // Two targets with unknown classes may not be equal.
        if all.len() > 1 || all.iter().any(|promise| promise.class.is_none()) { all } else { Vec::new() }
    }

    fn promise(&self, class: Option<DurabilityClass>, targets: Vec<String>) -> Promise {
        let of_class = self.targets.iter().filter(|target| targets.contains(&target.name));
        let settings = distinct(of_class.flat_map(|target| target.own_durability(self.targets)));
        Promise { class, targets, settings }
    }
}
