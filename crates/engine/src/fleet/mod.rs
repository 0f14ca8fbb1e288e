//! Trials whose clients are divided among processes: the agents of a fleet.
//!
//! The coordinator prepares and verifies a trial as any other, and gives its [`Order`] to a [`Fleet`]. Each agent plans
//! the same cell by itself, runs its [`ClientShare`] of the clients, and returns what they recorded as an [`AgentResult`].
//! Results are added up as those of threads are. The engine knows neither a transport nor a message.

mod merge;

pub use crate::trial::recorded::{ClientResult, Recorded, ShareResult};
pub(crate) use merge::{combined, sum, used, without_wait};

use crate::clients::schedule::LoadModel;
use crate::plan::cell::{RunCell, plan_cell};
use crate::trial::Failure;
use kurabe_core::Result;
use kurabe_core::axis::Cell;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Dataset, Experiment, Stop};
use kurabe_core::observation::Endpoint;
use kurabe_core::planned::{Connections, Need, PlannedCell, share};
use kurabe_core::run::RunSpec;
use kurabe_core::threads::ClientThreads;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

/// Why the clients of a cell cannot be divided among agents; `None` if they can.
pub(crate) fn refusal(planned: &PlannedCell, is_application: bool) -> Option<String> {
    let why = if planned.is_job() {
        "a job has one client, which cannot be divided among the agents of a fleet"
    } else if is_application {
        "agents do not speak to applications yet"
    } else if !planned.policy.divisible {
        "its clients share what they know with the check after the trial, which Kurabe does not send between machines yet"
    } else if matches!(planned.policy.connections, Connections::Pool(_)) {
        "a connection pool belongs to one process, and cannot be divided among the agents of a fleet"
    } else if planned.idle_connections() > 0 || planned.needs.contains(&Need::ServerMemory) {
        "the memory of idle connections is measured without a fleet only"
    } else if planned.cpus().is_some() {
        "processors are divided between clients and server of one machine, and not among agents"
    } else if planned.cache().is_some() || planned.remote().is_some() {
        "agents do not reach a target through a cache or with a second server yet"
    } else {
        return None;
    };
    Some(format!("{why}; run it without --fleet"))
}

/// Why no agent can reach a target; `None` if one may.
pub(crate) fn unreachable(endpoint: &Endpoint) -> Option<String> {
    match endpoint {
        Endpoint::InProcess => {
            Some("the database runs within the coordinator's process, where no agent reaches it".to_owned())
        }
        Endpoint::Unix(_) => {
            Some("a Unix socket is reached from its own machine only; use the server's TCP port".to_owned())
        }
        Endpoint::Tcp { .. } | Endpoint::Elsewhere(_) | Endpoint::Composite(_) => None,
    }
}

/// Machines that run the clients of trials.
pub trait Fleet: Send + Sync {
    /// Gives each agent its part of a trial. Returns when all clients are connected, have warmed up, and wait.
    ///
    /// # Errors
    /// The first error of any agent, with its name; [`Interrupted`](kurabe_core::ErrorKind::Interrupted) once `cancel`
    /// is set. No agent has a connection open then.
    fn begin(&self, order: &Order, cancel: &AtomicBool) -> Result<Box<dyn Started + '_>, Failure>;

    /// Goes on without the agents that were lost, if the user asked for that. Returns their names, with the reasons, as
    /// a clause. `None`: no agent was lost since the last call, none is left, or the run does not go on.
    fn go_on_without_lost(&self) -> Option<String>;
}

/// A trial whose clients wait for their start. If this is dropped before its end, all clients end.
pub trait Started {
    /// Starts all clients at the same time, and returns when the last one has made its last transaction. Connections
    /// stay open. `progress` counts completed transactions.
    fn run(&mut self, cancel: &AtomicBool, progress: &AtomicU64) -> Result<(), Failure>;

    /// Has all clients close their connections, and returns what they recorded.
    fn end(self: Box<Self>) -> Result<Vec<AgentResult>, Failure>;
}

/// What an agent did in a trial.
#[derive(Clone, Debug)]
pub struct AgentResult {
    pub name: String,
    /// Its machine, as its kernel's boot identifier; agents with the same one share processors.
    pub machine: String,
    /// Whether that is the coordinator's machine.
    pub here: bool,
    /// Its actual start, in nanoseconds of the coordinator's clock.
    pub start_ns: i64,
    /// The maximum error of that, in nanoseconds.
    pub clock_error_ns: u64,
    /// What its clients recorded.
    pub part: ShareResult,
}

/// The clients of a trial that run on a fleet.
pub struct FleetClients<'a> {
    pub(crate) fleet: &'a dyn Fleet,
    pub(crate) cell: &'a CellOrder,
}

/// All that an agent must know to run its part of a trial's clients, besides the address of the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub cell: CellOrder,
    pub operation: String,
    /// The number of the trial among those on this data, from 1.
    pub number: u64,
    /// When the measured phase ends, over all clients.
    pub stop: Stop,
    /// How load is offered, over all clients.
    pub load_model: LoadModel,
    /// The seed of the trial's random inputs.
    pub seed: u64,
    /// The number of clients of the whole trial. An agent that plans another number is refused.
    pub clients: u64,
}

/// All that an agent must know to plan a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellOrder {
    /// The experiment's name.
    pub experiment: String,
    /// The axis values.
    pub axes: Cell,
    /// The seed of the data.
    pub seed: u64,
    /// The number of records; `None`: the experiment's default.
    pub records: Option<u64>,
    /// The part of the collections' names that is the target's own.
    pub slot: usize,
    /// The target, by its position in the run.
    pub target: usize,
    /// Whether the cell is measured on the second instance of the target's server.
    pub second_instance: bool,
    /// The durability class that each session sets.
    pub durability: Option<DurabilityClass>,
    /// The time limit of connecting, and of each reply, in nanoseconds.
    pub timeout_ns: Option<u64>,
    /// The largest expected reply of any cell, in bytes.
    pub largest_answer: u64,
    /// The threads of the clients of each agent.
    pub threads: Option<ClientThreads>,
}

impl CellOrder {
    /// What an agent must know to plan this cell of a run.
    pub(crate) fn new(spec: &RunSpec, cell: &RunCell, largest_answer: u64) -> Self {
        Self {
            experiment: spec.experiment.clone(),
            axes: cell.record.axes.clone(),
            seed: spec.seed,
            records: spec.records,
            slot: cell.slot,
            target: cell.record.target,
            second_instance: cell.record.second_instance,
            durability: spec.durability,
            timeout_ns: spec.timeout_ns,
            largest_answer,
            threads: spec.threads,
        }
    }

    /// Plans the cell, as the coordinator did.
    pub fn planned(&self, experiment: &Experiment) -> Result<PlannedCell> {
        let dataset = Dataset { seed: self.seed, records: self.records, slot: self.slot };
        plan_cell(experiment, &self.axes, &dataset, false)
    }
}

/// The clients whose index has this remainder: of `of` parts, that with this number, from 0. Clients are dealt out in
/// turn, and so are the arrivals of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientShare {
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl ClientShare {
    /// All clients.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Whether a client belongs to it.
    pub fn has(self, index: usize) -> bool {
        index % self.of.max(1) == self.number
    }

    /// How many of this many clients belong to it.
    pub fn clients(self, count: usize) -> usize {
        share(count as u64, self.number, self.of) as usize
    }

    /// How many of the first `most` arrivals are taken by its clients: arrivals are dealt out to all clients in turn.
    pub(crate) fn arrivals(self, most: u64, clients: usize) -> u64 {
        if most == u64::MAX {
            return most;
        }
        let all = clients.max(1) as u64;
        let rest = self.clients((most % all) as usize) as u64;
        most / all * self.clients(all as usize) as u64 + rest
    }
}

/// A process runs a part of a trial's clients, and another one says when they start.
pub struct ShareOfTrial<'a> {
    pub part: ClientShare,
    /// Called when all clients are connected, have warmed up and wait. It returns when they are to start.
    pub ready: &'a (dyn Fn() -> Result<Instant> + Sync),
    /// Called when the last client has made its last transaction. Connections are closed after it returns.
    pub ended: &'a (dyn Fn(bool) + Sync),
    /// Ends the measured phase when it is set, as a client without any records left does.
    pub stop: &'a AtomicBool,
}

/// A sleep may take this much longer than it should; the rest of a wait spins.
const SPIN: Duration = Duration::from_micros(200);

/// Waits until this instant, to a few microseconds.
pub(crate) fn wait_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(Instant::now()).saturating_sub(SPIN));
    while Instant::now() < at {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(of: usize) -> impl Iterator<Item = ClientShare> {
        (0..of).map(move |number| ClientShare { number, of })
    }

    #[test]
    fn each_client_belongs_to_exactly_one_part() {
        for of in 1..20 {
            for count in 0..60 {
                for index in 0..count {
                    assert_eq!(parts(of).filter(|part| part.has(index)).count(), 1);
                }
                for part in parts(of) {
                    let own = (0..count).filter(|index| part.has(*index)).count();
                    assert_eq!(part.clients(count), own, "{part:?} of {count}");
                }
            }
        }
    }

    #[test]
    fn parts_share_out_all_arrivals() {
        for of in 1..12 {
            for clients in 1..40 {
                for most in (0..300).step_by(7) {
                    let sum: u64 = parts(of).map(|part| part.arrivals(most, clients)).sum();
                    assert_eq!(sum, most, "{of} parts, {clients} clients");
                }
            }
        }
    }
}
