//! The JSON report. Its interface is [`crate::summary`] and `docs/schema/report.schema.json`.

use crate::finding::{Finding, Section, Statement};
use crate::labels::Labels;
use crate::summary::Summary;
use serde::Serialize;

/// The summary as one JSON object, indented, with a final newline.
pub fn render(summary: &Summary) -> String {
    with_sentences(summary, &summary.findings, &summary.labels)
}

/// A report with its findings, each with its sentence.
pub(crate) fn with_sentences(report: &impl Serialize, findings: &[Statement], labels: &Labels) -> String {
    #[derive(Serialize)]
    struct Said<'a> {
        section: Section,
        sentence: String,
        #[serde(flatten)]
        finding: &'a Finding,
    }
    #[derive(Serialize)]
    struct Report<'a, R> {
        #[serde(flatten)]
        report: &'a R,
        findings: Vec<Said<'a>>,
    }
    let said = findings.iter().map(|Statement { section, finding }| Said {
        section: *section,
        sentence: finding.sentence(labels),
        finding,
    });
    indented(&Report { report, findings: said.collect() })
}

/// Any report as JSON: indented, with a final newline.
pub fn indented(report: &impl Serialize) -> String {
    // Writing plain structs to memory cannot fail; NaN becomes null.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
