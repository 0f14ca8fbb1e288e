//! What is not made: its differences in the plan, and its text.

use crate::catalog::{Catalog, Named, Table};
use crate::issue::{Issue, IssueKind};
use crate::plan::{Left, Plan};
use crate::wanted::{Parts, Wanted};
use kurabe_core::collection::NAMESPACE_PREFIX;
use kurabe_core::{Error, ErrorKind, Result};
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

/// Takes those out that the user leaves out.
pub(crate) fn take_left(wanted: &Wanted, table: &str, made: &mut Vec<Named>) -> Vec<Left> {
    let dot = if table.is_empty() { "" } else { "." };
    let left = made.extract_if(.., |named| wanted.leaves_out(table, &named.name));
    left.map(|named| Left { object: format!("{table}{dot}{}", named.name), sql: named.sql }).collect()
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
    /// Takes out what the user leaves out.
    pub(crate) fn leave_out(&mut self, wanted: &Wanted, catalog: &Catalog) -> Result<()> {
        let left = &mut self.left;
        let before = take_left(wanted, "", &mut self.before);
        self.after.retain(|after| !before.iter().any(|made| made.object == after.name));
        left.extend(before);
        for table in &mut self.tables {
            left.extend(take_left(wanted, &table.name, &mut table.indexes));
        }
        for table in catalog.tables.iter().filter(|table| wanted.leave_out.contains(&table.name)) {
            let none = || format!("-- {} has no text of its own", table.name);
            let sql = table.native.as_ref().map_or_else(none, |native| native.create.clone());
            left.push(Left { object: table.name.clone(), sql });
        }
        let is_left = |name: &&String| {
            left.iter().any(|left| left.object == **name || left.object.ends_with(&format!(".{name}")))
        };
        match wanted.leave_out.iter().find(|name| !is_left(name)) {
            None => Ok(()),
            Some(name) => {
                let what = format!("--leave-out: nothing that would be made is named '{name}'");
                Err(Error::new(ErrorKind::NotFound, what).hint(
                    "--dry-run shows the statements; a part of a table's own text is left out with the table",
                ))
            }
        }
    }

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
