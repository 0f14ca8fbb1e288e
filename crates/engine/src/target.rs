//! A target of a run, and what it does not support.

use kurabe_core::Result;
use kurabe_core::driver::{Driver, Support};
use kurabe_core::facts::{Limit, ServerFacts};
use kurabe_core::planned::Demand;
use kurabe_core::run::CellRecord;
use kurabe_core::units;

/// A target, as the engine uses it.
pub struct Target {
    /// Its name in the run.
    pub name: String,
    /// Its driver.
    pub driver: Box<dyn Driver>,
    /// The server's facts.
    pub facts: ServerFacts,
    /// Whether it acquires the lease of its namespace. Of several targets with one URL only the first does.
    pub claims: bool,
    /// Why nothing is measured on it, such as a durability class that it cannot provide.
    pub skip_reason: Option<String>,
    /// Restarts its server with the same data and address, and returns when it answers; `None` if it is not a
    /// throwaway server.
    pub restart: Option<Restart>,
    /// A second instance of its server for the A/A control; `None`: the control uses the same server.
    pub second: Option<SecondInstance>,
}

/// Another process of a target's server, with its own data, the same version and settings, on the same processors.
pub struct SecondInstance {
    /// Its driver.
    pub driver: Box<dyn Driver>,
    /// As [`Target::restart`].
    pub restart: Option<Restart>,
}

/// The type of [`Target::restart`].
pub type Restart = Box<dyn Fn() -> Result<()> + Send + Sync>;

impl Target {
    /// A target that acquires its lease, can be measured, and cannot be restarted.
    pub fn new(name: impl Into<String>, driver: Box<dyn Driver>, facts: ServerFacts) -> Self {
        Self {
            name: name.into(),
            driver,
            facts,
            claims: true,
            skip_reason: None,
            restart: None,
            second: None,
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

    /// Why it does not meet a cell's demand; `None` if it does.
    pub fn refusal(&self, demand: &Demand) -> Option<String> {
        if self.skip_reason.is_some() {
            return self.skip_reason.clone();
        }
        let capabilities = self.driver.capabilities();
        let missing = demand.capabilities.iter().find_map(|needed| capabilities.get(*needed).refusal());
        if let Some(reason) = missing {
            return Some(reason.to_owned());
        }
        for operation in &demand.operations {
            if let Support::No(reason) = self.driver.supports(operation) {
                return Some(reason);
            }
        }
        self.lacks_setting(demand).or_else(|| self.over_limit(demand))
    }

    /// Why its sessions cannot share threads; `None` if they can.
    pub(crate) fn refuses_shared_threads(&self) -> Option<String> {
        let capabilities = self.driver.capabilities();
        capabilities.shared_threads.refusal().map(|why| format!("clients cannot share threads: {why}"))
    }

    fn lacks_setting(&self, demand: &Demand) -> Option<String> {
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
        let exact = |bytes: u64| format!("{} bytes", units::count(bytes));
        over("a value", demand.value_bytes, &limits.value_bytes, exact)
            .or_else(|| over("a request", demand.request_bytes, &limits.request_bytes, exact))
            .or_else(|| over("a number of parameters", demand.parameters, &limits.parameters, units::count))
    }
}
