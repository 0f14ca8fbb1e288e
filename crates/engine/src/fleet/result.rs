//! What a process that ran a part of a trial's clients recorded, as it is sent.

use crate::trial::recorded::Recorded;
use crate::trial::{Executed, Failure};
use kurabe_core::observation::Observation;
use serde::{Deserialize, Serialize};

/// What the clients of one process recorded, and the process itself. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartResult {
    /// What the clients recorded.
    pub recorded: Recorded,
    /// The threads that shared the clients; `None`: each had its own.
    pub(crate) threads: Option<usize>,
    /// CPU time of the process.
    pub(crate) cpu_ns: u64,
    pub(crate) observed: Option<Box<Observation>>,
    pub(crate) stood_still_ns: u64,
    pub(crate) stood_still_in_all_ns: u64,
    /// How much later than ordered the clients were started.
    pub late_ns: u64,
}

impl PartResult {
    /// What the clients of an executed trial recorded.
    ///
    /// # Errors
    /// The first error of a client; a wrong reply precedes others.
    pub(crate) fn of(executed: Executed) -> Result<Self, Failure> {
        let Executed { totals, cpu, threads, observed, stood_still, stood_still_in_all, late, .. } = executed;
        if let Some(error) = totals.error {
            return Err(Failure { error, mismatches: totals.mismatches, stood_still: stood_still_in_all });
        }
        Ok(Self {
            recorded: totals.recorded,
            threads,
            cpu_ns: cpu.as_nanos() as u64,
            observed: observed.map(Box::new),
            stood_still_ns: stood_still.as_nanos() as u64,
            stood_still_in_all_ns: stood_still_in_all.as_nanos() as u64,
            late_ns: late.as_nanos() as u64,
        })
    }
}
