//! The time by which clients are given up: to a few milliseconds, which costs least to ask.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Milliseconds since some moment in the past.
pub(crate) type Moment = u64;

/// Now.
pub(crate) fn now() -> Moment {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000
}

/// So long from now; a time that nobody lives to see is cut short.
pub(crate) fn after(time: Duration) -> Moment {
    now().saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
