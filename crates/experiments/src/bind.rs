//! E5, literals against bind parameters.
//!
//! Keys are drawn uniformly from all rows. A statement cache therefore has almost no hits for texts with literals:
//! the server parses each of them.

use crate::axes::{self, CLIENTS, CONNECTION, reads};
use crate::point::PointWorkload;
use crate::prelude::*;

static INFO: ExperimentInfo = ExperimentInfo {
    name: "bind",
    question: "What does it cost to write values into the text of a statement, and what does preparing it save?",
    about: "Reads one small row by its key, drawn uniformly from 100,000: with the key as a literal in the text, which the \
            server parses each time; bound to a statement that is prepared and closed for every request, which takes \
            an additional round trip; and bound to one prepared once for its connection. On a connection for a single \
            request, 'once' saves nothing. The server's cost is its CPU time per operation, shown beside the client's. \
            A database without statements has nothing to compare. As in the published experiments.",
    axes: &[
        AxisInfo::new(
            "bind",
            "how the value is passed to the statement",
            AxisKind::choice(&[
                ("once", "bound to a statement prepared once for each connection"),
                ("per-request", "bound to a statement prepared for every request"),
                ("literal", "as a literal in the text, without preparing"),
            ]),
            &["once", "per-request", "literal"],
        ),
        AxisInfo { default: &["kept", "per-request"], ..CONNECTION },
        CLIENTS,
    ],
    operations: &[reads("read", "read one row by its key", 20_000)],
    metrics: &[Metric::cost("bind", "time per read beyond that of a statement prepared once")],
    chart_axis: "clients",
    answer: Answer::Metrics,
    published: None,
};

pub(crate) static BIND: Experiment = Experiment::new(&INFO, &plan);

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let bind = Bind::parse(cell.word("bind")?)?;
    Ok(PointWorkload::plan_reads("bind", bind, axes::policy(cell)?, dataset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::driver::Capability;

    fn demand(bind: &str) -> kurabe_core::planned::Demand {
        let cell = INFO.baseline(&[("bind", bind)]).unwrap();
        let planned = plan(&cell, &Dataset { seed: 1, records: None, slot: 2 }).unwrap();
        assert_eq!(planned.dataset, "kurabe_2_bind");
        planned.demand
    }

    #[test]
    fn every_way_needs_statements_and_one_needs_literals() {
        for (bind, literals) in [("once", false), ("per-request", false), ("literal", true)] {
            let demand = demand(bind);
            assert!(demand.capabilities.contains(&Capability::PreparedStatements), "{bind}");
            assert_eq!(demand.capabilities.contains(&Capability::Literals), literals, "{bind}");
        }
    }

    #[test]
    fn table_has_more_rows_than_statement_caches_have_entries() {
        // Oracle's crate keeps 20 statements, PgBouncer 200 by default, Oracle's shared pool a few thousand.
        assert!(demand("literal").loaded_bytes / 132 >= 100_000);
    }
}
