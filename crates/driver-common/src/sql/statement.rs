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
    Ok(match operation {
        Operation::Ping => d.ping.to_owned(),
        Operation::Begin => d.begin.to_owned(),
        Operation::Commit => d.commit.to_owned(),
        Operation::Rollback => d.rollback.to_owned(),
        Operation::Get { collection, fields } => {
            let mut sql = select(d, collection, fields)?;
            sql += " WHERE ";
            equal(d, &mut sql, collection, &collection.key, " AND ", 1)?;
            sql
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
        Operation::Put { collection } => match d.own {
            Some(own) => (own.put)(d, collection)?,
            None => insert(d, collection, 1)? + &(d.upsert)(d, collection),
        },
        Operation::Update { collection, fields } => {
            let mut sql = format!("UPDATE {} SET ", d.quoted(&collection.name));
            equal(d, &mut sql, collection, fields, ", ", 1)?;
            sql += " WHERE ";
            equal(d, &mut sql, collection, &collection.key, " AND ", fields.len() + 1)?;
            sql
        }
        Operation::Delete { collection } => {
            let mut sql = format!("DELETE FROM {} WHERE ", d.quoted(&collection.name));
            equal(d, &mut sql, collection, &collection.key, " AND ", 1)?;
            sql
        }
        Operation::FindEqual { collection, by, fields } => {
            let mut sql = select(d, collection, fields)?;
            sql += " WHERE ";
            equal(d, &mut sql, collection, by, " AND ", 1)?;
            sql += " ORDER BY ";
            names(d, &mut sql, collection, &collection.key)?;
            sql
        }
        Operation::FindRange { collection, by, fields } => {
            let mut sql = select(d, collection, fields)?;
            sql += " WHERE ";
            for (number, sign) in [(1, " >= "), (2, " < ")] {
                d.identifier(&mut sql, field(collection, *by)?.name);
                sql += sign;
                d.parameter(&mut sql, number);
                sql += if number == 1 { " AND " } else { " ORDER BY " };
            }
            let further = collection.key.iter().filter(|field| *field != by);
            names(d, &mut sql, collection, &[by].into_iter().chain(further).copied().collect::<Vec<_>>())?;
            sql
        }
        Operation::Count { collection } => format!("SELECT COUNT(*) FROM {}", d.quoted(&collection.name)),
        Operation::Raw { statement } => super::raw::text(d, statement)?,
        Operation::Page { .. } => return Err(Error::unsupported(super::raw::NO_PAGES)),
    })
}

/// The statement that creates a collection's table; it fails if a table with that name exists.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if the key has a field that the collection does not have.
pub fn create_table(dialect: &Dialect, collection: &Collection) -> Result<String> {
    let mut sql = format!("CREATE TABLE {} (", dialect.quoted(&collection.name));
    for (position, field) in collection.fields.iter().enumerate() {
        let is_key = collection.key.contains(&position);
        dialect.identifier(&mut sql, field.name);
        sql.push(' ');
        sql += &(dialect.column_type)(field.kind, collection.is_indexed(position));
        sql += if is_key { " NOT NULL, " } else { ", " };
    }
    if collection.key.is_empty() {
        // An append-only table without a key: remove the last comma.
        sql.truncate(sql.len().saturating_sub(2));
        sql.push(')');
    } else {
        sql += "PRIMARY KEY (";
        names(dialect, &mut sql, collection, &collection.key)?;
        sql += "))";
    }
    sql += &dialect.create_tail;
    if let Some(own) = dialect.own {
        sql += &(own.create_tail)(dialect, collection);
    }
    Ok(sql)
}

/// The statements that create a collection's further indexes, named `<table>_i1`, `<table>_i2`, …
///
/// # Errors
/// Those of [`create_table`].
pub fn create_indexes(dialect: &Dialect, collection: &Collection) -> Result<Vec<String>> {
    let index = |(number, fields): (usize, &Vec<usize>)| {
        let name = format!("{}_i{}", collection.name, number + 1);
        let mut sql =
            format!("CREATE INDEX {} ON {} (", dialect.quoted(&name), dialect.quoted(&collection.name));
        names(dialect, &mut sql, collection, fields)?;
        sql.push(')');
        Ok(sql)
    };
    collection.indexes.iter().enumerate().map(index).collect()
}

/// The statement that removes a table with its indexes, if it exists.
pub fn drop_table(dialect: &Dialect, name: &str) -> String {
    match dialect.own {
        Some(own) => (own.drop_table)(dialect, name),
        None => format!("DROP TABLE IF EXISTS {}", dialect.quoted(name)),
    }
}

/// The statement that clears a table.
pub fn clear_table(dialect: &Dialect, name: &str) -> String {
    format!("{} {}", dialect.clear, dialect.quoted(name))
}

fn select(d: &Dialect, collection: &Collection, fields: &[usize]) -> Result<String> {
    let mut sql = "SELECT ".to_owned();
    names(d, &mut sql, collection, fields)?;
    sql += " FROM ";
    d.identifier(&mut sql, &collection.name);
    Ok(sql)
}

fn insert(d: &Dialect, collection: &Collection, rows: usize) -> Result<String> {
    if rows == 0 {
        return Err(defect(collection, "has an insert of no rows"));
    }
    let width = collection.fields.len();
    let all: Vec<usize> = (0..width).collect();
    let mut sql = format!("INSERT INTO {} (", d.quoted(&collection.name));
    names(d, &mut sql, collection, &all)?;
    sql += ") VALUES ";
    for row in 0..rows {
        sql += if row == 0 { "(" } else { ", (" };
        for field in 0..width {
            if field > 0 {
                sql += ", ";
            }
            d.parameter(&mut sql, row * width + field + 1);
        }
        sql.push(')');
    }
    Ok(sql)
}

/// `INSERT INTO … SELECT CAST(? AS …), … FROM … UNION ALL SELECT …`
fn insert_selected(
    d: &Dialect,
    collection: &Collection,
    rows: usize,
    from: &str,
    casts: &[Cow<'_, str>],
) -> Result<String> {
    let mut sql = insert(d, collection, rows.min(1))?;
    sql.truncate(sql.find(" VALUES ").unwrap_or_default());
    for (row, first) in (0..rows).zip((1..).step_by(casts.len().max(1))) {
        sql += if row == 0 { " SELECT " } else { " UNION ALL SELECT " };
        for (number, cast) in (first..).zip(casts) {
            sql += if number == first { "CAST(" } else { ", CAST(" };
            d.parameter(&mut sql, number);
            sql += " AS ";
            sql += cast;
            sql.push(')');
        }
        sql += from;
    }
    Ok(sql)
}

/// `a, b, c`
fn names(d: &Dialect, sql: &mut String, collection: &Collection, fields: &[usize]) -> Result<()> {
    if fields.is_empty() {
        return Err(defect(collection, "has an operation without fields"));
    }
    for (i, position) in fields.iter().enumerate() {
        if i > 0 {
            *sql += ", ";
        }
        d.identifier(sql, field(collection, *position)?.name);
    }
    Ok(())
}

/// `a = $1 AND b = $2`
fn equal(
    d: &Dialect,
    sql: &mut String,
    collection: &Collection,
    fields: &[usize],
    between: &str,
    first: usize,
) -> Result<()> {
    if fields.is_empty() {
        return Err(defect(collection, "has an operation without fields"));
    }
    for (i, position) in fields.iter().enumerate() {
        if i > 0 {
            *sql += between;
        }
        d.identifier(sql, field(collection, *position)?.name);
        *sql += " = ";
        d.parameter(sql, first + i);
    }
    Ok(())
}

fn field(collection: &Collection, position: usize) -> Result<&Field> {
    collection.fields.get(position).ok_or_else(|| defect(collection, &format!("has no field {position}")))
}

fn defect(collection: &Collection, what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("collection {} {what}", collection.name))
}
