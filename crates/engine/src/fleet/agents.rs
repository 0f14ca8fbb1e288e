//! What the engine knows of the agents of a fleet: they begin a trial, start it together, and return what they recorded.

use crate::fleet::order::{CellOrder, Order};
use crate::trial::failure::Failure;
use crate::trial::recorded::ShareResult;
use kurabe_core::Result;
use std::sync::atomic::{AtomicBool, AtomicU64};

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
