//! Reads records back, after the load and after a trial, and checks each.
//!
//! This is not measured. It reads whole collections by ranges of keys, if the database supports them, since a far server
//! answers few requests a second. Otherwise, and for single records, it pipelines requests if the session can.

use crate::fill::prepare_if_supported;
use crate::prelude::*;
use std::fmt::Display;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The maximum number of pipelined requests.
const TOGETHER: u64 = 1_000;
/// The approximate maximum number of bytes in their answers.
const TOGETHER_BYTES: u64 = 1_000_000;
/// The maximum number of rows of a range.
const RANGE_ROWS: u64 = 10_000;
/// A range that takes longer is searched for in the whole collection, so that the next one has all rows up to so many bytes: ten
/// ranges of 100,000 documents took FerretDB 55 s.
const SLOW: Duration = Duration::from_secs(1);
const SLOW_RANGE_BYTES: u64 = 12_000_000;

/// Reads the record of each key by `select`, whose parameters come from `parameters`, and checks the answer with
/// `check`. Returns how many it read. A record has about `record_bytes`.
///
/// # Errors
/// The server's error, or that of `check`.
pub(crate) fn each<K, const PARAMETERS: usize>(
    session: &mut dyn Session,
    select: &Operation,
    record_bytes: u64,
    keys: impl IntoIterator<Item = K>,
    parameters: impl for<'k> Fn(&'k K) -> [Value<'k>; PARAMETERS],
    mut check: impl FnMut(&K, &mut Reply) -> Result<()>,
) -> Result<u64> {
    let select = session.prepare(select)?;
    let most = (TOGETHER_BYTES / record_bytes.max(1)).clamp(1, TOGETHER) as usize;
    let mut replies: Vec<Reply> = (0..most).map(|_| Reply::new()).collect();
    let mut batch: Vec<K> = Vec::with_capacity(most);
    let mut together = most > 1;
    let mut keys = keys.into_iter();
    let mut read = 0;
    loop {
        batch.clear();
        batch.extend(keys.by_ref().take(most));
        if batch.is_empty() {
            break;
        }
        let values: Vec<Value<'_>> = batch.iter().flat_map(&parameters).collect();
        let replies = &mut replies[..batch.len()];
        answer(session, &select, &values, replies, &mut together)?;
        for (key, reply) in batch.iter().zip(replies) {
            check(key, reply)?;
            read += 1;
        }
    }
    session.release(select)?;
    Ok(read)
}

/// Requests with these parameters and their answers; in a pipeline, until the session refuses one.
fn answer(
    session: &mut dyn Session,
    select: &Prepared,
    values: &[Value<'_>],
    replies: &mut [Reply],
    together: &mut bool,
) -> Result<()> {
    if *together {
        match session.pipeline(select, values, replies) {
            Err(error) if error.kind() == ErrorKind::Unsupported => *together = false,
            done => return done,
        }
    }
    let width = values.len() / replies.len();
    let mut each = values.chunks(width).zip(replies);
    each.try_for_each(|(values, reply)| session.execute(select, values, reply))
}

/// A record in an answer: its fields begin at `column` of `row`.
pub(crate) struct Found<'r> {
    pub(crate) reply: &'r Reply,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl Found<'_> {
    /// The bytes of the record's first field.
    pub(crate) fn bytes(&self, key: i64) -> Result<&[u8]> {
        let bytes = self.reply.field_bytes(self.row, self.column);
        bytes.ok_or_else(|| wrong_rows(key, 1))
    }
}

/// The error for an answer that is not one row with the data of a record.
#[cold]
pub(crate) fn wrong_rows(key: impl Display, rows: usize) -> Error {
    Error::mismatch(match rows {
        0 => format!("record {key} is missing"),
        1 => format!("record {key} was returned without its data"),
        _ => format!("record {key} was returned {rows} times"),
    })
}

/// A value as a reply returns it.
pub(crate) fn returned(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Text(text) => Value::Bytes(text.as_bytes()),
        other => other,
    }
}

/// Reads `fields` of all records of a collection whose keys, the first field, are the integers of a range, and checks
/// each with `check`.
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) if a record is missing or there is one too many; the server's error, or that of
/// `check`.
pub(crate) fn numbered(
    session: &mut dyn Session,
    collection: &Arc<Collection>,
    fields: &[usize],
    record_bytes: u64,
    keys: Range<i64>,
    check: &mut dyn FnMut(i64, Found<'_>) -> Result<()>,
) -> Result<()> {
    let select = Operation::Get { collection: Arc::clone(collection), fields: fields.to_vec() };
    let (with_key, column) =
        if fields.first() == Some(&0) { (fields.to_vec(), 0) } else { ([&[0], fields].concat(), 1) };
    let range = Operation::FindRange { collection: Arc::clone(collection), by: 0, fields: with_key };
    if keys.is_empty() {
        return Ok(());
    }
    let range = prepare_if_supported(session, &range)?;
    let Some(range) = range else {
        let check_reply = |key: &i64, reply: &mut Reply| match reply.rows() {
            1 => check(*key, Found { reply, row: 0, column: 0 }),
            rows => Err(wrong_rows(*key, rows)),
        };
        return each(session, &select, record_bytes, keys, |key| [Value::Int(*key)], check_reply).map(drop);
    };
    let mut most = (TOGETHER_BYTES / record_bytes.max(1)).clamp(1, RANGE_ROWS) as i64;
    let mut reply = Reply::new();
    let mut first = keys.start;
    while first < keys.end {
        let part = first..keys.end.min(first + most);
        let start = Instant::now();
        session.execute(&range, &[Value::Int(part.start), Value::Int(part.end)], &mut reply)?;
        if start.elapsed() > SLOW {
            most = most.max((SLOW_RANGE_BYTES / record_bytes.max(1)) as i64);
        }
        rows_are(part.clone(), &reply)?;
        for (row, key) in part.clone().enumerate() {
            check(key, Found { reply: &reply, row, column })?;
        }
        first = part.end;
    }
    session.release(range)
}

/// Checks that an answer contains exactly the rows of these keys, in order; the key is the first field.
pub(crate) fn rows_are(keys: Range<i64>, reply: &Reply) -> Result<()> {
    for (row, key) in keys.clone().enumerate() {
        match reply.field_int(row, 0) {
            Some(found) if found == key => {}
            Some(found) if found < key => {
                return Err(Error::mismatch(format!("record {found} was returned instead of record {key}")));
            }
            _ => return Err(Error::mismatch(format!("record {key} is missing"))),
        }
    }
    let (rows, asked) = (reply.rows(), keys.count());
    if rows == asked {
        return Ok(());
    }
    Err(Error::mismatch(format!("{rows} of {asked} requested records were returned")))
}
