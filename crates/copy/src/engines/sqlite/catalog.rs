//! The catalogue of SQLite: `sqlite_schema`, and pragmas as tables.

use crate::catalog::{Catalog, Collation, Column, DefaultValue, ForeignKey, Index, Table, read_default};
use crate::issue::IssueKind;
use crate::sql::{Side, literal, text};
use kurabe_core::Result;

/// Reads the schema of the session's database.
pub(super) fn read(side: &mut Side) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    // The tables in which a virtual table keeps its content are a part of it.
    let sql = "SELECT s.name, s.type, s.tbl_name, s.sql, t.wr FROM sqlite_schema s \
               LEFT JOIN pragma_table_list t ON t.schema = 'main' AND t.name = s.name \
               WHERE substr(s.name, 1, 7) <> 'sqlite_' AND coalesce(t.type, '') <> 'shadow' ORDER BY s.name";
    for row in side.rows(sql)? {
        let (name, table, sql) = (text(&row, 0), text(&row, 2), text(&row, 3));
        catalog.names.push(name.to_owned());
        match text(&row, 1) {
            "table" if sql.to_ascii_uppercase().starts_with("CREATE VIRTUAL") => {
                catalog.leave(IssueKind::View, None, name, "a virtual table");
            }
            "table" => {
                let mut read = read_table(side, name, sql, text(&row, 4) == "1", &mut catalog)?;
                if text(&row, 4) != "1" {
                    let is_free = |name: &&str| !read.columns.iter().any(|c| c.name.eq_ignore_ascii_case(name));
                    read.hidden = ["rowid", "_rowid_", "oid"].into_iter().find(is_free);
                }
                catalog.tables.push(read);
            }
            "view" => catalog.leave(IssueKind::View, None, name, sql),
            "trigger" => catalog.leave(IssueKind::Trigger, Some(table), name, sql),
            _ => {}
        }
    }
    Ok(catalog)
}

fn read_table(side: &mut Side, name: &str, sql: &str, keyed: bool, catalog: &mut Catalog) -> Result<Table> {
    let mut table = Table { name: name.to_owned(), ..Table::default() };
    let of = literal(name)?;
    let upper = sql.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    if words.contains(&"CHECK") {
        catalog.leave(IssueKind::Check, Some(name), name, "CHECK in the table's definition");
    }
    let mut key: Vec<(u64, String)> = Vec::new();
    for row in side.rows(&format!(
        "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo({of}) ORDER BY cid"
    ))? {
        let column = text(&row, 0).to_owned();
        let position = text(&row, 4).parse().unwrap_or(0);
        if position > 0 {
            key.push((position, column.clone()));
        }
        table.columns.push(Column {
            declared: text(&row, 1).to_owned(),
            // A key may hold nulls here unless it says otherwise, and nowhere else.
            nullable: text(&row, 2) == "0" && position == 0,
            default: row.get(3).and_then(Option::as_deref).map_or(DefaultValue::Null, read_default),
            identity: false,
            collation: Collation::Bytes,
            generated: matches!(text(&row, 5), "2" | "3").then(|| "an expression".to_owned()),
            name: column,
        });
    }
    key.sort();
    table.primary = key.into_iter().map(|(_, column)| column).collect();
    if let [only] = table.primary.as_slice()
        && !keyed
    {
        let only = only.clone();
        for column in &mut table.columns {
            column.identity = column.name == only && column.declared.eq_ignore_ascii_case("INTEGER");
        }
    }
    indexes(side, &of, &mut table, catalog)?;
    collations(sql, &mut table);
    foreign_keys(side, &of, &mut table)?;
    Ok(table)
}

fn indexes(side: &mut Side, of: &str, table: &mut Table, catalog: &mut Catalog) -> Result<()> {
    let list = format!("SELECT name, \"unique\", origin, partial FROM pragma_index_list({of}) ORDER BY name");
    for row in side.rows(&list)? {
        let (name, origin) = (text(&row, 0), text(&row, 2));
        if origin == "pk" {
            continue;
        }
        if text(&row, 3) == "1" {
            catalog.leave(IssueKind::PartialIndex, Some(&table.name), name, "an index of some rows");
            continue;
        }
        let index = literal(name)?;
        let parts = side.rows(&format!(
            "SELECT cid, name, coll FROM pragma_index_xinfo({index}) WHERE key = 1 ORDER BY seqno"
        ))?;
        if parts.iter().any(|part| text(part, 0) == "-2") {
            catalog.leave(IssueKind::ExpressionIndex, Some(&table.name), name, "an index on an expression");
            continue;
        }
        let columns = parts.iter().map(|part| text(part, 1).to_owned()).collect();
        table.indexes.push(Index { name: name.to_owned(), unique: text(&row, 1) == "1", columns });
    }
    Ok(())
}

/// Finds `COLLATE` in a table's definition: the catalogue names collations of indexes only.
fn collations(sql: &str, table: &mut Table) {
    for column in &mut table.columns {
        // From the column's name to the next comma outside parentheses.
        let Some(at) = sql.to_ascii_lowercase().find(&column.name.to_ascii_lowercase()) else { continue };
        let mut depth = 0;
        let definition: String = sql[at..]
            .chars()
            .take_while(|character| {
                depth += i32::from(*character == '(') - i32::from(*character == ')');
                depth >= 0 && (depth > 0 || *character != ',')
            })
            .collect();
        let mut words = definition.split_whitespace();
        if words.any(|word| word.eq_ignore_ascii_case("COLLATE"))
            && let Some(name) = words.next()
        {
            let name = name.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_uppercase();
            if name != "BINARY" {
                column.collation = Collation::Named(name);
            }
        }
    }
}

fn foreign_keys(side: &mut Side, of: &str, table: &mut Table) -> Result<()> {
    let sql = format!(
        "SELECT id, \"table\", \"from\", \"to\", on_update, on_delete FROM pragma_foreign_key_list({of}) ORDER BY id, seq"
    );
    let mut last = None;
    for row in side.rows(&sql)? {
        let id = text(&row, 0).to_owned();
        if last.as_ref() != Some(&id) {
            table.foreign.push(ForeignKey {
                name: String::new(),
                columns: Vec::new(),
                parent: text(&row, 1).to_owned(),
                parent_columns: Vec::new(),
                on_update: text(&row, 4).to_owned(),
                on_delete: text(&row, 5).to_owned(),
            });
            last = Some(id);
        }
        if let Some(key) = table.foreign.last_mut() {
            key.columns.push(text(&row, 2).to_owned());
            if let Some(to) = row.get(3).cloned().flatten() {
                key.parent_columns.push(to);
            }
        }
    }
    Ok(())
}
