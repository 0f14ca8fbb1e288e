//! The page of `kurabe copy --export-html`: what the JSON report says, one row a table.

use crate::commands::page::document;
use kurabe_core::units;
use maud::html;
use serde_json::Value;
use std::time::Duration;

/// The page of a report; `outcome` says how the copy ended.
pub(super) fn page(report: &Value, outcome: &str) -> String {
    let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (source, target) = (word(&report["source"]), word(&report["target"]));
    let differences = list("differences");
    // An object is a table, or something in it.
    let of = |table: &str| {
        let is_of = |object: &str| {
            object == table || object.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
        };
        differences.iter().filter(|issue| is_of(&word(&issue["object"]))).count()
    };
    let title = format!("Copy of {source} to {target}");
    let body = html! {
        p { (outcome) }
        table {
            thead { tr {
                th { "table" }
                @for name in ["planned rows", "rows", "copied", "refused", "bytes", "copying", "rows/s", "comparing", "indexes", "differences"] {
                    th.n { (name) }
                }
            } }
            tbody { @for table in list("tables") { tr {
                td { (word(&table["name"])) @if table["to"] != table["name"] { " → " (word(&table["to"])) } }
                @for cell in cells(&table) { td.n { (cell) } }
                td.n { (of(&word(&table["name"]))) }
            } } }
        }
        @if !differences.is_empty() {
            h2 { "Differences" }
            table {
                thead { tr { th { "kind" } th { "object" } th { "what" } th { "state" } } }
                tbody { @for issue in &differences { tr {
                    @for name in ["kind", "object", "detail", "state"] { td { (word(&issue[name])) } }
                } } }
            }
        }
        @if !list("left_out").is_empty() {
            h2 { "Left out" }
            ul { @for left in list("left_out") { li { (word(&left["object"])) } } }
        }
    };
    document(&title, &body)
}

/// The figures of a table; a dash where it was not copied.
fn cells(table: &Value) -> Vec<String> {
    let (planned, done) = (&table["planned_rows"], &table["done"]);
    let count = |value: &Value| value.as_u64().map_or_else(|| "–".to_owned(), units::count);
    let seconds = |name: &str| done[name].as_f64().map(Duration::from_secs_f64);
    let time = |name: &str| seconds(name).map_or_else(|| "–".to_owned(), units::time);
    let rate = done["copied"].as_u64().zip(seconds("copy_s"));
    let rate = rate.map_or_else(
        || "–".to_owned(),
        |(rows, time)| units::count((rows as f64 / time.as_secs_f64().max(1e-9)) as u64),
    );
    let bytes = done["bytes"].as_u64().map_or_else(|| "–".to_owned(), units::size);
    let [rows, copied, rejected] = ["rows", "copied", "rejected"].map(|name| count(&done[name]));
    vec![
        count(planned),
        rows,
        copied,
        rejected,
        bytes,
        time("copy_s"),
        rate,
        time("verify_s"),
        time("index_s"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_a_row_and_names_are_only_text() {
        let report = serde_json::json!({
            "source": "mysql://h/<b>", "target": "sqlite:x",
            "tables": [
                { "name": "a", "to": "a", "planned_rows": 12, "done": { "rows": 12, "copied": 12, "rejected": 0, "bytes": 4096,
                  "copy_s": 2.0, "verify_s": 0.5, "index_s": 0.0 } },
                { "name": "<i>", "to": "b", "planned_rows": 1000, "done": null },
            ],
            "differences": [{ "kind": "enum", "object": "a.c", "detail": "x < y", "state": "accepted" }],
            "left_out": [{ "object": "a.f", "sql": "" }],
        });
        let page = page(&report, "it <failed>");
        assert_eq!(page.matches("<tr>").count(), 5);
        for part in [
            "&lt;b&gt;", "it &lt;failed&gt;", "&lt;i&gt; → b", "x &lt; y", "<li>a.f</li>", ">6</td>",
            ">1,000</td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<b>") && !page.contains("<i>"));
    }
}
