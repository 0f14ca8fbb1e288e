//! The optimizer's row estimate, from `EXPLAIN`.
//!
//! There are three formats of JSON: MySQL's versions 1 and 2 (MySQL manual, "EXPLAIN Output Format",
//! `explain_json_format_version`) and MariaDB's (Knowledge Base, "EXPLAIN FORMAT=JSON"). MySQL before 5.6.5 and MariaDB
//! before 10.1.2 have none: their table is read (MySQL 5.5 manual, "EXPLAIN Output Format"). None has the planning time.

use crate::prelude::*;
use crate::wire::link::{Query, rows, value};
use serde_json::Value as Json;

/// The number of the server's error for invalid syntax.
const SYNTAX: &str = "1064";

/// The form of a server's plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PlanFormat {
    #[default]
    Json,
    Table,
}

/// Plans a query and reads the estimate. Also returns the format for the next query of this connection.
pub(super) fn read(link: &mut dyn Query, format: PlanFormat, sql: &str) -> Result<(RowEstimate, PlanFormat)> {
    if format == PlanFormat::Json {
        match value(link, &format!("EXPLAIN FORMAT=JSON {sql}")) {
            Ok(plan) => return Ok((of_plan(&plan.unwrap_or_default())?, PlanFormat::Json)),
            Err(error) if error.server_code() == Some(SYNTAX) => {}
            Err(error) => return Err(error),
        }
    }
    // Without EXTENDED, old versions do not report the share of rows that a condition keeps. New versions have no
    // EXTENDED, and answer what is wrong with the query.
    let table = rows(link, &format!("EXPLAIN EXTENDED {sql}"))?;
    Ok((estimated(of_table_format(&table))?, PlanFormat::Table))
}

fn estimated(rows: Option<f64>) -> Result<RowEstimate> {
    let rows = rows.filter(|rows| *rows >= 0.0);
    let rows =
        rows.ok_or_else(|| Error::new(ErrorKind::Protocol, "the server's plan has no row estimate"))?;
    Ok(RowEstimate { rows, planning: None })
}

/// The rows of the join of all tables of the outer query. The last columns are `rows`, `filtered` and `Extra`.
fn of_table_format(table: &[Vec<String>]) -> Option<f64> {
    let outer = table.first()?.first()?;
    let mut joined = 1.0;
    for line in table.iter().filter(|line| line.first() == Some(outer)) {
        let [.., rows, filtered, extra] = line.as_slice() else { return None };
        if rows.is_empty() {
            return is_empty(extra).then_some(0.0);
        }
        joined *= rows.parse::<f64>().ok()? * filtered.parse::<f64>().ok()? / 100.0;
    }
    Some(joined)
}

fn of_plan(text: &str) -> Result<RowEstimate> {
    let plan: Json = serde_json::from_str(text).unwrap_or_default();
    estimated(version_2(&plan).or_else(|| block(&plan["query_block"])))
}

/// The uppermost operation of MySQL's version 2. One that returns no rows has no estimate.
fn version_2(plan: &Json) -> Option<f64> {
    let top = plan.get("query_plan").unwrap_or(plan);
    let operation = top.get("operation")?.as_str()?;
    let zero = operation.starts_with("Zero rows");
    top.get("estimated_rows").and_then(Json::as_f64).or(zero.then_some(0.0))
}

/// Steps between a block and its tables, in either server's plans.
const BELOW: [&str; 5] =
    ["ordering_operation", "filesort", "temporary_table", "read_sorted_file", "block-nl-join"];

/// A block whose tables are joined in a nested loop, below sorting and the like.
fn block(block: &Json) -> Option<f64> {
    if let Some(table) = block.get("table") {
        return of_table(table);
    }
    if let Some(tables) = block.get("nested_loop").and_then(Json::as_array) {
        return joined(tables);
    }
    if let Some(message) = block.get("message").and_then(Json::as_str) {
        return is_empty(message).then_some(0.0);
    }
    BELOW.iter().find_map(|name| self::block(block.get(*name)?))
}

/// MySQL gives the rows of the whole join with each table, MariaDB those of each table.
fn joined(steps: &[Json]) -> Option<f64> {
    let mut rows = None;
    for step in steps {
        let table = table_of(step)?;
        rows = match table.get("rows_produced_per_join") {
            Some(produced) => Some(produced.as_f64()?),
            None => Some(rows.unwrap_or(1.0) * of_table(table)?),
        };
    }
    rows
}

/// The table of a step of a nested loop, below sorting and the like.
fn table_of(step: &Json) -> Option<&Json> {
    step.get("table").or_else(|| BELOW.iter().find_map(|name| table_of(step.get(*name)?)))
}

fn of_table(table: &Json) -> Option<f64> {
    if let Some(message) = table.get("message").and_then(Json::as_str) {
        return is_empty(message).then_some(0.0);
    }
    if let Some(produced) = table.get("rows_produced_per_join") {
        return produced.as_f64();
    }
    let share = table.get("filtered").map_or(Some(100.0), Json::as_f64)? / 100.0;
    Some(table.get("rows")?.as_f64()? * share)
}

/// Whether a message says that the optimizer found that there are no rows: "Impossible WHERE", "Impossible WHERE noticed
/// after reading const tables", "no matching row in const table".
fn is_empty(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.starts_with("impossible") || message.starts_with("no matching")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(plan: &str) -> RowEstimate {
        of_plan(plan).unwrap()
    }

    fn of_rows(rows: f64) -> RowEstimate {
        RowEstimate { rows, planning: None }
    }

    #[test]
    fn estimate_is_read_from_every_format() {
        let first = r#"{"query_block": {"select_id": 1, "cost_info": {"query_cost": "1.1"}, "table": {"table_name": "t",
            "access_type": "range", "rows_examined_per_scan": 500, "rows_produced_per_join": 55, "filtered": "11.11"}}}"#;
        assert_eq!(read_from(first), of_rows(55.0));
        let second = r#"{"query": "select 1", "query_plan": {"operation": "Filter: (t.a < 5)", "estimated_rows": 33.3,
            "inputs": [{"operation": "Table scan on t", "estimated_rows": 100.0}]}, "json_schema_version": "2.0"}"#;
        assert_eq!(read_from(second), of_rows(33.3));
        let old_mariadb = r#"{"query_block": {"select_id": 1, "table": {"rows": 2000, "filtered": 50}}}"#;
        assert_eq!(read_from(old_mariadb), of_rows(1_000.0));
        let mariadb = r#"{"query_block": {"select_id": 1, "nested_loop": [{"table": {"rows": 20, "filtered": 50}},
            {"table": {"rows": 3, "filtered": 100}}]}}"#;
        assert_eq!(read_from(mariadb), of_rows(30.0));
        let sorted = r#"{"query_block": {"nested_loop": [{"read_sorted_file": {"filesort": {"sort_key": "t.a",
            "table": {"rows": 300, "filtered": 50}}}}]}}"#;
        assert_eq!(read_from(sorted), of_rows(150.0));
        let join = r#"{"query_block": {"ordering_operation": {"using_filesort": true, "nested_loop": [
            {"table": {"rows_produced_per_join": 20}}, {"table": {"rows_produced_per_join": 7}}]}}}"#;
        assert_eq!(read_from(join), of_rows(7.0));
    }

    #[test]
    fn impossible_condition_has_no_rows() {
        for plan in [
            r#"{"query_block": {"select_id": 1, "message": "Impossible WHERE"}}"#,
            r#"{"query_block": {"table": {"message": "Impossible WHERE noticed after reading const tables"}}}"#,
            r#"{"query_block": {"message": "no matching row in const table"}}"#,
            r#"{"query_plan": {"operation": "Zero rows (Impossible WHERE)"}}"#,
        ] {
            assert_eq!(read_from(plan), of_rows(0.0), "{plan}");
        }
    }

    #[test]
    fn table_of_old_versions_is_read() {
        let read = |lines: &[&str]| {
            let line = |line: &&str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
            of_table_format(&lines.iter().map(line).collect::<Vec<_>>())
        };
        // id, select_type, table, type, possible_keys, key, key_len, ref, rows, filtered, Extra
        assert_eq!(read(&["1|SIMPLE|t|range|a|a|8||19488|100.00|Using where"]), Some(19_488.0));
        assert_eq!(read(&["1|SIMPLE|t|ALL|||||2000|50.00|Using where"]), Some(1_000.0));
        assert_eq!(read(&["1|SIMPLE|t|ALL|||||20|50.00|", "1|SIMPLE|u|ref|b|b|8|t.a|3|100.00|"]), Some(30.0));
        // A derived table is planned by itself.
        let derived = ["1|PRIMARY|<derived2>|ALL|||||7|100.00|", "2|DERIVED|t|ALL|||||900|100.00|"];
        assert_eq!(read(&derived), Some(7.0));
        let nothing = "1|SIMPLE|||||||||Impossible WHERE noticed after reading const tables";
        assert_eq!(read(&[nothing]), Some(0.0));
        assert_eq!(read(&["1|SIMPLE|||||||||Select tables optimized away"]), None);
        assert_eq!((read(&[]), read(&["1|SIMPLE"])), (None, None));
    }

    #[test]
    fn plan_without_estimate_is_an_error() {
        for text in ["", "[]", "{}", r#"{"query_block": {"message": "No tables used"}}"#] {
            assert_eq!(of_plan(text).unwrap_err().kind(), ErrorKind::Protocol, "{text}");
        }
    }
}
