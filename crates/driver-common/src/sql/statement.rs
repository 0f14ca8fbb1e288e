//! The SQL text of every operation, and of creating, clearing and removing a collection's table.

use super::dialect::Dialect;
use crate::prelude::*;
use kurabe_core::collection::Field;
use std::borrow::Cow;

/// The statement of an operation in this dialect, with the operation's parameters in the same order.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if the operation names a field that its collection does not have, or no field
/// where it needs one: a defect of the experiment.
pub fn text(dialect: &Dialect, operation: &Operation) -> Result<String> {
    let d = dialect;
    let is_linked = operation.collection().is_some_and(|collection| collection.link().is_some());
    if let Some(linked) = d.linked.filter(|_| is_linked)
        && let Some(text) = (linked.text)(d, operation)?
    {
        return Ok(text);
    }
    Ok(match operation {
        Operation::Ping => d.ping.to_owned(),
        Operation::Begin => d.begin.to_owned(),
        Operation::Commit => d.commit.to_owned(),
        Operation::Rollback => d.rollback.to_owned(),
        Operation::Get { collection, fields } => {
            let select = select(d, collection, fields)?;
            format!("{select} WHERE {}", equal(d, collection, &collection.key, " AND ", 1)?)
        }
        Operation::Insert { collection } => insert(d, collection, 1)?,
        // One statement is atomic, which is more than `InsertEach` requires.
        Operation::InsertMany { collection, rows } | Operation::InsertEach { collection, rows } => {
            let by_array = *rows > 0 && d.own.is_some_and(|own| own.rows_by_array);
            match d.own.and_then(|own| own.rows_by_select) {
                Some((from, casts)) => {
                    insert_selected(d, collection, *rows, from, &casts(collection, *rows))?
                }
                None => insert(d, collection, if by_array { 1 } else { *rows })?,
            }
        }
        Operation::Put { collection } => (d.put)(d, collection)?,
        Operation::Update { collection, fields } => {
            let set = joined(collection, fields, ", ", |n, name| {
                format!("{} = {}", d.quoted(name), (d.parameter)(1 + n))
            })?;
            let key = equal(d, collection, &collection.key, " AND ", fields.len() + 1)?;
            format!("UPDATE {} SET {set} WHERE {key}", d.table(&collection.name))
        }
        Operation::Delete { collection } => {
            let key = equal(d, collection, &collection.key, " AND ", 1)?;
            format!("DELETE FROM {} WHERE {key}", d.table(&collection.name))
        }
        Operation::Purge { collection } => {
            let time = field(collection, expires(collection)?)?;
            let (name, below) = (d.quoted(time.name), (d.operator)(time.kind, "<"));
            format!("DELETE FROM {} WHERE {name} {below} {}", d.table(&collection.name), (d.parameter)(1))
        }
        Operation::FindEqual { collection, by, fields } => {
            let select = select(d, collection, fields)?;
            let by = equal(d, collection, by, " AND ", 1)?;
            format!("{select} WHERE {by} ORDER BY {}", names(d, collection, &collection.key)?)
        }
        Operation::FindRange { collection, by, fields } => {
            let bounds = [(d.parameter)(1), (d.parameter)(2)];
            find_range(d, collection, *by, fields, &d.table(&collection.name), &bounds)?
        }
        Operation::Count { collection } => count(&d.table(&collection.name)),
        Operation::Raw { statement } => super::raw::text(d, statement)?,
        Operation::Page { .. } => return Err(Error::unsupported(super::raw::NO_PAGES)),
        Operation::Flow(_) => return Err(Error::unsupported(NO_FLOW)),
    })
}

/// The field with the time when a row expires.
pub(super) fn expires(collection: &Collection) -> Result<usize> {
    collection.expires.ok_or_else(|| {
        Error::new(ErrorKind::Internal, format!("the rows of collection {} do not expire", collection.name))
    })
}

/// The statement of [`Operation::FindRange`] on this table expression, with these expressions as bounds.
pub fn find_range(
    d: &Dialect,
    collection: &Collection,
    by: usize,
    fields: &[usize],
    table: &str,
    [from, to]: &[String; 2],
) -> Result<String> {
    let fields = names(d, collection, fields)?;
    let Field { name, kind } = field(collection, by)?;
    let (name, [least, below]) = (d.quoted(name), [">=", "<"].map(|sign| (d.operator)(*kind, sign)));
    let further = collection.key.iter().filter(|field| **field != by);
    let order: Vec<usize> = [&by].into_iter().chain(further).copied().collect();
    let order = names(d, collection, &order)?;
    Ok(format!(
        "SELECT {fields} FROM {table} WHERE {name} {least} {from} AND {name} {below} {to} ORDER BY {order}"
    ))
}

/// The statement of [`Operation::Count`] on this table expression.
pub fn count(table: &str) -> String {
    format!("SELECT COUNT(*) FROM {table}")
}

/// The definitions of a table's columns: `id bigint NOT NULL`.
pub fn columns(dialect: &Dialect, collection: &Collection) -> Vec<String> {
    let column = |(position, field): (usize, &Field)| {
        let kind = (dialect.column_type)(field.kind, collection.is_indexed(position));
        let null = if collection.key.contains(&position) { " NOT NULL" } else { "" };
        format!("{} {kind}{null}", dialect.quoted(field.name))
    };
    collection.fields.iter().enumerate().map(column).collect()
}

/// The statement that creates a collection's table; it fails if a table with that name exists.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if the key has a field that the collection does not have.
pub fn create_table(dialect: &Dialect, collection: &Collection) -> Result<String> {
    let mut parts = columns(dialect, collection);
    // An append-only table has no key.
    if !collection.key.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", names(dialect, collection, &collection.key)?));
    }
    let own = dialect.own.map_or_else(String::new, |own| (own.create_tail)(dialect, collection));
    let (table, tail) = (dialect.table(&collection.name), &dialect.create_tail);
    Ok(format!("CREATE TABLE {table} ({}){tail}{own}", parts.join(", ")))
}

/// The statements that create a collection's further indexes, named `<table>_i1`, `<table>_i2`, …
pub fn create_indexes(dialect: &Dialect, collection: &Collection) -> Result<Vec<String>> {
    let index = |(number, fields): (usize, &Vec<usize>)| {
        let name = dialect.quoted(&format!("{}_i{}", collection.name, number + 1));
        let fields = names(dialect, collection, fields)?;
        Ok(format!("CREATE INDEX {name} ON {} ({fields})", dialect.table(&collection.name)))
    };
    collection.indexes.iter().enumerate().map(index).collect()
}

/// The statement that removes a table with its indexes, if it exists.
pub fn drop_table(dialect: &Dialect, name: &str) -> String {
    match dialect.own {
        Some(own) => (own.drop_table)(dialect, name),
        None => format!("DROP TABLE IF EXISTS {}", dialect.table(name)),
    }
}

/// The statement that clears a table.
pub fn clear_table(dialect: &Dialect, name: &str) -> String {
    format!("{} {}", dialect.clear, dialect.table(name))
}

pub(super) fn select(d: &Dialect, collection: &Collection, fields: &[usize]) -> Result<String> {
    Ok(format!("SELECT {} FROM {}", names(d, collection, fields)?, d.table(&collection.name)))
}

/// `INSERT INTO … VALUES (…), (…)`, of this number of rows.
pub fn insert(d: &Dialect, collection: &Collection, rows: usize) -> Result<String> {
    if rows == 0 {
        return Err(defect(collection, "has an insert of no rows"));
    }
    let width = collection.fields.len();
    let names = names(d, collection, &(0..width).collect::<Vec<_>>())?;
    let row = |row: usize| {
        let parameters = (1..=width).map(|field| (d.parameter)(row * width + field));
        format!("({})", parameters.collect::<Vec<_>>().join(", "))
    };
    let rows = (0..rows).map(row).collect::<Vec<_>>().join(", ");
    Ok(format!("INSERT INTO {} ({names}) VALUES {rows}", d.table(&collection.name)))
}

/// `INSERT INTO … SELECT CAST(? AS …), … FROM … UNION ALL SELECT …`
fn insert_selected(
    d: &Dialect,
    collection: &Collection,
    rows: usize,
    from: &str,
    casts: &[Cow<'_, str>],
) -> Result<String> {
    let insert = insert(d, collection, rows.min(1))?;
    let (into, _) = insert.split_once(" VALUES ").unwrap_or_default();
    let row = |row: usize| {
        let cast = |(number, cast)| format!("CAST({} AS {cast})", (d.parameter)(number));
        let casts = (row * casts.len() + 1..).zip(casts).map(cast);
        format!("SELECT {}{from}", casts.collect::<Vec<_>>().join(", "))
    };
    Ok(format!("{into} {}", (0..rows).map(row).collect::<Vec<_>>().join(" UNION ALL ")))
}

/// `a, b, c`
pub(super) fn names(d: &Dialect, collection: &Collection, fields: &[usize]) -> Result<String> {
    joined(collection, fields, ", ", |_, name| d.quoted(name))
}

/// `a = $1 AND b = $2`
fn equal(
    d: &Dialect,
    collection: &Collection,
    fields: &[usize],
    between: &str,
    first: usize,
) -> Result<String> {
    let term = |(n, position): (usize, &usize)| {
        let Field { name, kind } = field(collection, *position)?;
        Ok(format!("{} {} {}", d.quoted(name), (d.operator)(*kind, "="), (d.parameter)(first + n)))
    };
    let terms = fields.iter().enumerate().map(term).collect::<Result<Vec<_>>>()?;
    if terms.is_empty() {
        return Err(defect(collection, "has an operation without fields"));
    }
    Ok(terms.join(between))
}

/// The upsert of PostgreSQL and SQLite: `INSERT … ON CONFLICT (key) DO UPDATE SET …`.
pub fn on_conflict_do_update(d: &Dialect, collection: &Collection) -> Result<String> {
    let (insert, key) = (insert(d, collection, 1)?, names(d, collection, &collection.key)?);
    let rest = collection.rest();
    if rest.is_empty() {
        return Ok(format!("{insert} ON CONFLICT ({key}) DO NOTHING"));
    }
    let set = joined(collection, &rest, ", ", |_, name| format!("{0} = excluded.{0}", d.quoted(name)))?;
    Ok(format!("{insert} ON CONFLICT ({key}) DO UPDATE SET {set}"))
}

/// Joins a text for each of these fields, at least one, from its number, beginning with 0, and its name.
pub fn joined(
    collection: &Collection,
    fields: &[usize],
    between: &str,
    text: impl Fn(usize, &str) -> String,
) -> Result<String> {
    if fields.is_empty() {
        return Err(defect(collection, "has an operation without fields"));
    }
    let texts =
        fields.iter().enumerate().map(|(n, position)| Ok(text(n, field(collection, *position)?.name)));
    Ok(texts.collect::<Result<Vec<_>>>()?.join(between))
}

fn field(collection: &Collection, position: usize) -> Result<&Field> {
    collection.fields.get(position).ok_or_else(|| defect(collection, &format!("has no field {position}")))
}

fn defect(collection: &Collection, what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("collection {} {what}", collection.name))
}
