//! What a run does to throwaway servers: it restricts them to processors, and restarts them.

use crate::clients::cpu_partition::CpuPartition;
use crate::plan::cell::{RunCell, unavailable};
use crate::prepare::target::{Restart, Restrict, Target};
use crate::trial::panicked;
use kurabe_core::cpus::Placement;
use kurabe_core::planned::PlannedCell;
use kurabe_core::{Error, Result};
use std::thread;

/// The processors that a trial's server is restricted to.
pub(crate) struct Restricted<'a> {
    restrict: &'a Restrict,
    pub(crate) partition: CpuPartition,
    pinned: bool,
}

impl<'a> Restricted<'a> {
    /// The processors of a cell's server; `None` if they are not restricted.
    pub(crate) fn new(target: &'a Target, run_cell: &RunCell, cell: &PlannedCell) -> Result<Option<Self>> {
        let Some(allotment) = cell.cpus() else { return Ok(None) };
        let restrict = target.restrict_of(&run_cell.record).ok_or_else(unavailable)?;
        let partition = CpuPartition::allot(allotment.count, allotment.placement == Placement::Shared)?;
        Ok(Some(Self { restrict, partition, pinned: allotment.placement == Placement::Pinned }))
    }

    /// Restricts the server before clients connect: what it starts for them inherits that.
    pub(crate) fn begin(&self) -> Result<()> {
        (self.restrict)(&self.partition.servers, false)
    }

    /// Restricts or pins what the server has started for the clients.
    pub(crate) fn connected(&self) -> Result<()> {
        (self.restrict)(&self.partition.servers, self.pinned)
    }
}

/// Restarts all throwaway servers of a run at the same time, including second instances.
pub(crate) fn restart_all(targets: &[Target]) -> Result<()> {
    let restarts = targets.iter().flat_map(|target| {
        let second = target.second.as_ref().and_then(|second| second.restart.as_ref());
        [target.restart.as_ref(), second].into_iter().flatten().map(move |restart| (target, restart))
    });
    thread::scope(|scope| {
        let begin = |(target, restart)| {
            let restart: &Restart = restart;
            (target, thread::Builder::new().name("restart".to_owned()).spawn_scoped(scope, restart))
        };
        let threads: Vec<(&Target, _)> = restarts.map(begin).collect();
        threads.into_iter().try_for_each(|(target, thread)| {
            let thread = thread.map_err(|why| Error::no_thread("a server's restart", why))?;
            let restarted = thread.join().unwrap_or_else(|panic| Err(panicked("a restart", &*panic)));
            restarted.map_err(|error| error.context("restarting the server").context(&target.name))
        })
    })
}
