//! A cell of kv on a database as the engine sees it: load, transaction, check.

use super::record::{Digests, LENGTH};
use super::transaction::Write;
use super::{INFO, READ, WRITE};
use crate::axes;
use crate::count::{COUNT, Count};
use crate::defect::no_operation;
use crate::prelude::*;
use crate::rows::{LOADED, Read, Rows};
use crate::statement::Bind;

/// Default number of records before the measurement.
const RECORDS: u64 = 10_000;

pub(super) struct KvWorkload {
    loaded: Arc<Rows<Digests>>,
    /// The records that a trial adds; their keys follow the loaded ones.
    added: Arc<Rows<Digests>>,
}

impl KvWorkload {
    pub(super) fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let rows = |part: &str, records: u64| {
            let name = format!("kurabe_{}_kv_{part}", dataset.slot);
            Arc::new(Rows::new(name, Digests { seed: dataset.seed }, records))
        };
        let (loaded, added) = (rows("r", dataset.records.unwrap_or(RECORDS).max(1)), rows("w", 0));
        let demand = loaded.demand(vec![added.select(), added.insert()]);
        let name = loaded.collection.name.clone();
        let workload = Arc::new(Self { loaded, added });
        let planned = PlannedCell::served(name, demand, axes::policy(cell)?, move || Arc::clone(&workload));
        Ok(PlannedCell { stored_bytes: Some(LENGTH as u64), ..planned })
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[ClientSummary]) -> Result<Verification> {
        let writes: u64 = done.iter().map(|done| done.rows_written).sum();
        let made: u64 = done.iter().map(|done| done.completed).sum();
        if made != writes {
            return Err(Error::mismatch(format!(
                "{made} records were added, but {writes} were acknowledged"
            )));
        }
        let counted = self.added.check_count(session, writes)?;
        let keys = |done: &ClientSummary| Write::keys(self.loaded.records, done.client, done.completed);
        let read_back = self.added.read_back(session, done.iter().flat_map(keys).map(|key| (key, LOADED)))?;
        let counted = counted.unwrap_or(0);
        Ok(Verification { writes, records: writes, counted, read_back, ..Verification::default() })
    }
}

impl Prepare for KvWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.added.collection)?;
        self.loaded.load(namespace, session)
    }

    fn before(&self, Before { operation, namespace, .. }: Before<'_>) -> Result<()> {
        if operation == WRITE { namespace.clear(&self.added.collection) } else { Ok(()) }
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

    fn after(&self, After { operation, session, clients, .. }: After<'_>) -> Result<Checked> {
        let checked = (operation == WRITE).then(|| self.check_writes(session, clients)).transpose()?;
        Ok(checked.unwrap_or_default().into())
    }
}

impl Serve for KvWorkload {
    fn further(&self) -> &'static [&'static str] {
        &[COUNT]
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        vec![("seed", self.loaded.data.seed), ("records", self.loaded.records)]
    }

    fn page(&self, name: &str, _state: &DatasetState, client: Client) -> Result<Box<dyn Page>> {
        match name {
            READ => Ok(Box::new(Read::new(&self.loaded, Some(&self.added), Bind::Once, client))),
            WRITE => Ok(Box::new(Write::new(&self.added, self.loaded.records, client))),
            COUNT => Ok(Box::new(Count::new(&self.added.collection))),
            _ => Err(no_operation(INFO.name, name)),
        }
    }
}
