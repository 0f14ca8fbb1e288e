//! All rows of a table: one statement that is stepped through, and inserts in one transaction.

use super::dialect::DIALECT;
use super::error::explain;
use super::values::bound;
use crate::prelude::*;
use crate::sql::{self, RowsText};
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

pub(super) fn read(
    connection: &Connection,
    collection: &Collection,
    fields: &[usize],
    row: &mut RowSink<'_>,
) -> Result<Moved> {
    let text = RowsText::new(&DIALECT, collection, fields)?;
    let mut statement = connection.prepare(&text.select).map_err(|error| explain(&error))?;
    let mut found = statement.raw_query();
    let mut rows = 0;
    while let Some(stepped) = found.next().map_err(|error| explain(&error))? {
        with_fields(text.kinds.len(), |values| {
            for (at, (value, kind)) in values.iter_mut().zip(&text.kinds).enumerate() {
                *value = match stepped.get_ref(at).map_err(|error| explain(&error))? {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(micros) if *kind == FieldType::Timestamp => Value::Time(micros),
                    ValueRef::Integer(number) => Value::Int(number),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Value::Bytes(bytes),
                    ValueRef::Real(_) => {
                        return Err(Error::mismatch("a field holds a real number, which Kurabe never wrote"));
                    }
                };
            }
            row(values)
        })?;
        rows += 1;
    }
    Ok(Moved { rows, round_trips: None })
}

pub(super) fn write(
    connection: &Connection,
    collection: &Collection,
    rows: &mut dyn RowSource,
) -> Result<Moved> {
    connection.execute_batch(DIALECT.begin).map_err(|error| explain(&error))?;
    let written = insert_all(connection, collection, rows);
    let end = if written.is_ok() { DIALECT.commit } else { DIALECT.rollback };
    let ended = connection.execute_batch(end).map_err(|error| explain(&error));
    let rows = written?;
    ended.map(|()| Moved { rows, round_trips: None })
}

fn insert_all(connection: &Connection, collection: &Collection, rows: &mut dyn RowSource) -> Result<u64> {
    let insert = sql::insert(&DIALECT, collection, 1)?;
    let mut statement = connection.prepare(&insert).map_err(|error| explain(&error))?;
    let mut written = 0;
    while rows.next(&mut |values| {
        check_parameters("a row", collection.fields.len(), values.len())?;
        let bind = |(at, (value, field)): (usize, (&Value<'_>, &kurabe_core::collection::Field))| {
            statement.raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(bound(*value, field.kind)))
        };
        let mut values = values.iter().zip(&collection.fields).enumerate();
        values.try_for_each(bind).map_err(|error| explain(&error))?;
        written += statement.raw_execute().map_err(|error| explain(&error))? as u64;
        Ok(())
    })? {}
    Ok(written)
}
