//! Counts and times of requests.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The CPU time of one in so many database calls is measured.
const SAMPLED: u64 = 32;

/// Shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub answered: Count,
    pub refused: Count,
    pub failed: Count,
    pub malformed: Count,
    pub processed: Count,
    pub queue_wait_ns: Count,
    pub longest_wait_ns: Count,
    calls: Count,
    sampled: Count,
    sampled_ns: Count,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, n: u64) -> u64 {
        self.0.fetch_add(n, Ordering::Relaxed)
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// Records how long a request waited for a session slot.
    pub(crate) fn waited(&self, time: Duration) {
        let ns = time.as_nanos() as u64;
        self.processed.one();
        self.queue_wait_ns.add(ns);
        self.longest_wait_ns.0.fetch_max(ns, Ordering::Relaxed);
    }

    /// Runs a database call and samples its CPU time.
    pub(crate) fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        let began = self.calls.add(1).is_multiple_of(SAMPLED).then(|| cpu(ClockId::ThreadCPUTime));
        let out = call();
        if let Some(began) = began {
            let spent = cpu(ClockId::ThreadCPUTime).saturating_sub(began);
            self.sampled.one();
            self.sampled_ns.add(spent.as_nanos() as u64);
        }
        out
    }

    /// CPU time within database calls, in nanoseconds, estimated from the sample.
    pub(crate) fn database_cpu_ns(&self) -> u64 {
        let [calls, sampled, ns] = [&self.calls, &self.sampled, &self.sampled_ns].map(Count::get);
        if sampled == 0 { 0 } else { (ns as f64 * calls as f64 / sampled as f64) as u64 }
    }
}

/// CPU time of this process.
pub(crate) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    Duration::new(tv_sec as u64, tv_nsec as u32)
}
