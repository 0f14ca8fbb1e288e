//! Warnings: what a reader must know before relying on results.

use super::Context;
use crate::finding::{Finding, Note, Progress, Scope, Trials};
use crate::group::distinct;
use crate::metrics::is_speed;
use crate::proof;
use crate::results::latest;
use crate::summary::{CellResult, Status, Steady, Verdict};
use kurabe_core::run::{CellRecord, MachineFacts, Outcome, Resumption, Run};
use kurabe_core::sort;
use kurabe_core::units;
use std::collections::BTreeMap;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let run = context.run;
    let mut findings: Vec<Finding> = Vec::new();
    if !run.is_complete() {
        let operations = &run.header.spec.operations;
        let trials =
            |cell: &CellRecord| operations.iter().filter(|name| cell.refusal(name).is_none()).count();
        let of_a_round: usize = run.header.cells.iter().map(trials).sum();
        let planned = (of_a_round * run.header.spec.rounds as usize) as u64;
        let made = run.trials.iter().filter(|trial| trial.rerun_reason.is_none()).count() as u64;
        findings.push(Progress::Incomplete { made, planned }.into());
    }
    findings.extend(run.resumptions.iter().filter_map(|resumption| resumed(context, resumption)));
    let again: Vec<&String> = run.trials.iter().filter_map(|trial| trial.rerun_reason.as_ref()).collect();
    if let Some(reason) = again.first() {
        findings.push(Trials::Rerun { trials: again.len() as u64, reason: (*reason).clone() }.into());
    }
    findings.extend(fewer_agents(context.run));
    let cells = context.cells.iter().filter(|cell| cell.status == Status::Failed).count() as u64;
    findings.extend((cells > 0).then(|| Finding::from(Trials::Failed { cells })));
    let answers = context.cells.iter().map(|cell| cell.verified.mismatches).sum();
    findings.extend((answers > 0).then(|| Finding::from(Trials::WrongAnswers { answers })));
    let trials = proof::exhausted(run).into_iter().chain(steadiness(context)).chain(disturbed(context));
    findings.extend(trials.map(Finding::from));
    let before = run.header.warnings.iter();
    findings.extend(before.map(|warning| Finding::from(Note::Preflight { warning: warning.clone() })));
    for target in context.targets {
        let note = |note: &String| Note::TargetNote { target: target.name.clone(), note: note.clone() };
        findings.extend(target.notes.iter().map(note).map(Finding::from));
    }
    findings.extend(rates_apart(context));
    findings.extend(context.rule.finding(context.verdicts));
    findings
}

/// Compared rates whose quotient is not the ratio beside them, since the two are of different trials.
fn rates_apart(context: &Context<'_>) -> Option<Finding> {
    let apart = |verdict: &Verdict| {
        let cells = context.sides(verdict).filter(|_| verdict.primary && is_speed(&verdict.pair.metric))?;
        let [a, b] = cells.map(|cell| {
            let rate = cell.metric(&verdict.pair.metric)?.value;
            cell.interleaved.map(|_| {
                context.labels.metric(cell.metric).map_or(rate, |metric| metric.higher_is_better(rate))
            })
        });
        Some((a? / b? / verdict.ratio?).ln().abs() > context.rule.margin.ln_1p())
    };
    let all: Vec<bool> = context.verdicts.iter().filter_map(apart).collect();
    let pairs = all.iter().filter(|apart| **apart).count() as u32;
    (pairs > 0).then(|| Note::RatesApart { pairs, of: all.len() as u32 }.into())
}

/// The agents without which the run went on; `None` if there are none. A trial with few clients needs few agents.
fn fewer_agents(run: &Run) -> Option<Finding> {
    let all: Vec<&String> = run.header.agents.iter().map(|agent| &agent.name).collect();
    let counted = latest(run).into_values().flat_map(BTreeMap::into_values);
    let used: Vec<Vec<&String>> = counted
        .filter_map(|trial| match &trial.outcome {
            Outcome::Measured(measured) if measured.clients >= all.len() as u64 => {
                Some(measured.fleet.as_ref()?.agents.iter().map(|agent| &agent.name).collect())
            }
            _ => None,
        })
        .collect();
    let fewer = || used.iter().filter(|agents| agents.len() < all.len());
    let fewest = fewer().min_by_key(|agents| agents.len())?;
    let missing = all.iter().filter(|name| !fewest.contains(name)).map(|name| (*name).clone());
    let (trials, of) = (fewer().count() as u64, used.len() as u64);
    Some(Trials::FewerAgents { agents: missing.collect(), trials, of }.into())
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
    (!changes.is_empty()).then(|| Note::Resumed { from_trial, changes }.into())
}

/// Cells with unsteady trials: one finding for each kind and operation.
fn steadiness(context: &Context<'_>) -> Vec<Trials> {
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
            findings.push(Trials::Unsteady { scope, cells: never.len() as u32, of, change });
        }
        let (scope, late) = part(Steady::is_late);
        if !late.is_empty() {
            findings.push(Trials::SteadyLate { scope, cells: late.len() as u32, of });
        }
    }
    findings
}

/// Trials with other load on the machine.
fn disturbed(context: &Context<'_>) -> Option<Trials> {
    let reason = |cell: &CellResult| cell.disturbed.clone();
    let is_observed = |cell: &&CellResult| cell.attribution.is_some() || cell.disturbed.is_some();
    let observed: Vec<&CellResult> = context.cells.iter().filter(is_observed).collect();
    let disturbed: Vec<&CellResult> =
        observed.iter().copied().filter(|cell| reason(cell).is_some()).collect();
    let reason = reason(disturbed.first()?)?;
    let mut targets: Vec<String> = disturbed.iter().map(|cell| cell.target.clone()).collect();
    sort::by(&mut targets, Ord::cmp);
    targets.dedup();
    Some(Trials::Disturbed { cells: count(&disturbed), of: count(&observed), targets, reason })
}

/// The number of distinct cells; the baseline and its A/A control count as one.
fn count(cells: &[&CellResult]) -> u32 {
    distinct(cells.iter().map(|cell| (cell.target_index, &cell.axes, &cell.operation))).len() as u32
}
