//! The JSON report. Its interface is [`crate::summary`] and `docs/schema/report.schema.json`.

use crate::summary::Summary;

/// The summary as one JSON object, indented, with a final newline.
pub fn render(summary: &Summary) -> String {
    // Writing plain structs to memory cannot fail; NaN becomes null.
    let mut text = serde_json::to_string_pretty(summary).unwrap_or_else(|error| {
        serde_json::json!({ "kurabe-report": crate::summary::REPORT_VERSION, "error": error.to_string() })
            .to_string()
    });
    text.push('\n');
    text
}
