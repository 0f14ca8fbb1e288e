//! What embedded databases share: where their file is, and how a run claims it.

mod lock;
mod metrics;
mod place;
mod temporary;

pub use lock::Claim;
pub use metrics::ProcessStatsProbe;
pub use place::Place;

/// Removes the temporary folders of runs that were killed.
pub fn sweep() {
    temporary::sweep(&std::env::temp_dir());
}
