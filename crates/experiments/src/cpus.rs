//! E12, scaling with the server's processors.
//!
//! The engine restricts the server. Any other loop is scaled by the axis of this name, which every loop has.

use crate::axes::{self, CLIENTS, CONNECTION, reads};
use crate::point::PointWorkload;
use crate::prelude::*;
use kurabe_core::cpus::{CPU_PLACEMENT, CPUS};
use kurabe_core::metric::{COHERENCY, CONTENTION, EFFICIENCY};

static INFO: ExperimentInfo = ExperimentInfo {
    name: "cpus",
    question: "How does a server scale with processors?",
    about: "Gives a throwaway server 1, 2, 4 … processors, while clients on the others read small rows that fit in memory. \
            Results are the rate, the efficiency compared with one processor, and, from four numbers of processors on, \
            contention and coherency of Gunther's Universal Scalability Law. Where the client's CPU was the bottleneck, the \
            rate is a lower bound, and the cell is in none of these. A machine without enough processors for both can \
            share them: --cpu-placement shared. Any other loop is scaled by its option --cpus: kurabe run webapp up:mysql \
            --cpus 1,2,4. As in the published experiments.",
    axes: &[
        AxisInfo { default: &["1", "2", "4", "8", "16", "32", "64"], ..CPUS },
        CPU_PLACEMENT,
        AxisInfo { default: &["32"], ..CLIENTS },
        CONNECTION,
    ],
    operations: &[reads("read", "read one row by its key", 100_000)],
    metrics: &[EFFICIENCY.primary(), CONTENTION.primary(), COHERENCY.primary()],
    chart_axis: "cpus",
    answer: Answer::Comparison,
    published: None,
};

pub(crate) static SCALING: Experiment = Experiment::new(&INFO, &plan);

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let mut planned = PointWorkload::plan_reads("cpus", Bind::Once, axes::policy(cell)?, dataset);
    // Databases without statements scale too.
    planned.demand.capabilities.clear();
    Ok(planned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_all_numbers_of_processors_share_their_rows() {
        let planned = |cpus| {
            let cell = INFO.baseline(&[("cpus", cpus)]).unwrap();
            plan(&cell, &Dataset { seed: 1, records: Some(10), slot: 0 }).unwrap()
        };
        assert_eq!(planned("1").dataset, planned("64").dataset);
        assert_eq!(planned("1").policy.clients, 32);
    }
}
