//! Loads rows into a collection, and counts them.

use crate::prelude::*;
use std::time::{Duration, Instant};

/// Rows per request of the load, if the database accepts several: about 20 kB, which every database accepts.
pub(crate) const REQUEST_ROWS: u64 = 200;
/// The maximum number of parameters of one request: below every engine's limit.
pub(crate) const PARAMETERS: u64 = 800;
/// The approximate maximum number of bytes of one request with several rows.
pub(crate) const REQUEST_BYTES: u64 = 100_000;
/// Requests that are sent together, or put into one, if a round trip takes long.
const TOGETHER: u64 = 16;
const IN_ONE: u64 = 8;
/// A round trip that takes long.
const LONG: Duration = Duration::from_millis(10);
/// Rows per transaction of the load, if the database has transactions.
const COMMIT_ROWS: u64 = 10_000;
/// The same for records that are inserted one by one.
pub(crate) const BATCH: u64 = 200;

/// The requests that insert so many rows, of which one is enough: all of them or none, which not every database can, or
/// each. It need not be all or none: an error ends the measurement, and inserted rows are counted and read back.
pub(crate) fn inserts(collection: &Arc<Collection>, rows: u64) -> Vec<Operation> {
    let (collection, rows) = (Arc::clone(collection), rows as usize);
    if rows == 1 {
        return vec![Operation::Insert { collection }];
    }
    let each = Operation::InsertEach { collection: Arc::clone(&collection), rows };
    vec![Operation::InsertMany { collection, rows }, each]
}

/// Prepares a request that inserts so many rows; `None` if the database does not accept several.
pub(crate) fn prepare_insert(
    session: &mut dyn Session,
    collection: &Arc<Collection>,
    rows: u64,
) -> Result<Option<Prepared>> {
    for insert in inserts(collection, rows) {
        if let Some(prepared) = prepare_if_supported(session, &insert)? {
            return Ok(Some(prepared));
        }
    }
    Ok(None)
}

/// Rows per request, for rows of this many fields and bytes.
pub(crate) fn rows_of_a_request(fields: usize, row_bytes: u64) -> u64 {
    (PARAMETERS / fields.max(1) as u64).min(REQUEST_BYTES / row_bytes.max(1))
}

/// Makes a field of a row, both numbered from 0. Text and bytes are in the buffer.
type MakeField<'m> = dyn for<'b> FnMut(u64, usize, &'b mut Vec<u8>) -> Result<Value<'b>> + 'm;

/// Inserts `count` rows, at most `per_request` in a request and many in a transaction, as far as the database
/// supports either.
pub(crate) fn fill(
    session: &mut dyn Session,
    collection: &Arc<Collection>,
    count: u64,
    per_request: u64,
    make: &mut MakeField<'_>,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let width = collection.fields.len();
    let per_request = per_request.clamp(1, count);
    let is_far =
        count.div_ceil(per_request) > TOGETHER && round_trip(session)?.is_some_and(|time| time >= LONG);
    let pipelines = is_far && pipelines(session)?;
    let per_request = if is_far && !pipelines { (per_request * IN_ONE).min(count) } else { per_request };
    let (whole, most) = match prepare_insert(session, collection, per_request)? {
        Some(whole) => (whole, per_request),
        None => (session.prepare(&Operation::Insert { collection: Arc::clone(collection) })?, 1),
    };
    let rest = match count % most {
        0 => None,
        rest => {
            let none =
                || Error::unsupported(format!("this database inserts {most} rows at once, and not {rest}"));
            Some(prepare_insert(session, collection, rest)?.ok_or_else(none)?)
        }
    };
    let deep = if pipelines { TOGETHER } else { 1 };
    let mut buffers = vec![Vec::new(); (deep * most) as usize * width];
    let mut replies: Vec<Reply> = (0..deep).map(|_| Reply::new()).collect();
    let (groups, batch) = (count.div_ceil(most * deep), COMMIT_ROWS.div_ceil(most * deep));
    in_batches(session, groups, batch, &mut |session, group| {
        let done = group * most * deep;
        let rows = (most * deep).min(count - done);
        let used = rows as usize * width;
        let values = buffers.iter_mut().take(used).enumerate();
        let values = values.map(|(n, buffer)| make(done + (n / width) as u64, n % width, buffer));
        let values: Vec<Value<'_>> = values.collect::<Result<_>>()?;
        let full = rows as usize / most as usize;
        let (first, last) = values.split_at(full * most as usize * width);
        if pipelines && full > 1 {
            session.pipeline(&whole, first, &mut replies[..full])?;
        } else {
            for (values, reply) in first.chunks(most as usize * width).zip(&mut replies) {
                session.execute(&whole, values, reply)?;
            }
        }
        replies[..full].iter().try_for_each(|reply| acknowledges(reply, most))?;
        match (&rest, last) {
            (Some(rest), [_, ..]) => {
                session.execute(rest, last, &mut replies[0])?;
                acknowledges(&replies[0], rows % most)
            }
            _ => Ok(()),
        }
    })?;
    [whole].into_iter().chain(rest).try_for_each(|prepared| session.release(prepared))
}

/// Checks that the server acknowledged this number of inserted rows.
fn acknowledges(reply: &Reply, rows: u64) -> Result<()> {
    match reply.affected() {
        acknowledged if acknowledged == rows => Ok(()),
        acknowledged => {
            Err(Error::mismatch(format!("the server acknowledged {acknowledged} of {rows} inserted rows")))
        }
    }
}

/// How long the smallest request takes; `None` if the database has none.
fn round_trip(session: &mut dyn Session) -> Result<Option<Duration>> {
    let Some(ping) = prepare_if_supported(session, &Operation::Ping)? else { return Ok(None) };
    let mut reply = Reply::new();
    let mut shortest = Duration::MAX;
    for _ in 0..2 {
        let began = Instant::now();
        session.execute(&ping, &[], &mut reply)?;
        shortest = shortest.min(began.elapsed());
    }
    session.release(ping)?;
    Ok(Some(shortest))
}

/// Whether the session can send requests before it has the answers of earlier ones.
fn pipelines(session: &mut dyn Session) -> Result<bool> {
    let Some(ping) = prepare_if_supported(session, &Operation::Ping)? else { return Ok(false) };
    let made = session.pipeline(&ping, &[], &mut [Reply::new(), Reply::new()]);
    session.release(ping)?;
    match made {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
        Err(error) => Err(error),
    }
}

/// Calls `add` for the records 0 to `records`, `batch` of them in a transaction if the database has transactions.
pub(crate) fn in_batches(
    session: &mut dyn Session,
    records: u64,
    batch: u64,
    add: &mut dyn FnMut(&mut dyn Session, u64) -> Result<()>,
) -> Result<()> {
    let transaction = match prepare_if_supported(session, &Operation::Begin)? {
        Some(begin) => Some([begin, session.prepare(&Operation::Commit)?]),
        None => None,
    };
    let mut reply = Reply::new();
    for first in (0..records).step_by(batch as usize) {
        if let Some([begin, _]) = &transaction {
            session.execute(begin, &[], &mut reply)?;
        }
        (first..records.min(first + batch)).try_for_each(|record| add(session, record))?;
        if let Some([_, commit]) = &transaction {
            session.execute(commit, &[], &mut reply)?;
        }
    }
    transaction.into_iter().flatten().try_for_each(|prepared| session.release(prepared))
}

/// The number of rows on the server; `None` if it cannot count.
pub(crate) fn count(session: &mut dyn Session, collection: &Arc<Collection>) -> Result<Option<u64>> {
    let operation = Operation::Count { collection: Arc::clone(collection) };
    let Some(count) = prepare_if_supported(session, &operation)? else { return Ok(None) };
    let mut reply = Reply::new();
    session.execute(&count, &[], &mut reply)?;
    session.release(count)?;
    let rows = reply.field_int(0, 0).and_then(|rows| u64::try_from(rows).ok());
    rows.map(Some).ok_or_else(|| Error::mismatch("the server's count is not a number"))
}

/// Checks the number of rows on the server, and returns it; `None` if the server cannot count. `what` names them in the
/// plural.
pub(crate) fn check_count(
    session: &mut dyn Session,
    collection: &Arc<Collection>,
    expected: u64,
    what: &str,
) -> Result<Option<u64>> {
    match count(session, collection)? {
        Some(rows) if rows != expected => {
            Err(Error::mismatch(format!("the server counts {rows} {what}, expected {expected}")))
        }
        counted => Ok(counted),
    }
}

/// Checks that the server acknowledged a row to each completed transaction, and returns how many; `what` says what these
/// did.
pub(crate) fn acknowledged_rows(clients: &[ClientSummary], what: &str) -> Result<u64> {
    let completed: u64 = clients.iter().map(|client| client.completed).sum();
    let rows: u64 = clients.iter().map(|client| client.rows_written).sum();
    if completed == rows {
        return Ok(rows);
    }
    Err(Error::mismatch(format!("{completed} {what}, but {rows} were acknowledged")))
}

/// Checks that the server acknowledged one row for `what`.
#[inline]
pub(crate) fn acknowledged(reply: &Reply, what: std::fmt::Arguments<'_>) -> Result<()> {
    match reply.affected() {
        1 => Ok(()),
        rows => Err(Error::mismatch(format!("the server acknowledged {rows} rows for {what}, expected 1"))),
    }
}

/// The data of a row as a parameter.
#[inline]
pub(crate) fn text(data: &[u8]) -> Result<Value<'_>> {
    let text = std::str::from_utf8(data);
    text.map(Value::Text).map_err(|_| Error::new(ErrorKind::Internal, "the data of a row is not text"))
}

/// Prepares it; `None` if the database has no such operation.
pub(crate) fn prepare_if_supported(
    session: &mut dyn Session,
    operation: &Operation,
) -> Result<Option<Prepared>> {
    match session.prepare(operation) {
        Ok(prepared) => Ok(Some(prepared)),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::without;

    /// A session that stores keys, and counts for how many answers its user waits.
    struct Far {
        /// How long the smallest request takes.
        round_trip: Duration,
        pipelines: bool,
        operations: Vec<Operation>,
        keys: Vec<i64>,
        waits: usize,
    }

    impl Far {
        fn store(&mut self, parameters: &[Value<'_>], out: &mut Reply) {
            let keys = parameters.chunks(2).map(|row| if let Value::Int(key) = row[0] { key } else { -1 });
            self.keys.extend(keys);
            out.clear();
            out.set_affected(parameters.len() as u64 / 2);
        }
    }

    impl Session for Far {
        fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
            if matches!(operation, Operation::Begin) {
                return Err(Error::unsupported("no transactions"));
            }
            self.operations.push(operation.clone());
            Ok(Prepared(self.operations.len() - 1))
        }

        fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
            self.waits += 1;
            if self.operations[prepared.0] == Operation::Ping {
                std::thread::sleep(self.round_trip);
            } else {
                self.store(parameters, out);
            }
            Ok(())
        }

        fn pipeline(&mut self, _: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
            if !self.pipelines {
                return Err(Error::unsupported("one at a time"));
            }
            self.waits += 1;
            let each = (parameters.len() / out.len()).max(1);
            parameters.chunks(each).zip(out).for_each(|(values, reply)| self.store(values, reply));
            Ok(())
        }

        fn release(&mut self, _: Prepared) -> Result<()> {
            Ok(())
        }

        without!(bulk, planner, cache, raw_messages, transactions);
    }

    #[test]
    fn rows_are_loaded_over_a_long_way_without_waiting_for_each_request() {
        let fields = ["id", "data"].map(|name| Field { name, kind: FieldType::Int });
        let collection = Arc::new(Collection::new("kurabe_0_far".to_owned(), fields.to_vec(), vec![0]));
        let long = LONG + Duration::from_millis(1);
        let load = |count: u64, round_trip, pipelines| {
            let mut far = Far { round_trip, pipelines, operations: Vec::new(), keys: Vec::new(), waits: 0 };
            fill(&mut far, &collection, count, 20, &mut |row, _, _| Ok(Value::Int(row as i64))).unwrap();
            assert_eq!(far.keys, (0..count as i64).collect::<Vec<_>>(), "{count} {pipelines}");
            far.waits
        };
        // 322 requests and a last one with fewer rows.
        assert!(load(6_450, long, true) < 30);
        assert!(load(6_450, long, false) < 60);
        // Two are for the length of the way.
        assert_eq!(load(6_450, Duration::ZERO, false), 325);
        for count in [1, 19, 20, 21, 320, 321, 340, 6_400] {
            load(count, long, true);
            load(count, long, false);
        }
    }
}
