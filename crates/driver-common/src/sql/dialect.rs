//! What differs between SQL engines in the few statements that Kurabe needs, as data.

use super::literal::Literals;
use crate::prelude::*;
use std::borrow::Cow;
use std::fmt::Write as _;

/// How parameters are written in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// `?` for each, in order.
    Question,
    /// `$1`, `$2`, …
    Dollar,
    /// `:1`, `:2`, …
    Colon,
    /// Nothing but a gap, into which a literal is written.
    Gap,
}

/// Stands for a gap while a statement is made: no statement of ours holds it otherwise.
pub(super) const GAP: char = '\0';

/// An engine's SQL. Lives beside its driver; a driver whose options change the SQL changes its own copy.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// The engine's name, for messages.
    pub engine: &'static str,
    /// The words by which a user's own statements name it: its schemes.
    pub words: &'static [&'static str],
    /// The sign around identifiers.
    pub quote: char,
    /// How parameters are written.
    pub placeholder: Placeholder,
    /// How values are written into a statement's text.
    pub literals: Literals,
    /// The column type of a field, with whatever makes its text compare and sort by bytes. `in_key` is true for
    /// fields of the primary key or of an index, for engines whose long types cannot be indexed.
    pub column_type: fn(kind: FieldType, in_key: bool) -> Cow<'static, str>,
    /// What turns `INSERT … VALUES (…)` into "add or replace": appended to it, with a space in front.
    pub upsert: fn(&Dialect, &Collection) -> String,
    /// What follows `CREATE TABLE … (…)`, with a space in front: ` ENGINE=InnoDB`. Empty where there is nothing.
    pub create_tail: Cow<'static, str>,
    /// What empties a table, up to its name: `TRUNCATE TABLE`, `DELETE FROM`.
    pub clear: &'static str,
    /// What has the server gather its planner's statistics of a table, up to its name; `None` where that is left to the
    /// server.
    pub analyse: Option<&'static str>,
    /// The least request, as SQL. A driver whose protocol has a ping of its own does not use it.
    pub ping: &'static str,
    /// Starts a transaction.
    pub begin: &'static str,
    /// Ends a transaction and keeps its work.
    pub commit: &'static str,
    /// Ends a transaction and takes back its work.
    pub rollback: &'static str,
    /// Where the engine says these in its own way altogether.
    pub own: Option<OwnStatements>,
}

/// The types that the values of so many rows are cast to, one for each field.
pub type Casts = fn(&Collection, rows: usize) -> Vec<Cow<'static, str>>;

/// Statements that one engine writes in a way that no other does.
#[derive(Clone, Copy, Debug)]
pub struct OwnStatements {
    /// Adds or replaces a row, instead of an `INSERT` with [`Dialect::upsert`] behind it.
    pub put: fn(&Dialect, &Collection) -> Result<String>,
    /// Removes a table with its indexes, where it exists.
    pub drop_table: fn(&Dialect, &str) -> String,
    /// What follows `CREATE TABLE … (…)`, with a space in front, after [`Dialect::create_tail`].
    pub create_tail: fn(&Dialect, &Collection) -> String,
    /// Whether several rows go in by the `INSERT` of one row, executed with many sets of parameters (array DML), and
    /// not by an `INSERT` that lists them.
    pub rows_by_array: bool,
    /// Where `VALUES` takes one row only, several are selected: what from, with a space in front, and the types that
    /// their values are cast to.
    pub rows_by_select: Option<(&'static str, Casts)>,
}

impl Dialect {
    /// Appends a quoted identifier. Names are ours (lower case letters, digits, underscores) and are checked before
    /// they come here; a quote in one is doubled all the same.
    pub fn identifier(&self, out: &mut String, name: &str) {
        out.push(self.quote);
        for c in name.chars() {
            if c == self.quote {
                out.push(c);
            }
            out.push(c);
        }
        out.push(self.quote);
    }

    /// A quoted identifier.
    pub fn quoted(&self, name: &str) -> String {
        let mut out = String::with_capacity(name.len() + 2);
        self.identifier(&mut out, name);
        out
    }

    /// Appends the placeholder of a parameter; the first is number 1.
    pub fn parameter(&self, out: &mut String, number: usize) {
        match self.placeholder {
            Placeholder::Question => out.push('?'),
            Placeholder::Gap => out.push(GAP),
            Placeholder::Dollar => {
                // Writing to a String cannot fail.
                let _ = write!(out, "${number}");
            }
            Placeholder::Colon => {
                let _ = write!(out, ":{number}");
            }
        }
    }
}

/// The upsert of the SQL standard's followers (PostgreSQL, SQLite): ` ON CONFLICT (key) DO UPDATE SET …`.
pub fn on_conflict_do_update(dialect: &Dialect, collection: &Collection) -> String {
    let name =
        |&field: &usize| collection.fields.get(field).map_or_else(String::new, |f| dialect.quoted(f.name));
    let key: Vec<String> = collection.key.iter().map(name).collect();
    let set = |field: &usize| format!("{0} = excluded.{0}", name(field));
    let set: Vec<String> = collection.rest().iter().map(set).collect();
    let what = if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", set.join(", ")) };
    format!(" ON CONFLICT ({}) DO {what}", key.join(", "))
}
