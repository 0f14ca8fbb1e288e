//! The arithmetic of Kurabe: measurements become a result, an interval and a verdict.
//!
//! Everything here is pure and deterministic: no clock, no file, no global state, and every random draw comes
//! from a seed that the caller names, so that a recorded run gives the same report on every machine.
//!
//! | module | answers |
//! |---|---|
//! | [`histogram`] | how long did the operations take (counts per latency, 1 % apart) |
//! | [`summary`] | median and mean of a few values |
//! | [`distribution`] | quantiles of the normal and Student t distributions, tails of the binomial one |
//! | [`interval`] | how far may the mean of a few rounds be off |
//! | [`paired`] | by what factor does A differ from B, round against round |
//! | [`nested`] | what do rounds say of servers that were restarted between blocks of them |
//! | [`shared`] | what do the comparisons of a family know of each other's noise |
//! | [`separate`] | by what factor do two runs differ that were made at different times |
//! | [`verdict`] | may that be called faster, slower or equal |
//! | [`steady`] | was a trial steady, and from when on |
//! | [`interim`] | were enough rounds made, without calling equals different by looking often |
//! | [`permutation`] | in which random order do records come, each once |
//! | [`usl`] | how does throughput grow with the number of processors |
//! | [`rng`] | the one pseudo-random generator, also of the generated workloads |
//!
//! ```
//! use kurabe_stats::{Decision, IntervalSettings, Mean, PairedRatio, judge};
//!
//! let settings = IntervalSettings::default();
//! let baseline = [1000.0, 1015.0, 990.0, 1007.0, 1001.0];
//! let subject = [1302.0, 1317.0, 1290.0, 1311.0, 1299.0];
//!
//! let ratio = PairedRatio::from_rounds(&subject, &baseline, Mean::Arithmetic, &settings).unwrap();
//! assert_eq!(judge(ratio.estimate, 0.05), Decision::Above);
//! ```

pub mod distribution;
pub mod histogram;
pub mod interim;
pub mod interval;
pub mod nested;
pub mod paired;
pub mod permutation;
pub mod rng;
pub mod separate;
pub mod shared;
pub mod steady;
pub mod summary;
pub mod usl;
pub mod verdict;

pub use histogram::{Histogram, HistogramError};
pub use interval::{Estimate, Interval, IntervalSettings, Mean, interval_of_mean};
pub use paired::{PairedRatio, log_ratios};
pub use permutation::Permutation;
pub use rng::{Rng, mix};
pub use shared::SharedVariance;
pub use summary::{mean, median};
pub use usl::Usl;
pub use verdict::{Decision, instance_variance, judge, minimum_detectable_ratio, noise_floor};
