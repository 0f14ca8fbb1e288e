//! One trial on a fleet: the coordinator's side, and a part of it on an agent.

use super::merge::{totals, used};
use super::observed::combined;
use super::{CellOrder, Fleet, Order, PartResult};
use crate::clients::schedule::Schedule;
use crate::trial::server_stats::Watch;
use crate::trial::{Executed, Failure, LoadModel, Trial};
use kurabe_core::experiment::DatasetState;
use kurabe_core::load::Arrivals;
use kurabe_core::{Error, ErrorKind, Result};
use std::time::Duration;

/// The clients of a trial that run on a fleet.
pub(crate) struct FleetClients<'a> {
    pub(crate) fleet: &'a dyn Fleet,
    pub(crate) cell: &'a CellOrder,
}

impl Trial<'_> {
    /// Runs a part of the clients, on data in this state.
    ///
    /// # Errors
    /// Any error of any of these clients.
    pub fn run_part(&self, state: &DatasetState) -> Result<PartResult, Failure> {
        PartResult::of(self.execute(state, None)?)
    }

    fn order(&self, cell: &CellOrder) -> Order {
        let nanos = |time: Duration| time.as_nanos() as u64;
        let (rate, arrivals) = match self.load_model {
            LoadModel::Closed => (None, Arrivals::default()),
            LoadModel::Open { rate, arrivals } => (Some(rate), arrivals),
        };
        Order {
            cell: cell.clone(),
            operation: self.operation.name.to_owned(),
            number: self.number,
            requests: self.stop.requests,
            duration_ns: self.stop.duration.map(nanos),
            least_ns: self.stop.least.map(nanos),
            rate,
            arrivals,
            seed: self.seed,
            clients: self.cell.policy.clients as u64,
        }
    }

    /// Runs all clients on a fleet.
    pub(crate) fn execute_on(&self, on: &FleetClients<'_>) -> Result<Executed, Failure> {
        let policy = &self.cell.policy;
        let plan = self.schedule()?;
        let mut watch = Watch::open(self);
        let mut started = on.fleet.begin(&self.order(on.cell), self.cancel)?;
        if let Some(connected) = self.connected {
            connected()?;
        }
        watch.begin();
        let ran = started.run(self.cancel, self.progress);
        let observed = watch.end();
        ran?;
        let results = started.end()?;
        let totals = totals(&results, policy.clients, self.seed, self.number)?;
        let mut observed = observed.map(|own| combined(own, &results));
        watch.finish(&mut observed);
        let parts = || results.iter().map(|result| &result.part);
        let longest = |of: fn(&PartResult) -> u64| Duration::from_nanos(parts().map(of).max().unwrap_or(0));
        let used = used(&results);
        let threads = used.agents.iter().map(|agent| agent.threads).sum::<u64>() as usize;
        Ok(Executed {
            totals,
            schedule: plan.map(|plan| Schedule::new(&plan)),
            cpu: Duration::from_nanos(parts().map(|part| part.cpu_ns).sum()),
            threads: parts().any(|part| part.threads.is_some()).then_some(threads),
            observed,
            observed_group: None,
            memory: Ok(Vec::new()),
            // The load is what agents make. That the coordinator stood still matters only if they lost it.
            stood_still: longest(|part| part.stood_still_ns),
            stood_still_in_all: longest(|part| part.stood_still_in_all_ns),
            late: Duration::ZERO,
            fleet: Some(Box::new(used)),
        })
    }
}

/// The error of a fleet where none is expected.
pub(crate) fn not_interleaved() -> Error {
    Error::new(ErrorKind::Internal, "trials on a fleet are not interleaved")
}
