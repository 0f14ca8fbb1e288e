//! A cell of the session store as the engine sees it: load, transaction, check.

use super::store::{Layout, Store};
use super::transaction::{Answer, Read, Write};
use super::{INFO, READ, WRITE};
use crate::axes;
use crate::defect::no_operation;
use crate::ident::Ident;
use crate::pieces;
use kurabe_core::axis::Cell;
use kurabe_core::collection::Collection;
use kurabe_core::driver::{Capability, Namespace, Prepared, Session};
use kurabe_core::experiment::{Checked, Client, Dataset, Demand, Done, Transaction, Workload};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Sessions in the store unless the user says otherwise: E1's …
const RECORDS: u64 = 1_000;
/// … but no more payload than this for each cell, so that forty cells of a megabyte do not fill a disk, …
const STORE_BYTES: u64 = 16_000_000;
/// … and never fewer than this, or the draws would not be uniform over anything.
const LEAST_RECORDS: u64 = 16;
/// Of the sessions that a trial wrote, so many are read back, …
const READ_BACK: u64 = 64;
/// … as long as they are no more than this many bytes.
const READ_BACK_BYTES: u64 = 16_000_000;
/// Rows that the load commits at once, where the database has transactions.
const LOAD_BATCH: u64 = 200;

pub(super) struct SessionWorkload {
    store: Arc<Store>,
    data: String,
    read_from: Arc<Collection>,
    write_to: Arc<Collection>,
    records: u64,
    clients: usize,
    prepare_once: bool,
    connection_per_request: bool,
    stored_bytes: u64,
}

impl SessionWorkload {
    pub(super) fn new(cell: &Cell, dataset: &Dataset) -> Result<Self> {
        let store = Arc::new(Store::new(cell, dataset.seed)?);
        let payload = cell.number("payload")?;
        let records =
            dataset.records.unwrap_or_else(|| RECORDS.min(STORE_BYTES / payload).max(LEAST_RECORDS)).max(1);
        let axes = ["layout", "compress", "encoding", "content"].map(|axis| cell.word(axis));
        let [layout, compress, encoding, content] = axes;
        let data = format!(
            "kurabe_{}_session_{payload}_{}_{}_{}_{}",
            dataset.slot, layout?, compress?, encoding?, content?
        );
        let mut workload = Self {
            read_from: Arc::new(store.collection(format!("{data}_r"))),
            write_to: Arc::new(store.collection(format!("{data}_w"))),
            data,
            store,
            records,
            clients: axes::clients(cell)?,
            prepare_once: cell.word("statement")? == "once",
            connection_per_request: axes::connection_per_request(cell)?,
            stored_bytes: payload,
        };
        workload.stored_bytes = workload.sample_stored_bytes()?;
        Ok(workload)
    }

    /// The mean over a few sessions: compressed sizes hardly differ.
    fn sample_stored_bytes(&self) -> Result<u64> {
        let mut codec = self.store.codec()?;
        if codec.is_plain() {
            return Ok(self.store.content.length() as u64);
        }
        let sample = if self.store.content.length() > 50_000 { 1 } else { 8 };
        let mut payload = Vec::new();
        let mut sum = 0;
        for key in 0..sample {
            self.store.content.write(key, 0, &mut payload);
            sum += codec.encode(&payload)?.len() as u64;
        }
        Ok(sum / sample)
    }

    fn writer(&self, collection: &Arc<Collection>, client: Client) -> Result<Write> {
        Write::new(&self.store, collection, self.prepare_once, client)
    }

    /// Counts rows on the server; `None` where the database cannot count.
    fn count(session: &mut dyn Session, collection: &Arc<Collection>) -> Result<Option<u64>> {
        let count = match session.prepare(&Operation::Count { collection: Arc::clone(collection) }) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut reply = Reply::new();
        session.execute(&count, &[], &mut reply)?;
        session.release(count)?;
        let rows = reply.field_int(0, 0).and_then(|rows| u64::try_from(rows).ok());
        rows.map(Some).ok_or_else(|| Error::mismatch("the server's count is not a number"))
    }

    /// Reads sessions back and compares them byte for byte.
    fn read_back(
        &self,
        session: &mut dyn Session,
        from: &Arc<Collection>,
        keys: impl Iterator<Item = u64>,
    ) -> Result<u64> {
        let select = session.prepare(&self.store.select(from))?;
        let mut answer = Answer::new(&self.store)?;
        let mut read = 0;
        for key in keys {
            let id = Ident::of(self.store.seed, key);
            session.execute(&select, &[Value::Text(id.as_str())], &mut answer.reply)?;
            answer.open(&self.store)?;
            answer.check(&self.store, key).map_err(|e| e.context("read back after the trial"))?;
            read += 1;
        }
        session.release(select)?;
        Ok(read)
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[Done]) -> Result<Checked> {
        let sessions: u64 = done.iter().map(|done| done.completed).sum();
        let rows: u64 = done.iter().map(|done| done.rows_written).sum();
        let all = || done.iter().flat_map(|done| Write::keys(done.client, done.completed));
        let Some(counted) = Self::count(session, &self.write_to)? else {
            // Where nothing counts, every session is asked for.
            let read = self.read_back(session, &self.write_to, all())?;
            return Ok(Checked { writes_counted: read, records_read_back: read, ..Checked::default() });
        };
        if counted != rows {
            return Err(Error::mismatch(format!(
                "{rows} rows of {sessions} sessions were acknowledged and the server counts {counted}"
            )));
        }
        let most = READ_BACK.min(READ_BACK_BYTES / self.store.content.length() as u64).max(2);
        // Evenly over what was written, the first and the last of it among them.
        let step = (sessions.saturating_sub(1) as f64 / (most - 1) as f64).max(1.0);
        let mut picked: Vec<u64> =
            (0..most).map(|n| (n as f64 * step) as u64).filter(|n| *n < sessions).collect();
        picked.extend(sessions.checked_sub(1));
        picked.dedup();
        let mut wanted = picked.into_iter().peekable();
        let keys = all().enumerate().filter_map(|(n, key)| wanted.next_if_eq(&(n as u64)).map(|_| key));
        let read = self.read_back(session, &self.write_to, keys)?;
        Ok(Checked { writes_counted: sessions, records_read_back: read, ..Checked::default() })
    }
}

impl Workload for SessionWorkload {
    fn demand(&self) -> Demand {
        let stored = self.stored_bytes as usize;
        let rows = self.store.rows(stored);
        let value = if self.store.layout == Layout::Rows { stored.min(pieces::PIECE) } else { stored };
        Demand {
            operations: vec![self.store.insert(&self.write_to, rows), self.store.select(&self.read_from)],
            capabilities: Vec::from_iter((!self.prepare_once).then_some(Capability::PreparedStatements)),
            value_bytes: value as u64,
            // Each row brings its identifier, number and time, and a few bytes of framing.
            request_bytes: (stored + rows * 72 + 256) as u64,
            parameters: (rows * self.write_to.fields.len()) as u64,
            connections: self.clients as u64 + 2,
            loaded_bytes: self.records * self.stored_bytes,
            client_bytes: 4 * self.store.content.length() as u64 + 64_000,
            ..Demand::default()
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn connection_per_request(&self) -> bool {
        self.connection_per_request
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(self.stored_bytes)
    }

    fn data(&self) -> String {
        self.data.clone()
    }

    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()> {
        namespace.create(&self.write_to)?;
        namespace.create(&self.read_from)?;
        let batch: Option<(Prepared, Prepared)> = match session.prepare(&Operation::Begin) {
            Ok(begin) => Some((begin, session.prepare(&Operation::Commit)?)),
            Err(error) if error.kind() == ErrorKind::Unsupported => None,
            Err(error) => return Err(error),
        };
        let mut reply = Reply::new();
        let mut writer = self.writer(&self.read_from, Client { index: 0, count: 1, seed: 0 })?;
        writer.attach(session)?;
        for key in 0..self.records {
            if let Some((begin, _)) = &batch
                && key % LOAD_BATCH == 0
            {
                session.execute(begin, &[], &mut reply)?;
            }
            writer.draw();
            writer.run(session)?;
            writer.check()?;
            if let Some((_, commit)) = &batch
                && (key % LOAD_BATCH == LOAD_BATCH - 1 || key + 1 == self.records)
            {
                session.execute(commit, &[], &mut reply)?;
            }
        }
        namespace.analyse(&self.read_from)?;
        let counted = Self::count(session, &self.read_from)?;
        if counted.is_some_and(|counted| counted != writer.rows_written()) {
            return Err(Error::mismatch(format!(
                "{} rows were loaded and the server counts {}",
                writer.rows_written(),
                counted.unwrap_or_default()
            )));
        }
        if counted.is_none() {
            self.read_back(session, &self.read_from, 0..self.records)
                .map_err(|e| e.context("after loading"))?;
        }
        Ok(())
    }

    fn before(
        &self,
        operation: &str,
        namespace: &mut dyn Namespace,
        _session: &mut dyn Session,
    ) -> Result<()> {
        if operation == WRITE { namespace.clear(&self.write_to) } else { Ok(()) }
    }

    fn transaction(&self, operation: &str, client: Client) -> Result<Box<dyn Transaction>> {
        Ok(match operation {
            WRITE => Box::new(self.writer(&self.write_to, client)?),
            READ => {
                Box::new(Read::new(&self.store, &self.read_from, self.prepare_once, self.records, client)?)
            }
            _ => return Err(no_operation(INFO.name, operation)),
        })
    }

    fn after(&self, operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Checked> {
        if operation == WRITE { self.check_writes(session, done) } else { Ok(Checked::default()) }
    }
}
