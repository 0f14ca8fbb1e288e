//! What the cells of a plan need, together.

use crate::plan::run_plan::Plan;
use crate::prepare::fixture::Ownership;
use kurabe_core::planned::{CacheNeed, PlannedCell};
use kurabe_core::remote::RemoteServer;
use kurabe_core::run::CellRecord;
use std::collections::BTreeSet;

impl Plan {
    /// What the cells of a target need there.
    pub fn need(&self, target: usize) -> Ownership {
        let cells = self.available().filter(|(record, _)| record.target == target);
        let need = |(_, cell): (&CellRecord, &PlannedCell)| match (cell.only_reads(), cell.creates_nothing())
        {
            (true, _) => Ownership::Nothing,
            (false, true) => Ownership::Lease,
            (false, false) => Ownership::Tables,
        };
        cells.map(need).max().unwrap_or(Ownership::Tables)
    }

    /// Bytes that are loaded for the measured operations of a cell.
    pub fn loaded_bytes(&self, cell: &PlannedCell) -> u64 {
        cell.loaded_bytes(self.operations.iter().map(|operation| operation.name))
    }

    /// The maximum number of connections that any cell needs.
    pub fn connections(&self) -> u64 {
        self.available().map(|(_, cell)| cell.connections()).max().unwrap_or(0)
    }

    /// The caches that cells need in front of their stores: for each name the one with the largest values.
    pub fn caches(&self) -> Vec<CacheNeed> {
        let mut caches: Vec<CacheNeed> = Vec::new();
        for need in self.available().filter_map(|(_, cell)| cell.cache()) {
            match caches.iter_mut().find(|known| known.name == need.name) {
                Some(known) => known.capacity = known.capacity.max(need.capacity),
                None => caches.push(need.clone()),
            }
        }
        caches
    }

    /// The second servers that cells need, without duplicates.
    pub fn remotes(&self) -> Vec<RemoteServer> {
        let needed = self.available().filter_map(|(_, cell)| cell.remote());
        needed.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The largest reply that any cell expects, in bytes.
    pub fn largest_answer(&self) -> u64 {
        // Replies to pipelined requests arrive together.
        let largest =
            |cell: &PlannedCell| cell.demand.request_bytes.saturating_mul(cell.policy.pipeline.max(1));
        self.available().map(|(_, cell)| largest(cell)).max().unwrap_or(0)
    }
}
