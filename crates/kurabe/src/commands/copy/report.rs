//! What a copy will do, and what it did, as text, as JSON and as the page of `--export-html`.

use kurabe_copy::event::TableDone;
use kurabe_copy::issue::{Accepted, Issue, IssueKind};
use kurabe_copy::plan::{Plan, Resume};
use kurabe_copy::run::Copy;
use kurabe_copy::wanted::{Parts, Wanted};
use kurabe_core::text::printable;
use kurabe_core::{Error, units};
use kurabe_report::Language;
use kurabe_report::html::{Document, grid};
use maud::{Markup, html};
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

/// The plan and the result as JSON.
pub(super) fn report(
    plan: &Plan,
    wanted: &Wanted,
    [source, target]: &[String; 2],
    done: &[TableDone],
    statements: &str,
) -> serde_json::Value {
    let issues: Vec<_> = plan
        .issues
        .iter()
        .map(|issue| {
            let state = state(issue, &wanted.accepted);
            serde_json::json!({ "kind": issue.kind, "object": issue.object, "detail": issue.detail, "state": state })
        })
        .collect();
    let table = |planned: &kurabe_copy::plan::TablePlan| {
        let done = done.iter().find(|done| done.name == planned.name);
        let done = done.map(|done| {
            serde_json::json!({
                "rows": done.rows, "copied": done.copied, "rejected": done.rejected, "bytes": done.bytes,
                "copy_s": done.copy.as_secs_f64(), "verify_s": done.verify.as_secs_f64(), "by_servers": done.by_servers,
                "index_s": done.index.as_secs_f64(),
            })
        });
        serde_json::json!({ "name": planned.name, "to": planned.to, "planned_rows": planned.rows, "done": done })
    };
    serde_json::json!({
        "source": source,
        "target": target,
        "tables": plan.tables.iter().map(table).collect::<Vec<_>>(),
        "differences": issues,
        "left_out": plan.left,
        "statements": statements,
    })
}

/// What will be made, and what does not map.
pub(super) fn described(
    plan: &Plan,
    accepted: &Accepted,
    copy: &Copy<'_>,
    tried: Option<&[(String, Error)]>,
) -> String {
    let rows: u64 = plan.tables.iter().map(|table| table.rows).sum();
    let mut text = format!(
        "{} to {}: {}, {}\n",
        copy.source.name,
        copy.target.name,
        many(plan.tables.len(), "table"),
        many(rows as usize, "row")
    );
    let width = plan.tables.iter().map(|table| table.name.chars().count()).max().unwrap_or(0);
    // Writing to a String cannot fail. A line break in a name ends no line.
    for table in &plan.tables {
        let key = match table.key.as_slice() {
            [] if table.resume == Resume::Restart => "no key: not continued within the table".to_owned(),
            [] => "no key".to_owned(),
            key => {
                let names: Vec<_> = key.iter().map(|at| printable(&table.columns[*at].name)).collect();
                format!("key {}", names.join(", "))
            }
        };
        let mut parts = vec![many(table.rows as usize, "row"), key];
        if !table.indexes.is_empty() {
            let indexes = table.indexes.len();
            parts.push(if indexes == 1 {
                "1 index".to_owned()
            } else {
                format!("{} indexes", units::count(indexes as u64))
            });
        }
        if !table.foreign.is_empty() {
            parts.push(many(table.foreign.len(), "foreign key"));
        }
        let _ = writeln!(text, "  {:<width$}  {}", printable(&table.name), parts.join(" · "));
    }
    if !plan.issues.is_empty() {
        text.push_str("does not map:\n");
        for issue in &plan.issues {
            let (state, kind) = (state(issue, accepted), issue.kind.name());
            let (object, detail) = (printable(&issue.object), printable(&issue.detail));
            let _ = writeln!(text, "  {state:<8} {kind:<17} {object}: {detail}");
        }
    }
    for left in &plan.left {
        let _ = writeln!(text, "left out: {}", printable(&left.object));
    }
    for (object, why) in tried.unwrap_or_default() {
        let _ = writeln!(text, "the target refuses {}: {why}", printable(object));
    }
    if tried.is_some() {
        text.push_str(&plan.statements());
    }
    text
}

/// What becomes of a difference.
fn state(issue: &Issue, accepted: &Accepted) -> &'static str {
    match accepted.has(issue.kind, &issue.object) {
        _ if issue.kind.is_only_listed() => "listed",
        true => "accepted",
        false => "refused",
    }
}

pub(super) fn many(count: usize, noun: &str) -> String {
    units::counted(count as u64, noun)
}

pub(super) fn totals(plan: &Plan, done: &[TableDone]) -> String {
    if plan.parts == Parts::Schema {
        return format!("{} made, without rows", many(plan.tables.len(), "table"));
    }
    let sum = |of: fn(&TableDone) -> u64| done.iter().map(of).sum::<u64>();
    let time = |of: fn(&TableDone) -> Duration| done.iter().map(of).sum::<Duration>();
    let (rows, copied, rejected) =
        (sum(|table| table.rows), sum(|table| table.copied), sum(|table| table.rejected));
    let copy = time(|table| table.copy);
    let rate = |number: u64| (number as f64 / copy.as_secs_f64().max(1e-9)) as u64;
    let mut text = format!(
        "{} verified: both servers count them, and the digests of all values are equal; {} copied in {} ({} rows/s, \
         {}/s); comparing took {}, indexes {}",
        many(rows as usize, "row"),
        units::count(copied),
        units::time(copy),
        units::count(rate(copied)),
        units::size(rate(sum(|table| table.bytes))),
        units::time(time(|table| table.verify)),
        units::time(time(|table| table.index)),
    );
    let unlocked = plan.issues.iter().filter(|issue| issue.kind == IssueKind::Unlocked).count();
    if unlocked > 0 {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n{} without transactions: read without a lock, not at one time with the others",
            many(unlocked, "table")
        );
    }
    if rejected > 0 {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n{} refused by the target: they are in the file of --reject",
            many(rejected as usize, "row")
        );
    }
    text
}

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
    let texts = |names: &[&str], of: &Value| -> Vec<Markup> {
        names.iter().map(|name| html! { div class="wrap" { (word(&of[*name])) } }).collect()
    };
    let row = |table: &Value| {
        let (name, to) = (word(&table["name"]), word(&table["to"]));
        let named = html! { (name) @if to != name { " → " (to) } };
        let numbers = cells(table).into_iter().chain([of(&name).to_string()]);
        [named].into_iter().chain(numbers.map(|number| html! { (number) })).collect()
    };
    let numbers = [
        "planned rows", "rows", "copied", "refused", "bytes", "copying", "rows/s", "comparing", "indexes",
        "differences",
    ];
    let columns: Vec<(&str, bool)> =
        [("table", false)].into_iter().chain(numbers.map(|name| (name, true))).collect();
    let body = html! {
        header { h1 { (title) } }
        main {
            ul class="verdict" { @for line in outcome.lines().filter(|line| !line.trim().is_empty()) { li { (line) } } }
            (grid(&columns, list("tables").iter().map(row), &[]))
            @if !differences.is_empty() {
                h2 { "Differences" }
                (grid(
                    &["kind", "object", "what", "state"].map(|name| (name, false)),
                    differences.iter().map(|issue| texts(&["kind", "object", "detail", "state"], issue)),
                    &[],
                ))
            }
            @if !list("left_out").is_empty() {
                h2 { "Left out" }
                ul class="plain" { @for left in list("left_out") { li { (word(&left["object"])) } } }
            }
        }
        footer { "Generated by Kurabe " (env!("CARGO_PKG_VERSION")) ". The page needs no network." }
    };
    Document { language: Language::English, title: &title, style: "", body, script: String::new() }.text()
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
