//! E15, the cost of connections on the server.
//!
//! The memory with open connections is compared with the memory just before they were opened. On a server that is not
//! restarted before each trial the results are lower bounds, and the report says so.

use crate::axes::{choice, reads};
use crate::point::PointWorkload;
use crate::prelude::*;
use kurabe_core::metric::{
    MEMORY, MEMORY_ADDED, MEMORY_EACH, PRIVATE_EACH, PROCESSES, PROCESSES_ADDED, Source, THREADS,
    THREADS_ADDED, THROUGHPUT,
};

/// Default number of rows: few, because a cache that grows during a trial would count as memory of connections.
const RECORDS: u64 = 1_000;

static INFO: ExperimentInfo = ExperimentInfo {
    name: "footprint",
    question: "What do open connections cost the server?",
    about: "Opens connections and measures by how much they increase the memory, processes and threads of the server. \
            Idle connections stay unused while one other client reads. Active ones each read one small row by its key \
            repeatedly, with a statement prepared once, and are measured just after their last read. A throwaway server \
            is restarted before each trial, since servers keep the memory of earlier connections. For an embedded \
            database it is the client's memory; of active connections, with its threads. E15.",
    axes: &[
        AxisInfo::new(
            "connections",
            "number of connections",
            AxisKind::count(1, 100_000),
            &["1", "10", "100", "1000"],
        ),
        AxisInfo::new(
            "state",
            "state of the connections",
            AxisKind::choice(&[
                ("idle", "opened and unused, while one other client reads"),
                ("active", "each belongs to a client that reads"),
            ]),
            &["idle", "active"],
        ),
    ],
    operations: &[reads("read", "read one small row by its key", 10_000)],
    metrics: &[
        Metric::new(
            "memory per connection",
            Unit::Bytes,
            Better::Lower,
            "memory of each additional connection: the slope of added memory over connections, which \
             excludes fixed costs",
        )
        .primary()
        .from(Source::Slope(MEMORY_ADDED.name)),
        Metric::new("processes per connection", Unit::Count, Better::Neither, "the slope of processes added")
            .primary()
            .from(Source::Slope(PROCESSES_ADDED.name)),
        Metric::new("threads per connection", Unit::Count, Better::Neither, "the slope of threads added")
            .primary()
            .from(Source::Slope(THREADS_ADDED.name)),
        MEMORY,
        MEMORY_ADDED,
        MEMORY_EACH,
        PRIVATE_EACH,
        PROCESSES,
        PROCESSES_ADDED,
        THREADS,
        THREADS_ADDED,
        // Cells differ in their number of clients, so that their throughput cannot be compared.
        THROUGHPUT.secondary(),
    ],
    chart_axis: "connections",
    answer: Answer::Metrics,
    published: None,
};

pub(crate) static FOOTPRINT: Experiment = Experiment::new(&INFO, &plan);

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let dataset = Dataset { records: dataset.records.or(Some(RECORDS)), ..dataset.clone() };
    let connections = cell.number("connections")? as usize;
    let states = [("idle", (1, connections)), ("active", (connections, 0))];
    let (clients, idle_connections) = choice(&INFO, cell, "state", &states)?;
    let policy = LoopPolicy::new(clients);
    let mut planned = PointWorkload::plan_reads("footprint", Bind::Once, policy, &dataset);
    // Databases without statements have connections too.
    planned.demand.capabilities.clear();
    let needs = vec![Need::Restart, Need::IdleConnections(idle_connections), Need::ServerMemory];
    Ok(PlannedCell { needs, ..planned })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::axis::AxisValue;

    fn planned(connections: u64, state: &str) -> PlannedCell {
        let cell = Cell::new([
            ("connections".to_owned(), AxisValue::Number(connections)),
            ("state".to_owned(), AxisValue::Word(state.to_owned())),
        ]);
        plan(&cell, &Dataset { seed: 1, records: None, slot: 0 }).unwrap()
    }

    #[test]
    fn idle_connections_have_one_client_and_active_ones_a_client_each() {
        let idle = planned(1_000, "idle");
        assert_eq!((idle.policy.clients, idle.idle_connections()), (1, 1_000));
        assert_eq!(idle.connections(), 1_003);
        let active = planned(1_000, "active");
        assert_eq!((active.policy.clients, active.idle_connections()), (1_000, 0));
        assert_eq!(active.connections(), 1_002);
        // All cells share their rows.
        assert!(idle.demand.capabilities.is_empty() && active.demand.capabilities.is_empty());
        assert_eq!(idle.dataset, active.dataset);
    }
}
