//! The conditions under which trials are made: the same from a run down to each of its clients.

use crate::clients::cpu_partition::CpuPartition;
use crate::fleet::Fleet;
use kurabe_core::observation::Observer;
use kurabe_core::run::Measurement;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Checks a trial for interference; returns the reason, as a clause, if it should not be relied on.
pub type InterferenceCheck = fn(&Measurement) -> Option<String>;

/// Cancellation flag used when nothing can be cancelled.
static NEVER: AtomicBool = AtomicBool::new(false);
/// Progress counter used when there is no progress display.
static UNWATCHED: AtomicU64 = AtomicU64::new(0);

/// The conditions under which trials are made.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// Set by the user's Ctrl-C.
    pub cancel: &'a AtomicBool,
    /// Completed transactions of the current trial.
    pub progress: &'a AtomicU64,
    /// Observes machine, client and server during each trial.
    pub observer: Option<&'a dyn Observer>,
    /// Checks each trial for interference by other processes. A disturbed trial is repeated once at the end of its
    /// round; the repetition counts in any case. `None`: no check. A trial in which Kurabe itself stood still is
    /// always repeated.
    pub interference_check: Option<InterferenceCheck>,
    /// Separate processors for clients and servers; `None`: no pinning.
    pub cpu_partition: Option<&'a CpuPartition>,
    /// The machines that run the clients; `None`: this process runs them.
    pub fleet: Option<&'a dyn Fleet>,
}

/// No cancellation, progress, observation, interference check, pinning and fleet.
impl Default for Conditions<'_> {
    fn default() -> Self {
        Self {
            cancel: &NEVER,
            progress: &UNWATCHED,
            observer: None,
            interference_check: None,
            cpu_partition: None,
            fleet: None,
        }
    }
}
