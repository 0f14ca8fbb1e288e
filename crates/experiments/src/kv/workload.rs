//! A cell of kv on a database as the engine sees it: load, transaction, check.

use super::record::LENGTH;
use super::store::Store;
use super::transaction::{Read, Write};
use super::{INFO, READ, WRITE};
use crate::axes;
use crate::count::{COUNT, Count};
use crate::defect::no_operation;
use crate::fill::{self, count};
use kurabe_core::axis::Cell;
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{
    Checked, Client, ClientSummary, Dataset, DatasetState, Prepare, Transaction, Workload,
};
use kurabe_core::page::{Page, Serve};
use kurabe_core::planned::PlannedCell;
use kurabe_core::verification::Verification;
use kurabe_core::{Error, Result};
use std::sync::Arc;

pub(super) struct KvWorkload {
    store: Arc<Store>,
}

impl KvWorkload {
    pub(super) fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let store = Arc::new(Store::new(dataset.slot, dataset.seed, dataset.records));
        let operations = vec![Store::select(&store.loaded), Store::select(&store.added), store.insert()];
        let demand = fill::demand_of_rows(operations, LENGTH as u64, store.records);
        let name = store.loaded.name.clone();
        let workload = Arc::new(Self { store });
        let planned = PlannedCell::served(name, demand, axes::policy(cell)?, move || Arc::clone(&workload));
        Ok(PlannedCell { stored_bytes: Some(LENGTH as u64), ..planned })
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[ClientSummary]) -> Result<Verification> {
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

impl Prepare for KvWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.store.added)?;
        namespace.create(&self.store.loaded)?;
        self.store.fill(session)?;
        namespace.analyse(&self.store.loaded)?;
        self.store.check_load(session).map_err(|error| error.context("after loading"))?;
        Ok(DatasetState::default())
    }

    fn before(
        &self,
        operation: &str,
        _state: &mut DatasetState,
        namespace: &mut dyn Namespace,
        _session: &mut dyn Session,
    ) -> Result<()> {
        if operation == WRITE { namespace.clear(&self.store.added) } else { Ok(()) }
    }
}

impl Workload for KvWorkload {
    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>> {
        Ok(self.page(operation, state, client)?)
    }

    fn after(
        &self,
        operation: &str,
        _state: &DatasetState,
        session: &mut dyn Session,
        clients: &[ClientSummary],
    ) -> Result<Checked> {
        let checked = (operation == WRITE).then(|| self.check_writes(session, clients)).transpose()?;
        Ok(checked.unwrap_or_default().into())
    }
}

impl Serve for KvWorkload {
    fn further(&self) -> &'static [&'static str] {
        &[COUNT]
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        vec![("seed", self.store.seed), ("records", self.store.records)]
    }

    fn page(&self, name: &str, _state: &DatasetState, client: Client) -> Result<Box<dyn Page>> {
        match name {
            READ => Ok(Box::new(Read::new(&self.store, client))),
            WRITE => Ok(Box::new(Write::new(&self.store, client))),
            COUNT => Ok(Box::new(Count::new(&self.store.added))),
            _ => Err(no_operation(INFO.name, name)),
        }
    }
}
