//! The catalogue of PostgreSQL.

use super::super::queries::query;
use super::before::{Positions, UNREADABLE, positions, sequences, types};
use super::later;
use super::renderings::{rendered, renderings};
use crate::catalog::{Catalog, Collation, Column, DefaultValue, Index, Named, Table, Text, read_default};
use crate::issue::IssueKind;
use crate::script::{unchecked_literal, unquoted};
use crate::sql::{Row, Side, by_object, text, texts};
use kurabe_core::Result;

/// Reads the first schema of the session's search path.
pub(super) fn read(side: &mut Side) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    tables(side, &mut catalog)?;
    types(side, &mut catalog)?;
    let positions = positions(side)?;
    sequences(side, &mut catalog, &positions)?;
    columns(side, &mut catalog, &positions)?;
    catalog.add_foreign_keys(&side.catalogue(query("postgresql", "foreign_keys"))?);
    renderings(side, &mut catalog)?;
    indexes(side, &mut catalog)?;
    properties(side, &mut catalog)?;
    later::read(side, &mut catalog)?;
    let pair = |row: &Row| (text(row, 0).to_owned(), text(row, 1).to_owned());
    catalog.needs = side.catalogue(query("postgresql", "needs"))?.iter().map(pair).collect();
    // An extension, or a domain, of a column is listed with the column; other types with the kind that the column has.
    let is_used = |name: &str| {
        let mut needs = catalog.needs.iter().filter(|(_, needed)| needed == name);
        needs.any(|(of, _)| catalog.tables.iter().any(|table| table.name == *of))
    };
    let kind = |Named { name, sql }: &Named| match is_used(name) {
        false => Some(IssueKind::View),
        true if !sql.starts_with("CREATE TYPE ") => None,
        true if sql.contains(" AS ENUM (") => Some(IssueKind::Enum),
        true => Some(IssueKind::Type),
    };
    let types = catalog.types.iter().filter_map(|made| Some((kind(made)?, made.clone())));
    for (kind, Named { name, sql }) in types.collect::<Vec<_>>() {
        catalog.leave(kind, None, &name, &sql).with_statement(sql).carried = true;
    }
    Ok(catalog)
}

/// How the database compares text by default.
pub(super) fn of_database(side: &mut Side) -> Result<Collation> {
    // A database may compare by ICU, whatever its locale of libc is.
    let row = side.catalogue(query("postgresql", "of_database"))?.into_iter().next().unwrap_or_default();
    let (provider, locale) = (text(&row, 0), text(&row, 1));
    Ok(match (provider, locale) {
        ("i", _) => Collation::Named(format!("{} of ICU", text(&row, 2))),
        ("b", _) | (_, "C" | "POSIX" | "C.UTF-8" | "C.utf8") => {
            Collation::Binary("the database's C".to_owned())
        }
        (_, locale) => Collation::Named(locale.to_owned()),
    })
}

fn tables(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    // Identity and serial columns have sequences of their own.
    for row in side.catalogue(query("postgresql", "tables"))? {
        let name = text(&row, 0);
        catalog.names.push(name.to_owned());
        match text(&row, 1) {
            "r" | "p" if text(&row, 2) != "true" => {
                let [inherited, is_heap] = [3, 4].map(|at| text(&row, at) == "true");
                let (name, hidden) = (name.to_owned(), is_heap.then_some("ctid"));
                catalog.tables.push(Table { name, hidden, inherited, ..Table::default() });
            }
            // Between servers of PostgreSQL, a sequence is made before the tables.
            "S" => {
                catalog.leave(IssueKind::View, None, name, "a sequence of no serial column").carried = true;
            }
            _ => {}
        }
    }
    Ok(())
}

fn columns(side: &mut Side, catalog: &mut Catalog, positions: &Positions) -> Result<()> {
    let database = of_database(side)?;
    for row in side.catalogue(query("postgresql", "columns"))? {
        let (table, default) = (text(&row, 0), text(&row, 4));
        let generated = !text(&row, 6).is_empty();
        let sequence = text(&row, 13);
        let is_serial =
            default.starts_with("nextval(") && default.ends_with("::regclass)") && !sequence.is_empty();
        let identity = text(&row, 5);
        let declared = if text(&row, 8).is_empty() { text(&row, 2) } else { text(&row, 8) };
        let collation = match text(&row, 7) {
            "" => Collation::Bytes,
            "\"C\"" | "\"POSIX\"" if !declared.ends_with("[]") => Collation::Bytes,
            "\"default\"" => database.clone(),
            name => Collation::Named(name.to_owned()),
        };
        let number = |at: usize| text(&row, at).parse::<i128>().ok();
        let position = positions.get(text(&row, 15));
        let next =
            position.map(|(last, is_called)| last + if *is_called { number(12).unwrap_or(1) } else { 0 });
        let column = Column {
            name: text(&row, 1).to_owned(),
            declared: declared.to_owned(),
            nullable: text(&row, 3) != "true",
            default: match default {
                _ if generated || is_serial => DefaultValue::Null,
                // A text of a boolean.
                "true" | "false" if declared != "boolean" => DefaultValue::Literal(default.to_owned()),
                default => read_default(default, false),
            },
            identity: is_serial || !identity.is_empty(),
            collation,
            generated: generated.then(|| default.to_owned()),
            next: next.or(number(11)),
            has_binary: text(&row, 17) == "true",
        };
        let (Some(found), name) = (catalog.table_mut(table), text(&row, 1)) else { continue };
        let native = found.native.get_or_insert_default();
        let comma = if native.create.is_empty() { "" } else { ", " };
        native.create.push_str(comma);
        native.create.push_str(&rendered(&row));
        if !sequence.is_empty() {
            let (table_sql, column_sql) = (side.quoted(table), text(&row, 9));
            if identity.is_empty() {
                let sql = format!("ALTER SEQUENCE {sequence} OWNED BY {table_sql}.{column_sql}");
                native.later.push(Named { name: String::new(), sql });
            }
            // The position of a serial column's sequence is set with those of others.
            let set = match position {
                Some((last, is_called)) if !identity.is_empty() => Some(format!("{last}, {is_called})")),
                Some(_) => None,
                None => {
                    let (largest, start) = (format!("max({column_sql})"), text(&row, 11));
                    Some(format!("coalesce({largest}, {start}), {largest} IS NOT NULL) FROM {table_sql}"))
                }
            };
            if let Some(set) = set {
                let sql =
                    format!("SELECT pg_catalog.setval({}, {set}", unchecked_literal(side.engine, sequence));
                native.later.push(Named { name: String::new(), sql });
            }
        }
        found.columns.push(column);
        if !sequence.is_empty() && position.is_none() {
            catalog.leave(IssueKind::Identity, Some(table), name, UNREADABLE);
        }
        if identity == "a" || text(&row, 16) == "true" {
            let always = if identity == "a" { "ALWAYS, " } else { "" };
            let detail = format!("{always}INCREMENT BY {}{}", text(&row, 12), text(&row, 14));
            catalog.leave_to_others(IssueKind::Identity, table, name, &detail);
        }
        if !text(&row, 8).is_empty() {
            let domain = catalog.types.iter().find(|named| unquoted(text(&row, 2)) == named.name);
            let sql = domain.map_or(text(&row, 2).to_owned(), |domain| domain.sql.clone());
            catalog.leave_to_others(IssueKind::Check, table, name, &sql);
        }
    }
    Ok(())
}

/// Lists what is made by no statement of the copy: partitions with what belongs to them alone, inheritance, policies.
fn properties(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    for row in side.catalogue(query("postgresql", "properties"))? {
        let (kind, how) = text(&row, 3).split_once(' ').unwrap_or_default();
        let kind = IssueKind::named(kind).unwrap_or(IssueKind::TableOption);
        let left = catalog.leave(kind, Some(text(&row, 0)), text(&row, 1), text(&row, 2));
        left.internal = how == "o";
        left.roles = serde_json::from_str(text(&row, 4)).unwrap_or_default();
        if how == "s" {
            left.with_statement(text(&row, 2));
        } else if !text(&row, 4).is_empty() {
            left.text = Text::Words(format!("{}\n{}", text(&row, 2), text(&row, 4)));
        }
    }
    Ok(())
}

fn indexes(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    for rows in by_object(&side.catalogue(query("postgresql", "indexes"))?) {
        let [table, name, method, sql, constraint] = [0, 1, 6, 8, 9].map(|at| text(&rows[0], at));
        let is = |at| text(&rows[0], at) == "true";
        let what = match method {
            _ if is(4) => Some(IssueKind::PartialIndex),
            _ if is(5) => Some(IssueKind::ExpressionIndex),
            "btree" | "hash" if constraint != "x" => None,
            _ => Some(IssueKind::IndexType),
        };
        if let Some(kind) = what {
            catalog.leave_to_others(kind, table, name, sql).with_statement(sql);
        } else {
            if constraint.is_empty() && (is(10) || method == "hash") {
                let left = catalog.leave_to_others(IssueKind::IndexOption, table, name, sql);
                left.with_statement(sql).internal = !is(10);
            }
            let index = Index { name: name.to_owned(), unique: is(2), columns: texts(rows, 7) };
            catalog.add_index(table, index, is(3));
        }
        // That of a constraint is made with it.
        if constraint.is_empty() {
            catalog.add_later(table, name, sql.to_owned(), false);
        }
    }
    Ok(())
}
