//! A cell of point-read or point-write as the engine sees it: load, transaction, check.

use super::pipelined::{ReadMany, WriteMany};
use super::store::{LENGTH, Store};
use super::transaction::{Keys, Read, Write};
use super::{NEW, READ, WRITE};
use crate::axes;
use crate::fill::REQUEST_ROWS;
use crate::statement::Bind;
use kurabe_core::axis::Cell;
use kurabe_core::driver::{Capability, Namespace, Session};
use kurabe_core::experiment::{
    Capacity, Client, Dataset, Demand, Done, ExperimentInfo, Footprint, Transaction, Workload,
};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;

pub(crate) struct PointWorkload {
    store: Arc<Store>,
    clients: usize,
    bind: Bind,
    /// Whether a database without statements has nothing to show here.
    needs_statements: bool,
    connection_per_request: bool,
    /// Connections that all clients share.
    pool: Option<usize>,
    /// Requests sent before their answers are awaited.
    pipeline: usize,
    writes: bool,
    /// Which connections' cost to the server is asked.
    footprint: Option<Footprint>,
    /// Pages that an application serves beside the operations.
    further: &'static [&'static str],
}

impl PointWorkload {
    pub(super) fn new(info: &ExperimentInfo, cell: &Cell, dataset: &Dataset) -> Result<Self> {
        let name = format!("kurabe_{}_{}", dataset.slot, info.name.replace('-', "_"));
        let store = Arc::new(Store::new(name, dataset.seed, dataset.records));
        let clients = cell.number("clients")?;
        let writes = info.operations.iter().any(|operation| operation.writes);
        if writes && clients > store.records {
            let records = store.records;
            return Err(Error::unsupported(format!(
                "each client changes rows of its own, and there are {records} for {clients} clients"
            )));
        }
        let pipeline = cell.number("pipeline")? as usize;
        let bind = Bind::parse(cell.word("statement")?)?;
        if pipeline > 1 && bind != Bind::Once {
            let why = "a statement that is prepared for one request has none to be sent together with";
            return Err(Error::unsupported(why));
        }
        Ok(Self {
            store,
            clients: clients as usize,
            bind,
            needs_statements: bind != Bind::Once,
            pool: None,
            pipeline,
            connection_per_request: axes::connection_per_request(cell)?,
            writes,
            footprint: None,
            further: &[],
        })
    }

    /// Reads by key, one request at a time, said in this way.
    pub(crate) fn reading(name: &str, bind: Bind, cell: &Cell, dataset: &Dataset) -> Result<Self> {
        let name = format!("kurabe_{}_{name}", dataset.slot);
        Ok(Self {
            store: Arc::new(Store::new(name, dataset.seed, dataset.records)),
            clients: axes::clients(cell)?,
            bind,
            needs_statements: bind != Bind::InOne,
            pool: None,
            pipeline: 1,
            connection_per_request: axes::connection_per_request(cell)?,
            writes: false,
            footprint: None,
            further: &[],
        })
    }

    /// Has all clients share so many connections.
    pub(crate) fn set_pool(&mut self, size: usize) {
        self.pool = Some(size);
    }

    /// Has an application serve a page more, [`NEW`], on which each read has a connection of its own.
    pub(crate) fn serve_new(&mut self) {
        self.further = &[NEW];
    }

    /// Connections that stand idle beside the clients' own.
    fn idle(&self) -> usize {
        if let Some(Footprint::Idle(count)) = self.footprint { count } else { 0 }
    }

    /// Asks what these connections cost the server, statements prepared once for each connection where there are any.
    pub(crate) fn set_footprint(&mut self, footprint: Footprint) {
        self.footprint = Some(footprint);
        self.needs_statements = false;
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[Done]) -> Result<Verification> {
        let completed: u64 = done.iter().map(|done| done.completed).sum();
        let acknowledged: u64 = done.iter().map(|done| done.rows_written).sum();
        if completed != acknowledged {
            return Err(Error::mismatch(format!(
                "{completed} changes were made and {acknowledged} acknowledged"
            )));
        }
        self.store.check_count(session)?;
        let written =
            done.iter().flat_map(|done| Keys::new(self.store.records, done.client).written(done.completed));
        let read = self.store.read_back(session, written)?;
        Ok(Verification { writes: acknowledged, records: read, read_back: read, ..Verification::default() })
    }
}

impl Workload for PointWorkload {
    fn demand(&self) -> Demand {
        let row = LENGTH as u64 + 32;
        let mut operations = vec![self.store.select(), self.store.insert()];
        if self.writes {
            operations.push(self.store.update());
        }
        let needed = [
            (self.needs_statements, Capability::PreparedStatements),
            (self.bind == Bind::Literal, Capability::Literals),
            (self.pipeline > 1, Capability::Pipelining),
        ];
        Demand {
            operations,
            capabilities: needed.into_iter().filter(|(needs, _)| *needs).map(|(_, what)| what).collect(),
            value_bytes: LENGTH as u64,
            request_bytes: row * REQUEST_ROWS,
            parameters: 2 * REQUEST_ROWS,
            connections: (self.pool.unwrap_or(self.clients) + self.idle()) as u64 + 2,
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

    fn pool(&self) -> Option<usize> {
        self.pool
    }

    fn footprint(&self) -> Option<Footprint> {
        self.footprint
    }

    fn capacity(&self, operation: &str) -> Option<Capacity> {
        (operation == WRITE).then_some(Capacity { records: self.store.records, requests_per_record: 1 })
    }

    fn pipeline(&self) -> u64 {
        self.pipeline as u64
    }

    fn further_pages(&self) -> &'static [&'static str] {
        self.further
    }

    fn connects_anew(&self, operation: &str) -> bool {
        operation == NEW
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        vec![("seed", self.store.seed), ("records", self.store.records)]
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(LENGTH as u64)
    }

    fn data(&self) -> String {
        self.store.collection.name.clone()
    }

    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()> {
        namespace.create(&self.store.collection)?;
        self.store.fill(session)?;
        namespace.analyse(&self.store.collection)?;
        self.store.check_count(session)?;
        self.store.check_load(session).map_err(|error| error.context("after loading"))
    }

    fn before(&self, _: &str, _: &mut dyn Namespace, _: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn transaction(&self, operation: &str, client: Client) -> Result<Box<dyn Transaction>> {
        match operation {
            READ if self.pipeline > 1 => Ok(Box::new(ReadMany::new(&self.store, self.pipeline, client))),
            READ | NEW => Ok(Box::new(Read::new(&self.store, self.bind, client))),
            WRITE if self.pipeline > 1 => Ok(Box::new(WriteMany::new(&self.store, self.pipeline, client))),
            WRITE => Ok(Box::new(Write::new(&self.store, self.bind, client))),
            _ => {
                Err(Error::new(ErrorKind::Internal, format!("there is no operation '{operation}' on points")))
            }
        }
    }

    fn after(&self, operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Verification> {
        if operation == WRITE { self.check_writes(session, done) } else { Ok(Verification::default()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::experiment::Experiment;

    fn workload(clients: &str, records: u64) -> Result<Box<dyn Workload>> {
        let experiment = super::super::PointWrite;
        let cell = experiment.info().baseline(&[("clients", clients)]).unwrap();
        experiment.workload(&cell, &Dataset { seed: 1, records: Some(records), slot: 3 })
    }

    #[test]
    fn more_writers_than_rows_are_refused_with_the_reason() {
        assert_eq!(workload("10", 10).unwrap().data(), "kurabe_3_point_write");
        let error = workload("11", 10).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("there are 10 for 11 clients"), "{error}");
    }
}
