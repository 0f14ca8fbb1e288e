//! The optimizer's row estimate (PostgreSQL manual, `EXPLAIN`).

use crate::prelude::*;
use crate::wire::link::{Query, value};
use serde_json::Value as Json;
use std::time::Duration;

/// Plans a query and reads the estimate. `SUMMARY` adds the planning time, which is in milliseconds.
pub(super) fn read(link: &mut dyn Query, sql: &str) -> Result<RowEstimate> {
    let plan = value(link, &format!("EXPLAIN (FORMAT JSON, SUMMARY ON) {sql}"))?;
    of_plan(&plan.unwrap_or_default())
}

fn of_plan(text: &str) -> Result<RowEstimate> {
    let plan: Json = serde_json::from_str(text).unwrap_or_default();
    let rows = plan[0]["Plan"]["Plan Rows"].as_f64().filter(|rows| *rows >= 0.0);
    let rows =
        rows.ok_or_else(|| Error::new(ErrorKind::Protocol, "the server's plan has no row estimate"))?;
    let planning = plan[0]["Planning Time"].as_f64().filter(|time| (0.0..1e9).contains(time));
    Ok(RowEstimate { rows, planning: planning.map(|ms| Duration::from_secs_f64(ms / 1e3)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_is_that_of_the_uppermost_node() {
        let plan = r#"[{"Plan": {"Node Type": "Bitmap Heap Scan", "Total Cost": 38.2, "Plan Rows": 521, "Plan Width": 40,
            "Plans": [{"Node Type": "Bitmap Index Scan", "Plan Rows": 600}]}, "Planning Time": 0.125}]"#;
        let found = of_plan(plan).unwrap();
        assert_eq!(found, RowEstimate { rows: 521.0, planning: Some(Duration::from_micros(125)) });
    }

    #[test]
    fn plan_without_estimate_is_an_error() {
        for text in
            ["", "[]", "{}", r#"[{"Plan": {"Plan Rows": "many"}}]"#, r#"[{"Plan": {"Plan Rows": -1}}]"#]
        {
            assert_eq!(of_plan(text).unwrap_err().kind(), ErrorKind::Protocol, "{text}");
        }
    }
}
