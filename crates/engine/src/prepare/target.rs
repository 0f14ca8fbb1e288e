//! A target of a run, and what it does not support.

use crate::clients::cpu_partition::CpuPartition;
use kurabe_core::compression::Compression;
use kurabe_core::cpus::{CpuAllotment, Placement};
use kurabe_core::driver::{Capability, Driver, Pace, Support};
use kurabe_core::facts::{Limit, ServerFacts};
use kurabe_core::planned::{Demand, PlannedCell};
use kurabe_core::remote::{Link, RemoteCollection, RemoteServer};
use kurabe_core::run::{CellRecord, PublishingClause, TargetRecord};
use kurabe_core::units;
use kurabe_core::{Error, ErrorKind, Result};
use std::time::Duration;

/// Connections of Kurabe besides those of clients: two of each fixture, of which an A/A control may have its own, and the
/// stats probe.
pub const OWN_CONNECTIONS: u64 = 5;

/// A target, as the engine uses it.
pub struct Target {
    /// Its name in the run.
    pub name: String,
    /// Its URL without the password, as recorded.
    pub url: String,
    /// Its scheme, which selects the driver.
    pub scheme: String,
    /// The clause of its licence that restricts publishing benchmark results.
    pub publishing: Option<PublishingClause>,
    pub driver: Box<dyn Driver>,
    /// The server's facts.
    pub facts: ServerFacts,
    /// Whether it acquires the lease of its namespace. Of several targets with one URL only the first does.
    pub claims: bool,
    /// Why nothing is measured on it, such as a durability class that it cannot provide.
    pub skip_reason: Option<String>,
    /// How long its throwaway server took to start, a connection to it to open, and its smallest request; `None` if that was
    /// not measured.
    pub start: Option<Duration>,
    pub connect: Option<Duration>,
    pub round_trip: Option<Duration>,
    /// How fast it loads and finds rows.
    pub pace: Pace,
    /// Restarts its server with the same data and address, and returns when it answers; `None` if it is not a
    /// throwaway server.
    pub restart: Option<Restart>,
    /// A second instance of its server for the A/A control; `None`: the control uses the same server.
    pub second: Option<SecondInstance>,
    /// Restricts its server to processors; `None` if it is not a throwaway server.
    pub restrict: Option<Restrict>,
}

/// Another process of a target's server, with its own data, the same version and settings, on the same processors.
pub struct SecondInstance {
    pub driver: Box<dyn Driver>,
    /// As [`Target::restart`].
    pub restart: Option<Restart>,
    /// As [`Target::restrict`].
    pub restrict: Option<Restrict>,
}

/// The type of [`Target::restart`].
pub type Restart = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// The type of [`Target::restrict`]: restricts all threads of the server, and those that start later, to these
/// processors; if the second parameter is true, each thread that exists to one of them, in turn.
pub type Restrict = Box<dyn Fn(&[u32], bool) -> Result<()> + Send + Sync>;

impl Target {
    /// A target without a recorded URL that acquires its lease, can be measured, and cannot be restarted.
    pub fn new(name: impl Into<String>, driver: Box<dyn Driver>, facts: ServerFacts) -> Self {
        let pace = driver.capabilities().pace;
        Self {
            name: name.into(),
            url: String::new(),
            scheme: String::new(),
            publishing: None,
            driver,
            facts,
            claims: true,
            skip_reason: None,
            start: None,
            connect: None,
            round_trip: None,
            pace,
            restart: None,
            second: None,
            restrict: None,
        }
    }

    /// Its record in the run file.
    pub fn record(&self) -> TargetRecord {
        TargetRecord {
            name: self.name.clone(),
            url: self.url.clone(),
            scheme: self.scheme.clone(),
            facts: self.facts.clone(),
            publishing: self.publishing.clone(),
        }
    }

    /// The second instance, if a cell is measured on it.
    fn second_instance_of(&self, cell: &CellRecord) -> Option<&SecondInstance> {
        self.second.as_ref().filter(|_| cell.second_instance)
    }

    /// The driver of the server on which a cell is measured.
    pub(crate) fn driver_of(&self, cell: &CellRecord) -> &dyn Driver {
        self.second_instance_of(cell).map_or(&*self.driver, |second| &*second.driver)
    }

    /// The restart function of the server on which a cell is measured.
    pub(crate) fn restart_of(&self, cell: &CellRecord) -> Option<&Restart> {
        self.second_instance_of(cell).map_or(self.restart.as_ref(), |second| second.restart.as_ref())
    }

    /// The function that restricts the server on which a cell is measured to processors.
    pub(crate) fn restrict_of(&self, cell: &CellRecord) -> Option<&Restrict> {
        self.second_instance_of(cell).map_or(self.restrict.as_ref(), |second| second.restrict.as_ref())
    }

    /// The connections that this user may still open.
    pub fn free_connections(&self) -> u64 {
        let limits = &self.facts.limits;
        let free = |limit: &Limit| limit.most.saturating_sub(limits.connections_in_use.unwrap_or(0));
        limits.connections.as_ref().map_or(u64::MAX, free)
    }

    /// The clients that it may have at a time. Each may prepare a statement.
    pub(crate) fn room_for_clients(&self) -> u64 {
        let statements = self.facts.limits.prepared_statements.as_ref().map_or(u64::MAX, |limit| limit.most);
        self.free_connections().saturating_sub(OWN_CONNECTIONS).min(statements)
    }

    /// Why the server has not enough connections, or prepared statements, for a cell; `None` if it has.
    pub fn lacks_connections(&self, cell: &PlannedCell) -> Option<String> {
        let limits = &self.facts.limits;
        // Two of them are counted among Kurabe's own.
        let needs = cell.connections() - 2 + OWN_CONNECTIONS;
        let free = self.free_connections();
        if let Some(limit) = limits.connections.as_ref().filter(|_| needs > free) {
            return Some(format!(
                "the run needs {}, and the server has {} free of {} ({})",
                units::counted(needs, "connection"),
                units::count(free),
                units::count(limit.most),
                limit.set_by
            ));
        }
        // Each client prepares at least one, unless values are put into the text.
        let clients = cell.connections() - 2 - cell.idle_connections() as u64;
        let prepares = !cell.demand.capabilities.contains(&Capability::Literals);
        limits.prepared_statements.as_ref().filter(|limit| prepares && clients > limit.most).map(|limit| {
            format!(
                "{} clients prepare a statement each, and the server allows {} more ({})",
                units::count(clients),
                units::count(limit.most),
                limit.set_by
            )
        })
    }

    /// Why a cell cannot have what it creates or changes there; `None` if it can.
    pub fn cannot_write_for(&self, cell: &PlannedCell) -> Option<String> {
        let facts = &self.facts;
        match (&facts.read_only, &facts.no_tables) {
            (Some(why), _) if !cell.only_reads() => Some(format!("nothing can be written there: {why}")),
            (_, Some(why)) if !cell.creates_nothing() => {
                Some(format!("no tables can be created there: {why}"))
            }
            _ => None,
        }
    }

    /// Why its server cannot be given these processors; `None` if it can.
    pub fn cpu_refusal(&self, allotment: CpuAllotment) -> Option<String> {
        if self.restrict.is_none() {
            let why = "only throwaway servers (up:) are given processors: Kurabe does not restrict the processes of others";
            return Some(why.to_owned());
        }
        let partition = CpuPartition::allot(allotment.count, allotment.placement == Placement::Shared);
        partition.err().map(|error| error.to_string())
    }

    /// Why its connections cannot compress in this way; `None` if they can.
    pub fn compression_refusal(&self, compression: Compression) -> Option<String> {
        match compression {
            Compression::Off => None,
            other => self.driver.supports_compression(other).refusal().map(str::to_owned),
        }
    }

    /// Why it does not meet a cell's demand, nor one of those that are enough instead; `None` if it does. What only exceeds a
    /// limit is the better reason: smaller requests would be possible.
    pub fn refusal(&self, demand: &Demand) -> Option<String> {
        let mut reason = None;
        for one in std::iter::once(demand).chain(&demand.instead) {
            let lacking = self.lacks(one);
            let is_limit = lacking.is_none();
            let refused = lacking.or_else(|| self.over_limit(one))?;
            if is_limit && !matches!(reason, Some((true, _))) || reason.is_none() {
                reason = Some((is_limit, refused));
            }
        }
        reason.map(|(_, refused)| refused)
    }

    /// What it cannot do at all; `None` if nothing.
    fn lacks(&self, demand: &Demand) -> Option<String> {
        if self.skip_reason.is_some() {
            return self.skip_reason.clone();
        }
        let capabilities = self.driver.capabilities();
        let missing = demand.capabilities.iter().find_map(|needed| capabilities.get(*needed).refusal());
        if let Some(reason) = missing {
            return Some(reason.to_owned());
        }
        for operation in &demand.operations {
            let remote = operation.collection().and_then(|collection| collection.remote.as_ref());
            if let Some(RemoteCollection { server, link: Some(link) }) = remote
                && let Some(reason) = self.cannot_link(*server, link)
            {
                return Some(reason);
            }
            if let Support::No(reason) = self.driver.supports(operation) {
                return Some(reason);
            }
        }
        if demand.dump_tool
            && let Err(error) = self.driver.dump_tool()
            && !self.is_not_started(&error)
        {
            return Some(error.to_string());
        }
        for transfer in &demand.transfers {
            if let Support::No(reason) = self.driver.supports_transfer(*transfer) {
                return Some(reason);
            }
        }
        self.lacks_setting(demand)
    }

    /// Why its server cannot read another's tables by this link; `None` if it can, or if it is not started.
    fn cannot_link(&self, server: RemoteServer, link: &Link) -> Option<String> {
        match self.driver.links().and_then(|links| links.supports(server, link)) {
            Ok(Support::Native) => None,
            Ok(Support::No(reason)) => Some(reason),
            Err(error) if self.is_not_started(&error) => None,
            Err(error) => Some(error.to_string()),
        }
    }

    /// Whether it is a server that is not started, so that it did not answer. What it would have said is unknown then.
    pub(crate) fn is_not_started(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::Unreachable && !self.is_described()
    }

    /// Whether the server was asked. A throwaway server is not started for a plan alone.
    pub fn is_described(&self) -> bool {
        !self.facts.version.is_empty()
    }

    /// Why its sessions cannot share threads; `None` if they can.
    pub(crate) fn refuses_shared_threads(&self) -> Option<String> {
        let capabilities = self.driver.capabilities();
        capabilities.shared_threads.refusal().map(|why| format!("clients cannot share threads: {why}"))
    }

    fn lacks_setting(&self, demand: &Demand) -> Option<String> {
        if !self.is_described() {
            return None;
        }
        demand.settings.iter().find_map(|needed| {
            let reported = self.facts.settings.iter().find(|setting| setting.name == needed.name);
            if reported.is_some_and(|reported| reported.value == needed.value) {
                return None;
            }
            let reported = reported.map_or_else(
                || format!("does not report {}", needed.name),
                |reported| format!("reports {} '{}'", needed.name, reported.value),
            );
            Some(format!("{} {reported}; {}", self.facts.engine, needed.remedy))
        })
    }

    fn over_limit(&self, demand: &Demand) -> Option<String> {
        let limits = &self.facts.limits;
        let over = |what: &str, needs: u64, limit: &Option<Limit>, show: fn(u64) -> String| {
            limit.as_ref().filter(|limit| needs > limit.most).map(|limit| {
                format!(
                    "{what} of {} exceeds the server's limit of {} ({})",
                    show(needs),
                    show(limit.most),
                    limit.set_by
                )
            })
        };
        let exact = |bytes: u64| format!("{} B", units::count(bytes));
        over("a value", demand.value_bytes, &limits.value_bytes, exact)
            .or_else(|| over("a request", demand.request_bytes, &limits.request_bytes, exact))
            .or_else(|| over("a number of parameters", demand.parameters, &limits.parameters, units::count))
    }
}
