//! What holds for the run as a whole: what was tested, and what a reader must know of it.

use crate::bounds;
use crate::format::{capital, figure, list, micros};
use crate::phrase::rounds;
use crate::proof;
use crate::settling::Rule;
use crate::steady;
use crate::summary::{CellFigures, Status, TargetSummary};
use crate::words::Words;
use kurabe_core::load::RATE;
use kurabe_core::run::{MachineFacts, Outcome, Resumption, Run, TrialRecord};
use kurabe_core::units;
use std::collections::BTreeSet;
use std::time::Duration;

/// What was measured, and with what care: the scope of every sentence.
pub(crate) fn scope(run: &Run, words: &Words, rule: &Rule, measured_rounds: u32, comparisons: u32) -> String {
    let mut varied = Vec::new();
    let mut held = Vec::new();
    for axis in &words.axes {
        if axis.varies() {
            let values: Vec<String> = axis.sorted().iter().map(|value| axis.show(value)).collect();
            varied.push(format!("{} {}", axis.name, list(&values)));
        } else if let Some(value) = axis.baseline() {
            held.push(format!("{} {}", axis.name, axis.show(value)));
        }
    }
    let targets = format!("Tested: {}", list(&words.targets));
    let varied = if varied.is_empty() { String::new() } else { format!("; {}", varied.join("; ")) };
    let held = if held.is_empty() { String::new() } else { format!("; throughout {}", held.join(", ")) };
    let cpus = match run.header.machine.cpus {
        0 => String::new(),
        1 => ", on a machine with 1 CPU".to_owned(),
        n => format!(", on a machine with {n} CPUs"),
    };
    let compared = match comparisons {
        0 => "nothing was compared".to_owned(),
        1 => "1 comparison, whose interval holds with 95 % confidence".to_owned(),
        n => format!("{n} comparisons, whose intervals hold together with 95 % confidence"),
    };
    let looked = rule.analysed().filter(|_| comparisons > 0);
    let looked = looked.map_or_else(String::new, |looked| format!(", {looked}"));
    format!(
        "{targets}{varied}{held}{cpus}. {} in random order, {}paired; {compared}{looked}.",
        rounds(measured_rounds),
        interleaved(run)
    )
}

/// How trials were interleaved: nothing where none was.
fn interleaved(run: &Run) -> String {
    let in_slices =
        |trial: &TrialRecord| matches!(&trial.outcome, Outcome::Measured(measured) if measured.slices > 0);
    match run.header.spec.slice_ns.filter(|_| run.trials.iter().any(in_slices)) {
        Some(slice) => format!(
            "interleaved in slices of {} after a round of separate, observed trials, ",
            units::time(Duration::from_nanos(slice))
        ),
        None => String::new(),
    }
}

/// What a reader must know: cut off, failed, engines' notes.
pub(crate) fn notes(
    run: &Run,
    words: &Words,
    cells: &[CellFigures],
    targets: &[TargetSummary],
) -> Vec<String> {
    let mut notes = Vec::new();
    if !run.is_complete() {
        let planned = run.header.cells.iter().filter(|cell| cell.unavailable.is_none()).count()
            * run.header.spec.operations.len()
            * run.header.spec.rounds as usize;
        let made = run.trials.iter().filter(|trial| trial.again.is_none()).count();
        notes.push(if made > planned {
            "This run is not complete: it was stopped before its comparisons were settled; resume goes on with it.".to_owned()
        } else {
            format!("This run is not complete: {made} of {planned} planned trials were made; resume goes on with it.")
        });
    }
    notes.extend(run.resumptions.iter().filter_map(|resumption| resumed(run, resumption)));
    notes.extend(made_again(run));
    let failed = cells.iter().filter(|cell| cell.status == Status::Failed).count();
    if failed > 0 {
        let cells = if failed == 1 { "1 cell has" } else { &format!("{failed} cells have") };
        notes.push(format!("{cells} no figures because a trial failed; the reasons stand with them."));
    }
    let wrong: u64 = cells.iter().map(|cell| cell.verified.mismatches).sum();
    if wrong > 0 {
        let answers = if wrong == 1 { "1 answer was" } else { &format!("{wrong} answers were") };
        notes.push(format!("{answers} wrong."));
    }
    notes.extend(proof::exhausted(run, words));
    notes.extend(open_loop(words, cells));
    notes.extend(steady::notes(words, cells));
    notes.extend(bounds::suspects(words, cells));
    for (target, name) in targets.iter().zip(&words.targets) {
        notes.extend(target.notes.iter().map(|note| format!("{name}: {note}")));
    }
    notes
}

/// What had changed when the run was resumed; nothing where nothing had.
fn resumed(run: &Run, resumption: &Resumption) -> Option<String> {
    let header = &run.header;
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
    (!changes.is_empty()).then(|| {
        format!(
            "Trials from number {} on were made with {}: they may differ for that reason.",
            units::count(resumption.trials_before + 1),
            list(&changes)
        )
    })
}

/// Which trials were made twice, and what became of the first.
fn made_again(run: &Run) -> Option<String> {
    let again: Vec<&str> = run.trials.iter().filter_map(|trial| trial.again.as_deref()).collect();
    let why = again.first()?;
    let (trials, first) = match again.len() {
        1 => ("1 trial was".to_owned(), "its first outcome is"),
        n => (format!("{} trials were", units::count(n as u64)), "their first outcomes are"),
    };
    Some(format!(
        "{trials} made again since the machine worked for others ({why}); {first} kept in the run file, and count for nothing."
    ))
}

/// What must be said of an open loop: loads that were not served, and a tool that was late.
fn open_loop(words: &Words, cells: &[CellFigures]) -> Vec<String> {
    /// From here on the tool's own lateness is a part of response times that a reader should know of.
    const LATE_US: f64 = 1_000.0;
    let mut notes = Vec::new();
    let open = || cells.iter().filter_map(|cell| Some((cell, cell.open_loop?)));
    let mut told = BTreeSet::new();
    for (cell, figures) in open().filter(|(_, figures)| !figures.kept_up) {
        // One cell of a target and rate stands for the others.
        if !told.insert((cell.target_index, &cell.operation, cell.axes.get(RATE.name))) {
            continue;
        }
        let on = words.targets.get(cell.target_index).filter(|_| words.several_targets());
        let on = on.map_or_else(String::new, |name| format!(" on {name}"));
        let served = cell.ops_per_second.map_or(0.0, |rate| rate.median);
        let dropped = match figures.dropped {
            0 => String::new(),
            n => format!(", {} of {} were never begun", units::count(n), units::count(figures.offered)),
        };
        notes.push(format!(
            "{}{on}: {}/s were due and {}/s were served{dropped}: the backlog grew, and so would these response times in a longer trial.",
            capital(&words.plural(&cell.operation)),
            figure(figures.due_per_second),
            figure(served),
        ));
    }
    let late = open().filter_map(|(_, figures)| figures.dispatch_lag_p99_us).max_by(f64::total_cmp);
    if let Some(late) = late.filter(|late| *late > LATE_US) {
        notes.push(format!(
            "The tool itself began transactions up to {} late (dispatch lag p99): the machine that it ran on was busy.",
            micros(late)
        ));
    }
    notes
}
