//! What is made before the tables of PostgreSQL: extensions, types and sequences.

use super::super::queries::query;
use crate::catalog::{Catalog, Named};
use crate::issue::IssueKind;
use crate::sql::{Row, Side, text};
use kurabe_core::Result;
use std::collections::BTreeMap;

/// Extensions that columns, indexes and defaults need; enumerations, domains and composite types, each after those that were made before it.
pub(super) fn types(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let mut made = side.catalogue(query("postgresql", "extensions"))?;
    made.extend(side.catalogue(query("postgresql", "own_types"))?);
    let named = |row| Named { name: text(row, 0).to_owned(), sql: text(row, 1).to_owned() };
    catalog.types = made.iter().map(named).collect();
    Ok(())
}

/// Where sequences are, by their numbers: the last value, and whether it was given. Those that the user may not read are missing.
pub(super) type Positions = BTreeMap<String, (i128, bool)>;

/// The view `pg_sequences` does not tell the position of a sequence that has given no number since it was set.
pub(super) fn positions(side: &mut Side) -> Result<Positions> {
    let position = |row: &Row| {
        let last = text(row, 1).parse().unwrap_or_default();
        (text(row, 0).to_owned(), (last, text(row, 2) == "true"))
    };
    Ok(side.catalogue(query("postgresql", "positions"))?.iter().map(position).collect())
}

/// Why the numbers of a new table may be given again.
pub(super) const UNREADABLE: &str =
    "the user may not read the position of its sequence (GRANT SELECT ON SEQUENCE)";

/// Sequences that are no part of an identity column: made before the tables, and set after the rows.
pub(super) fn sequences(side: &mut Side, catalog: &mut Catalog, positions: &Positions) -> Result<()> {
    for row in side.catalogue(query("postgresql", "sequences"))? {
        let name = text(&row, 0).to_owned();
        let left = catalog.leftovers.iter_mut().find(|left| left.table.is_none() && left.name == name);
        if let Some(left) = left {
            left.with_statement(text(&row, 1));
        }
        catalog.sequences.push(Named { name: name.clone(), sql: text(&row, 1).to_owned() });
        if let Some((last, is_called)) = positions.get(text(&row, 3)) {
            let sql = format!("SELECT pg_catalog.setval({}, {last}, {is_called})", text(&row, 2));
            catalog.after.push((IssueKind::Identity, Named { name, sql }));
        } else if text(&row, 4) != "true" {
            catalog.leave(IssueKind::Identity, None, &name, UNREADABLE);
        }
    }
    Ok(())
}
