//! One trial on a fleet: the coordinator's side.

use super::agents::FleetClients;
use super::merge::{sum, used};
use super::observed::combined;
use super::order::{CellOrder, Order};
use crate::trial::failure::Failure;
use crate::trial::parameters::Trial;
use crate::trial::recorded::{Executed, PartResult};
use crate::trial::server_stats::Watch;
use kurabe_core::Result;

impl Trial<'_> {
    fn order(&self, cell: &CellOrder) -> Result<Order> {
        // An agent would refuse what has no schedule.
        self.schedule()?;
        Ok(Order {
            cell: cell.clone(),
            operation: self.operation.name.to_owned(),
            number: self.number,
            stop: self.stop,
            load_model: self.load_model,
            seed: self.seed,
            clients: self.cell.policy.clients as u64,
        })
    }

    /// Runs all clients on a fleet.
    pub(crate) fn execute_on(&self, on: &FleetClients<'_>) -> Result<Executed, Failure> {
        let mut watch = Watch::open(self);
        let mut started = on.fleet.begin(&self.order(on.cell)?, self.conditions.cancel)?;
        self.connected.map_or(Ok(()), |connected| connected())?;
        watch.begin();
        let ran = started.run(self.conditions.cancel, self.conditions.progress);
        let observed = watch.end();
        ran?;
        let results = started.end()?;
        let observed = observed.map(|own| Box::new(combined(own, &results)));
        let fleet = Some(Box::new(used(&results)));
        let (part, summaries) = sum(results, self.cell.policy.clients, self.seed, self.number)?;
        // The load is what agents make. That the coordinator stood still matters only if they lost it.
        let mut part = PartResult { observed, ..part };
        watch.finish(&mut part.observed);
        Ok(Executed { part, summaries, memory: Vec::new(), fleet })
    }
}
