//! What an experiment says of one cell before anything is measured: what it needs, what the engine arranges for it, and how
//! its clients work. All of it are values; the engine compares them with targets and groups trials by them.

use crate::driver::Capability;
use crate::error::{Error, ErrorKind, Result};
use crate::experiment::Workload;
use crate::job::Job;
use crate::operation::Operation;
use crate::page::Serve;
use std::sync::Arc;

/// One cell of an experiment, planned.
pub struct PlannedCell {
    /// What it needs of its target.
    pub demand: Demand,
    /// What the engine arranges before each trial.
    pub provision: Provision,
    /// Names the data that [`Prepare::load`](crate::experiment::Prepare::load) makes: cells with the same name on one target share it.
    pub dataset: String,
    /// Mean bytes handed to the database for one record, after compression and encoding.
    pub stored_bytes: Option<u64>,
    /// How its clients work. A job is one client.
    pub policy: LoopPolicy,
    /// What they do.
    pub work: Work,
    /// Makes what an application serves of it; `None` where it has no pages.
    pub serve: Option<MakeServed>,
}

/// The work of a cell, made for each trial, so that no large buffers are held for cells that wait.
pub enum Work {
    /// Transactions, over and over.
    Loop(Make),
    /// Something that begins and ends.
    Job(MakeJob),
}

/// Makes the work of a loop.
pub type Make = Box<dyn Fn() -> Arc<dyn Workload> + Send + Sync>;

/// Makes a job.
pub type MakeJob = Box<dyn Fn() -> Arc<dyn Job> + Send + Sync>;

/// What [`PlannedCell::serve`] is.
pub type MakeServed = Box<dyn Fn() -> Arc<dyn Serve> + Send + Sync>;

impl PlannedCell {
    /// A cell of clients that work on these data, with nothing arranged. A struct update says what else there is.
    pub fn new(
        dataset: impl Into<String>,
        demand: Demand,
        policy: LoopPolicy,
        workload: impl Workload + 'static,
    ) -> Self {
        let workload: Arc<dyn Workload> = Arc::new(workload);
        Self::of(dataset.into(), demand, policy, Work::Loop(Box::new(move || Arc::clone(&workload))))
    }

    /// A cell whose transactions are also pages of an application.
    pub fn served<W: Serve + 'static>(
        dataset: impl Into<String>,
        demand: Demand,
        policy: LoopPolicy,
        make: impl Fn() -> Arc<W> + Send + Sync + 'static,
    ) -> Self {
        let make = Arc::new(make);
        let serve = Arc::clone(&make);
        let work = Work::Loop(Box::new(move || make()));
        Self { serve: Some(Box::new(move || serve())), ..Self::of(dataset.into(), demand, policy, work) }
    }

    /// A cell that is a job on these data. It has so many sessions, and is made alone.
    pub fn job(dataset: impl Into<String>, demand: Demand, sessions: usize, job: impl Job + 'static) -> Self {
        let job: Arc<dyn Job> = Arc::new(job);
        let policy = LoopPolicy { interleave: false, ..LoopPolicy::new(1, Connections::Pool(sessions)) };
        Self::of(dataset.into(), demand, policy, Work::Job(Box::new(move || Arc::clone(&job))))
    }

    fn of(dataset: String, demand: Demand, policy: LoopPolicy, work: Work) -> Self {
        let provision = Provision::default();
        Self { demand, provision, dataset, stored_bytes: None, policy, work, serve: None }
    }

    /// The work of a loop.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) where it is a job.
    pub fn workload(&self) -> Result<Arc<dyn Workload>> {
        match &self.work {
            Work::Loop(make) => Ok(make()),
            Work::Job(_) => Err(Error::new(ErrorKind::Internal, "a job is no loop")),
        }
    }

    /// Connections that are open at once: the clients', idle ones, and two by which the engine loads and checks.
    pub fn connections(&self) -> u64 {
        let clients = match self.policy.connections {
            Connections::Pool(size) => size,
            Connections::Kept | Connections::PerRequest => self.policy.clients,
        };
        (clients + self.provision.idle_connections) as u64 + 2
    }
}

/// What the engine arranges before a trial, so that no experiment does it by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provision {
    /// Restarts the server, where it is ours, before each trial: for what earlier trials leave in a server's memory.
    pub restart: bool,
    /// Connections that are opened once the clients have warmed up, and stand idle until the trial ends.
    pub idle_connections: usize,
    /// The cache in front of the store, where there is one.
    pub cache: Option<CacheNeed>,
    /// Reads what the server's processes hold with the idle connections open, or with the clients' where there are none idle,
    /// and what they held just before.
    pub server_memory: bool,
}

/// A cache that a cell needs in front of its store. A run has one of each name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheNeed {
    /// Its name, by which collections say that they lie in it.
    pub name: String,
    /// Values that it must have memory for, and the bytes of each: it is a throwaway server. `None`: it is taken as it is.
    pub capacity: Option<(u64, u64)>,
}

/// How the clients of a loop work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopPolicy {
    /// How many run at once.
    pub clients: usize,
    /// Where a transaction has its connection from.
    pub connections: Connections,
    /// Requests that one transaction sends before it awaits their answers. Each counts as a request of its own, and its
    /// service time is that of them all.
    pub pipeline: u64,
    /// Whether its trials may be interleaved with those of other cells: not where what one leaves behind decides what the
    /// next one finds, as in a cache.
    pub interleave: bool,
    /// Whether every answer of a transaction that only reads is compared with what it must be.
    pub verifies_reads: bool,
    /// How many transactions of an operation that writes one trial may have; `None` where they never run out of records.
    pub capacity: Option<Capacity>,
}

impl LoopPolicy {
    /// Clients that send one request at a time, and that any number of trials may follow.
    pub fn new(clients: usize, connections: Connections) -> Self {
        Self { clients, connections, pipeline: 1, interleave: true, verifies_reads: true, capacity: None }
    }
}

/// Where the transactions of a loop have their connections from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Each client keeps one.
    Kept,
    /// All clients share so many: each transaction is attached to one that it takes, and detached before it gives it back.
    Pool(usize),
    /// Each transaction opens one and closes it.
    PerRequest,
}

/// What a cell needs of its target: compared with what the driver supports and with the server's limits when the
/// run is planned, before anything is measured.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// Every operation that the transaction, the load and the check prepare.
    pub operations: Vec<Operation>,
    /// What its driver must be able to do beside them: a target without one of these has no such cell.
    pub capabilities: Vec<Capability>,
    /// The largest single value, in bytes.
    pub value_bytes: u64,
    /// The largest request or answer, values together, in bytes.
    pub request_bytes: u64,
    /// The most parameters of one request.
    pub parameters: u64,
    /// Bytes that the load puts into the store.
    pub loaded_bytes: u64,
    /// Bytes of memory that each client holds.
    pub client_bytes: u64,
    /// What the target must have said of itself.
    pub settings: Vec<NeededSetting>,
}

/// A setting that a target must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededSetting {
    /// Its name, as the target tells it.
    pub name: String,
    /// The value that it must have.
    pub value: String,
    /// How it comes to have it, a clause: "start it with …".
    pub remedy: String,
}

/// How many transactions one trial may have where each record is changed at most once.
///
/// Records are dealt out to clients in turn: of n records and c clients, each has n/c, and the first n mod c have one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Records that a trial may change.
    pub records: u64,
    /// Requests for each record: 20 where one request in 20 changes one.
    pub requests_per_record: u64,
}

impl Capacity {
    /// Requests that a client may make in one trial, warm-up included.
    pub fn of_client(&self, index: usize, count: usize) -> u64 {
        share(self.records, index, count).saturating_mul(self.requests_per_record)
    }
}

/// The part of `n` that falls to a client where it is dealt out in turn.
pub fn share(n: u64, index: usize, count: usize) -> u64 {
    let count = count.max(1) as u64;
    n / count + u64::from((index as u64) < n % count)
}
