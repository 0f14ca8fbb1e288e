//! Reads or writes all rows, once.

use super::data::{Arrived, Data};
use super::loopback;
use super::peak_memory::PeakMemory;
use crate::prelude::*;
use crate::{fill, readback, rows};
use kurabe_core::job::{Ended, Job, JobContext, Work};
use kurabe_core::metric::ROUND_TRIPS;
use kurabe_core::transfer::{Fetch, Moved, RowSink, RowSource};

/// The operations.
pub(super) const READ: &str = "read";
pub(super) const WRITE: &str = "write";

/// Rows that are counted together.
const TOGETHER: u64 = 64;
/// Rows of a round trip when rows are read back, if the database cannot send a whole table.
const READ_BACK: u64 = 1_000;

/// The role of the only session.
const CLIENT: &str = "client";

pub(super) struct Moving {
    /// The rows that are read.
    loaded: Arc<Collection>,
    /// Where rows are written.
    written: Arc<Collection>,
    data: Data,
    rows: u64,
    row_bytes: u64,
    fetch: Fetch,
}

impl Moving {
    pub(super) fn new(name: String, data: Data, rows: u64, row_bytes: u64, fetch: Fetch) -> Self {
        let collection = |name| Arc::new(rows::collection(name, data.length() as u32));
        let written = collection(format!("{name}_new"));
        Self { loaded: collection(name), written, data, rows, row_bytes, fetch }
    }

    /// The insert of a row that is loaded.
    pub(super) fn insert_loaded(&self) -> Operation {
        Operation::Insert { collection: Arc::clone(&self.loaded) }
    }

    /// The request for a row that is read by its key.
    pub(super) fn get(&self) -> Operation {
        Operation::Get { collection: Arc::clone(&self.loaded), fields: vec![1] }
    }

    /// The inserts of so many rows in one request, of which one is enough.
    pub(super) fn inserts(&self, rows: u64) -> Vec<Operation> {
        fill::inserts(&self.written, rows)
    }

    fn prepare_insert(&self, session: &mut dyn Session, rows: u64) -> Result<Prepared> {
        let mut refused = None;
        for insert in self.inserts(rows) {
            match session.prepare(&insert) {
                Err(error) if error.kind() == ErrorKind::Unsupported => refused = Some(error),
                prepared => return prepared,
            }
        }
        Err(refused.unwrap_or_else(|| Error::unsupported("this database inserts no rows")))
    }

    fn source<'a, 'w>(&'a self, work: Option<&'a mut Work<'w>>) -> Source<'a, 'w> {
        Source { moving: self, work, sent: 0, text: Vec::with_capacity(self.data.length() + 8) }
    }

    fn acknowledged(&self, rows: u64) -> Result<()> {
        if rows == self.rows {
            return Ok(());
        }
        let expected = self.rows;
        Err(Error::mismatch(format!("the server acknowledged {rows} of {expected} written rows")))
    }

    fn read(&self, context: &mut JobContext<'_>) -> Result<Moved> {
        let (session, work) = context.session_and_work(CLIENT)?;
        let mut arrived = Arrived::none_of(self.rows);
        let mut uncounted = 0;
        let mut row = |fields: &[Value<'_>]| {
            arrived.row(&self.data, fields)?;
            uncounted += 1;
            if uncounted == TOGETHER {
                uncounted = 0;
                work.add(TOGETHER, TOGETHER * self.row_bytes)?;
            }
            Ok(())
        };
        let moved = match (session.read_rows(&self.loaded, &[0, 1], self.fetch, &mut row), self.fetch) {
            (Err(error), Fetch::Rows(each)) if error.kind() == ErrorKind::Unsupported => {
                self.read_by_key(session, each.min(self.rows), &mut row)?
            }
            (read, _) => read?,
        };
        work.add(uncounted, uncounted * self.row_bytes)?;
        arrived.finish()?;
        Ok(moved)
    }

    /// Reads all rows by their keys. So many requests are sent together, and their answers are one round trip.
    fn read_by_key(&self, session: &mut dyn Session, each: u64, row: &mut RowSink<'_>) -> Result<Moved> {
        let get = session.prepare(&self.get())?;
        let mut replies: Vec<Reply> = (0..each).map(|_| Reply::new()).collect();
        let mut round_trips = 0;
        for first in (1..=self.rows).step_by(each as usize) {
            let keys: Vec<Value<'_>> =
                (first..first + each.min(self.rows + 1 - first)).map(|key| Value::Int(key as i64)).collect();
            let replies = &mut replies[..keys.len()];
            session.pipeline(&get, &keys, replies)?;
            round_trips += 1;
            for ((number, key), reply) in (first..).zip(keys).zip(replies) {
                let text = reply.field_bytes(0, 0).ok_or_else(|| {
                    Error::mismatch(format!("row {number} is missing"))
                        .hint("a store with less memory than the rows need evicts some")
                })?;
                row(&[key, Value::Bytes(text)])?;
            }
        }
        session.release(get)?;
        Ok(Moved { rows: self.rows, round_trips: Some(round_trips) })
    }

    fn write(&self, context: &mut JobContext<'_>) -> Result<Moved> {
        let (session, work) = context.session_and_work(CLIENT)?;
        match self.fetch {
            Fetch::Whole => session.write_rows(&self.written, &mut self.source(Some(work))),
            Fetch::Rows(each) => self.insert_all(session, each.min(self.rows), work),
        }
    }

    /// Inserts all rows, so many in a request, in one transaction if the database has transactions.
    fn insert_all(&self, session: &mut dyn Session, each: u64, work: &mut Work<'_>) -> Result<Moved> {
        let begin = fill::prepare_if_supported(session, &Operation::Begin)?;
        let whole = self.prepare_insert(session, each)?;
        let rest = match self.rows % each {
            0 => None,
            rest => Some(self.prepare_insert(session, rest)?),
        };
        let mut reply = Reply::new();
        if let Some(begin) = &begin {
            session.execute(begin, &[], &mut reply)?;
        }
        let length = self.data.length();
        let mut text = Vec::with_capacity(each as usize * length + 8);
        let (mut acknowledged, mut requests) = (0, 0);
        for first in (1..=self.rows).step_by(each as usize) {
            let rows = each.min(self.rows + 1 - first);
            text.clear();
            (first..first + rows).for_each(|key| self.data.push(key, &mut text));
            let all = as_text(&text)?;
            let values = (0..rows as usize).flat_map(|row| {
                let key = Value::Int((first + row as u64) as i64);
                [key, Value::Text(&all[row * length..(row + 1) * length])]
            });
            let values: Vec<Value<'_>> = values.collect();
            let insert = rest.as_ref().filter(|_| rows < each).unwrap_or(&whole);
            session.execute(insert, &values, &mut reply)?;
            acknowledged += reply.affected();
            requests += 1;
            work.add(rows, rows * self.row_bytes)?;
        }
        if begin.is_some() {
            let commit = session.prepare(&Operation::Commit)?;
            session.execute(&commit, &[], &mut reply)?;
        }
        Ok(Moved { rows: acknowledged, round_trips: Some(requests) })
    }

    /// Reads the written rows and compares each. Returns their number.
    fn read_back(&self, session: &mut dyn Session) -> Result<u64> {
        for fetch in [Fetch::Whole, Fetch::Rows(READ_BACK)] {
            let mut arrived = Arrived::none_of(self.rows);
            let read = session
                .read_rows(&self.written, &[0, 1], fetch, &mut |fields| arrived.row(&self.data, fields));
            match read {
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                read => {
                    read?;
                    arrived.finish()?;
                    return Ok(self.rows);
                }
            }
        }
        let keys = 1..self.rows as i64 + 1;
        readback::numbered(session, &self.written, &[1], self.row_bytes, keys, &mut |key, found| {
            self.data.check(key.unsigned_abs(), found.bytes(key)?)
        })?;
        Ok(self.rows)
    }
}

impl Job for Moving {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.loaded)?;
        match session.write_rows(&self.loaded, &mut self.source(None)) {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                let each = fill::rows_of_a_request(2, self.row_bytes).max(1);
                fill::fill(session, &self.loaded, self.rows, each, &mut |row, field, out| {
                    if field == 0 {
                        return Ok(Value::Int(row as i64 + 1));
                    }
                    out.clear();
                    self.data.push(row + 1, out);
                    fill::text(out)
                })?;
            }
            loaded => self.acknowledged(loaded?.rows)?,
        }
        namespace.analyse(&self.loaded)?;
        fill::check_count(session, &self.loaded, self.rows, "loaded rows")?;
        Ok(DatasetState::default())
    }

    fn before(&self, Before { operation, namespace, .. }: Before<'_>) -> Result<()> {
        if operation == WRITE { namespace.create(&self.written) } else { Ok(()) }
    }

    fn run(&self, operation: &str, _: &DatasetState, context: &mut JobContext<'_>) -> Result<()> {
        let memory = PeakMemory::start();
        let moved = if operation == READ { self.read(context)? } else { self.write(context)? };
        if operation == WRITE {
            self.acknowledged(moved.rows)?;
        }
        for (metric, bytes) in memory.map(PeakMemory::end).unwrap_or_default() {
            context.sample(metric.name, metric.unit, bytes);
        }
        if let Some(round_trips) = moved.round_trips {
            context.sample(ROUND_TRIPS.name, ROUND_TRIPS.unit, round_trips as f64);
        }
        Ok(())
    }

    fn verify(&self, ended: Ended<'_>) -> Result<Checked> {
        let metrics = loopback::metrics(ended.endpoint, ended.observed, ended.elapsed, ended.pin);
        let (rows, Ended { operation, session, .. }) = (self.rows, ended);
        if operation == READ {
            // Each row was compared when it arrived.
            let verification = Verification { answers: rows, ..Verification::default() };
            return Ok(Checked { verification, metrics, ..Checked::default() });
        }
        let counted = fill::check_count(session, &self.written, rows, "written rows")?;
        let read_back = self.read_back(session).map_err(|error| error.context("read back"))?;
        let counted = counted.unwrap_or_default();
        let verification = Verification { writes: rows, records: rows, counted, read_back, answers: 0 };
        Ok(Checked { verification, metrics, ..Checked::default() })
    }
}

/// All rows, made one after the other.
struct Source<'a, 'w> {
    moving: &'a Moving,
    work: Option<&'a mut Work<'w>>,
    sent: u64,
    text: Vec<u8>,
}

impl RowSource for Source<'_, '_> {
    fn next(&mut self, put: &mut RowSink<'_>) -> Result<bool> {
        if self.sent == self.moving.rows {
            return Ok(false);
        }
        self.sent += 1;
        self.text.clear();
        self.moving.data.push(self.sent, &mut self.text);
        put(&[Value::Int(self.sent as i64), Value::Text(as_text(&self.text)?)])?;
        if let Some(work) = &mut self.work {
            work.add(1, self.moving.row_bytes)?;
        }
        Ok(true)
    }
}

fn as_text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::Internal, "the text of a row is not text"))
}
