//! The analysis of a recorded run: everything that a report contains.

use crate::comparison::compare;
use crate::finding::wording::promise;
use crate::findings::{self, Context};
use crate::labels::Labels;
use crate::metrics;
use crate::noise::Noise;
use crate::results::figures;
use crate::rule::Rule;
use crate::summary::{REPORT_VERSION, Summary, TargetSummary, settings};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::{Outcome, Run, TargetRecord};
use kurabe_core::sort;

/// Computes everything that a report of this run contains. `info` is the experiment's description; without it (a run
/// of another version) values are shown as recorded.
///
/// It is a pure function: the same run gives the same summary. It never fails; what is missing in the run is missing
/// in the summary.
pub fn analyse(run: &Run, info: Option<&ExperimentInfo>) -> Summary {
    let header = &run.header;
    let info = info.filter(|info| info.name == header.spec.experiment);
    let mut labels = Labels::of(run, info);
    let targets: Vec<TargetSummary> = header.targets.iter().map(target).collect();
    let metrics = metrics::all(run, info);
    let mut cells = figures(run, &metrics);
    metrics::derive(&metrics, &labels, &mut cells, &header.spec);
    labels.metrics = metrics;
    labels.scatters = labels.metrics.iter().filter(|metric| metric.is_scatter()).cloned().collect();
    labels.metrics.retain(|metric| cells.iter().any(|cell| cell.metric(&metric.name).is_some()));
    let noise = Noise::of(&labels, &cells, &header.spec);
    noise.tell(&labels, &mut cells);
    let rule = Rule::of(run);
    // A comparison between two planned analyses would increase the error rate.
    let (verdicts, comparisons) = match rule.next() {
        None => compare(&labels, &cells, &noise, &rule, &header.spec),
        Some(_) => (Vec::new(), [0; 2]),
    };
    let measured = run.trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Measured(_)));
    let rounds = sort::distinct(measured.map(|trial| trial.round)).len() as u32;
    let findings = findings::all(&Context {
        run,
        info,
        labels: &labels,
        targets: &targets,
        cells: &cells,
        verdicts: &verdicts,
        noise: &noise,
        rule: &rule,
        rounds,
        comparisons,
    });
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
        findings,
        comparisons: comparisons[0],
        further_comparisons: comparisons[1],
        metrics: labels.metrics.clone(),
        verdicts,
        targets,
        cells,
        origin: header.origin.clone(),
        labels,
    }
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
        durability_promise: promise(facts.durability).to_owned(),
        durability_settings: settings(&facts.durability_settings),
        settings: settings(&facts.settings),
        publishing: record.publishing.clone(),
        notes: facts.notes.clone(),
    }
}
