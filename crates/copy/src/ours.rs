//! What a copy may remove on a target: tables that it made, that nobody has replaced since, and that have no rows of others.

use crate::catalog::{Catalog, Table};
use crate::engines::queries::expression_of;
use crate::plan::TablePlan;
use crate::script::literal;
use crate::sql::{Side, first, in_transaction};
use crate::state::{OfTable, Phase, State, Whole};
use crate::wanted::Parts;
use kurabe_core::{Error, ErrorKind, Result, units};

/// Refuses a table with other columns than an unfinished copy made, or another number of rows than it inserted.
pub(crate) fn check(
    target: &mut Side,
    state: &State,
    whole: &Whole,
    there: &Catalog,
    name: &str,
) -> Result<()> {
    let of = state.table(target, name)?.unwrap_or_else(|| OfTable::new(Phase::Making));
    let mut inserted = 0;
    for range in 0..of.ranges() {
        inserted += state.range(target, name, &of, range)?.rows;
    }
    let found = there.tables.iter().find(|table| table.name == name);
    // Into a table that was there before, the copy only inserted.
    let is_made = match found {
        _ if whole.parts == Parts::Data => true,
        Some(found) => is_made(target, whole, found, false)?,
        None => false,
    };
    let count = format!("SELECT COUNT(*) FROM {}{}", target.engine.only, target.quoted(name));
    let rows = if is_made { in_transaction(target, |target| target.number(&count))? } else { 0 };
    let other = refers(target, there, name, &|other| whole.tables.iter().any(|table| table == other))?;
    let why = match () {
        () if other.is_some() && (whole.parts != Parts::Data || inserted > 0) => {
            format!("{} refers to it", other.unwrap_or_default())
        }
        () if !is_made => "it is not the table that the copy made".to_owned(),
        () if rows != inserted => {
            format!("the copy inserted {} rows, and it has {}", units::count(inserted), units::count(rows))
        }
        () => return Ok(()),
    };
    Err(Error::new(ErrorKind::NotOurs, format!("{}: table {name} is not removed: {why}", target.name))
        .hint("rename or remove it yourself, and repeat the command"))
}

/// Whether a table is the one that a copy made: it has its columns and its identity, if that was recorded. `surely`: and it was.
fn is_made(target: &mut Side, whole: &Whole, found: &Table, surely: bool) -> Result<bool> {
    let Some(columns) = whole.columns.get(&found.name) else { return Ok(false) };
    let names = found.columns.iter().map(|column| &column.name);
    let same = names.len() == columns.len()
        && names.zip(columns).all(|(one, other)| one.eq_ignore_ascii_case(other));
    let id = identity(target, &found.name)?;
    Ok(same && whole.ids.get(&found.name).map_or(!surely, |known| id.as_ref() == Some(known)))
}

/// The tables of a copy of data that earlier copies made.
pub(crate) fn made_before(target: &mut Side, whole: &Whole, there: &Catalog) -> Result<Vec<String>> {
    let mut made = Vec::new();
    for found in there.tables.iter().filter(|table| whole.tables.contains(&table.name)) {
        if is_made(target, whole, found, true)? {
            made.push(found.name.clone());
        }
    }
    Ok(made)
}

/// Records what tells these tables from others that get their names later.
pub(crate) fn know(target: &mut Side, whole: &mut Whole, tables: &[String]) -> Result<()> {
    if let Some(sql) = target.engine.identity_ends.filter(|_| !tables.is_empty()) {
        target.run(sql)?;
    }
    for table in tables {
        let id = identity(target, table)?;
        whole.ids.remove(table);
        whole.ids.extend(id.map(|id| (table.clone(), id)));
    }
    Ok(())
}

/// What tells a table from another one of its name.
pub(crate) fn identity(target: &mut Side, name: &str) -> Result<Option<String>> {
    of_table(target, "identity_of", name)
}

/// What the engine's query of this name finds of a table, if it has one.
fn of_table(target: &mut Side, query: &str, table: &str) -> Result<Option<String>> {
    let sql = expression_of(target.engine, query, &literal(target.engine, table)?);
    sql.map_or(Ok(None), |sql| target.catalogue(&sql).map(first))
}

/// A table that is not copied and whose rows refer to those of a table, or are a part of it.
fn refers(
    target: &mut Side,
    there: &Catalog,
    name: &str,
    is_copied: &dyn Fn(&str) -> bool,
) -> Result<Option<String>> {
    let refers =
        |other: &&Table| !is_copied(&other.name) && other.foreign.iter().any(|key| key.parent == *name);
    if let Some(other) = there.tables.iter().find(refers) {
        return Ok(Some(other.name.clone()));
    }
    of_table(target, "elsewhere", name)
}

/// The tables of a copy of data that have rows, those that refer to others first, if all of them may be emptied: `made` are tables to empty
/// and has all of them, and no table that is not copied refers to one.
pub(crate) fn to_empty(
    target: &mut Side,
    there: &Catalog,
    tables: &[TablePlan],
    made: Option<&[String]>,
) -> Result<Vec<String>> {
    let mut full = Vec::new();
    for table in tables.iter().rev() {
        let to = &table.to;
        let of = format!("{}{}", target.engine.only, target.quoted(to));
        let rows = target.number(&format!("SELECT COUNT(*) FROM {of}"))?;
        if rows == 0 {
            continue;
        }
        let what = format!("{}: table {to} has {} rows", target.name, units::count(rows));
        let refused =
            |why: &str, hint: &str| Err(Error::new(ErrorKind::NotOurs, format!("{what}{why}")).hint(hint));
        let Some(made) = made else {
            return refused("", "--truncate-target empties tables that 'kurabe copy' made");
        };
        if !made.contains(to) {
            return refused(
                ", and 'kurabe copy' did not make it, or it was altered since",
                "nothing was emptied; empty this one yourself",
            );
        }
        let is_copied = |name: &str| tables.iter().any(|table| table.to == name);
        if let Some(other) = refers(target, there, to, &is_copied)? {
            let why = format!(", and {other} refers to them, which is not copied");
            return refused(&why, "nothing was emptied; copy that table too, or empty both yourself");
        }
        full.push(of);
    }
    Ok(full)
}
