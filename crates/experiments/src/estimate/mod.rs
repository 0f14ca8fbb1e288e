//! E11, the optimizer's row estimates against the rows that the server counts.

mod data;
mod job;

use crate::axes::reads;
use crate::custom::reads::text_asks_for_write;
use crate::metrics::time;
use crate::prelude::*;
use data::{Condition, State};
use job::Estimating;
use kurabe_core::driver::Access;
use kurabe_core::metric::{Source, THROUGHPUT};
use kurabe_core::raw::{RawPiece, RawStatement, RawText};
use std::time::Duration;

/// Default number of rows. An index of so many has more pages than InnoDB reads of a range to estimate it.
const RECORDS: u64 = 50_000;

/// The bytes of a draw of rows for each second that a trial is expected to take. A quarter of the trials of a round, each on
/// another kind of data, load one, at some 20 MB a second.
const DRAWN_PER_SECOND: f64 = 80e6;

/// Estimated rows over counted ones, a point for each condition.
const ESTIMATED: Metric = Metric::new(
    "estimated rows",
    Unit::Count,
    Better::Neither,
    "the optimizer's estimate for each condition, over the rows that the server counts",
)
.from(Source::Scatter("counted rows"));
const MEDIAN: Metric = Metric::new(
    "q-error median",
    Unit::Ratio,
    Better::Lower,
    "median over the conditions of the factor between estimated and counted rows, either way; at least one row counts \
     on both sides (Moerkotte, Neumann and Steidl 2009)",
);
const P95: Metric =
    Metric::new("q-error p95", Unit::Ratio, Better::Lower, "95th percentile of the same").primary();
const WORST: Metric = Metric::new("q-error worst", Unit::Ratio, Better::Lower, "maximum of the same");
const EXPLAIN: Metric = time(
    "explain time",
    "median time of a request that plans and explains a query: an upper bound of planning",
);
const PLANNING: Metric = time("planning time", "median planning time that the server reports");

/// The state of a table of the user.
const AS_IS: &str = "as-is";

static INFO: ExperimentInfo = ExperimentInfo {
    name: "estimate",
    question: "Does the optimizer know how many rows a condition selects?",
    about: "Asks the optimizer (EXPLAIN) how many rows each of a hundred ranges and equalities selects, has the server \
            count them, and compares both: the q-error is the larger of estimated/counted and counted/estimated. All \
            columns of the table are indexed: evenly distributed values, values by Zipf's law, values in the order of \
            the rows, two correlated columns, texts, a column with NULLs, and a joined table. Each round has other \
            rows and conditions. Statistics are gathered before each trial; or they are those of the \
            first half of the rows; or two rows in five were deleted before, so that pages are about half full. For \
            your own table, give what follows FROM, and --state as-is: --data \"orders WHERE total > 100\"; it is only \
            read. As in the published experiments (estimate.csv).",
    axes: &[
        AxisInfo::new(
            "data",
            "what is selected by",
            AxisKind::choice(data::DATA)
                .or_text(kurabe_core::axis::FreeText::Phrase("TABLE WHERE CONDITION")),
            &["uniform", "zipf", "correlated", "join"],
        ),
        AxisInfo::new(
            "state",
            "state of the table and its statistics",
            AxisKind::choice(&[
                ("fresh", "statistics gathered before each trial"),
                ("stale", "statistics of the first half of the rows, in the order in which they were added"),
                ("deleted", "two rows in five deleted, then statistics gathered before each trial"),
                (AS_IS, "as it is, for your own table"),
            ]),
            &["fresh", "stale", "deleted"],
        ),
    ],
    operations: &[reads("estimate", "plan and explain one query", 100)],
    metrics: &[
        MEDIAN,
        P95,
        WORST,
        EXPLAIN,
        PLANNING,
        ESTIMATED,
        // Cells differ in what they select, so that their rates compare nothing.
        THROUGHPUT.secondary(),
    ],
    // No axis is an amount.
    chart_axis: "",
    answer: Answer::Metrics,
    published: Some("estimate.csv"),
};

pub(crate) static ESTIMATE: Experiment = Experiment::new(&INFO, &plan);

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let (data, state) = (cell.word("data")?, cell.word("state")?);
    if data.contains(char::is_whitespace) {
        if state != AS_IS {
            return Err(Error::unsupported(format!(
                "your own table is only read, so that it is measured as it is; use --state {AS_IS}"
            )));
        }
        return plan_own(data);
    }
    let Some(state) = State::parse(state) else {
        return Err(Error::unsupported(format!(
            "--state {AS_IS} is for your own table; give --data \"TABLE WHERE CONDITION\""
        )));
    };
    let table = data::Table::new(dataset, dataset.records.unwrap_or(RECORDS).max(10), state);
    let demand = Demand { loaded_bytes: table.bytes(), ..demand(table.select(&Condition::default())) };
    let demand = Demand { operations: [demand.operations, table.count_all().into()].concat(), ..demand };
    let name = table.collection.name.clone();
    let min_time = Duration::from_secs_f64(demand.loaded_bytes as f64 / DRAWN_PER_SECOND);
    Ok(PlannedCell { min_time, ..PlannedCell::job(name, demand, 1, Estimating::generated(table, data)) })
}

/// Plans a cell that estimates `SELECT * FROM text`.
fn plan_own(text: &str) -> Result<PlannedCell> {
    let query = |sql: String| {
        if let Some(why) = text_asks_for_write(&sql) {
            let message = format!("--data {text}: the query may change data: {why}");
            return Err(Error::usage(message).hint("write TABLE WHERE CONDITION"));
        }
        Ok(raw("--data", vec![RawPiece::Text(sql)]))
    };
    let select = query(format!("SELECT * FROM {text}"))?;
    // The line break ends a comment of the user.
    let count = query(format!("SELECT COUNT(*) FROM (SELECT 1 AS one FROM {text}\n) counted"))?;
    let mut demand = demand(select.clone());
    demand.capabilities.push(Capability::ReadOnlySessions);
    let mut planned =
        PlannedCell::job(format!("estimate of {text}"), demand, 1, Estimating::own(select, count));
    planned.policy.access = Access::ReadOnly;
    Ok(planned)
}

/// What estimates of this query, and others like it, demand.
fn demand(query: Operation) -> Demand {
    Demand { operations: vec![query], capabilities: vec![Capability::Estimates], ..Demand::default() }
}

/// A query of a user or of this experiment: text of standard SQL, the same for all engines.
fn raw(place: &str, pieces: Vec<RawPiece>) -> Operation {
    let texts = vec![RawText { engine: None, pieces }];
    let statement = RawStatement { place: place.to_owned(), texts, parameters: 0, collection: None };
    Operation::Raw { statement: Arc::new(statement) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(data: &str, state: &str) -> Result<PlannedCell> {
        let cell = INFO.baseline(&[("data", data), ("state", state)]).unwrap();
        plan(&cell, &Dataset { seed: 1, records: Some(1_000), slot: 3 })
    }

    #[test]
    fn columns_of_one_state_share_their_rows() {
        let [uniform, zipf] = ["uniform", "zipf"].map(|data| planned(data, "stale").unwrap());
        assert_eq!(uniform.dataset, "kurabe_3_estimate_stale");
        assert_eq!(uniform.dataset, zipf.dataset);
        assert_ne!(uniform.dataset, planned("uniform", "fresh").unwrap().dataset);
        assert_eq!(uniform.demand.capabilities, [Capability::Estimates]);
    }

    #[test]
    fn own_table_is_measured_as_it_is_and_only_read() {
        let own = "orders WHERE total > 100 AND kind IN (1, 2)";
        let planned_own = planned(own, "as-is").unwrap();
        // Nothing that Kurabe could clear belongs to the cell.
        assert!(planned_own.demand.operations.iter().all(|operation| operation.collection().is_none()));
        for (data, state) in [(own, "fresh"), ("zipf", "as-is")] {
            let error = planned(data, state).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
        for text in [
            "orders; DELETE FROM orders",
            "orders WHERE nextval('s') > 1",
            "(DELETE FROM orders RETURNING 1) t",
        ] {
            assert_eq!(planned(text, "as-is").err().unwrap().kind(), ErrorKind::Usage, "{text}");
        }
    }
}
