//! CPU time of this process. Wall time is `std::time::Instant`: monotonic, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time, user and system, of all threads of this process.
pub(crate) fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
