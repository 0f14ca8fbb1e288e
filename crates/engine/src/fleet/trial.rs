//! One trial on a fleet: the coordinator's side, and a part of it on an agent.

use super::merge::{Whole, totals, used};
use super::observed::combined;
use super::{CellOrder, Fleet, Order, PartResult};
use crate::clients::schedule::Schedule;
use crate::trial::server_stats::ServerStats;
use crate::trial::{Executed, Failure, LoadModel, Trial};
use kurabe_core::experiment::DatasetState;
use kurabe_core::load::Arrivals;
use kurabe_core::metric::Metric;
use kurabe_core::observation::Observer;
use kurabe_core::planned::Connections;
use kurabe_core::stats_probe;
use kurabe_core::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The clients of a trial that run on a fleet.
pub(crate) struct FleetClients<'a> {
    pub(crate) fleet: &'a dyn Fleet,
    pub(crate) cell: &'a CellOrder,
    /// The experiment's metrics, by whose names spans are known.
    pub(crate) spans: &'static [Metric],
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
        // Before any client connects, so that the probe can tell their sessions from others.
        let mut server_stats = self.observer.map(|_| {
            let kept = policy.connections == Connections::Kept;
            let clients = stats_probe::Clients { count: policy.clients as u64, kept };
            ServerStats::open(self.driver, self.options, clients)
        });
        let mut started = on.fleet.begin(&self.order(on.cell), self.cancel)?;
        if let Some(connected) = self.connected {
            connected()?;
        }
        if let Some(server_stats) = &mut server_stats {
            server_stats.gate();
        }
        let port = server_stats.as_ref().and_then(ServerStats::port);
        let begin = |observer: &dyn Observer| {
            catch_unwind(AssertUnwindSafe(|| observer.begin_excluding(&self.driver.endpoint(), port))).ok()
        };
        let guard = self.observer.and_then(begin);
        if let Some(server_stats) = &mut server_stats {
            server_stats.start_sampling();
        }
        let ran = started.run(self.cancel, self.progress);
        if let Some(server_stats) = &mut server_stats {
            server_stats.stop_sampling();
        }
        let observed = guard.and_then(|guard| catch_unwind(AssertUnwindSafe(|| guard.end())).ok());
        if let Some(server_stats) = &mut server_stats {
            server_stats.end();
        }
        ran?;
        let results = started.end()?;
        let whole = Whole { clients: policy.clients, seed: self.seed, number: self.number, spans: on.spans };
        let totals = totals(&results, whole)?;
        let mut observed = observed.map(|own| combined(own, &results));
        if let (Some(server_stats), Some(observed)) = (server_stats, &mut observed) {
            server_stats.finish(observed);
        }
        let sums = || results.iter().map(|result| &result.part.sums);
        let longest = |of: fn(&super::Sums) -> u64| Duration::from_nanos(sums().map(of).max().unwrap_or(0));
        let used = used(&results);
        let threads = used.agents.iter().map(|agent| agent.threads).sum::<u64>() as usize;
        Ok(Executed {
            totals,
            schedule: plan.map(|plan| Schedule::new(&plan)),
            cpu: Duration::from_nanos(sums().map(|sums| sums.cpu_ns).sum()),
            threads: sums().any(|sums| sums.threads.is_some()).then_some(threads),
            observed,
            observed_group: None,
            memory: Ok(Vec::new()),
            // The load is what agents make. That the coordinator stood still matters only if they lost it.
            stood_still: longest(|sums| sums.stood_still_ns),
            stood_still_in_all: longest(|sums| sums.stood_still_in_all_ns),
            late: Duration::ZERO,
            fleet: Some(Box::new(used)),
        })
    }
}

/// The error of a fleet where none is expected.
pub(crate) fn not_interleaved() -> Error {
    Error::new(ErrorKind::Internal, "trials on a fleet are not interleaved")
}
