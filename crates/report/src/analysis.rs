//! From a recorded run to all that a report says of it.

use crate::advice::{Advice, advice, together};
use crate::bounds;
use crate::comparison::{Sides, compare};
use crate::figures::figures;
use crate::footprint;
use crate::noise::Noise;
use crate::overview::{notes, scope};
use crate::phrase;
use crate::publishing;
use crate::ranking::{Field, ranking};
use crate::series::{Series, series};
use crate::settling::Rule;
use crate::shape::remarks;
use crate::summary::{Overhead, REPORT_VERSION, Status, Summary, TargetSummary, VerdictResult, settings};
use crate::words::Words;
use kurabe_core::axis::Cell;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::{Run, TargetRecord};
use std::collections::BTreeSet;

/// Works out everything that a report of this run says. `info` is what this version of Kurabe knows of the run's
/// experiment; without it (the run is another version's) values are shown as they were recorded.
///
/// Pure: the same run gives the same summary. No run makes it fail; what is missing in one is missing in the other.
pub fn analyse(run: &Run, info: Option<&ExperimentInfo>) -> Summary {
    let header = &run.header;
    let info = info.filter(|info| info.name == header.spec.experiment);
    let words = Words::of(run, info);
    let targets: Vec<TargetSummary> = header.targets.iter().map(target).collect();
    let cells = figures(run);
    let noise = Noise::of(&cells, header.spec.seed);
    let rule = Rule::of(run);
    // A comparison between two planned analyses would be one that nothing was spent for.
    let (comparisons, count) = match rule.next() {
        None => compare(&words, &cells, &noise, &rule, header.spec.seed),
        Some(_) => (Vec::new(), 0),
    };
    let lines = series(&words, &comparisons);
    let rounds = cells.iter().flat_map(|cell| cell.by_round.keys()).collect::<BTreeSet<_>>().len() as u32;
    let field = Field { words: &words, series: &lines, cells: &cells, targets: &targets };
    let advice: Vec<Advice> = (0..targets.len()).flat_map(|target| advice(&words, &lines, target)).collect();
    let mut summary = headlines(&field, &advice, &rule);
    summary.extend(remarks(&words, &comparisons, &cells));
    let costs = footprint::sentences(run, &words);
    if !costs.is_empty() {
        // What was asked stands before what was measured beside it.
        summary = costs.into_iter().chain(summary).collect();
    }
    // With several targets the headlines hold the advice on axes without its figures, and the details with them.
    let particular = advice.iter().filter(|_| targets.len() > 1).map(|advice| advice.sentence.clone());
    let told = lines
        .iter()
        .filter(|line| line.says_something())
        .filter(|line| targets.len() < 2 || matches!(line.sides, Sides::Targets { .. }))
        .map(|line| line.sentence(&words, &targets));
    let details = particular.chain(told).collect();
    let overhead: Vec<Overhead> = baseline_overhead(run, &words);
    let largest = overhead.iter().map(|overhead| overhead.ns_per_op).max_by(f64::total_cmp);
    Summary {
        format: REPORT_VERSION,
        run: header.run.clone(),
        began: header.began,
        experiment: header.spec.experiment.clone(),
        question: info.map(|info| info.question.to_owned()),
        kurabe: header.kurabe.clone(),
        command: header.command.clone(),
        machine: header.machine.clone(),
        seed: header.spec.seed,
        spec: header.spec.clone(),
        complete: run.is_complete(),
        next_analysis: rule.next(),
        rounds,
        noise_floor: noise.largest(),
        noise_floors: noise
            .list(|index| targets.get(index).map_or_else(String::new, |target| target.name.clone())),
        overhead_ns_per_op: largest,
        overhead,
        scope: scope(run, &words, &rule, rounds, count),
        publishing: publishing::sentences(&targets, &words),
        bounds: bounds::sentences(&words, &cells),
        notes: notes(run, &words, &cells, &targets).into_iter().chain(rule.note(&comparisons)).collect(),
        summary,
        details,
        comparisons: count,
        verdicts: comparisons.iter().map(|comparison| phrase::record(comparison, &words, &targets)).collect(),
        targets,
        cells,
        words,
    }
}

/// What the run says, in a few sentences.
fn headlines(field: &Field<'_>, advice: &[Advice], rule: &Rule) -> Vec<String> {
    let words = field.words;
    let decided = |line: &Series<'_>| line.count(VerdictResult::Open) == 0;
    if !field.cells.iter().any(|cell| cell.status == Status::Ok) {
        return vec!["No cell has figures, so that there is nothing to say.".to_owned()];
    }
    if let Some(next) = rule.next() {
        return vec![format!(
            "No verdicts yet: the next planned analysis is after {}. 'kurabe resume' goes on.",
            phrase::rounds(next)
        )];
    }
    if !field.series.is_empty() && !field.series.iter().any(decided) {
        return vec![
            "One round shows no interval, so that nothing can be called faster; make more rounds.".to_owned(),
        ];
    }
    let between_targets = field.series.iter().filter(|line| matches!(line.sides, Sides::Targets { .. }));
    let mut sentences: Vec<String> = match words.targets.len() {
        0 | 1 => Vec::new(),
        2 => between_targets.map(|line| line.sentence(words, field.targets)).collect(),
        _ => ranking(field),
    };
    if words.targets.len() > 2 && sentences.is_empty() {
        sentences.push("No difference was seen between the targets.".to_owned());
    }
    if words.several_targets() {
        sentences.extend(together(words, advice));
    } else {
        sentences.extend(advice.iter().map(|advice| advice.sentence.clone()));
    }
    if sentences.is_empty() {
        sentences.push(
            "One thing was measured and nothing was compared; the figures stand in the table.".to_owned(),
        );
    }
    sentences
}

/// The tool's own cost for the baseline: that of the first target that has it, for each operation.
fn baseline_overhead(run: &Run, words: &Words) -> Vec<Overhead> {
    let baseline =
        Cell::new(words.axes.iter().filter_map(|axis| Some((axis.name.clone(), axis.baseline()?.clone()))));
    let of = |operation: &str| {
        run.header
            .overhead
            .iter()
            .filter(|record| record.operation == operation)
            .filter(|record| {
                record.axes.values().iter().all(|(axis, value)| baseline.get(axis) == Some(value))
            })
            .max_by_key(|record| record.axes.values().len())
    };
    words
        .operations
        .iter()
        .filter_map(|operation| {
            Some(Overhead { operation: operation.name.clone(), ns_per_op: of(&operation.name)?.ns_per_op })
        })
        .collect()
}

fn target(record: &TargetRecord) -> TargetSummary {
    let facts = &record.facts;
    TargetSummary {
        name: record.name.clone(),
        url: record.url.clone(),
        engine: facts.engine.clone(),
        version: facts.version.clone(),
        client: facts.client.clone(),
        transport: facts.transport.clone(),
        durability: facts.durability,
        durability_promise: phrase::promise(facts.durability).to_owned(),
        durability_settings: settings(&facts.durability_settings),
        settings: settings(&facts.settings),
        publishing: record.publishing.clone(),
        notes: facts.notes.clone(),
    }
}
