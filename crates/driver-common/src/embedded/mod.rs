//! Shared code of embedded databases: the location of the file, and a run's claim on it.

mod lock;
mod metrics;
mod place;
mod temporary;

pub use kurabe_os::limits::advice_on_file_size;
pub use lock::Claim;
pub use metrics::ProcessStatsProbe;
pub use place::Place;
pub use temporary::Temporary;

/// Removes the temporary folders of runs that were killed.
pub fn sweep() {
    temporary::sweep(&std::env::temp_dir());
}
