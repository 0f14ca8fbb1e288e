//! The plan of a cell: what it requires, what the engine provides, and how its clients work. All of these are values.
//! The engine checks them against targets and groups trials by them.

use crate::collection::Collection;
use crate::compression::Compression;
use crate::cpus::CpuAllotment;
use crate::driver::{Access, Capability, ConnectOptions, Driver, Namespace, Session, Support};
use crate::error::{Error, ErrorKind, Result};
use crate::experiment::{Before, DatasetState, Workload};
use crate::job::Job;
use crate::operation::Operation;
use crate::page::ServedPages;
use crate::remote::RemoteServer;
use crate::statements;
use crate::transfer::Transfer;
use std::sync::Arc;
use std::time::Duration;

/// The plan of one cell.
pub struct PlannedCell {
    /// What it requires of its target.
    pub demand: Demand,
    /// What single operations require besides. An operation that its target cannot do is not measured; the others are.
    pub operations: Vec<(&'static str, Demand)>,
    /// Axes without an effect in this cell: of the cells that differ in nothing else, only the one with their first values
    /// is measured.
    pub ignores: &'static [&'static str],
    /// What the engine provides before each trial; each kind at most once.
    pub needs: Vec<Need>,
    /// The name of the data that [`Workload::load`] creates. Cells with the same
    /// name on one target share it.
    pub dataset: String,
    /// Mean bytes per record sent to the database, after compression and encoding.
    pub stored_bytes: Option<u64>,
    /// How long the timed part of a trial takes at least, as far as is known without the target. The budget of a run
    /// counts it. Zero for work that ends when its time is over, or takes no longer than other trials.
    pub min_time: Duration,
    /// The time of its work on the machine of the tests; the budget counts it besides, as long as this machine would take. Round trips
    /// of the timed part of a trial that follow one another, and bytes that they move. Zero for the same work.
    pub usual_time: Duration,
    pub round_trips: u64,
    pub moved_bytes: u64,
    /// How its clients work. A job has one client.
    pub policy: LoopPolicy,
    pub work: Work,
    /// How an application serves its transactions; `None` if they are no pages.
    pub pages: Option<ServedPages>,
}

/// The work of a cell.
pub enum Work {
    /// Repeated transactions. They are made for each trial, so that waiting cells hold no large buffers.
    Loop(MakeWorkload),
    /// Work that runs once.
    Job(Arc<dyn Job>),
}

/// The work of one trial of a cell.
#[derive(Clone)]
pub enum TrialWork {
    Loop(Arc<dyn Workload>),
    Job(Arc<dyn Job>),
}

impl TrialWork {
    /// As [`Workload::load`] and [`Job::load`].
    pub fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        match self {
            Self::Loop(workload) => workload.load(namespace, session),
            Self::Job(job) => job.load(namespace, session),
        }
    }

    /// As [`Workload::before`] and [`Job::before`].
    pub fn before(&self, trial: Before<'_>) -> Result<()> {
        match self {
            Self::Loop(workload) => workload.before(trial),
            Self::Job(job) => job.before(trial),
        }
    }
}

/// Makes the workload of a trial.
pub type MakeWorkload = Box<dyn Fn() -> Arc<dyn Workload> + Send + Sync>;

impl PlannedCell {
    /// A cell whose clients work on this data, without provisions. Use a struct update to add some.
    pub fn new(
        dataset: impl Into<String>,
        demand: impl Into<Demand>,
        policy: LoopPolicy,
        workload: impl Workload + 'static,
    ) -> Self {
        let workload: Arc<dyn Workload> = Arc::new(workload);
        let make: MakeWorkload = Box::new(move || Arc::clone(&workload));
        Self::of(dataset.into(), demand.into(), policy, Work::Loop(make))
    }

    /// A job on this data with that many sessions. It is never interleaved.
    pub fn job(dataset: impl Into<String>, demand: Demand, sessions: usize, job: impl Job + 'static) -> Self {
        let connections = Connections::Pool(sessions);
        let policy = LoopPolicy { connections, interleave: false, ..LoopPolicy::new(1) };
        Self::of(dataset.into(), demand, policy, Work::Job(Arc::new(job)))
    }

    /// A cell with this work, without provisions.
    pub fn of(dataset: String, demand: Demand, policy: LoopPolicy, work: Work) -> Self {
        Self {
            demand,
            operations: Vec::new(),
            ignores: &[],
            needs: Vec::new(),
            dataset,
            stored_bytes: None,
            min_time: Duration::ZERO,
            usual_time: Duration::ZERO,
            round_trips: 0,
            moved_bytes: 0,
            policy,
            work,
            pages: None,
        }
    }

    /// The work of its next trial.
    pub fn trial_work(&self) -> TrialWork {
        match &self.work {
            Work::Loop(make) => TrialWork::Loop(make()),
            Work::Job(job) => TrialWork::Job(Arc::clone(job)),
        }
    }

    /// The work of a loop.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if it is a job.
    pub fn workload(&self) -> Result<Arc<dyn Workload>> {
        match self.trial_work() {
            TrialWork::Loop(workload) => Ok(workload),
            TrialWork::Job(_) => Err(Error::new(ErrorKind::Internal, "a job is not a loop")),
        }
    }

    /// Whether it is a job, and no loop.
    pub fn is_job(&self) -> bool {
        matches!(self.work, Work::Job(_))
    }

    /// Bytes that are loaded for these operations.
    pub fn loaded_bytes<'a>(&self, operations: impl IntoIterator<Item = &'a str>) -> u64 {
        let of = |name| self.operations.iter().filter(move |(single, _)| *single == name);
        let single = operations.into_iter().flat_map(of).map(|(_, demand)| demand);
        [&self.demand]
            .into_iter()
            .chain(single)
            .map(|demand| demand.loaded_bytes)
            .fold(0, u64::saturating_add)
    }

    /// Every operation that it may prepare.
    fn all_operations(&self) -> impl Iterator<Item = &Operation> {
        fn of(demand: &Demand) -> Box<dyn Iterator<Item = &Operation> + '_> {
            Box::new(demand.operations.iter().chain(demand.instead.iter().flat_map(of)))
        }
        let single = self.operations.iter().map(|(_, demand)| demand);
        [&self.demand].into_iter().chain(single).flat_map(of)
    }

    /// Whether it uses tables that are there, and creates none: it needs no namespace.
    pub fn creates_nothing(&self) -> bool {
        let ours = |collection: &Arc<Collection>| Collection::name_is_ours(&collection.name);
        let custom = |operation: &Operation| matches!(operation, Operation::Raw { .. }) || operation.reads();
        self.all_operations().next().is_some()
            && self.all_operations().all(|operation| {
                operation.collection().map_or_else(|| custom(operation), |collection| !ours(collection))
            })
    }

    /// Whether it also changes nothing: it has sessions of which the server refuses writes, or operations that never
    /// write. It needs no lease either, which a standby could not keep.
    pub fn only_reads(&self) -> bool {
        let reads = self.policy.access == Access::ReadOnly || self.all_operations().all(Operation::reads);
        reads && self.creates_nothing()
    }

    /// How its connections to this driver's server are opened. Where it reads tables of others only, which may be views, the server
    /// refuses writes if it can.
    pub fn connect_options(&self, driver: &dyn Driver) -> ConnectOptions {
        let LoopPolicy { compression, mut access, .. } = self.policy;
        let reads = || self.only_reads() && self.all_operations().any(|one| one.collection().is_some());
        if reads() && driver.capabilities().read_only_sessions == Support::Native {
            access = Access::ReadOnly;
        }
        let trial = statements::new_trial();
        ConnectOptions { compression, access, trial, ..ConnectOptions::default() }
    }

    /// The number of connections that its clients have at the same time.
    pub fn client_connections(&self) -> u64 {
        match self.policy.connections {
            Connections::Pool(size) => size as u64,
            Connections::Kept | Connections::PerRequest => self.policy.clients as u64,
        }
    }

    /// The number of idle connections beside the clients' own.
    pub fn idle_connections(&self) -> usize {
        let count = |need: &Need| if let Need::IdleConnections(count) = need { Some(*count) } else { None };
        self.needs.iter().find_map(count).unwrap_or(0)
    }

    /// The cache that it needs, if any.
    pub fn cache(&self) -> Option<&CacheNeed> {
        self.needs.iter().find_map(|need| if let Need::Cache(cache) = need { Some(cache) } else { None })
    }

    /// The second server that it needs, if any.
    pub fn remote(&self) -> Option<RemoteServer> {
        self.needs.iter().find_map(|need| if let Need::Remote(server) = need { Some(*server) } else { None })
    }

    /// The processors to which its server is restricted, if to any.
    pub fn cpus(&self) -> Option<CpuAllotment> {
        self.needs.iter().find_map(|need| if let Need::Cpus(cpus) = need { Some(*cpus) } else { None })
    }

    /// The number of connections open at the same time: the clients', idle ones, and two for loading and checking.
    pub fn connections(&self) -> u64 {
        self.client_connections() + self.idle_connections() as u64 + 2
    }

    /// The memory that its clients hold, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.demand.client_bytes.saturating_mul(self.policy.clients as u64)
    }
}

/// What the engine provides before a trial, so that experiments do not implement it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A restart of the server before each trial, if possible, to remove the effects of earlier trials on its memory.
    Restart,
    /// So many idle connections, opened after warm-up and kept until the trial ends.
    IdleConnections(usize),
    /// A cache in front of the store.
    Cache(CacheNeed),
    /// A measurement of the server's memory with the idle connections open (or the clients', if there are none) and
    /// just before.
    ServerMemory,
    /// The second server to which its collections refer.
    Remote(RemoteServer),
    /// Processors to which to restrict the server, with clients on others.
    Cpus(CpuAllotment),
}

/// A cache that a cell needs in front of its store. A run has one cache per name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheNeed {
    /// Its name, to which collections refer.
    pub name: String,
    /// The number of values that it must have memory for, and the bytes of each, for a throwaway server; `None`: any
    /// size.
    pub capacity: Option<(u64, u64)>,
}

/// How the clients of a loop work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopPolicy {
    /// The number of clients.
    pub clients: usize,
    /// Where transactions get their connections from.
    pub connections: Connections,
    /// Requests that one transaction sends before it reads their replies. Each counts as one request; its service
    /// time is that of all of them.
    pub pipeline: u64,
    /// Whether its trials may be interleaved with those of other cells. Not if one trial's remains affect the next,
    /// as in a cache.
    pub interleave: bool,
    /// Whether every reply of a read-only transaction is compared with the expected one.
    pub verifies_reads: bool,
    /// How many transactions of a writing operation one trial may have; `None`: no limit.
    pub capacity: Option<Capacity>,
    /// How their connections compress what both ends send.
    pub compression: Compression,
    /// What the statements of its clients may do. Read-only sessions are also a
    /// [capability](Capability::ReadOnlySessions) that the cell must demand.
    pub access: Access,
    /// Whether its clients may be divided among processes: a client needs nothing but the cell, its number and the
    /// database, and the check after a trial needs no [`notes`](crate::experiment::Recorder::notes) of it.
    pub divisible: bool,
}

impl LoopPolicy {
    /// Clients that each keep a connection and send one request at a time, with no limit on the number of trials.
    pub fn new(clients: usize) -> Self {
        Self {
            clients,
            connections: Connections::Kept,
            pipeline: 1,
            interleave: true,
            verifies_reads: true,
            capacity: None,
            compression: Compression::Off,
            access: Access::ReadWrite,
            divisible: false,
        }
    }
}

/// Where the transactions of a loop have their connections from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Each client keeps one connection.
    Kept,
    /// All clients share a pool of this size. Each transaction takes a connection, attaches to it, and detaches
    /// before returning it.
    Pool(usize),
    /// Each transaction opens and closes a connection.
    PerRequest,
}

/// What a cell requires of its target. The plan checks it against the driver and the server's limits before anything
/// is measured.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// Every operation that the transaction, the load and the check prepare.
    pub operations: Vec<Operation>,
    /// Required capabilities of the driver, besides operations.
    pub capabilities: Vec<Capability>,
    /// Required ways to move many rows at once.
    pub transfers: Vec<Transfer>,
    /// The largest single value, in bytes.
    pub value_bytes: u64,
    /// The largest request or reply, all values together, in bytes.
    pub request_bytes: u64,
    /// The maximum number of parameters of a request.
    pub parameters: u64,
    /// Bytes loaded into the store; of a single operation, those that it loads besides.
    pub loaded_bytes: u64,
    /// Bytes of memory that each client holds.
    pub client_bytes: u64,
    /// Settings that the target must report.
    pub settings: Vec<NeededSetting>,
    /// Whether it needs the engine's own programs that dump and restore tables
    /// ([`Driver::dump_tool`]).
    pub dump_tool: bool,
    /// Other demands, of which one is enough if this one is not met: the work can be done in another way.
    pub instead: Vec<Demand>,
}

impl From<Vec<Operation>> for Demand {
    fn from(operations: Vec<Operation>) -> Self {
        Self { operations, ..Self::default() }
    }
}

/// A required setting of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededSetting {
    /// Its name, as the target reports it.
    pub name: String,
    /// The required value.
    pub value: String,
    /// How to set it, as a clause: "start it with …".
    pub remedy: String,
}

/// The number of transactions of one trial if each record is changed at most once.
///
/// Records are assigned to clients in turn: of n records and c clients, each has n/c, and the first n mod c have one
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Records that a trial may change.
    pub records: u64,
    /// Requests per record: 20 if one request in 20 changes a record.
    pub requests_per_record: u64,
    /// Whether the server has memory for no more records, which a trial adds.
    pub of_memory: bool,
}

impl Capacity {
    /// The maximum number of requests of a client in one trial, including warm-up.
    pub fn of_client(&self, index: usize, count: usize) -> u64 {
        share(self.records, index, count).saturating_mul(self.requests_per_record)
    }
}

/// The share of `n` that a client gets if items are assigned in turn.
pub fn share(n: u64, index: usize, count: usize) -> u64 {
    let count = count.max(1) as u64;
    n / count + u64::from((index as u64) < n % count)
}
