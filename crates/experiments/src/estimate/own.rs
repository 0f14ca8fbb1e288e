//! Estimates for a table of the user.

use super::job::Estimating;
use super::{demand, raw};
use crate::custom::reads;
use crate::prelude::*;
use kurabe_core::driver::Access;
use kurabe_core::raw::RawPiece;

/// Plans a cell that estimates `SELECT * FROM text`.
pub(super) fn plan(text: &str) -> Result<PlannedCell> {
    let query = |sql: String| {
        if let Some(why) = reads::text_asks_for_write(&sql) {
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
