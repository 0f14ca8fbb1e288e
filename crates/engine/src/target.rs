//! A target of a run, and what it cannot do.

use kurabe_core::Result;
use kurabe_core::driver::{Driver, Support};
use kurabe_core::facts::{Limit, ServerFacts};
use kurabe_core::planned::Demand;
use kurabe_core::run::CellRecord;
use kurabe_core::units;

/// A target as the engine needs it.
pub struct Target {
    /// Its name in the run.
    pub name: String,
    /// Its driver.
    pub driver: Box<dyn Driver>,
    /// What the server says of itself.
    pub facts: ServerFacts,
    /// Whether it claims its namespace: of several targets with one URL only the first does.
    pub claims: bool,
    /// Why nothing is measured on it at all, such as a durability class that it cannot have.
    pub skip_reason: Option<String>,
    /// Restarts its server, on the same data and address, and returns when it answers; `None` where it is not ours.
    pub restart: Option<Restart>,
    /// A second start of its server, on which the repeat of its first cell is measured; `None`: it is measured on the
    /// same server.
    pub second: Option<SecondInstance>,
}

/// Another process of a target's server, with its own data: of the same version and settings, on the same processors.
pub struct SecondInstance {
    /// What reaches it.
    pub driver: Box<dyn Driver>,
    /// As [`Target::restart`].
    pub restart: Option<Restart>,
}

/// What [`Target::restart`] is.
pub type Restart = Box<dyn Fn() -> Result<()> + Send + Sync>;

impl Target {
    /// One that claims its namespace, can be measured, and whose server is not ours to restart.
    pub fn new(name: impl Into<String>, driver: Box<dyn Driver>, facts: ServerFacts) -> Self {
        Self { name: name.into(), driver, facts, claims: true, skip_reason: None, restart: None, second: None }
    }

    /// The second start, where a cell is measured on it.
    fn second_instance_of(&self, cell: &CellRecord) -> Option<&SecondInstance> {
        self.second.as_ref().filter(|_| cell.second_instance)
    }

    /// What reaches the start of the server on which a cell is measured.
    pub(crate) fn driver_of(&self, cell: &CellRecord) -> &dyn Driver {
        self.second_instance_of(cell).map_or(&*self.driver, |second| &*second.driver)
    }

    /// What restarts the server on which a cell is measured.
    pub(crate) fn restart_of(&self, cell: &CellRecord) -> Option<&Restart> {
        self.second_instance_of(cell).map_or(self.restart.as_ref(), |second| second.restart.as_ref())
    }

    /// Why it cannot do what a cell demands; `None` where it can.
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

    fn lacks_setting(&self, demand: &Demand) -> Option<String> {
        demand.settings.iter().find_map(|needed| {
            let said = self.facts.settings.iter().find(|setting| setting.name == needed.name);
            if said.is_some_and(|said| said.value == needed.value) {
                return None;
            }
            let said = said.map_or_else(
                || format!("does not say its {}", needed.name),
                |said| format!("says that its {} is '{}'", needed.name, said.value),
            );
            Some(format!("{} {said}; {}", self.facts.engine, needed.remedy))
        })
    }

    fn over_limit(&self, demand: &Demand) -> Option<String> {
        let limits = &self.facts.limits;
        let over = |what: &str, needs: u64, limit: &Option<Limit>, show: fn(u64) -> String| {
            limit.as_ref().filter(|limit| needs > limit.most).map(|limit| {
                format!(
                    "{what} of {} is over the server's limit of {} ({})",
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
