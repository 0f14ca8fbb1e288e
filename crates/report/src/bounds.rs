//! What bound the cells, in sentences; and which trials were disturbed.

use crate::attribution::{Attribution, Bound, Confidence};
use crate::format::{capital, list, of_cells};
use crate::summary::{CellFigures, Status};
use crate::words::Words;
use std::collections::BTreeSet;

/// One sentence for each operation, target and resource, with the evidence of the cell that has the most of it.
pub(crate) fn sentences(words: &Words, cells: &[CellFigures]) -> Vec<String> {
    let mut told = Vec::new();
    for operation in &words.operations {
        for (target, name) in words.targets.iter().enumerate() {
            let here: Vec<(&CellFigures, &Attribution)> = cells
                .iter()
                .filter(|cell| cell.operation == operation.name && cell.target_index == target)
                .filter(|cell| cell.status == Status::Ok && !cell.baseline_repeat)
                .filter_map(|cell| Some((cell, cell.attribution.as_ref()?)))
                .collect();
            let on = if words.several_targets() { format!(" on {name}") } else { String::new() };
            for bound in Bound::ALL {
                let group: Vec<_> = here.iter().filter(|(_, found)| found.bound_by == bound).collect();
                // The most certain cell speaks for the others.
                let Some((_, spokesman)) = group.iter().min_by_key(|(_, a)| a.confidence == Confidence::Low)
                else {
                    continue;
                };
                let place = if group.len() == here.len() { String::new() } else { places(words, &group) };
                let sure = if spokesman.confidence == Confidence::High { "" } else { "most likely " };
                let one =
                    if group.len() > 1 { format!("in one of {} cells ", group.len()) } else { String::new() };
                told.push(capital(&format!(
                    "{}{on}{place} {}: {one}{}.",
                    words.plural(&operation.name),
                    predicate(bound, sure),
                    spokesman.evidence
                )));
            }
        }
    }
    told
}

fn predicate(bound: Bound, sure: &str) -> String {
    match bound {
        Bound::ClientCpu => {
            format!("were {sure}bound by the client's CPU, so that the figure is a lower bound of the server")
        }
        Bound::ServerCpu => format!("were {sure}bound by the server's CPU"),
        Bound::ProcessCpu => {
            format!("were {sure}bound by the CPU of the process that holds client and database")
        }
        Bound::Disk => format!("were {sure}bound by storage"),
        Bound::Network => format!("were {sure}bound by the way between client and server"),
        Bound::Locks => format!("were {sure}bound by locks"),
        Bound::Latency => format!("were {sure}bound by the time of a round trip alone"),
        Bound::Load => "were bound by nothing".to_owned(),
        Bound::NotKnown => "may have been bound by anything".to_owned(),
    }
}

/// Which cells: ` at 1 kB, layout rows`; for more than one, the values of each axis that varies.
fn places(words: &Words, group: &[&(&CellFigures, &Attribution)]) -> String {
    let axes = words.chart_axis().into_iter().chain(words.varying()).filter(|axis| axis.varies());
    let parts: Vec<String> = axes
        .filter_map(|axis| {
            let values: Vec<_> = axis
                .sorted()
                .into_iter()
                .filter(|value| group.iter().any(|(cell, _)| cell.axes.get(&axis.name) == Some(value)))
                .collect();
            (values.len() < axis.values.len()).then(|| {
                let names: Vec<String> = values.iter().map(|value| axis.name_value(value)).collect();
                list(&names)
            })
        })
        .collect();
    if parts.is_empty() { " in part".to_owned() } else { format!(" with {}", parts.join(", ")) }
}

/// What a reader must know of trials that were disturbed.
pub(crate) fn suspects(words: &Words, cells: &[CellFigures]) -> Vec<String> {
    let disturbed: Vec<&CellFigures> = cells
        .iter()
        .filter(|cell| cell.attribution.as_ref().is_some_and(|found| found.suspect.is_some()))
        .collect();
    let Some(first) = disturbed.first() else { return Vec::new() };
    let why = first.attribution.as_ref().and_then(|found| found.suspect.clone()).unwrap_or_default();
    let looked: Vec<&CellFigures> = cells.iter().filter(|cell| cell.attribution.is_some()).collect();
    let names: BTreeSet<&str> =
        disturbed.iter().filter_map(|cell| Some(words.targets.get(cell.target_index)?.as_str())).collect();
    let on = if words.several_targets() {
        format!(" (on {})", list(&names.into_iter().collect::<Vec<_>>()))
    } else {
        String::new()
    };
    vec![format!(
        "The machine was not ours alone{}{on}: {why}{}. Such figures are suspect; measure again when it is quiet.",
        of_cells(distinct(&disturbed), distinct(&looked)),
        if distinct(&disturbed) > 1 { ", in one of them" } else { "" }
    )]
}

/// How many cells these are; the baseline and its repetition are one.
fn distinct(cells: &[&CellFigures]) -> usize {
    let same = |one: &CellFigures, other: &CellFigures| {
        (one.target_index, &one.axes, &one.operation) == (other.target_index, &other.axes, &other.operation)
    };
    let first = |at: usize| !cells[..at].iter().any(|before| same(before, cells[at]));
    (0..cells.len()).filter(|at| first(*at)).count()
}
