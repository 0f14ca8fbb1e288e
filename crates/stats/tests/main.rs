//! The tests of intervals and comparisons: exact cases, and simulations of whole runs.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod comparison;
mod families;
mod histogram;
mod interim;
mod nested;
mod simulation;

use kurabe_stats::Rng;
use kurabe_stats::distribution::normal_quantile;

/// A draw from the standard normal distribution.
fn normal(rng: &mut Rng) -> f64 {
    normal_quantile(rng.unit_f64().max(f64::MIN_POSITIVE))
}
