//! All documents of a collection through a cursor, and inserts of as many documents as a command holds.

use super::bson::{Element, Raw};
use super::client::Link;
use super::config::Config;
use super::errors::written;
use super::frame::HEAD;
use super::plan::{Plan, foreign, name, projection};
use super::tail::Tail;
use crate::prelude::*;
use std::sync::Arc;

/// Documents of an answer where no number is given. MongoDB ends an answer at 16 MB in any case. Not `i32::MAX`: FerretDB
/// reserves memory for all of them, and answers late.
const MANY: i32 = 100_000;
/// Bytes of one insert: well below the 16 MB of a command.
const INSERT_BYTES: usize = 8_000_000;
/// Documents of one insert (`maxWriteBatchSize`).
const INSERT_ROWS: u64 = 100_000;

pub(super) fn read(
    link: &mut Link,
    config: &Config,
    collection: &Collection,
    fields: &[usize],
    fetch: Fetch,
    row: &mut RowSink<'_>,
) -> Result<Moved> {
    let batch = match fetch {
        Fetch::Rows(rows) => i32::try_from(rows.max(1)).unwrap_or(i32::MAX),
        Fetch::Whole => MANY,
    };
    link.wire.widen();
    let command = &mut link.out;
    command.restart(HEAD);
    command.text("find", &collection.name).int("batchSize", batch);
    projection(command, collection, fields);
    command.begin("filter").end();
    if let Some(level) = &config.reads {
        command.begin("readConcern").text("level", level).end();
    }
    link.complete(Tail::Read);
    let mut rows = 0;
    link.read(&collection.name, batch, Tail::Read, |found| {
        rows += 1;
        document(found, collection, fields, row)
    })?;
    link.shrink();
    Ok(Moved { rows, round_trips: None })
}

/// Passes on a document as a row.
fn document(
    document: Raw<'_>,
    collection: &Collection,
    fields: &[usize],
    row: &mut RowSink<'_>,
) -> Result<()> {
    with_fields(fields.len(), |values| {
        for (value, field) in values.iter_mut().zip(fields) {
            let name = name(collection, *field);
            let found = document.get(name)?;
            *value = match found {
                None | Some(Element::Null) => Value::Null,
                Some(Element::Binary(bytes) | Element::Text(bytes)) => Value::Bytes(bytes),
                Some(other) => {
                    let number = other.whole().ok_or_else(|| foreign(name))?;
                    match collection.fields.get(*field).map(|field| field.kind) {
                        Some(FieldType::Timestamp) => Value::Time(number),
                        _ => Value::Int(number),
                    }
                }
            };
        }
        row(values)
    })
}

pub(super) fn write(
    link: &mut Link,
    config: &Config,
    collection: &Arc<Collection>,
    rows: &mut dyn RowSource,
) -> Result<Moved> {
    let insert = Operation::InsertEach { collection: Arc::clone(collection), rows: 1 };
    let plan = Plan::new(&insert, config);
    let (mut acknowledged, mut round_trips) = (0, 0);
    loop {
        link.out.clone_from(&plan.start);
        let (command, mut added, mut bytes, mut more) = (&mut link.out, 0, 0, true);
        while more && bytes < INSERT_BYTES && added < INSERT_ROWS {
            more = rows.next(&mut |values| {
                check_parameters("a row", collection.fields.len(), values.len())?;
                bytes = plan.add_row(command, added, values);
                added += 1;
                Ok(())
            })?;
        }
        if added > 0 {
            command.close_nested();
            command.append(&plan.concern);
            link.complete(Tail::Plain);
            acknowledged += written(link.exchange()?)?;
            round_trips += 1;
        }
        if !more {
            return Ok(Moved { rows: acknowledged, round_trips: Some(round_trips) });
        }
    }
}
