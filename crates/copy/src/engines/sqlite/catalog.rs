//! The catalogue of SQLite: `sqlite_schema`, and pragmas as tables.

use super::super::queries::{expression, query};
use super::SQLITE;
use crate::catalog::{
    Catalog, Collation, Column, DefaultValue, Index, Named, Native, Table, Text, read_default,
};
use crate::classes::kind_of;
use crate::issue::IssueKind;
use crate::script::{literal, unquoted};
use crate::sql::{Side, text};
use crate::types::Class;
use kurabe_core::Result;
use kurabe_core::sort;
use kurabe_protocol::sql::tokens;

/// Reads the schema of the session's database.
pub(super) fn read(side: &mut Side) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    // The tables in which a virtual table keeps its content are a part of it.
    for row in side.rows(query("sqlite", "read"))? {
        let (name, table, sql) = (text(&row, 0), text(&row, 2), text(&row, 3));
        catalog.names.push(name.to_owned());
        match text(&row, 1) {
            "table" if sql.to_ascii_uppercase().starts_with("CREATE VIRTUAL") => {
                catalog
                    .leave(IssueKind::View, None, name, &format!("a virtual table: {sql}"))
                    .with_statement(sql);
            }
            "table" => {
                let read = read_table(side, name, sql, text(&row, 4) == "1", &mut catalog)?;
                catalog.tables.push(read);
            }
            "view" => {
                catalog.leave_text(IssueKind::View, None, name, Text::Statement(sql.to_owned()));
            }
            kind => {
                if kind == "trigger" {
                    catalog.leave_to_others(IssueKind::Trigger, table, name, sql).with_statement(sql);
                }
                if !sql.is_empty() {
                    catalog.add_later(table, name, sql.to_owned(), false);
                }
            }
        }
    }
    catalog.add_foreign_keys(&side.rows(query("sqlite", "foreign_keys"))?);
    for key in catalog.tables.iter_mut().flat_map(|table| &mut table.foreign) {
        // Its number.
        key.name.clear();
        key.parent_columns.retain(|column| !column.is_empty());
    }
    catalog.name_parents();
    Ok(catalog)
}

/// A default as a column of this type stores it: one of text stores `1e3` as `1000.0`, and one of numbers `007` as 7.
fn default(side: &mut Side, declared: &str, sql: &str) -> Result<DefaultValue> {
    let read = read_default(sql, false);
    let DefaultValue::Literal(value) = &read else { return Ok(read) };
    let class = kind_of(side.engine, declared).class;
    let is_number = value.parse::<f64>().is_ok() && !value.starts_with(char::is_alphabetic);
    if !is_number || class.is_whole() || matches!(class, Class::Bool | Class::Decimal | Class::Float64) {
        return Ok(read);
    }
    let upper = declared.to_ascii_uppercase();
    let keeps =
        ["CHAR", "CLOB", "TEXT", "BLOB", "ANY"].iter().any(|word| upper.contains(word)) || upper.is_empty();
    let as_text = format!("CAST(({sql}) AS TEXT)");
    let stored = if keeps { as_text } else { format!("CAST(CAST({as_text} AS NUMERIC) AS TEXT)") };
    Ok(side.value(&format!("SELECT {stored}"))?.map_or(read, DefaultValue::Literal))
}

fn read_table(side: &mut Side, name: &str, sql: &str, keyed: bool, catalog: &mut Catalog) -> Result<Table> {
    let native = Native { create: sql.to_owned(), has_key: true, ..Native::default() };
    let mut table = Table { name: name.to_owned(), native: Some(native), ..Table::default() };
    let Ok(of) = literal(side.engine, name).map_err(|why| table.hides = Some(why.to_string())) else {
        return Ok(table);
    };
    let definition = Definition::read(sql);
    let mut key: Vec<(u64, String)> = Vec::new();
    for row in side.rows(&expression("sqlite", "columns", &of))? {
        let column = text(&row, 0).to_owned();
        let position = text(&row, 4).parse().unwrap_or(0);
        if position > 0 {
            key.push((position, column.clone()));
        }
        let generated = matches!(text(&row, 5), "2" | "3");
        let default = match row.get(3).and_then(Option::as_deref) {
            None => DefaultValue::Null,
            Some(sql) => default(side, text(&row, 1), sql)?,
        };
        let collation = definition.collation(&column).filter(|name| name != "BINARY");
        table.columns.push(Column {
            declared: text(&row, 1).to_owned(),
            // A key may hold nulls here unless it says otherwise, and nowhere else.
            nullable: text(&row, 2) == "0" && position == 0,
            default,
            identity: false,
            collation: collation.map_or(Collation::Bytes, Collation::Named),
            generated: generated
                .then(|| definition.column(&column).map_or_else(String::new, |part| part.join(" "))),
            next: None,
            has_binary: false,
            name: column,
        });
    }
    sort::by(&mut key, Ord::cmp);
    table.primary = key.into_iter().map(|(_, column)| column).collect();
    if let ([only], false) = (table.primary.as_slice(), keyed) {
        let only = only.clone();
        for column in &mut table.columns {
            column.identity = column.name == only && column.declared.eq_ignore_ascii_case("INTEGER");
        }
    }
    if !keyed {
        let is_free =
            |name: &&str| !table.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        table.hidden = ["rowid", "_rowid_", "oid"].into_iter().find(is_free);
    }
    // With AUTOINCREMENT, numbers of rows that were deleted are not given again.
    if !definition.parts_with(&["AUTOINCREMENT"]).is_empty() {
        let last = side.value(&format!("SELECT seq FROM sqlite_sequence WHERE name = {of}"))?;
        if let Some(last) = last.and_then(|text| text.parse::<i128>().ok()) {
            let numbered = table.columns.iter_mut().filter(|column| column.identity);
            numbered.for_each(|column| column.next = Some(last + 1));
            let restart = [
                format!("DELETE FROM sqlite_sequence WHERE name = {of}"),
                format!("INSERT INTO sqlite_sequence (name, seq) VALUES ({of}, {last})"),
            ];
            let later = restart.map(|sql| Named { name: String::new(), sql });
            table.native.iter_mut().for_each(|native| native.later.extend(later.clone()));
        }
    }
    for (kind, words) in [
        (IssueKind::Check, &["CHECK"][..]),
        (IssueKind::Constraint, &["ON", "CONFLICT"]),
        (IssueKind::Constraint, &["DEFERRABLE"]),
    ] {
        for (part, sql) in definition.parts_with(words) {
            catalog.leave_to_others(kind, name, &part, &sql);
        }
    }
    indexes(side, &of, &mut table, catalog)?;
    Ok(table)
}

/// The text of a `CREATE TABLE`, in words: the parts between the commas.
struct Definition {
    parts: Vec<Vec<String>>,
}

impl Definition {
    fn read(sql: &str) -> Self {
        let (mut parts, mut depth) = (vec![Vec::new()], 0);
        for token in tokens(sql, SQLITE.syntax).filter(|token| !token.is_blank()) {
            match token.text {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            match (depth, token.text) {
                (1, "(") if parts.len() == 1 && parts[0].is_empty() => {}
                (1, ",") => parts.push(Vec::new()),
                (1.., word) => parts.last_mut().into_iter().for_each(|part| part.push(word.to_owned())),
                _ => {}
            }
        }
        Self { parts }
    }

    /// A column's own part.
    fn column(&self, name: &str) -> Option<&Vec<String>> {
        let is_it = |part: &&Vec<String>| {
            part.first().is_some_and(|first| unquoted(first).eq_ignore_ascii_case(name))
        };
        self.parts.iter().find(is_it)
    }

    /// The collation in a column's own part.
    fn collation(&self, column: &str) -> Option<String> {
        let part = self.column(column)?;
        let at = part.iter().position(|word| word.eq_ignore_ascii_case("COLLATE"))?;
        part.get(at + 1).map(|name| unquoted(name).to_ascii_uppercase())
    }

    /// The parts with these words in a row, by their first word.
    fn parts_with(&self, wanted: &[&str]) -> Vec<(String, String)> {
        let has = |part: &&Vec<String>| {
            part.windows(wanted.len())
                .any(|words| words.iter().zip(wanted).all(|(a, b)| a.eq_ignore_ascii_case(b)))
        };
        let name = |part: &Vec<String>| unquoted(part.first().map_or("", String::as_str));
        self.parts.iter().filter(has).map(|part| (name(part), part.join(" "))).collect()
    }
}

fn indexes(side: &mut Side, of: &str, table: &mut Table, catalog: &mut Catalog) -> Result<()> {
    for row in side.rows(&expression("sqlite", "indexes", of))? {
        let (name, origin, sql) = (text(&row, 0), text(&row, 2), text(&row, 4));
        if origin == "pk" {
            continue;
        }
        if text(&row, 3) == "1" {
            let what = "an index of some rows";
            catalog.leave_to_others(IssueKind::PartialIndex, &table.name, name, what).with_statement(sql);
            continue;
        }
        let Ok(index) = literal(side.engine, name).map_err(|why| table.hides = Some(why.to_string())) else {
            continue;
        };
        let parts = side.rows(&expression("sqlite", "index_columns", &index))?;
        if parts.iter().any(|part| text(part, 0) == "-2") {
            let what = "an index on an expression";
            catalog.leave_to_others(IssueKind::ExpressionIndex, &table.name, name, what).with_statement(sql);
            continue;
        }
        for part in &parts {
            let (column, collation) = (text(part, 1), text(part, 2));
            let own = table.columns.iter().find(|known| known.name == column).map(|known| &known.collation);
            let is_own = matches!(own, Some(Collation::Named(name)) if name.eq_ignore_ascii_case(collation));
            if collation != "BINARY" && !is_own {
                let what = format!("{column}: {collation}");
                catalog.leave_to_others(IssueKind::Collation, &table.name, name, &what);
            }
            if text(part, 3) == "1" {
                catalog.leave_to_others(IssueKind::IndexOption, &table.name, name, &format!("{column} DESC"));
            }
        }
        let columns = parts.iter().map(|part| text(part, 1).to_owned()).collect();
        table.indexes.push(Index { name: name.to_owned(), unique: text(&row, 1) == "1", columns });
    }
    Ok(())
}

#[cfg(test)]
#[path = "../../../tests/units/definition.rs"]
mod definition;
