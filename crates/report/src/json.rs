//! The JSON report. Its interface is [`crate::summary`] and `docs/schema/report.schema.json`.

use crate::summary::Summary;
use serde::Serialize;

/// The summary as one JSON object, indented, with a final newline.
pub fn render(summary: &Summary) -> String {
    indented(summary)
}

/// Any report as JSON: indented, with a final newline.
pub(crate) fn indented(report: &impl Serialize) -> String {
    // Writing plain structs to memory cannot fail; NaN becomes null.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}
