//! What an agent is told of a trial.

use crate::clients::schedule::LoadModel;
use crate::plan::cell::{RunCell, plan_cell};
use kurabe_core::Result;
use kurabe_core::axis::Cell;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Dataset, Experiment, Stop};
use kurabe_core::planned::PlannedCell;
use kurabe_core::run::RunSpec;
use kurabe_core::threads::ClientThreads;
use serde::{Deserialize, Serialize};

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
