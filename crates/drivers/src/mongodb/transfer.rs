//! All documents of a collection through a cursor, and inserts of as many documents as a command holds.

use super::link::Link;
use super::plan::{Plan, foreign, name, whole};
use super::session::written;
use super::writer::Writer;
use crate::prelude::*;
use mongodb::bson::{RawBsonRef, RawDocument};
use mongodb::options::SelectionCriteria;
use std::sync::Arc;

/// Documents that are received under one time limit.
const TOGETHER: usize = 100;
/// Documents of an answer where no number is given. MongoDB ends an answer at 16 MB in any case. Not `i32::MAX`: FerretDB
/// reserves memory for all of them, and answers late.
const MANY: i32 = 100_000;
/// Bytes of one insert: well below the 16 MB of a command.
const INSERT_BYTES: usize = 8_000_000;
/// Documents of one insert (`maxWriteBatchSize`).
const INSERT_ROWS: u64 = 100_000;

pub(super) fn read(
    link: &mut Link,
    collection: &Collection,
    fields: &[usize],
    fetch: Fetch,
    row: &mut RowSink<'_>,
) -> Result<Moved> {
    let batch = match fetch {
        Fetch::Rows(rows) => i32::try_from(rows.max(1)).unwrap_or(i32::MAX),
        Fetch::Whole => MANY,
    };
    let mut command = Writer::new();
    command.text("find", &collection.name).int("batchSize", batch).begin("projection");
    for field in fields {
        command.int(name(collection, *field), 1);
    }
    if !fields.iter().any(|field| name(collection, *field) == "_id") {
        command.int("_id", 0);
    }
    command.end().begin("filter").end();
    let shared = Arc::clone(&link.shared);
    if let Some(level) = &shared.config.reads {
        command.begin("readConcern").text("level", level).end();
    }
    let command = command.finish().map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
    let mut cursor = link.wait(async {
        let action = shared.database.run_raw_cursor_command(command).batch_size(batch.unsigned_abs());
        match &shared.config.preference {
            None => action.await,
            Some((_, preference)) => {
                action.selection_criteria(SelectionCriteria::ReadPreference(preference.clone())).await
            }
        }
    })?;
    let mut rows = 0;
    // Kurabe's own error, which the crate's future cannot return.
    let mut wrong = None;
    loop {
        let more = link.wait(async {
            for _ in 0..TOGETHER {
                if !cursor.advance().await? {
                    return Ok(false);
                }
                wrong = document(cursor.current(), collection, fields, row).err();
                if wrong.is_some() {
                    return Ok(false);
                }
                rows += 1;
            }
            Ok(true)
        })?;
        if let Some(error) = wrong.take() {
            shared.within(|| drop(cursor));
            return Err(error);
        }
        if !more {
            return Ok(Moved { rows, round_trips: None });
        }
    }
}

/// Passes on a document as a row.
fn document(
    document: &RawDocument,
    collection: &Collection,
    fields: &[usize],
    row: &mut RowSink<'_>,
) -> Result<()> {
    with_fields(fields.len(), |values| {
        for (value, field) in values.iter_mut().zip(fields) {
            let name = name(collection, *field);
            let found = document.get(name).map_err(|_| foreign(name))?;
            *value = match found {
                None | Some(RawBsonRef::Null) => Value::Null,
                Some(RawBsonRef::Binary(binary)) => Value::Bytes(binary.bytes),
                Some(RawBsonRef::String(text)) => Value::Bytes(text.as_bytes()),
                Some(other) => {
                    let number = whole(other).ok_or_else(|| foreign(name))?;
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
    collection: &Arc<Collection>,
    rows: &mut dyn RowSource,
) -> Result<Moved> {
    let insert = Operation::InsertEach { collection: Arc::clone(collection), rows: 1 };
    let plan = Plan::new(&insert, &link.shared.config);
    let (mut acknowledged, mut round_trips) = (0, 0);
    loop {
        let (mut command, mut added, mut bytes, mut more) = (plan.begin_insert(), 0, 0, true);
        while more && bytes < INSERT_BYTES && added < INSERT_ROWS {
            more = rows.next(&mut |values| {
                check_parameters("a row", collection.fields.len(), values.len())?;
                bytes = plan.add_row(&mut command, added, values);
                added += 1;
                Ok(())
            })?;
        }
        if added > 0 {
            acknowledged += written(&link.run(plan.end_insert(command)?)?)?;
            round_trips += 1;
        }
        if !more {
            return Ok(Moved { rows: acknowledged, round_trips: Some(round_trips) });
        }
    }
}
