//! What the columns, indexes and constraints of a table do not say: statements after its rows, in the server's own words.

use super::super::queries::query;
use crate::catalog::{Catalog, Named};
use crate::issue::IssueKind;
use crate::sql::{Side, text};
use kurabe_core::Result;

/// Adds the statements after a table's rows, and after the types and sequences that tables need.
pub(super) fn read(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    for row in side.catalogue(query("postgresql", "later"))? {
        let (table, name, sql) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let of = if name.is_empty() { table } else { name };
        let kind = IssueKind::named(text(&row, 3)).unwrap_or(IssueKind::TableOption);
        catalog.leave_to_others(kind, table, of, sql).with_statement(sql).internal = text(&row, 3).is_empty();
        catalog.add_later(table, name, sql.to_owned(), text(&row, 4) == "f");
    }
    for row in side.catalogue(query("postgresql", "later_of_types"))? {
        let [name, sql] = [0, 1].map(|at| text(&row, at).to_owned());
        let kind = IssueKind::named(text(&row, 2)).unwrap_or(IssueKind::TableOption);
        catalog.leave(kind, None, &name, &sql).with_statement(&sql).carried = true;
        catalog.after.push((kind, Named { name, sql }));
    }
    Ok(())
}
