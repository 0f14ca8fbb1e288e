//! What is not made: its differences in the plan, and its text.

use crate::catalog::{Catalog, Leftover, Named, Table, Text};
use crate::engines::engine::Engine;
use crate::engines::facts::TargetFacts;
use crate::issue::{Issue, IssueKind};
use crate::names::ordered;
use crate::plan::{Left, Plan};
use crate::script::{comment, literal, quoted, statement, without_bytes};
use crate::sql::{Side, only_refused, texts};
use crate::wanted::{Parts, Wanted};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_protocol::sql::tokens;
use std::fmt::Write as _;

/// Reads which users and roles the target has, if it is a server of the same kind, and why it does not tell of all.
pub(crate) fn read_roles(target: &mut Side, facts: &mut TargetFacts) -> Result<()> {
    let Some(queries) = target.engine.roles.filter(|_| facts.same_server) else { return Ok(()) };
    let [all, own] = queries();
    let rows = target.catalogue(all).or_else(|error| {
        facts.roles_unread = Some(only_refused(error)?.to_string());
        target.catalogue(own)
    });
    facts.roles = texts(&rows?, 0);
    Ok(())
}

/// Lists what the source has besides what is made.
pub fn list(
    plan: &mut Plan,
    to: &Engine,
    facts: &TargetFacts,
    catalog: &Catalog,
    tables: &[Table],
    wanted: &Wanted,
) {
    let same = facts.same_server;
    let all = wanted.tables.is_empty() && wanted.exclude.is_empty();
    for leftover in &catalog.leftovers {
        let of = leftover.table.as_ref().and_then(|of| tables.iter().find(|table| table.name == *of));
        // What belongs to a view is left with it.
        let is_table = |of: &String| catalog.tables.iter().any(|table| table.name == *of);
        let of_table = leftover.table.as_ref().is_some_and(is_table);
        let is_made = leftover.table.is_none() || of.is_some_and(|table| table.native.is_some());
        let carried = same && leftover.carried && is_made;
        let is_asked = wanted.parts != Parts::Data && (!of_table && all || of.is_some());
        if carried || leftover.internal && !same || !is_asked {
            continue;
        }
        let object = match &leftover.table {
            Some(table) if *table != leftover.name => format!("{table}.{}", leftover.name),
            _ => leftover.name.clone(),
        };
        let object = without_bytes(&object, "\u{fffd}");
        // Privileges may outlive their table in MySQL.
        let is_gone = |of: &String| leftover.kind == IssueKind::Grant && !catalog.names.contains(of);
        // A text of the source has its names.
        let is_own = same && wanted.rename.is_empty() && !leftover.table.as_ref().is_some_and(is_gone);
        let is_own = is_own && !matches!(leftover.text, Text::Words(_));
        let mut text = body(plan, to, leftover, is_own);
        let missing = leftover.roles.iter().filter(|name| is_own && !facts.roles.contains(name));
        let missing = missing.map(String::as_str).collect::<Vec<_>>().join(", ");
        if !missing.is_empty() {
            let why = match &facts.roles_unread {
                None => format!("the target has no user or role {missing}: create it first"),
                Some(why) => format!("create the user or role {missing} first, unless it exists: {why}"),
            };
            text = comment(&format!("{why}\n{text}"));
        }
        let detail = leftover.detail.clone();
        if wanted.leaves_out(leftover.table.as_deref().unwrap_or_default(), &leftover.name) {
            plan.left.push(Left { object, sql: text });
        } else {
            plan.issues.push(Issue { kind: leftover.kind, object, detail, text });
        }
    }
    if same && wanted.rename.is_empty() {
        without_what_they_name(plan, to);
    }
}

/// Makes comments of the statements that name a view or a routine which is one: what reads it, and what it is given.
fn without_what_they_name(plan: &mut Plan, target: &Engine) {
    let may_be_named = |issue: &&Issue| matches!(issue.kind, IssueKind::View | IssueKind::Routine);
    let issues = plan.issues.iter().filter(may_be_named).map(|issue| (&issue.object, &issue.text));
    let all = plan.left.iter().map(|left| (&left.object, &left.sql)).chain(issues);
    let mut absent: Vec<String> =
        all.filter(|(_, text)| !is_statement(text)).map(|(object, _)| object.clone()).collect();
    while let Some(object) = absent.pop() {
        let issues = plan.issues.iter_mut().map(|issue| (&issue.object, &mut issue.text));
        let all = plan.left.iter_mut().map(|left| (&left.object, &mut left.sql)).chain(issues);
        for (of, text) in all.filter(|(_, text)| is_statement(text) && names(target, text, &object)) {
            *text = comment(&format!("{object} is not made by this file: make it first\n{text}"));
            absent.push(of.clone());
        }
    }
}

/// Whether a statement has a word or a name that is this object's. A routine of PostgreSQL has its parameters there.
fn names(target: &Engine, sql: &str, object: &str) -> bool {
    let routine = object.strip_suffix(')').and_then(|head| head.rsplit_once('('));
    let names = [object, routine.map_or(object, |(name, _)| name)];
    let names = names.map(|name| [name.to_owned(), quoted(target, name)]);
    tokens(sql, target.syntax).any(|token| names.iter().flatten().any(|name| name == token.text))
}

/// What stands in the file of a leftover: a statement of the target, or comments. `is_own`: a statement of the source is one.
fn body(plan: &Plan, target: &Engine, leftover: &Leftover, is_own: bool) -> String {
    match &leftover.text {
        Text::Statement(sql) if is_own => statement(target, sql),
        Text::InMode(mode, sql) if is_own => in_mode(target, mode, sql),
        Text::Remark { own, .. } if is_own && !own.is_empty() => statement(target, own),
        Text::Statement(text) | Text::InMode(_, text) | Text::Words(text) => comment(text),
        Text::Remark { what, text, .. } => {
            let written = || {
                let table = plan.tables.iter().find(|table| Some(&table.name) == leftover.table.as_ref())?;
                let mut columns = table.columns.iter();
                let column = match what.as_str() {
                    "TABLE" => None,
                    "COLUMN" => Some(columns.find(|known| known.name == leftover.name)?),
                    _ => return None,
                };
                let name = column.map(|column| quoted(target, &column.name));
                let of_column = name.as_deref().zip(column.map(|column| column.sql.as_str()));
                let literal = literal(target, text).ok()?;
                target.dialect.comment(&quoted(target, &table.to), of_column, &literal)
            };
            written().map_or_else(|| comment(text), |sql| statement(target, &sql))
        }
    }
}

/// Whether a text of the file is no comment.
fn is_statement(text: &str) -> bool {
    text.lines().any(|line| !line.starts_with("--"))
}

/// A statement that means this only in a mode of SQL.
fn in_mode(target: &Engine, mode: &str, sql: &str) -> String {
    let of_mode = &Engine { syntax: target.syntax.under("sql_mode", mode), ..*target };
    // A mode is words.
    let Ok(literal) = literal(of_mode, mode) else { return comment(sql) };
    match statement(of_mode, sql) {
        text if is_statement(&text) => {
            format!("SET SESSION sql_mode = {literal};\n{text}\nSET SESSION sql_mode = '';")
        }
        text => text,
    }
}

/// Takes tables without columns out, and lists them: a copy reads and compares rows by their columns.
pub fn without_columns(tables: &mut Vec<Table>, target: &Engine, same: bool) -> Vec<Issue> {
    let none = tables.extract_if(.., |table| table.columns.is_empty());
    none.map(|table| Issue {
        kind: IssueKind::TableOption,
        text: text_of(&table, target, same),
        object: table.name,
        detail: "a table without columns is not copied".to_owned(),
    })
    .collect()
}

/// What stands in the file of a table.
fn text_of(table: &Table, target: &Engine, same: bool) -> String {
    match &table.native {
        Some(native) if same => statement(target, &native.create),
        Some(native) => comment(&native.create),
        None => comment(&format!("{} has no text of its own", table.name)),
    }
}

/// Takes those out that the user leaves out.
pub(crate) fn take_left(target: &Engine, wanted: &Wanted, table: &str, made: &mut Vec<Named>) -> Vec<Left> {
    let dot = if table.is_empty() { "" } else { "." };
    let left = made.extract_if(.., |named| wanted.leaves_out(table, &named.name));
    left.map(|one| Left { object: format!("{table}{dot}{}", one.name), sql: statement(target, &one.sql) })
        .collect()
}

impl Plan {
    /// Takes out what the user leaves out.
    pub(crate) fn leave_out(
        &mut self,
        target: &Engine,
        wanted: &Wanted,
        catalog: &Catalog,
        same: bool,
    ) -> Result<()> {
        let left = &mut self.left;
        let before = take_left(target, wanted, "", &mut self.before);
        self.after.retain(|(_, after)| !before.iter().any(|made| made.object == after.name));
        left.extend(before);
        for table in &mut self.tables {
            left.extend(take_left(target, wanted, &table.name, &mut table.indexes));
        }
        for table in catalog.tables.iter().filter(|table| wanted.leave_out.contains(&table.name)) {
            left.push(Left { object: table.name.clone(), sql: text_of(table, target, same) });
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

    /// What is not made, with its text: a file for the target's own client. What the target's server cannot execute, such as the
    /// texts of a source of another kind, is a comment.
    pub fn left_text(&self, target: &Engine) -> String {
        let mut text = comment(&format!("What 'kurabe copy' did not make, for {}.", target.name));
        let _ = writeln!(text, "\n{}", target.script);
        // Writing to a String cannot fail.
        for left in &self.left {
            let _ = writeln!(text, "{}\n{}\n", comment(&format!("left out: {}", left.object)), left.sql);
        }
        for issue in in_order(target, &self.issues) {
            let head = comment(&format!("{}: {}", issue.kind.name(), issue.object));
            let _ = writeln!(text, "{head}\n{}\n", issue.text);
        }
        text
    }
}

/// What has a text: routines before the views that may call them, views after those that they name, then all else. A view reads with
/// the rights of its definer, so that what is given stands before it.
fn in_order<'i>(target: &Engine, issues: &'i [Issue]) -> Vec<&'i Issue> {
    let rank = |issue: &&Issue| match issue.kind {
        IssueKind::Routine => 0,
        IssueKind::Grant if issue.text.starts_with("GRANT ") => 1,
        IssueKind::View => 2,
        IssueKind::Trigger => 4,
        IssueKind::Comment => 5,
        IssueKind::Grant => 6,
        _ => 3,
    };
    let mut all: Vec<&Issue> = issues.iter().filter(|issue| !issue.text.is_empty()).collect();
    all.sort_by_key(rank);
    let rest = all.split_off(all.partition_point(|issue| rank(issue) < 3));
    let needs = |issue: &Issue, other: &Issue| {
        issue.kind != IssueKind::Routine
            && rank(&other) != 1
            && other.object != issue.object
            && names(target, &issue.text, &other.object)
    };
    let needed = |at: usize| (0..all.len()).filter(|other| needs(all[at], all[*other])).collect();
    ordered(all.clone(), needed).into_iter().chain(rest).collect()
}
