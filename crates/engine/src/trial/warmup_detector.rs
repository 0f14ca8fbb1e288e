//! Decides how long a long trial warms up: until its throughput is stable.
//!
//! Short trials warm up for a part of their requests or time. In a trial of a second or more, all clients count
//! completed transactions in common windows. After a tenth of the time, each client warms up until the last windows
//! are as fast as the ones before, for at most three tenths.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The minimum time of a trial whose warm-up is monitored.
const MIN: Duration = Duration::from_secs(1);
/// A window is this part of the trial's time.
const WINDOW_PART: u32 = 50;
/// This many windows are compared with as many before them, …
const HELD: usize = 3;
/// … and are as fast if they differ by at most this share.
const SAME: f64 = 0.05;
/// The maximum warm-up of a client in windows: three tenths of the trial's time.
const MAX: u32 = 15;
/// The number of windows, counted from the first client's first transaction. Later clients are not waited for.
const COUNTED: usize = 64;

/// Counts the warm-up transactions of all clients of a trial.
pub(crate) struct WarmupDetector {
    began: OnceLock<Instant>,
    window: Duration,
    windows: [AtomicU64; COUNTED],
    over: AtomicBool,
}

impl WarmupDetector {
    /// `None` if the trial is too short.
    pub(crate) fn for_duration(duration: Duration) -> Option<Self> {
        (duration >= MIN).then(|| Self {
            began: OnceLock::new(),
            window: duration / WINDOW_PART,
            windows: [const { AtomicU64::new(0) }; COUNTED],
            over: AtomicBool::new(false),
        })
    }

    /// The maximum warm-up time of a client since its own start.
    pub(crate) fn max(&self) -> Duration {
        self.window * MAX
    }

    /// Counts completed transactions; `true` once throughput is stable.
    pub(crate) fn done(&self, completed: u64, now: Instant) -> bool {
        let began = *self.began.get_or_init(|| now);
        let at = now.saturating_duration_since(began).as_nanos() / self.window.as_nanos().max(1);
        let at = at as usize;
        if let Some(window) = self.windows.get(at) {
            window.fetch_add(completed, Ordering::Relaxed);
        }
        if at >= COUNTED || self.is_stable(at) {
            self.over.store(true, Ordering::Relaxed);
        }
        self.over.load(Ordering::Relaxed)
    }

    /// Whether throughput is stable in the complete windows before `at`.
    fn is_stable(&self, at: usize) -> bool {
        let sum = |from: usize, to: usize| -> f64 {
            self.windows[from..to].iter().map(|n| n.load(Ordering::Relaxed) as f64).sum()
        };
        if at < 2 * HELD {
            return false;
        }
        let (before, last) = (sum(at - 2 * HELD, at - HELD), sum(at - HELD, at));
        before > 0.0 && (last / before - 1.0).abs() <= SAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window in which throughput is found stable for these rates per window.
    fn even_in(rates: impl Fn(usize) -> u64) -> usize {
        let warmup_detector =
            WarmupDetector::for_duration(Duration::from_secs(5)).expect("it is long enough");
        let began = Instant::now();
        let time = |window: usize| began + warmup_detector.window * window as u32;
        (0..=COUNTED).find(|window| warmup_detector.done(rates(*window), time(*window))).expect("it ends")
    }

    #[test]
    fn warmup_ends_when_throughput_no_longer_changes() {
        assert_eq!(even_in(|_| 1_000), 2 * HELD);
        assert_eq!(even_in(|window| if window < 4 { 400 } else { 1_000 }), 10);
    }

    #[test]
    fn warmup_always_ends() {
        assert_eq!(even_in(|window| 100 + (window as u64).pow(6)), COUNTED);
        assert_eq!(even_in(|_| 0), COUNTED);
    }

    #[test]
    fn short_trial_has_no_warmup_detection() {
        assert!(WarmupDetector::for_duration(Duration::from_millis(999)).is_none());
    }
}
