//! PostgreSQL's own text of tables, their columns, indexes and constraints.

use crate::catalog::{Catalog, Named};
use crate::issue::IssueKind;
use crate::sql::{Row, Side, text};
use kurabe_core::Result;

/// A column as it is written in `CREATE TABLE`.
pub(super) fn rendered(row: &Row) -> String {
    let (default, identity) = (text(row, 4), text(row, 5));
    let collate =
        if text(row, 10).is_empty() { String::new() } else { format!(" COLLATE {}", text(row, 10)) };
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
    format!("{} {}{collate}{value}{null}", text(row, 9), text(row, 2))
}

/// The text of each table, and of what is made after its rows.
pub(super) fn renderings(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT c.relname::text, (c.relpersistence = 'u')::text, array_to_string(c.reloptions, ', ')::text \
               FROM pg_catalog.pg_class c WHERE c.relnamespace = current_schema()::regnamespace \
               AND c.relkind IN ('r', 'p') AND NOT c.relispartition";
    for row in side.catalogue(sql)? {
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
    let sql = "SELECT t.relname::text, k.conname::text, k.contype::text, pg_catalog.pg_get_constraintdef(k.oid)::text, \
               CASE k.contype WHEN 'p' THEN 'PRIMARY KEY (' ELSE 'UNIQUE (' END || (SELECT string_agg(quote_ident(a.attname), \
               ', ' ORDER BY c.position) FROM unnest(k.conkey) WITH ORDINALITY AS c(attnum, position) \
               JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = c.attnum) || ')' \
               FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class t ON t.oid = k.conrelid \
               WHERE t.relnamespace = current_schema()::regnamespace AND k.contype IN ('p', 'u', 'x', 'c', 'f') \
               AND NOT t.relispartition ORDER BY k.contype <> 'p', 1, 2";
    for row in side.catalogue(sql)? {
        let (table, name, kind, definition) = (text(&row, 0), text(&row, 1), text(&row, 2), text(&row, 3));
        // Of these, another engine gets the columns and the actions.
        let is_plain = match kind {
            "f" => {
                let key = catalog
                    .table_mut(table)
                    .and_then(|table| table.foreign.iter().find(|key| key.name == name).cloned());
                let action = |word: &str, action: &str| match action {
                    "NO ACTION" => String::new(),
                    action => format!(" ON {word} {action}"),
                };
                let plain =
                    key.map(|key| action("UPDATE", &key.on_update) + &action("DELETE", &key.on_delete));
                let rest = definition.split_once(" REFERENCES ").and_then(|(_, rest)| rest.split_once(')'));
                rest.is_none_or(|(_, rest)| rest == plain.unwrap_or_default())
            }
            "p" | "u" => definition == text(&row, 4),
            _ => true,
        };
        let sql =
            format!("ALTER TABLE {} ADD CONSTRAINT {} {definition}", side.quoted(table), side.quoted(name));
        if !is_plain {
            catalog.leave_to_others(IssueKind::Constraint, table, name, definition).with_statement(&sql);
        }
        let Some(native) = catalog.table_mut(table).and_then(|table| table.native.as_mut()) else { continue };
        let made = Named { name: name.to_owned(), sql };
        if kind == "f" { native.foreign.push(made) } else { native.later.push(made) }
    }
    let sql = "SELECT t.relname::text, i.relname::text, pg_catalog.pg_get_indexdef(x.indexrelid, 0, true)::text, \
               (pg_catalog.pg_get_indexdef(x.indexrelid, 0, true) <> 'CREATE ' || CASE WHEN x.indisunique THEN 'UNIQUE ' \
               ELSE '' END || 'INDEX ' || quote_ident(i.relname) || ' ON ' || CASE WHEN t.relkind = 'p' THEN 'ONLY ' ELSE '' \
               END || quote_ident(t.relname) || ' USING ' || m.amname || ' (' || (SELECT string_agg(quote_ident(a.attname), \
               ', ' ORDER BY k.position) FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k(attnum, position) \
               JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum) || ')')::text, \
               (x.indpred IS NULL AND x.indexprs IS NULL AND m.amname IN ('btree', 'hash'))::text \
               FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid \
               JOIN pg_catalog.pg_class t ON t.oid = x.indrelid JOIN pg_catalog.pg_am m ON m.oid = i.relam \
               WHERE t.relnamespace = current_schema()::regnamespace AND NOT t.relispartition AND x.indisvalid \
               AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.oid AND k.contype IN ('p', 'u', 'x')) \
               ORDER BY 1, 2";
    for row in side.catalogue(sql)? {
        let (table, name, definition) = (text(&row, 0), text(&row, 1), text(&row, 2));
        // Those of other kinds are listed as such.
        if text(&row, 3) == "true" && text(&row, 4) == "true" {
            catalog
                .leave_to_others(IssueKind::IndexOption, table, name, definition)
                .with_statement(definition);
        }
        let Some(native) = catalog.table_mut(table).and_then(|table| table.native.as_mut()) else { continue };
        native.later.push(Named { name: name.to_owned(), sql: definition.to_owned() });
    }
    Ok(())
}
