//! What is not made: its differences in the plan, and its text.

use crate::catalog::{Catalog, ForeignKey, Leftover, Named, Native, Table, Text};
use crate::engines::engine::Engine;
use crate::engines::facts::TargetFacts;
use crate::engines::queries::expression_of;
use crate::issue::{Issue, IssueKind};
use crate::make::SAVED;
use crate::names::ordered;
use crate::plan::{Left, Plan};
use crate::script::{Entry, comment, literal, quoted, statement, unchecked_literal, without_bytes};
use crate::sql::{Side, only_refused, texts};
use crate::wanted::{Parts, Wanted};
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_protocol::sql::{Kind, Token, tokens};
use std::fmt::Write as _;

/// Reads which users and roles the target has, and tables and routines of other databases, if it is a server of the same kind, and why it does not tell of all.
pub(crate) fn read_roles(target: &mut Side, facts: &mut TargetFacts) -> Result<()> {
    let query = |name| expression_of(target.engine, name, "").filter(|_| facts.same_server);
    let Some((all, own)) = query("roles").zip(query("own_role")) else { return Ok(()) };
    let rows = target.catalogue(&all).or_else(|error| {
        facts.roles_unread = Some(only_refused(error)?.to_string());
        target.catalogue(&own)
    });
    facts.roles = texts(&rows?, 0);
    Ok(())
}

/// Lists what the source has besides what is made. `tables` are also those that are not made.
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
        // An ordinary one of this name is made.
        let is_made = matches!(leftover.kind, IssueKind::IndexOption | IssueKind::Constraint)
            && of.is_some_and(|table| table.native.is_none());
        let is_own = is_own && !is_made && !matches!(leftover.text, Text::Words(_));
        let mut text = body(plan, to, leftover, is_own);
        let missing = leftover.roles.iter().filter(|name| is_own && !facts.roles.contains(name));
        let missing = missing.map(String::as_str).collect::<Vec<_>>().join(", ");
        if !missing.is_empty() {
            let why = match &facts.roles_unread {
                None => format!("the target has no {missing}: create it first"),
                Some(why) => format!("create {missing} first, unless it exists: {why}"),
            };
            text = text.commented(&why);
        }
        let is_of_left = of_table && leftover.table.as_ref().is_some_and(|of| wanted.leave_out.contains(of));
        if is_of_left || wanted.leaves_out(leftover.table.as_deref().unwrap_or_default(), &leftover.name) {
            plan.left.push(Left { object, sql: text });
        } else {
            let issue = Issue::new(leftover.kind, object, leftover.detail.clone());
            plan.issues.push(Issue { text: Some(text), ..issue });
        }
    }
    // A trial finds that where there is one.
    if same && wanted.rename.is_empty() && !to.names_objects {
        without_what_they_name(plan, to);
    }
}

/// Makes comments of the statements that name a view or a routine which is one: what reads it, and what it is given.
fn without_what_they_name(plan: &mut Plan, target: &Engine) {
    let may_be_named = |issue: &Issue| matches!(issue.kind, IssueKind::View | IssueKind::Routine);
    let issues = plan.issues.iter_mut();
    let issues = issues.filter_map(|issue| Some((may_be_named(issue), &issue.object, issue.text.as_mut()?)));
    let left = plan.left.iter_mut().map(|left| (true, &left.object, &mut left.sql));
    let mut all: Vec<_> = left.chain(issues).collect();
    let is_comment = |entry: &Entry| matches!(entry, Entry::Comment(_));
    let absent = all.iter().filter(|(may_be_named, _, entry)| *may_be_named && is_comment(entry));
    let mut absent: Vec<&String> = absent.map(|(_, object, _)| *object).collect();
    while let Some(object) = absent.pop() {
        for (_, of, entry) in &mut all {
            if !is_comment(entry) && names(target, entry, object) {
                **entry = entry.commented(&format!("{object} is not made by this file: make it first"));
                absent.push(*of);
            }
        }
    }
}

/// Whether a statement has a word or a name that is this object's, and none of a column, another database or a definer, as MySQL writes them.
fn names(target: &Engine, entry: &Entry, object: &str) -> bool {
    let names = [object.to_owned(), quoted(target, object)];
    let [mut first, mut second]: [Option<Token<'_>>; 2] = [None; 2];
    tokens(entry.text(), target.syntax).filter(|token| !token.is_blank()).any(|token| {
        let is_other = second.is_some_and(|second| {
            let is_definer = second.text == "=" && first.is_some_and(|first| first.is("DEFINER"));
            is_definer || second.kind == Kind::Name || matches!(second.text, "." | "@" | "AS")
        });
        (first, second) = (second, Some(token));
        !is_other && names.iter().any(|name| name == token.text)
    })
}

/// What stands in the file of a leftover: a statement of the target, or comments. `is_own`: a statement of the source is one.
fn body(plan: &Plan, target: &Engine, leftover: &Leftover, is_own: bool) -> Entry {
    match &leftover.text {
        Text::Statement(sql) if is_own => statement(target, sql),
        Text::First(sql) if is_own => statement(target, sql).map(Entry::First),
        Text::Last(sql) if is_own => statement(target, sql).map(Entry::Last),
        Text::Under(settings, sql) if is_own => under(target, settings, sql),
        Text::Remark { own, .. } if is_own && !own.is_empty() => statement(target, own),
        Text::Statement(text)
        | Text::First(text)
        | Text::Last(text)
        | Text::Under(_, text)
        | Text::Words(text) => Entry::comment(text),
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
            written().map_or_else(|| Entry::comment(text), |sql| statement(target, &sql))
        }
    }
}

/// A statement that means this only with settings of the session. The file's own follow it.
fn under(target: &Engine, settings: &[(&str, String)], sql: &str) -> Entry {
    let syntax = settings.iter().fold(target.syntax, |syntax, (name, value)| syntax.under(name, value));
    let set =
        |(name, value): &(&str, String)| format!("@@SESSION.{name} = {}", unchecked_literal(target, value));
    let set = settings.iter().map(set).collect::<Vec<_>>().join(", ");
    let (_, own) = target.script.split_once('\n').unwrap_or_default();
    statement(&Engine { syntax, ..*target }, sql)
        .map(|text| Entry::Statement(format!("SET {set};\n{text}\n{}", own.trim_end())))
}

/// Takes tables without columns out, and lists them: a copy reads and compares rows by their columns. Returns all tables that are not made.
pub fn gone(of: &mut Vec<Table>, catalog: &Catalog, wanted: &Wanted, issues: &mut Vec<Issue>) -> Vec<Table> {
    let mut gone: Vec<Table> = of.extract_if(.., |table| table.columns.is_empty()).collect();
    let none = "a table without columns is not copied".to_owned();
    let none = |table: &Table| Issue::new(IssueKind::TableOption, table.name.clone(), none.clone());
    issues.extend(gone.iter().map(none));
    gone.extend(catalog.tables.iter().filter(|table| wanted.leave_out.contains(&table.name)).cloned());
    gone
}

/// What stands in the file of a table that is not made: its text, and what would be made after its rows, but for its foreign keys.
pub fn texts_of(table: &Table, target: &Engine, same: bool, comments: &[(IssueKind, Named)]) -> Vec<Left> {
    let name = &table.name;
    let none = || Native { create: format!("{name} has no text of its own"), ..Native::default() };
    let (native, is_own) = (table.native.clone().unwrap_or_else(none), same && table.native.is_some());
    let later = native.later.iter().map(|made| (&*made.name, &made.sql));
    let comments = comments.iter().filter(|(_, made)| made.name == *name);
    let all =
        [("", &native.create)].into_iter().chain(later).chain(comments.map(|(_, made)| ("", &made.sql)));
    let object = |of: &str| format!("{name}.{of}").trim_end_matches('.').to_owned();
    let entry = |sql: &String| if is_own { statement(target, sql) } else { Entry::comment(sql) };
    all.map(|(of, sql)| Left { object: object(of), sql: entry(sql) }).collect()
}

/// Takes those out that the user leaves out.
pub(crate) fn take_left(target: &Engine, wanted: &Wanted, table: &str, made: &mut Vec<Named>) -> Vec<Left> {
    let dot = if table.is_empty() { "" } else { "." };
    let left = made.extract_if(.., |named| wanted.leaves_out(table, &named.name));
    left.map(|one| Left { object: format!("{table}{dot}{}", one.name), sql: statement(target, &one.sql) })
        .collect()
}

impl Plan {
    /// Takes out what the user leaves out, and writes the tables that are `gone`.
    pub(crate) fn leave_out(
        &mut self,
        target: &Engine,
        wanted: &Wanted,
        catalog: &Catalog,
        same: bool,
        (gone, comments): (&[Table], &[(IssueKind, Named)]),
    ) -> Result<()> {
        let mut left = take_left(target, wanted, "", &mut self.before);
        self.after.retain(|(_, after)| !left.iter().any(|made| made.object == after.name));
        let mut foreign = Vec::new();
        for table in gone {
            // The words of a column that the server may not show as they are.
            let mut words = catalog.leftovers.iter().filter(|left| left.kind == IssueKind::Enum);
            let words = words.find(|left| left.table.as_ref() == Some(&table.name));
            let known = |sql: Entry| words.map_or(sql.clone(), |words| sql.commented(&words.detail));
            let texts = texts_of(table, target, same, comments).into_iter();
            left.extend(texts.map(|text| Left { sql: known(text.sql), ..text }));
            let is_there = |name: &String| {
                wanted.leave_out.contains(name) || self.tables.iter().any(|made| made.name == *name)
            };
            for made in table.native.iter().flat_map(|native| &native.foreign) {
                // A trial finds that where there is one.
                let has_parent =
                    |key: &ForeignKey| target.names_objects || key.name == made.name && is_there(&key.parent);
                let is_own = same && table.foreign.iter().any(has_parent);
                let sql = if is_own { statement(target, &made.sql) } else { Entry::comment(&made.sql) };
                foreign.push(Left { object: format!("{}.{}", table.name, made.name), sql: known(sql) });
            }
        }
        // These refer to tables with their keys.
        left.extend(foreign);
        // What belongs to a table follows it.
        left.append(&mut self.left);
        for table in &mut self.tables {
            left.extend(take_left(target, wanted, &table.name, &mut table.indexes));
        }
        self.left = left;
        let is_left = |name: &&String| {
            self.left.iter().any(|left| left.object == **name || left.object.ends_with(&format!(".{name}")))
        };
        wanted.leave_out.iter().find(|name| !is_left(name)).map_or(Ok(()), |name| {
            let what = format!("--leave-out: nothing that would be made is named '{name}'");
            Err(Error::new(ErrorKind::NotFound, what).hint(
                "--dry-run shows the statements; a part of a table's own text is left out with the table",
            ))
        })
    }

    /// What is not made, with its text: a file for the target's own client. What the target's server cannot execute, such as the
    /// texts of a source of another kind, is a comment.
    pub fn left_text(&self, target: &Engine) -> String {
        let mut text = comment(&format!("What 'kurabe copy' did not make, for {}.", target.name));
        let _ = writeln!(text, "\n{}", target.script);
        for (what, entry) in self.tried.as_ref().unwrap_or(&self.entries(target)) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}\n{}\n", comment(what), entry.text());
        }
        text
    }

    /// What stands in the file, each after what it names, and what it is.
    pub(crate) fn entries(&self, target: &Engine) -> Vec<(String, Entry)> {
        let left = self.left.iter().map(|left| ("left out", &left.object, &left.sql));
        let issues = in_order(target, &self.issues).into_iter();
        let issues = issues.map(|(issue, entry)| (issue.kind.name(), &issue.object, entry));
        let all = left.chain(issues).map(|(why, object, entry)| (format!("{why}: {object}"), entry.clone()));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(_, entry)| !matches!(entry, Entry::First(_)));
        all
    }
}

/// Executes the statements of a file, each after what it needs, and makes comments of refused ones. The caller takes back what they made.
pub(crate) fn try_entries(target: &mut Side, entries: &mut Vec<(String, Entry)>) -> Result<()> {
    target.run_text(target.engine.script)?;
    let all = std::mem::take(entries);
    for stage in 0..4 {
        let is_of = |(_, entry): &&(String, Entry)| stage_of(target.engine, entry).0 == stage;
        let mut left: Vec<_> = all.iter().filter(is_of).collect();
        loop {
            let (count, mut refused) = (left.len(), Vec::new());
            for one in left {
                match tried(target, &one.1)? {
                    None => entries.push(one.clone()),
                    Some(why) => refused.push((one, format!("the target refuses it: {}", why.on_one_line()))),
                }
            }
            if refused.len() == count {
                entries
                    .extend(refused.iter().map(|((what, entry), why)| (what.clone(), entry.commented(why))));
                break;
            }
            left = refused.into_iter().map(|(one, _)| one).collect();
        }
    }
    Ok(())
}

/// When a statement of the file is executed, and the table for which a trial asks instead: indexes and constraints, which may call
/// functions, follow all that a trial executes, and what names an index or a constraint follows these.
fn stage_of<'t>(engine: &Engine, entry: &'t Entry) -> (u8, Option<&'t str>) {
    let is_word = |token: &Token<'_>| !token.is_blank() && !token.is_one_of(&["UNIQUE", "ONLY"]);
    let words = tokens(entry.text(), engine.syntax).filter(is_word).map(|token| token.text).take(7);
    match &words.collect::<Vec<_>>()[..] {
        _ if matches!(entry, Entry::Last(_)) => (3, None),
        ["CREATE", "INDEX", _, "ON", of, ..] => (1, Some(of)),
        ["ALTER", "TABLE", of, "ADD", "CONSTRAINT", _, kind, ..] => match *kind {
            "CHECK" | "EXCLUDE" => (1, Some(of)),
            "FOREIGN" => (2, Some(of)),
            _ => (0, Some(of)),
        },
        ["ALTER", "TABLE", of, "CLUSTER" | "REPLICA", ..]
        | ["COMMENT", "ON", "CONSTRAINT", _, "ON", of, ..] => (2, Some(of)),
        ["COMMENT", "ON", "INDEX", ..] | ["ALTER", "INDEX", ..] => (2, None),
        _ => (0, None),
    }
}

/// Why the server refuses a statement. It executes no query and no function of the source: a view is made without rows, and of an index
/// or a constraint, which the server may compute at once, the table is asked for.
fn tried(target: &mut Side, entry: &Entry) -> Result<Option<Error>> {
    // Who executes the file may have more rights, and the tables of a copy that is continued have no keys yet.
    const NOT_FINAL: [Option<&str>; 3] = [Some("42501"), Some("42803"), Some("42P10")];
    let (Entry::Statement(text) | Entry::Last(text)) = entry else { return Ok(None) };
    let sql = match stage_of(target.engine, entry) {
        (_, Some(of)) => format!("GRANT SELECT ON {of} TO CURRENT_USER"),
        (2, None) => return Ok(None),
        _ if text.starts_with("CREATE MATERIALIZED ") => {
            text.trim_end_matches(';').to_owned() + " WITH NO DATA"
        }
        _ => text.clone(),
    };
    target.run(&format!("SAVEPOINT {SAVED}"))?;
    let Err(error) = target.try_text(&sql, &mut Reply::new()) else { return Ok(None) };
    let error = only_refused(error)?;
    target.run(&format!("ROLLBACK TO SAVEPOINT {SAVED}"))?;
    Ok(Some(error).filter(|error| !NOT_FINAL.contains(&error.server_code())))
}

/// What has a text: routines before the views that may call them, what reads views when it is made after these, then all else. A view
/// reads with the rights of its definer, so that what is given stands before it.
fn in_order<'i>(target: &Engine, issues: &'i [Issue]) -> Vec<(&'i Issue, &'i Entry)> {
    let rank = |(issue, entry): &(&Issue, &Entry)| match (issue.kind, entry) {
        (IssueKind::Routine, _) => 0,
        (IssueKind::Grant, Entry::Statement(_)) => 1,
        (IssueKind::View, _) => 2,
        (IssueKind::Trigger, _) => 4,
        (IssueKind::Comment, _) => 5,
        // A new owner has all privileges, and who loses one for a table loses it for the columns.
        (IssueKind::Grant, entry) if entry.text().starts_with("ALTER ") => 6,
        (IssueKind::Grant, entry) if entry.text().starts_with("REVOKE ") => 7,
        (IssueKind::Grant, _) => 8,
        _ => 3,
    };
    let mut all: Vec<_> = issues.iter().filter_map(|issue| Some((issue, issue.text.as_ref()?))).collect();
    all.sort_by_key(rank);
    let rest = all.split_off(all.partition_point(|one| rank(one) < 3));
    let needs = |one: &(&Issue, &Entry), other: &(&Issue, &Entry)| {
        // The body of a routine is read when it is called, and each view has its own name.
        rank(one) != 0
            && rank(other) != 1
            && other.0.object != one.0.object
            && names(target, one.1, &other.0.object)
    };
    let needed = |at: usize| (0..all.len()).filter(|other| needs(&all[at], &all[*other])).collect();
    ordered(all.clone(), needed).into_iter().chain(rest).collect()
}
