//! What is not made: its differences in the plan, and its text.

use crate::catalog::{Catalog, Table};
use crate::issue::{Issue, IssueKind};
use crate::plan::{Left, Parts, Plan, Wanted};
use kurabe_core::collection::NAMESPACE_PREFIX;
use std::fmt::Write as _;

/// Lists what the source has besides what is made. `same`: the target is a server of the same kind.
pub fn list(plan: &mut Plan, catalog: &Catalog, tables: &[Table], wanted: &Wanted, same: bool) {
    let all = wanted.tables.is_empty() && wanted.exclude.is_empty();
    for leftover in &catalog.leftovers {
        let of = leftover.table.as_ref().and_then(|of| tables.iter().find(|table| table.name == *of));
        // What belongs to a view is left with it.
        let is_table = |of: &String| catalog.tables.iter().any(|table| table.name == *of);
        let of_table = leftover.table.as_ref().is_some_and(is_table);
        let is_made = leftover.table.is_none() || of.is_some_and(|table| table.native.is_some());
        let carried = same && leftover.carried && is_made;
        let is_asked = wanted.parts != Parts::Data && (!of_table && all || of.is_some());
        if carried || leftover.internal && !same || !is_asked || leftover.name.starts_with(NAMESPACE_PREFIX) {
            continue;
        }
        let object = match &leftover.table {
            Some(table) if *table != leftover.name => format!("{table}.{}", leftover.name),
            _ => leftover.name.clone(),
        };
        let (detail, text) = (leftover.detail.clone(), leftover.text.clone());
        if wanted.leaves_out(leftover.table.as_deref().unwrap_or_default(), &leftover.name) {
            plan.left.push(Left { object, sql: text });
        } else {
            plan.issues.push(Issue { kind: leftover.kind, object, detail, text });
        }
    }
}

/// Takes tables without columns out, and lists them: a copy reads and compares rows by their columns.
pub fn without_columns(tables: &mut Vec<Table>) -> Vec<Issue> {
    let none = tables.extract_if(.., |table| table.columns.is_empty());
    none.map(|table| Issue {
        kind: IssueKind::TableOption,
        object: table.name,
        detail: "a table without columns is not copied".to_owned(),
        text: table.native.map(|native| native.create).unwrap_or_default(),
    })
    .collect()
}

/// A text as a statement. One that is none is a comment.
fn statement(text: &str) -> String {
    let text = text.trim_end().trim_end_matches(';');
    let verbs = ["CREATE ", "ALTER ", "COMMENT ON ", "GRANT "];
    if verbs.iter().any(|verb| text.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb))) {
        return format!("{text};");
    }
    let line = |line: &str| if line.starts_with("--") { line.to_owned() } else { format!("-- {line}") };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

impl Plan {
    /// What is not made, with its text: a file that one can edit and apply. `source` is the name of the source's engine.
    pub fn left_text(&self, source: &str) -> String {
        let mut text = format!(
            "-- What 'kurabe copy' did not make. Texts of the source are in the language of {source}.\n"
        );
        // Writing to a String cannot fail.
        for left in &self.left {
            let _ = writeln!(text, "\n-- left out: {}\n{}", left.object, statement(&left.sql));
        }
        for issue in self.issues.iter().filter(|issue| !issue.text.is_empty()) {
            let body = statement(&issue.text);
            let _ = writeln!(text, "\n-- {}: {}\n{body}", issue.kind.name(), issue.object);
        }
        text
    }
}
