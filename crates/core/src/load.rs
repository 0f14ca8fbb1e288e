//! How load is offered: in a closed loop, where each client waits for its answer, or in an open one, where
//! transactions are due at given times whether or not earlier ones have ended.

use crate::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use serde::{Deserialize, Serialize};

/// The axis that every experiment has beside its own, where the user asks for it: without it the loop is closed.
pub const RATE: AxisInfo = AxisInfo {
    name: "rate",
    help: "transactions that are due per second, whether or not earlier ones have ended (open loop)",
    kind: AxisKind::CountOr {
        least: 1,
        most: 10_000_000,
        words: &[("max", "the highest rate whose p99 of response times stays under --slo")],
    },
    default: &[],
};

/// Clients where a rate is asked for and no number of them: with one, every slow answer would delay all that follow.
pub const OPEN_CLIENTS: &str = "16";

/// What the 99th percentile of response times must stay under where nothing else is said: 10 ms, in nanoseconds.
pub const DEFAULT_SLO_NS: u64 = 10_000_000;

/// The load that a cell asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Each client begins its next transaction when its last has ended.
    Closed,
    /// So many transactions are due per second.
    Open(u64),
    /// The highest rate that keeps the objective.
    Highest,
}

impl Load {
    /// The load of a cell: closed where it has no rate.
    pub fn of(cell: &Cell) -> Self {
        match cell.get(RATE.name) {
            None => Self::Closed,
            Some(AxisValue::Number(rate)) => Self::Open(*rate),
            Some(AxisValue::Word(_)) => Self::Highest,
        }
    }
}

/// How transactions that are due per second are spread over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Even,
    /// As independent users come: a Poisson process, whose gaps are distributed exponentially.
    Poisson,
}

impl Arrivals {
    /// All of them, by name.
    pub const NAMES: [&str; 2] = ["even", "poisson"];

    /// The arrivals of a name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "even" => Some(Self::Even),
            "poisson" => Some(Self::Poisson),
            _ => None,
        }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Poisson => "poisson",
        }
    }
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

    #[test]
    fn arrivals_have_names() {
        for name in Arrivals::NAMES {
            assert_eq!(Arrivals::of(name).map(Arrivals::name), Some(name));
        }
        assert_eq!(Arrivals::of("random"), None);
    }
}
