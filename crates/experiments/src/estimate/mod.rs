//! E11, the optimizer's row estimates against the rows that the server counts.

mod data;
mod info;
mod job;

use crate::custom::reads::text_asks_for_write;
use crate::prelude::*;
use crate::statement::raw;
use data::{Condition, State};
use info::{AS_IS, INFO};
use job::Estimating;
use kurabe_core::driver::Access;
use kurabe_core::raw::RawPiece;
use std::time::Duration;

/// Default number of rows. An index of so many has more pages than InnoDB reads of a range to estimate it.
const RECORDS: u64 = 50_000;

/// The bytes of a draw of rows for each second that a trial is expected to take. A quarter of the trials of a round, each on
/// another kind of data, load one, and have the server gather its statistics.
const DRAWN_PER_SECOND: f64 = 60e6;

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
    let usual_time = Duration::from_secs_f64(demand.loaded_bytes as f64 / DRAWN_PER_SECOND);
    Ok(PlannedCell { usual_time, ..PlannedCell::job(name, demand, 1, Estimating::generated(table, data)) })
}

/// Plans a cell that estimates `SELECT * FROM text`.
fn plan_own(text: &str) -> Result<PlannedCell> {
    let query = |sql: String| {
        if let Some(why) = text_asks_for_write(&sql, None) {
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
