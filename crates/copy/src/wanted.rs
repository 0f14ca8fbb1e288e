//! What a copy is asked to do, and the tables that it is asked to copy.

use crate::casts::UserCasts;
use crate::catalog::{Catalog, Table, named};
use crate::issue::Accepted;
use crate::page::PageSize;
use crate::sql::{Side, text};
use kurabe_core::text::is_like;
use kurabe_core::{Error, ErrorKind, Result, units};
use kurabe_driver_common::ownership::MARKER;

/// The signs of patterns for any text and for any character. Nothing escapes them.
const SIGNS: [char; 3] = ['*', '?', '\0'];

/// What is copied of each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parts {
    #[default]
    All,
    /// The tables without rows.
    Schema,
    /// The rows, into tables that exist.
    Data,
}

/// What a copy is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Patterns of the tables; all if empty.
    pub tables: Vec<String>,
    /// Patterns of tables that are not copied.
    pub exclude: Vec<String>,
    /// Names of tables on the source, and on the target.
    pub rename: Vec<(String, String)>,
    /// Names of objects that are not made: `NAME`, or `TABLE.NAME`.
    pub leave_out: Vec<String>,
    /// Names of tables, and the conditions of their rows.
    pub filters: Vec<(String, String)>,
    pub parts: Parts,
    pub accepted: Accepted,
    /// How many rows are inserted together.
    pub page: PageSize,
    pub casts: UserCasts,
    /// Whether rows that the target refuses are taken elsewhere.
    pub rejects: bool,
}

impl Wanted {
    pub(crate) fn renamed(&self, name: &str) -> String {
        let found = self.rename.iter().find(|(from, _)| from == name).map(|(_, to)| to.as_str());
        found.unwrap_or(name).to_owned()
    }

    /// Whether a table is one of the patterns.
    pub(crate) fn is_chosen(&self, name: &str) -> bool {
        let is_one = |patterns: &[String]| patterns.iter().any(|pattern| is_like(name, pattern, SIGNS));
        let is_left = self.leave_out.iter().any(|left| left == name);
        (self.tables.is_empty() || is_one(&self.tables)) && !is_one(&self.exclude) && !is_left
    }

    pub(crate) fn leaves_out(&self, table: &str, name: &str) -> bool {
        let full = format!("{table}.{name}");
        !name.is_empty() && self.leave_out.iter().any(|left| *left == name || *left == full)
    }
}

/// The tables to copy, of the patterns, or all but those that `own` has, which Kurabe's record on the source names.
pub(crate) fn chosen(side: &Side, catalog: &Catalog, wanted: &Wanted, own: &[String]) -> Result<Vec<Table>> {
    let is_own = |table: &&Table| own.contains(&table.name);
    let all: Vec<&Table> =
        catalog.tables.iter().filter(|table| !is_own(table) || wanted.tables.contains(&table.name)).collect();
    let names: Vec<&str> = all.iter().map(|table| table.name.as_str()).collect();
    let exact = wanted.filters.iter().chain(&wanted.rename).map(|(name, _)| name);
    for pattern in wanted.tables.iter().chain(&wanted.exclude).chain(exact) {
        if !names.iter().any(|name| is_like(name, pattern, SIGNS)) {
            let what = format!("{}: there is no table '{pattern}'", side.name);
            return Err(
                Error::new(ErrorKind::NotFound, what).hint(units::suggestion(pattern, &names, "there are"))
            );
        }
    }
    let chosen: Vec<Table> = all.into_iter().filter(|table| wanted.is_chosen(&table.name)).cloned().collect();
    if let Some((table, why)) = chosen.iter().find_map(|table| Some((&table.name, table.hides.as_ref()?))) {
        let what = format!("table {table} cannot be read whole: {why}");
        return Err(Error::new(ErrorKind::NotPermitted, what)
            .hint(format!("GRANT SELECT on the whole table, correct such a name, or --exclude {table}")));
    }
    if chosen.is_empty() {
        let what = format!("{}: there are no tables to copy", side.name);
        return Err(
            Error::new(ErrorKind::NotFound, what).hint("does the URL name the right database or schema?")
        );
    }
    Ok(chosen)
}

/// The tables of the source that Kurabe made, by its record there, and the record: what is written in a table of its name and
/// columns.
pub(crate) fn own(source: &mut Side, catalog: &Catalog) -> Result<Vec<String>> {
    let is_record = |table: &&Table| {
        table.name == MARKER
            && table.columns.iter().map(|column| &*column.name).eq(["name", "made_by", "made_at"])
    };
    let Some(record) = catalog.tables.iter().find(is_record) else { return Ok(Vec::new()) };
    let sql = format!("SELECT {} FROM {}", source.quoted("name"), source.engine.from(record));
    let rows = source.rows(&sql)?;
    Ok(rows.iter().map(|row| text(row, 0).trim_end().to_owned()).chain([MARKER.to_owned()]).collect())
}

/// Gives tables their conditions. The engine's own text of a table has its own names and types, so that one with others is
/// made as on a server of another kind.
pub(crate) fn prepare(tables: &mut [Table], wanted: &Wanted, casts: &UserCasts) {
    let is_renamed = |name: &String| wanted.renamed(name) != *name;
    for table in tables {
        let filter = wanted.filters.iter().find(|(name, _)| *name == table.name);
        table.filter = filter.map(|(_, condition)| condition.clone());
        let is_other = is_renamed(&table.name) || table.foreign.iter().any(|key| is_renamed(&key.parent));
        let is_cast = table.columns.iter().any(|column| casts.has(&table.name, column));
        if is_other || is_cast || wanted.parts == Parts::Data {
            table.native = None;
        }
    }
}

/// The types of the columns that exist, into which rows are copied.
pub(crate) fn existing(
    tables: &[Table],
    there: &Catalog,
    wanted: &Wanted,
    same: bool,
    casts: &mut UserCasts,
) -> Result<()> {
    for table in tables {
        let to = wanted.renamed(&table.name);
        let missing = |what: String| {
            Error::new(ErrorKind::NotFound, format!("the target has no {what}"))
                .hint("--schema-only makes it; --exclude leaves a table out")
        };
        let found = there.tables.iter().find(|table| table.name == to);
        let found = found.ok_or_else(|| missing(format!("table {to}")))?;
        for column in &table.columns {
            let theirs = named(&found.columns, |known| &known.name, &column.name);
            let theirs = theirs.ok_or_else(|| missing(format!("column {to}.{}", column.name)))?;
            if !(same && theirs.declared == column.declared) {
                casts.set_column(&table.name, &column.name, &theirs.declared);
            }
        }
    }
    Ok(())
}
