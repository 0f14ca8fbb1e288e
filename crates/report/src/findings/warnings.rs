//! Warnings: what a reader must know before relying on results.

use super::Context;
use crate::finding::{Finding, Scope};
use crate::proof;
use crate::summary::{CellResult, Status, Steady};
use kurabe_core::run::{MachineFacts, Resumption};
use kurabe_core::units;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let run = context.run;
    let mut findings = Vec::new();
    if !run.is_complete() {
        let available = run.header.cells.iter().filter(|cell| cell.unavailable.is_none()).count();
        let planned = available * run.header.spec.operations.len() * run.header.spec.rounds as usize;
        let made = run.trials.iter().filter(|trial| trial.rerun_reason.is_none()).count();
        findings.push(Finding::Incomplete { made: made as u64, planned: planned as u64 });
    }
    findings.extend(run.resumptions.iter().filter_map(|resumption| resumed(context, resumption)));
    let again = || run.trials.iter().filter_map(|trial| trial.rerun_reason.as_deref());
    findings.extend(
        again()
            .next()
            .map(|reason| Finding::Rerun { trials: again().count() as u64, reason: reason.to_owned() }),
    );
    let failed = context.cells.iter().filter(|cell| cell.status == Status::Failed).count() as u64;
    findings.extend((failed > 0).then_some(Finding::Failed { cells: failed }));
    let answers = context.cells.iter().map(|cell| cell.verified.mismatches).sum();
    findings.extend((answers > 0).then_some(Finding::WrongAnswers { answers }));
    findings.extend(proof::exhausted(run));
    findings.extend(steadiness(context));
    findings.extend(disturbed(context));
    let before = run.header.warnings.iter();
    findings.extend(before.map(|warning| Finding::Preflight { warning: warning.clone() }));
    for target in context.targets {
        let note = |note: &String| Finding::TargetNote { target: target.name.clone(), note: note.clone() };
        findings.extend(target.notes.iter().map(note));
    }
    findings.extend(context.rule.finding(context.verdicts));
    findings
}

/// What changed when the run was resumed; `None` if nothing did.
fn resumed(context: &Context<'_>, resumption: &Resumption) -> Option<Finding> {
    let header = &context.run.header;
    let mut changes = Vec::new();
    if resumption.kurabe != header.kurabe {
        changes.push(format!("Kurabe {} in place of {}", resumption.kurabe, header.kurabe));
    }
    if resumption.machine != header.machine {
        let MachineFacts { cpu, cpus, memory_bytes, system } = &resumption.machine;
        changes
            .push(format!("another machine ({cpu}, {cpus} CPUs, {}, {system})", units::size(*memory_bytes)));
    }
    for (before, now) in header.targets.iter().zip(&resumption.targets) {
        let (then, facts) = (&before.facts, &now.facts);
        if (&then.engine, &then.version) != (&facts.engine, &facts.version) {
            changes.push(format!(
                "{} {} in place of {} on {}",
                facts.engine, facts.version, then.version, before.name
            ));
        } else if (&then.durability_settings, &then.settings) != (&facts.durability_settings, &facts.settings)
        {
            changes.push(format!("other settings on {}", before.name));
        }
    }
    let from_trial = resumption.trials_before + 1;
    (!changes.is_empty()).then_some(Finding::Resumed { from_trial, changes })
}

/// Cells with unsteady trials: one finding for each kind and operation.
fn steadiness(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for operation in &context.labels.operations {
        let here: Vec<(&CellResult, &Steady)> = context
            .cells
            .iter()
            .filter(|cell| cell.operation == operation.name && !cell.aa_control)
            .filter_map(|cell| Some((cell, cell.steady.as_ref()?)))
            .collect();
        let of = here.len() as u32;
        let part = |wanted: fn(&Steady) -> bool| {
            let cells: Vec<_> = here.iter().filter(|(_, steady)| wanted(steady)).collect();
            let mut targets: Vec<String> = cells.iter().map(|(cell, _)| cell.target.clone()).collect();
            targets.dedup();
            let operations = vec![operation.name.clone()];
            (Scope { operations, targets, ..Scope::default() }, cells)
        };
        let (scope, never) = part(Steady::is_never);
        let far = |change: &f64| change.max(f64::MIN_POSITIVE).ln().abs();
        let most = never.iter().filter_map(|(_, steady)| steady.change);
        if let Some(change) = most.max_by(|a, b| far(a).total_cmp(&far(b))) {
            findings.push(Finding::Unsteady { scope, cells: never.len() as u32, of, change });
        }
        let (scope, late) = part(Steady::is_late);
        if !late.is_empty() {
            findings.push(Finding::SteadyLate { scope, cells: late.len() as u32, of });
        }
    }
    findings
}

/// Trials with other load on the machine.
fn disturbed(context: &Context<'_>) -> Option<Finding> {
    let observed: Vec<&CellResult> = context.cells.iter().filter(|cell| cell.attribution.is_some()).collect();
    let disturbed: Vec<&CellResult> = observed
        .iter()
        .copied()
        .filter(|cell| cell.attribution.as_ref().is_some_and(|found| found.disturbed.is_some()))
        .collect();
    let reason = disturbed.first()?.attribution.as_ref()?.disturbed.clone()?;
    let mut targets: Vec<String> = disturbed.iter().map(|cell| cell.target.clone()).collect();
    targets.sort();
    targets.dedup();
    Some(Finding::Disturbed { cells: distinct(&disturbed), of: distinct(&observed), targets, reason })
}

/// The number of distinct cells; the baseline and its A/A control count as one.
fn distinct(cells: &[&CellResult]) -> u32 {
    let same = |one: &CellResult, other: &CellResult| {
        (one.target_index, &one.axes, &one.operation) == (other.target_index, &other.axes, &other.operation)
    };
    let first = |at: &usize| !cells[..*at].iter().any(|before| same(before, cells[*at]));
    (0..cells.len()).filter(first).count() as u32
}
