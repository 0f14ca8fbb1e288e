//! A cell of point-read or point-write as the engine sees it: load, transaction, check.

use super::pipelined::{ReadMany, WriteMany};
use super::store::{LENGTH, Store, store};
use super::transaction::{Keys, Write};
use super::{NEW, READ, WRITE};
use crate::axes;
use crate::prelude::*;
use crate::rows::Read;
use crate::statement::Bind;

/// How rows are read or changed.
pub(crate) struct PointWorkload {
    store: Arc<Store>,
    seed: u64,
    bind: Bind,
    /// Requests that are sent before their answers are read.
    pipeline: usize,
    /// Pages that an application serves in addition to the operations.
    further: &'static [&'static str],
}

impl PointWorkload {
    pub(super) fn plan(info: &ExperimentInfo, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let writes = info.operations.iter().any(|operation| operation.writes);
        let store = store(&info.name.replace('-', "_"), dataset);
        let clients = cell.number("clients")?;
        if writes && clients > store.records {
            let records = store.records;
            return Err(Error::unsupported(format!(
                "each client changes its own rows: {records} are too few for {clients} clients"
            )));
        }
        let pipeline = cell.number("pipeline")?;
        let bind = Bind::parse(cell.word("statement")?)?;
        if pipeline > 1 && bind != Bind::Once {
            let why = "--pipeline needs --statement once";
            return Err(Error::unsupported(why));
        }
        let capacity = writes.then_some(Capacity { records: store.records, requests_per_record: 1 });
        let policy = LoopPolicy { pipeline, capacity, ..axes::policy(cell)? };
        let mut needed = Vec::from_iter((bind != Bind::Once).then_some(Capability::PreparedStatements));
        needed.extend((pipeline > 1).then_some(Capability::Pipelining));
        let operations = if writes { vec![store.update()] } else { Vec::new() };
        let workload = Self { store, seed: dataset.seed, bind, pipeline: pipeline as usize, further: &[] };
        Ok(workload.planned(operations, needed, policy))
    }

    /// Plans clients that read by key, one request at a time, with this way of binding.
    pub(crate) fn plan_reads(
        name: &str,
        bind: Bind,
        policy: LoopPolicy,
        dataset: &Dataset,
        further: &'static [&'static str],
    ) -> PlannedCell {
        let needed = match bind {
            Bind::InOne => Vec::new(),
            Bind::Literal => vec![Capability::PreparedStatements, Capability::Literals],
            Bind::Once | Bind::PerRequest => vec![Capability::PreparedStatements],
        };
        let workload = Self { store: store(name, dataset), seed: dataset.seed, bind, pipeline: 1, further };
        workload.planned(Vec::new(), needed, policy)
    }

    fn planned(
        self,
        operations: Vec<Operation>,
        capabilities: Vec<Capability>,
        policy: LoopPolicy,
    ) -> PlannedCell {
        let demand = self.store.demand(operations);
        let name = self.store.collection.name.clone();
        let (demand, workload) = (Demand { capabilities, ..demand }, Arc::new(self));
        let planned = PlannedCell::served(name, demand, policy, move || Arc::clone(&workload));
        PlannedCell { stored_bytes: Some(LENGTH as u64), ..planned }
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[ClientSummary]) -> Result<Verification> {
        let completed: u64 = done.iter().map(|done| done.completed).sum();
        let acknowledged: u64 = done.iter().map(|done| done.rows_written).sum();
        if completed != acknowledged {
            return Err(Error::mismatch(format!(
                "{completed} changes were completed, but {acknowledged} were acknowledged"
            )));
        }
        self.store.check_count(session, self.store.records)?;
        let written =
            done.iter().flat_map(|done| Keys::new(self.store.records, done.client).written(done.completed));
        let read = self.store.read_back(session, written)?;
        Ok(Verification { writes: acknowledged, records: read, read_back: read, ..Verification::default() })
    }
}

impl Prepare for PointWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        self.store.load(namespace, session)
    }
}

impl Workload for PointWorkload {
    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>> {
        match operation {
            READ if self.pipeline > 1 => Ok(Box::new(ReadMany::new(&self.store, self.pipeline, client))),
            WRITE if self.pipeline > 1 => Ok(Box::new(WriteMany::new(&self.store, self.pipeline, client))),
            _ => Ok(self.page(operation, state, client)?),
        }
    }

    fn after(&self, After { operation, session, clients, .. }: After<'_>) -> Result<Checked> {
        let checked = (operation == WRITE).then(|| self.check_writes(session, clients)).transpose()?;
        Ok(checked.unwrap_or_default().into())
    }
}

impl Serve for PointWorkload {
    fn further(&self) -> &'static [&'static str] {
        self.further
    }

    fn connects_anew(&self, page: &str) -> bool {
        page == NEW
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        vec![("seed", self.seed), ("records", self.store.records)]
    }

    fn page(&self, name: &str, _state: &DatasetState, client: Client) -> Result<Box<dyn Page>> {
        match name {
            READ | NEW => Ok(Box::new(Read::new(&self.store, None, self.bind, client))),
            WRITE => Ok(Box::new(Write::new(&self.store, self.bind, client))),
            _ => Err(Error::new(ErrorKind::Internal, format!("unknown point operation '{name}'"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::experiment::Experiment;

    fn planned(clients: &str, records: u64) -> Result<PlannedCell> {
        let experiment = super::super::PointWrite;
        let cell = experiment.info().baseline(&[("clients", clients)]).unwrap();
        experiment.plan(&cell, &Dataset { seed: 1, records: Some(records), slot: 3 })
    }

    #[test]
    fn more_writers_than_rows_are_rejected_with_reason() {
        assert_eq!(planned("10", 10).unwrap().dataset, "kurabe_3_point_write");
        let error = planned("11", 10).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("10 are too few for 11 clients"), "{error}");
    }
}
