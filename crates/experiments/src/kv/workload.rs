//! A cell of kv on a database as the engine sees it: load, transaction, check.

use super::record::LENGTH;
use super::store::Store;
use super::transaction::{Read, Write};
use super::{INFO, READ, WRITE};
use crate::axes;
use crate::count::{COUNT, Count};
use crate::defect::no_operation;
use crate::fill::{REQUEST_ROWS, count};
use kurabe_core::axis::Cell;
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{Client, Dataset, Demand, Done, Transaction, Workload};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, Result};
use std::sync::Arc;

pub(super) struct KvWorkload {
    store: Arc<Store>,
    clients: usize,
    connection_per_request: bool,
}

impl KvWorkload {
    pub(super) fn new(cell: &Cell, dataset: &Dataset) -> Result<Self> {
        Ok(Self {
            store: Arc::new(Store::new(dataset.slot, dataset.seed, dataset.records)),
            clients: axes::clients(cell)?,
            connection_per_request: axes::connection_per_request(cell)?,
        })
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[Done]) -> Result<Verification> {
        let writes: u64 = done.iter().map(|done| done.rows_written).sum();
        let made: u64 = done.iter().map(|done| done.completed).sum();
        if made != writes {
            return Err(Error::mismatch(format!("{made} records were added and {writes} acknowledged")));
        }
        let counted = count(session, &self.store.added)?;
        if let Some(rows) = counted
            && rows != writes
        {
            return Err(Error::mismatch(format!(
                "{writes} records were acknowledged and the server counts {rows}"
            )));
        }
        let keys = done.iter().flat_map(|done| Write::keys(&self.store, done.client, done.completed));
        let read_back = self.store.read_back(session, keys)?;
        let counted = counted.unwrap_or(0);
        Ok(Verification { writes, records: writes, counted, read_back, ..Verification::default() })
    }
}

impl Workload for KvWorkload {
    fn demand(&self) -> Demand {
        let row = LENGTH as u64 + 32;
        Demand {
            operations: vec![
                Store::select(&self.store.loaded),
                Store::select(&self.store.added),
                self.store.insert(),
            ],
            capabilities: Vec::new(),
            value_bytes: LENGTH as u64,
            request_bytes: row * REQUEST_ROWS,
            parameters: 2 * REQUEST_ROWS,
            connections: self.clients as u64 + 2,
            loaded_bytes: self.store.records * row,
            client_bytes: 64_000,
            ..Demand::default()
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn connection_per_request(&self) -> bool {
        self.connection_per_request
    }

    fn further_pages(&self) -> &'static [&'static str] {
        &[COUNT]
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        vec![("seed", self.store.seed), ("records", self.store.records)]
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(LENGTH as u64)
    }

    fn data(&self) -> String {
        self.store.loaded.name.clone()
    }

    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()> {
        namespace.create(&self.store.added)?;
        namespace.create(&self.store.loaded)?;
        self.store.fill(session)?;
        namespace.analyse(&self.store.loaded)?;
        self.store.check_load(session).map_err(|error| error.context("after loading"))
    }

    fn before(
        &self,
        operation: &str,
        namespace: &mut dyn Namespace,
        _session: &mut dyn Session,
    ) -> Result<()> {
        if operation == WRITE { namespace.clear(&self.store.added) } else { Ok(()) }
    }

    fn transaction(&self, operation: &str, client: Client) -> Result<Box<dyn Transaction>> {
        match operation {
            READ => Ok(Box::new(Read::new(&self.store, client))),
            WRITE => Ok(Box::new(Write::new(&self.store, client))),
            COUNT => Ok(Box::new(Count::new(&self.store.added))),
            _ => Err(no_operation(INFO.name, operation)),
        }
    }

    fn after(&self, operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Verification> {
        if operation == WRITE { self.check_writes(session, done) } else { Ok(Verification::default()) }
    }
}
