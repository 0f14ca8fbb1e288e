//! The basis of the results: what was tested and verified, what servers do not report, and licences.

use super::Context;
use crate::finding::{Agents, Basis, Finding, NotInterleaved, Note, Overhead};
use crate::group::{distinct, grouped};
use crate::labels::OperationLabels;
use crate::proof;
use crate::results::overhead_of;
use crate::summary::TargetSummary;
use kurabe_core::axis::Cell;
use kurabe_core::run::{MIN_INTERLEAVED_ROUNDS, Outcome, Run};
use kurabe_core::sort;
use std::collections::BTreeSet;

/// What was tested, noise floor, overhead, verification and durability.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let header = &context.run.header;
    let (interleaved, separate) = interleaved(context.run);
    let tested = Basis::Tested {
        targets: context.labels.names.clone(),
        cpus: header.machine.cpus,
        rounds: context.rounds,
        comparisons: context.comparisons[0],
        further_comparisons: context.comparisons[1],
        slice_ns: header.spec.slice_ns.filter(|_| !interleaved.is_empty()),
        restarts: header.spec.block(context.rounds.saturating_sub(1)),
        sampled: header.spec.sampled(),
        not_interleaved: not_interleaved(context, &separate.difference(&interleaved).copied().collect()),
        analysed_after: context.rule.analysed_after(),
        shared_threads: shared_threads(context.run),
        fleet: agents(context.run),
    };
    let noise = Basis::NoiseFloor {
        largest: context.noise.largest(),
        each: context.noise.list(|target| context.labels.names[target].clone()),
    };
    let overhead = overhead(context);
    let overhead = (!overhead.is_empty()).then_some(Basis::ToolOverhead { each: overhead });
    let verified = Basis::Verified {
        verification: proof::sum(context.cells.iter().map(|cell| &cell.verified.proven)),
        cpu_share: context.cells.iter().filter_map(|cell| cell.verify_share).max_by(f64::total_cmp),
    };
    let durability = context.targets.iter().map(|target| Basis::Durability {
        target: target.name.clone(),
        version: target.version.clone(),
        class: target.durability,
        settings: target.durability_settings.clone(),
    });
    let all = [tested, noise].into_iter().chain(overhead).chain([verified]).chain(durability);
    all.map(Finding::from).collect()
}

/// Measured operations: the cell's position and the operation's name.
type Measured<'a> = BTreeSet<(usize, &'a str)>;

/// Those with interleaved trials, and those with separate ones in rounds whose trials are interleaved.
fn interleaved(run: &Run) -> (Measured<'_>, Measured<'_>) {
    let (mut interleaved, mut separate) = (BTreeSet::new(), BTreeSet::new());
    for trial in run.trials.iter().filter(|trial| !run.header.spec.is_continuous(trial.round)) {
        if let Outcome::Measured(measured) = &trial.outcome {
            let of = if measured.slices > 0 { &mut interleaved } else { &mut separate };
            of.insert((trial.cell, &*trial.operation));
        }
    }
    (interleaved, separate)
}

/// The threads that clients shared, the most of any trial; `None` if each client had its own.
fn shared_threads(run: &Run) -> Option<u64> {
    let threads = run.trials.iter().filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) => Some(measured.threads),
        Outcome::Failed { .. } => None,
    });
    threads.max().filter(|threads| *threads > 0)
}

/// The agents that ran the clients; `None` without a fleet.
fn agents(run: &Run) -> Option<Agents> {
    let names: Vec<String> = run.header.agents.iter().map(|agent| agent.name.clone()).collect();
    let spread = run.trials.iter().filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) => Some(measured.fleet.as_ref()?.start_spread_ns),
        Outcome::Failed { .. } => None,
    });
    (!names.is_empty()).then(|| Agents { names, start_spread_ns: spread.max().unwrap_or(0) })
}

/// Why the `separate` trials were not interleaved.
fn not_interleaved(context: &Context<'_>, separate: &Measured<'_>) -> Option<NotInterleaved> {
    let spec = &context.run.header.spec;
    if spec.slice_ns.is_some() {
        let operations = sort::distinct(separate.iter().map(|(_, operation)| *operation));
        return (!separate.is_empty()).then(|| NotInterleaved::Some {
            cells: separate.len() as u32,
            operations: operations.into_iter().map(str::to_owned).collect(),
        });
    }
    Some(if spec.fleet.is_some() {
        NotInterleaved::Fleet
    } else if spec.arrivals.is_some() {
        NotInterleaved::OpenLoop
    } else if spec.rounds < MIN_INTERLEAVED_ROUNDS {
        NotInterleaved::FewRounds
    } else {
        NotInterleaved::Asked
    })
}

/// The tool's overhead for the baseline: that of the first target with it, for each operation.
fn overhead(context: &Context<'_>) -> Vec<Overhead> {
    let labels = context.labels;
    let baseline =
        Cell::new(labels.axes.iter().filter_map(|axis| Some((axis.name.clone(), axis.baseline()?.clone()))));
    let of = |operation: &OperationLabels| {
        let ns_per_op = overhead_of(&context.run.header.overhead, &baseline, &operation.name)?;
        Some(Overhead { operation: operation.name.clone(), ns_per_op })
    };
    labels.operations.iter().filter_map(of).collect()
}

/// One finding for each target whose licence restricts publishing results.
pub(super) fn publishing(context: &Context<'_>) -> Vec<Finding> {
    let restricted = |target: &TargetSummary| {
        let clause = target.publishing.as_ref()?;
        let (target, version) = (target.name.clone(), target.version.clone());
        let (says, name, source) = (clause.says.clone(), clause.name.clone(), clause.source.clone());
        Some(Note::PublishingRestricted { target, version, says, name, source }.into())
    };
    context.targets.iter().filter_map(restricted).collect()
}

/// What servers do not report: one finding for each target and reason.
pub(super) fn not_reported(context: &Context<'_>) -> Vec<Finding> {
    let mut all: Vec<((&str, &str), &str)> = Vec::new();
    for cell in context.cells {
        for engine in cell.observed.iter().filter_map(|seen| seen.engine.as_ref()) {
            let sessions = engine.not_sampled.as_deref().map(|why| ("wait states of sessions", why));
            let counters = engine.unavailable.iter().map(|one| (one.what.as_str(), one.why.as_str()));
            all.extend(counters.chain(sessions).map(|(what, why)| ((cell.target.as_str(), why), what)));
        }
    }
    let finding = |((target, why), what): ((&str, &str), Vec<&str>)| {
        // If nothing is reported at all, the rest is implied.
        let all = what.iter().copied().find(|one| *one == "all statistics");
        let what = all.map_or_else(|| distinct(what), |all| vec![all]);
        let what = what.into_iter().map(str::to_owned).collect();
        Note::NotReported { target: target.to_owned(), what, reason: why.to_owned() }.into()
    };
    grouped(all).into_iter().map(finding).collect()
}
