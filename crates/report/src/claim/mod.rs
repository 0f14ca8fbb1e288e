//! Claims: statements about databases that a run can test.
//!
//! A claim is a list of [`Test`]s. A test compares two cells of a run by a metric, or takes the value of one cell, and
//! says which [`Range`] is claimed. [`judge`] computes the interval of each and asks [`Range::answer`]. It is a pure
//! function of the run and the tests, so that a recorded run can be judged again, and so that a run can end as soon as
//! its claim is decided.

mod judge;
mod range;
mod report;
mod text;

use kurabe_core::axis::AxisValue;
use kurabe_core::metric::Unit;
use kurabe_stats::{Decision, Estimate};
use serde::Serialize;
use std::collections::BTreeMap;

pub use judge::judge;
pub use judge::metrics;
pub use range::{Range, together};
pub use report::Reason;
pub use report::{About, Card, Held, Judgement, Report, Tested, json};
pub use text::page;
pub use text::terminal;

/// What is compared, and what is claimed of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The operation; `None`: each operation of the run.
    pub operation: Option<String>,
    /// The metric's name, one of [`metrics`].
    pub metric: String,
    pub unit: Unit,
    /// The cell whose value is claimed.
    pub subject: Side,
    /// The cell by whose value it is divided; `None`: the value itself is claimed.
    pub baseline: Option<Side>,
    /// What is claimed of the ratio, or of the value in the metric's unit.
    pub claimed: Range,
}

/// A cell of a test. Axes that it does not name have each value of the run, the same on both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// The target, by position in the run; `None`: each target, the same on both sides.
    pub target: Option<usize>,
    /// Values of axes. Both sides of a test name the same axes.
    pub axes: BTreeMap<String, AxisValue>,
}

/// The answer to a test for one pair of cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The target, or both: `MySQL`, `mysql : mysql engine=MyISAM`.
    pub target: String,
    /// What was compared: `write throughput, layout rows : blob, at payload 1 MB`.
    pub what: String,
    /// The metric's name.
    pub metric: String,
    /// The unit of the value: a ratio if two cells are compared.
    pub unit: Unit,
    #[serde(serialize_with = "range::written")]
    pub answer: Decision,
    pub claimed: Range,
    /// The value with its interval; `None` if there is none.
    #[serde(flatten)]
    pub found: Option<Estimate>,
    /// The number of rounds that it is from.
    pub rounds: u32,
    /// Why it is undecided or not testable here, as a clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Reason>,
    /// What a reader should know besides: different durability, a lower bound.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Reason>,
    /// Whether a trial failed, so that there is no result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether more rounds could decide it.
    #[serde(skip)]
    pub open: bool,
}

impl Part {
    /// A part without a result.
    pub fn not_testable(target: impl Into<String>, test: &Test, why: impl Into<Reason>) -> Self {
        Self {
            target: target.into(),
            what: test.metric.clone(),
            metric: test.metric.clone(),
            unit: if test.baseline.is_some() { Unit::Ratio } else { test.unit },
            answer: Decision::NotTestable,
            claimed: test.claimed,
            found: None,
            rounds: 0,
            why: Some(why.into()),
            notes: Vec::new(),
            failed: false,
            open: false,
        }
    }
}
