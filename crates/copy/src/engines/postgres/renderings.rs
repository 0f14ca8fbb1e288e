//! PostgreSQL's own text of tables, their columns, indexes and constraints.

use super::super::queries::query;
use crate::catalog::{Catalog, ForeignKey};
use crate::issue::IssueKind;
use crate::sql::{Row, Side, text};
use kurabe_core::Result;

/// A column as it is written in `CREATE TABLE`.
pub(super) fn rendered(row: &Row) -> String {
    let (default, identity) = (text(row, 4), text(row, 5));
    let value = match (text(row, 6), identity) {
        ("", "") if default.is_empty() => String::new(),
        ("", "") => format!(" DEFAULT {default}"),
        ("", identity) => {
            let how = if identity == "a" { "ALWAYS" } else { "BY DEFAULT" };
            let (start, step, name, rest) = (text(row, 11), text(row, 12), text(row, 13), text(row, 14));
            format!(
                " GENERATED {how} AS IDENTITY (SEQUENCE NAME {name} START WITH {start} INCREMENT BY {step}{rest})"
            )
        }
        (kind, _) => {
            let kind = if kind == "s" { "STORED" } else { "VIRTUAL" };
            format!(" GENERATED ALWAYS AS ({default}) {kind}")
        }
    };
    let null = if text(row, 3) == "true" { " NOT NULL" } else { "" };
    format!("{} {}{}{value}{null}", text(row, 9), text(row, 2), text(row, 10))
}

/// The text of each table, and of its constraints.
pub(super) fn renderings(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    for row in side.catalogue(query("postgresql", "options"))? {
        let (name, options) = (text(&row, 0), text(&row, 2));
        let unlogged = if text(&row, 1) == "true" { "UNLOGGED " } else { "" };
        let with = if options.is_empty() { String::new() } else { format!(" WITH ({options})") };
        // Parameters of storage, such as the fill factor, have no meaning elsewhere.
        if !options.is_empty() {
            let sql = format!("ALTER TABLE {} SET ({options})", side.quoted(name));
            catalog.leave_to_others(IssueKind::TableOption, name, name, &sql).with_statement(&sql).internal =
                true;
        }
        if !unlogged.is_empty() {
            let left = catalog.leave_to_others(IssueKind::TableOption, name, name, unlogged);
            left.with_statement(format!("ALTER TABLE {} SET UNLOGGED", side.quoted(name)));
        }
        let Some(table) = catalog.table_mut(name) else { continue };
        let native = table.native.get_or_insert_default();
        native.create = format!("CREATE {unlogged}TABLE {} ({}){with}", side.quoted(name), native.create);
    }
    for row in side.catalogue(query("postgresql", "constraint_texts"))? {
        let (table, name, kind, definition) = (text(&row, 0), text(&row, 1), text(&row, 2), text(&row, 3));
        // Of these, another engine gets the columns and the actions.
        let is_plain = match kind {
            "f" => {
                let table = catalog.table_mut(table);
                let key = table.and_then(|table| table.foreign.iter().find(|key| key.name == name));
                let plain = key.map(ForeignKey::actions);
                let rest = definition.split_once(" REFERENCES ").and_then(|(_, rest)| rest.split_once(')'));
                rest.is_none_or(|(_, rest)| rest == plain.unwrap_or_default())
            }
            "p" | "u" => definition == text(&row, 4),
            _ => true,
        };
        let sql =
            format!("ALTER TABLE {} ADD CONSTRAINT {} {definition}", side.quoted(table), side.quoted(name));
        let is_foreign = kind == "f";
        if !is_plain || kind == "c" {
            let kind = if is_plain { IssueKind::Check } else { IssueKind::Constraint };
            catalog.leave_to_others(kind, table, name, definition).with_statement(&sql);
        }
        catalog.add_later(table, name, sql, is_foreign);
    }
    Ok(())
}
