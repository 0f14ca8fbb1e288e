//! The clock of transactions, and CPU time of this process.

use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The processor's cycle counter if it is invariant, otherwise the system's monotonic clock. Two reads of it cost
/// about 60 % of two reads of the system's clock (`cargo xtask bench overhead`). The system's clock times the whole
/// measured phase, and so throughput.
pub(crate) type Tick = quanta::Instant;

/// The common start of all clients on this clock. It may have passed: a client that wakes late has the origin of the
/// others, so that its response times include its delay.
pub(crate) fn tick_of(start: Instant) -> Tick {
    let (now, tick) = (Instant::now(), Tick::now());
    tick + start.saturating_duration_since(now) - now.saturating_duration_since(start)
}

/// Makes sleeps of this thread precise. By default the kernel may add 50 µs (`prctl(2)`, `PR_SET_TIMERSLACK`).
pub(crate) fn sleep_sharply() {
    // If it cannot be set, dispatch lag shows it.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// CPU time, user and system, of all threads of this process.
pub(crate) fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
