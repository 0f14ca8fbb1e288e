//! The analysed run. A [`Summary`] with the sentences of its findings is the JSON report. Other programs rely on its
//! members; `docs/schema/report.schema.json` describes them.

use crate::comparison::compare;
use crate::finding::{self, Context, Finding, Section, Statement, Values};
use crate::labels::Labels;
use crate::messages::{Language, Message};
use crate::metrics;
use crate::noise::Noise;
use crate::results::figures;
use crate::rule::Rule;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::metric::Source;
use kurabe_core::origin::Origin;
use kurabe_core::run::{MachineFacts, Run, RunSpec};
use kurabe_core::sort;
use serde::Serialize;

pub use crate::cell::{
    CellResult, CounterResult, Latency, MetricInfo, MetricResult, OpenLoopResult, SessionShare, Status,
    Steady, Verified,
};
pub use crate::target::{TargetId, TargetSummary};
pub use crate::verdict::Verdict;
pub use kurabe_stats::Decision;

/// The version of the JSON report.
pub const REPORT_VERSION: u32 = 5;

/// The contents of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The version of this format.
    #[serde(rename = "kurabe-report")]
    pub format: u32,
    /// The run's name.
    pub run: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub began: u64,
    /// The experiment's name.
    pub experiment: String,
    /// The experiment's question, if known.
    pub question: Option<String>,
    /// The version of Kurabe that made the run.
    pub kurabe: String,
    /// The command line, without passwords.
    pub command: Vec<String>,
    /// The client's machine.
    pub machine: MachineFacts,
    /// The seed of data, order and random inputs.
    pub seed: u64,
    pub spec: RunSpec,
    /// Whether every planned trial was made.
    pub complete: bool,
    /// The number of rounds at the next planned analysis, if the run has not ended: nothing is compared before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_analysis: Option<u32>,
    /// The number of rounds with measurements.
    pub rounds: u32,
    /// The largest noise floor over all operations and targets; `None` if not measured.
    pub noise_floor: Option<f64>,
    /// The findings, in the order of their sections.
    #[serde(skip)]
    pub findings: Vec<Statement>,
    /// The number of comparisons of primary metrics, whose intervals hold together.
    pub comparisons: u32,
    /// The number of comparisons of other metrics, whose intervals hold together.
    pub further_comparisons: u32,
    /// The metrics that any cell has.
    pub metrics: Vec<MetricInfo>,
    pub targets: Vec<TargetSummary>,
    /// One element per cell and operation.
    pub cells: Vec<CellResult>,
    /// One element per comparison of two cells.
    pub verdicts: Vec<Verdict>,
    /// Where the run comes from; not written if nothing is known.
    #[serde(skip_serializing_if = "is_unknown")]
    pub origin: Origin,
    /// Display names.
    #[serde(skip)]
    pub(crate) labels: Labels,
}

impl Summary {
    /// The summary with labels, and so with sentences, in another language.
    #[must_use]
    pub fn in_language(mut self, language: Language) -> Self {
        self.labels.speak(language);
        self
    }

    /// The findings of a section.
    pub fn statements(&self, section: Section) -> impl Iterator<Item = &Statement> {
        self.findings.iter().filter(move |statement| statement.section == section)
    }

    pub fn sentences(&self, section: Section) -> Vec<String> {
        self.statements(section).map(|one| self.sentence(one)).collect()
    }

    /// The first verdict as a sentence, or why there is none. Values that are compared with nothing are no verdict.
    pub fn verdict(&self) -> Option<String> {
        let is_verdict = |one: &&Statement| match &one.finding {
            Finding::Values(values) => matches!(values, Values::Cost { .. }),
            finding => !matches!(finding, Finding::Note(_)),
        };
        self.statements(Section::Verdict).find(is_verdict).map(|verdict| self.sentence(verdict))
    }

    /// A finding of this run as a sentence.
    pub fn sentence(&self, statement: &Statement) -> String {
        statement.finding.sentence(&self.labels)
    }

    /// The number of rounds; if trials are interleaved, how many give rates and ratios, and how many are observed.
    pub(crate) fn rounds_text(&self) -> String {
        let language = self.labels.language;
        let one = if self.rounds == 1 { Message::OneRound } else { Message::Rounds };
        let all = one.with(language, &[("count", &self.rounds.to_string())]);
        let most = self.cells.iter().filter_map(|cell| cell.interleaved).max();
        most.map_or(all.clone(), |interleaved| {
            let continuous = self.rounds.saturating_sub(interleaved.get()).to_string();
            let interleaved = interleaved.to_string();
            let values = [("all", &*all), ("continuous", &continuous), ("interleaved", &interleaved)];
            Message::RoundsOf.with(language, &values)
        })
    }
}

fn is_unknown(origin: &Origin) -> bool {
    *origin == Origin::default()
}

/// Computes everything that a report of this run contains. `info` is the experiment's description; without it (a run
/// of another version) values are shown as recorded.
///
/// It is a pure function: the same run gives the same summary. It never fails; what is missing in the run is missing
/// in the summary.
pub fn analyse(run: &Run, info: Option<&ExperimentInfo>) -> Summary {
    let header = &run.header;
    let info = info.filter(|info| info.name == header.spec.experiment);
    let mut labels = Labels::of(run, info);
    let targets: Vec<TargetSummary> = header.targets.iter().map(TargetSummary::of).collect();
    let metrics = metrics::of_run(run, info);
    let rounds = sort::distinct(run.measured().map(|(trial, _)| trial.round)).len() as u32;
    let mut cells = figures(run, &metrics);
    metrics::derive(&metrics, &labels, &mut cells, &header.spec);
    labels.metrics = metrics;
    labels.scatters =
        labels.metrics.iter().filter(|metric| matches!(metric.source, Source::Scatter(_))).cloned().collect();
    labels.metrics.retain(|metric| cells.iter().any(|cell| cell.metric(&metric.name).is_some()));
    let noise = Noise::of(&labels, &cells, &header.spec);
    noise.tell(&labels, &mut cells);
    let rule = Rule::of(run);
    // A comparison between two planned analyses would increase the error rate.
    let (verdicts, comparisons) = match rule.next() {
        None => compare(&labels, &cells, &noise, &rule, &header.spec),
        Some(_) => (Vec::new(), [0; 2]),
    };
    let findings = finding::all(&Context {
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
