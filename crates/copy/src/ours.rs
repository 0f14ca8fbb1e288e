//! What a copy may remove on a target: tables that it made, that nobody has replaced since, and that have no rows of others.

use crate::catalog::{Catalog, Table};
use crate::plan::{Parts, TablePlan};
use crate::rows::in_transaction;
use crate::sql::Side;
use crate::state::{OfTable, Phase, State, Whole};
use kurabe_core::{Error, ErrorKind, Result, units};

/// Refuses a table that is not as an unfinished copy left it.
///
/// # Errors
/// [`NotOurs`](ErrorKind::NotOurs) if it has other columns than the copy made, or another number of rows than it inserted.
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
    let is_made = whole.parts == Parts::Data || found.is_some_and(|found| is_made(whole, found));
    let of = target.quoted(name);
    let count = format!("SELECT COUNT(*) FROM {of}");
    // The table is in use on Firebird as long as a transaction that read it is open.
    let rows = if is_made { in_transaction(target, |target| target.number(&count))? } else { 0 };
    let why = match () {
        () if !is_made => "it is not the table that the copy made".to_owned(),
        () if rows != inserted => {
            format!("the copy inserted {} rows, and it has {}", units::count(inserted), units::count(rows))
        }
        () => return Ok(()),
    };
    Err(Error::new(ErrorKind::NotOurs, format!("{}: table {name} is not removed: {why}", target.name))
        .hint("rename or remove it yourself, and repeat the command"))
}

/// Whether a table has the columns with which a copy made it.
fn is_made(whole: &Whole, found: &Table) -> bool {
    let Some(columns) = whole.columns.get(&found.name) else { return false };
    let names = found.columns.iter().map(|column| &column.name);
    names.len() == columns.len() && names.zip(columns).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// The tables of a copy of data that have rows, those that refer to others first, if all of them may be emptied.
///
/// # Errors
/// [`NotOurs`](ErrorKind::NotOurs) if `kurabe copy` did not make one of them, or if a table that is not copied refers to it.
pub(crate) fn to_empty(
    target: &mut Side,
    whole: &Whole,
    there: &Catalog,
    tables: &[TablePlan],
    truncate: bool,
) -> Result<Vec<String>> {
    let mut full = Vec::new();
    for table in tables.iter().rev() {
        let to = &table.to;
        let of = target.quoted(to);
        let rows = target.number(&format!("SELECT COUNT(*) FROM {of}"))?;
        if rows == 0 {
            continue;
        }
        let what = format!("{}: table {to} has {} rows", target.name, units::count(rows));
        let refused =
            |why: &str, hint: &str| Err(Error::new(ErrorKind::NotOurs, format!("{what}{why}")).hint(hint));
        if !truncate {
            return refused("", "--truncate-target empties tables that 'kurabe copy' made");
        }
        let found = there.tables.iter().find(|table| table.name == *to);
        if !found.is_some_and(|found| is_made(whole, found)) {
            return refused(
                ", and 'kurabe copy' did not make it",
                "nothing was emptied; empty this one yourself",
            );
        }
        let is_copied = |name: &String| tables.iter().any(|table| table.to == *name);
        let refers =
            |other: &&Table| !is_copied(&other.name) && other.foreign.iter().any(|key| key.parent == *to);
        if let Some(other) = there.tables.iter().find(refers) {
            return refused(
                &format!(", and {} refers to them, which is not copied", other.name),
                "nothing was emptied; copy that table too, or empty both yourself",
            );
        }
        full.push(of);
    }
    Ok(full)
}
