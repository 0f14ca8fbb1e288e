//! Claims: statements about databases that a run can test.
//!
//! A claim is a list of [`Test`]s. A test compares two cells of a run by a metric, or takes the value of one cell, and
//! says which [`Range`] is claimed. [`judge`] computes the interval of each and asks [`Range::answer`]. It is a pure
//! function of the run and the tests, so that a recorded run can be judged again, and so that a run can end as soon as
//! its claim is decided.

mod judge;
mod report;
mod text;

pub use crate::json::indented as json;
pub use judge::{judge, metrics};
pub use report::{About, Card, Held, Judgement, Reason, Report, Tested};
pub use text::{page, terminal};

use crate::format::figure;
use crate::messages::{Language, Message};
use crate::wording::say;
use kurabe_core::axis::AxisValue;
use kurabe_core::metric::Unit;
use kurabe_stats::{Decision, Estimate, Interval};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

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
    #[serde(serialize_with = "written")]
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

/// The answer to a claim, in words.
fn word(answer: Decision, language: Language) -> &'static str {
    let message = match answer {
        Decision::Within => Message::Holds,
        Decision::Above | Decision::Below => Message::DoesNotHold,
        Decision::Undecided => Message::Undecided,
        Decision::NotTestable => Message::NotTestable,
    };
    message.text(language)
}

/// The answer to a claim, as files and style sheets name it.
fn name(answer: Decision) -> &'static str {
    match answer {
        Decision::Within => "holds",
        Decision::Above | Decision::Below => "does-not-hold",
        Decision::Undecided => "undecided",
        Decision::NotTestable => "not-testable",
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn written<S: Serializer>(answer: &Decision, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(name(*answer))
}

/// The answer to a claim from those to its tests: it holds if each test holds, and does not hold if one does not. It is
/// decided only if all its tests were made: half a claim is another one.
pub fn together(tests: impl IntoIterator<Item = Decision>) -> Decision {
    let found: Vec<Decision> = tests.into_iter().collect();
    let any = |is_one: fn(Decision) -> bool| found.iter().copied().find(|answer| is_one(*answer));
    any(|answer| answer == Decision::NotTestable)
        .or_else(|| any(Decision::is_outside))
        .or_else(|| any(|answer| answer == Decision::Undecided))
        .or_else(|| found.first().copied())
        .unwrap_or(Decision::NotTestable)
}

/// The claimed range of a positive value, with a tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// The smallest claimed value; `None`: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The largest claimed value; `None`: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The relative distance by which a value may miss the range: 0.25 allows 4.8 for "at least 6".
    pub tolerance: f64,
}

impl Range {
    /// The ends with the tolerance: the lower one is divided by 1 + tolerance, the upper one multiplied. An end that is
    /// not claimed is infinite.
    pub fn ends(&self) -> Interval {
        let factor = 1.0 + self.tolerance;
        Interval {
            low: self.at_least.map_or(f64::NEG_INFINITY, |value| value / factor),
            high: self.at_most.map_or(f64::INFINITY, |value| value * factor),
        }
    }

    /// The answer for a value of which this interval is known. It is a pure function of the two intervals: within if
    /// the range contains the interval, above or below if they have no value in common, and undecided otherwise.
    pub fn answer(&self, interval: Interval) -> Decision {
        let claimed = self.ends();
        if claimed.low <= interval.low && interval.low <= interval.high && interval.high <= claimed.high {
            Decision::Within
        } else if interval.low <= interval.high && interval.high < claimed.low {
            Decision::Below
        } else if interval.low <= interval.high && claimed.high < interval.low {
            Decision::Above
        } else {
            Decision::Undecided
        }
    }

    /// The range in words: `at least 6`, `6 to 10 (±25 %)`, `1 (±10 %)`.
    pub fn words(&self, show: &dyn Fn(f64) -> String, language: Language) -> String {
        let range = match (self.at_least.map(show), self.at_most.map(show)) {
            (Some(low), Some(high)) if low == high => low,
            (Some(low), Some(high)) => say!(language, "{low} to {high}", "{low}~{high}"),
            (Some(low), None) => say!(language, "at least {low}", "{low} 以上"),
            (None, Some(high)) => say!(language, "at most {high}", "{high} 以下"),
            (None, None) => say!(language, "any value", "任意の値"),
        };
        if self.tolerance > 0.0 { format!("{range} (±{} %)", figure(self.tolerance * 100.0)) } else { range }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(at_least: Option<f64>, at_most: Option<f64>, tolerance: f64) -> Range {
        Range { at_least, at_most, tolerance }
    }

    #[test]
    fn published_factors_are_answered_as_a_reader_would() {
        let of = |range: Range, low, high| range.answer(Interval { low, high });
        let six_to_ten = range(Some(6.0), Some(10.0), 0.25);
        assert_eq!(of(six_to_ten, 5.0, 9.0), Decision::Within);
        assert_eq!(of(six_to_ten, 1.1, 1.3), Decision::Below);
        assert_eq!(of(six_to_ten, 13.0, 14.0), Decision::Above);
        assert_eq!(of(six_to_ten, 4.0, 9.0), Decision::Undecided);
        let faster = range(Some(1.0), None, 0.0);
        assert_eq!(of(faster, 1.0, 40.0), Decision::Within);
        assert_eq!(of(faster, 0.99, 1.0), Decision::Undecided);
        assert_eq!(of(faster, f64::NAN, 2.0), Decision::Undecided);
        assert_eq!(of(faster, 2.0, f64::INFINITY), Decision::Within);
    }

    #[test]
    fn claim_is_decided_only_if_each_of_its_tests_can_be_made() {
        use Decision::{Above, Below, NotTestable, Undecided, Within};
        for (tests, answer) in [
            (&[Within, Within][..], Within),
            (&[Within, NotTestable], NotTestable),
            (&[Below, NotTestable], NotTestable),
            (&[Within, Undecided], Undecided),
            (&[Undecided, Above, Within, Below], Above),
            (&[NotTestable, NotTestable], NotTestable),
            (&[], NotTestable),
        ] {
            assert_eq!(together(tests.iter().copied()), answer, "{tests:?}");
        }
    }

    #[test]
    fn range_is_written_as_it_was_claimed() {
        let words = |range: Range| range.words(&figure, Language::English);
        assert_eq!(words(range(Some(6.0), Some(10.0), 0.25)), "6 to 10 (±25 %)");
        assert_eq!(words(range(Some(1.0), Some(1.0), 0.1)), "1 (±10 %)");
        assert_eq!(words(range(Some(2.0), None, 0.0)), "at least 2");
        assert_eq!(words(range(None, Some(0.5), 0.0)), "at most 0.5");
    }

    prop_compose! {
        fn claimed()(low in proptest::option::of(0.01_f64..50.0), more in proptest::option::of(1.0_f64..20.0),
                     tolerance in prop_oneof![Just(0.0), 0.0_f64..0.5]) -> Range {
            let at_most = more.map(|more| low.unwrap_or(0.1) * more);
            range(low, at_most, tolerance)
        }
    }

    proptest! {
        #[test]
        fn answer_never_contradicts_its_interval(
            range in claimed(), low in 0.001_f64..100.0, width in 1.0_f64..5.0, at in 0.0_f64..=1.0,
        ) {
            let interval = Interval { low, high: low * width };
            let claimed = range.ends();
            // Any value that the interval does not exclude.
            let value = at.mul_add(interval.high - interval.low, interval.low).clamp(interval.low, interval.high);
            match range.answer(interval) {
                Decision::Within => prop_assert!(claimed.contains(value), "{value} is outside of {claimed:?}"),
                Decision::Above | Decision::Below => prop_assert!(!claimed.contains(value), "{value} is within {claimed:?}"),
                Decision::Undecided => prop_assert!(
                    claimed.contains(interval.low) != claimed.contains(interval.high)
                        || interval.low < claimed.low && claimed.high < interval.high,
                    "{interval:?} and {claimed:?}"
                ),
                Decision::NotTestable => return Err(TestCaseError::fail("a measured value is testable")),
            }
        }

        #[test]
        fn wider_interval_never_reverses_an_answer(
            range in claimed(), low in 0.001_f64..100.0, width in 1.0_f64..5.0, wider in 1.0_f64..10.0,
        ) {
            let narrow = range.answer(Interval { low, high: low * width });
            let wide = range.answer(Interval { low: low / wider, high: low * width * wider });
            prop_assert!(wide == narrow || wide == Decision::Undecided, "{narrow:?} became {wide:?}");
        }

        #[test]
        fn exact_value_is_always_decided(range in claimed(), value in 0.001_f64..100.0) {
            prop_assert_ne!(range.answer(Interval { low: value, high: value }), Decision::Undecided);
        }
    }
}
