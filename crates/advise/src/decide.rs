//! The rule by which a proposal is called a gain: its interval excludes all that the unchanged server differs from itself.
//!
//! The A/A band is the interval of the unchanged server against a second instance of it, on both sides of 1. All intervals, that
//! one included, hold together with 95 %.

use kurabe_stats::{IntervalSettings, PairedRatio, SharedVariance};

/// What a confirmation says of a set of proposals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Gain,
    /// It may gain less than can be told apart, or nothing.
    Nothing,
    /// It is slower.
    Loss,
}

/// The outcomes of a family of sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The factor by which the unchanged server may differ from itself, from 1 on; infinite of fewer than two rounds.
    pub band: f64,
    /// How many times as fast each set is; `None` without a round.
    pub sets: Vec<Option<(PairedRatio, Outcome)>>,
}

/// Decides, by the logarithms of how many times as fast the second instance and each set were, round by round.
pub fn decide(again: &[f64], sets: &[Vec<f64>]) -> Decided {
    let family: Vec<Vec<f64>> = std::iter::once(again.to_vec()).chain(sets.iter().cloned()).collect();
    let shared = SharedVariance::from_family(&family);
    let settings = IntervalSettings::default().for_comparisons(family.len() as u32);
    let ratio = |logs: &[f64]| PairedRatio::from_logarithms(logs, shared.as_ref(), &settings);
    let band = ratio(again)
        .and_then(|ratio| ratio.estimate.ends())
        .map_or(f64::INFINITY, |(low, high)| high.max(1.0 / low));
    let judged = |logs: &Vec<f64>| {
        let ratio = ratio(logs)?;
        let outcome = match ratio.estimate.ends() {
            Some((low, _)) if low > band => Outcome::Gain,
            Some((_, high)) if high < 1.0 / band => Outcome::Loss,
            _ => Outcome::Nothing,
        };
        Some((ratio, outcome))
    };
    Decided { band, sets: sets.iter().map(judged).collect() }
}
