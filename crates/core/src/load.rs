//! The load model: a closed loop, where each client waits for its reply, or an open loop, where transactions are due
//! at given times.

use crate::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use crate::named::named;
use serde::{Deserialize, Serialize};

/// The axis of the rate, which every experiment has beside its own. Without a rate the loop is closed.
pub const RATE: AxisInfo = AxisInfo::new(
    "rate",
    "transactions due per second, whether or not earlier ones have ended (open loop)",
    AxisKind::count(1, 10_000_000).or(&[("max", "the highest rate with a p99 response time under --slo")]),
    &[],
);

/// The default number of clients of an open loop. With one client, each slow reply would delay all that follow.
pub const OPEN_CLIENTS: &str = "16";

/// The default limit for the 99th percentile of response times: 10 ms, in nanoseconds.
pub const DEFAULT_SLO_NS: u64 = 10_000_000;

/// The load of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Closed loop: each client starts its next transaction when its last one has ended.
    Closed,
    /// Open loop: this many transactions are due per second.
    Open(u64),
    /// Open loop at the highest rate that meets the objective.
    Highest,
}

impl Load {
    /// The load of a cell; closed if it has no rate.
    pub fn of(cell: &Cell) -> Self {
        match cell.get(RATE.name) {
            None => Self::Closed,
            Some(AxisValue::Number(rate)) => Self::Open(*rate),
            Some(AxisValue::Word(_)) => Self::Highest,
        }
    }
}

named! {
    /// The distribution of arrivals over time.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Arrivals {
        /// At equal intervals.
        #[default]
        Even => "even",
        /// A Poisson process, as from independent users: intervals are exponentially distributed.
        Poisson => "poisson",
    }
    pub fn name;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_count_or_max() {
        assert_eq!(RATE.parse("5k").unwrap(), AxisValue::Number(5_000));
        let cell = |text| Cell::new([("rate".to_owned(), RATE.parse(text).unwrap())]);
        assert_eq!(Load::of(&cell("max")), Load::Highest);
        assert_eq!(Load::of(&cell("20")), Load::Open(20));
        assert_eq!(Load::of(&Cell::default()), Load::Closed);
        for wrong in ["0", "fast", "", "-1"] {
            let error = RATE.parse(wrong).unwrap_err().to_string();
            assert!(error.contains("--rate"), "{error}");
        }
        assert!(RATE.parse("fast").unwrap_err().to_string().contains("or max"));
    }
}
