//! A cell of the session store as the engine sees it: load, transaction, check.

use super::store::{Layout, Store};
use super::transaction::{Answer, Read, Write};
use super::{INFO, READ, WRITE};
use crate::axes;
use crate::defect::no_operation;
use crate::fill::count;
use crate::ident::Ident;
use crate::pieces;
use crate::readback;
use kurabe_core::axis::Cell;
use kurabe_core::collection::Collection;
use kurabe_core::driver::{Capability, Namespace, Prepared, Session};
use kurabe_core::experiment::{Client, Dataset, Demand, Done, Transaction, Workload};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Sessions in the store unless the user says otherwise: E1's …
const RECORDS: u64 = 1_000;
/// … but no more payload than this for each cell, so that forty cells of a megabyte do not fill a disk, …
const STORE_BYTES: u64 = 16_000_000;
/// … and never fewer than this, or the draws would not be uniform over anything.
const LEAST_RECORDS: u64 = 16;
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

    /// Reads sessions back and compares them byte for byte. Gives how many it read.
    fn read_back(
        &self,
        session: &mut dyn Session,
        from: &Arc<Collection>,
        keys: impl Iterator<Item = u64>,
    ) -> Result<u64> {
        let mut answer = Answer::new(&self.store)?;
        let keys = keys.map(|key| (key, Ident::of(self.store.seed, key)));
        readback::each(
            session,
            &self.store.select(from),
            self.stored_bytes,
            keys,
            |(_, id)| [Value::Text(id.as_str())],
            |(key, _), reply| {
                std::mem::swap(&mut answer.reply, reply);
                answer.open(&self.store)?;
                answer.check(&self.store, *key)
            },
        )
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[Done]) -> Result<Verification> {
        let writes: u64 = done.iter().map(|done| done.completed).sum();
        let rows: u64 = done.iter().map(|done| done.rows_written).sum();
        let counted = count(session, &self.write_to)?;
        if let Some(counted) = counted
            && counted != rows
        {
            return Err(Error::mismatch(format!(
                "{rows} rows of {writes} sessions were acknowledged and the server counts {counted}"
            )));
        }
        let keys = done.iter().flat_map(|done| Write::keys(done.client, done.completed));
        let read_back = self
            .read_back(session, &self.write_to, keys)
            .map_err(|error| error.context("read back after the trial"))?;
        let counted = counted.map_or(0, |_| writes);
        Ok(Verification { writes, records: writes, counted, read_back, ..Verification::default() })
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
        let mut writer = self.writer(&self.read_from, Client { index: 0, count: 1, seed: 0, trial: 0 })?;
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
        let rows = writer.rows_written();
        if let Some(counted) = count(session, &self.read_from)?
            && counted != rows
        {
            return Err(Error::mismatch(format!("{rows} rows were loaded and the server counts {counted}")));
        }
        self.read_back(session, &self.read_from, 0..self.records)
            .map(drop)
            .map_err(|error| error.context("after loading"))
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

    fn after(&self, operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Verification> {
        if operation == WRITE { self.check_writes(session, done) } else { Ok(Verification::default()) }
    }
}
