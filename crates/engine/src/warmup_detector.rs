//! How long a long trial warms up: until its throughput no longer changes.
//!
//! Short trials warm up for a part of their requests or time, as they always did: there is no room to see more in them. In a
//! trial of a second or more all clients count what they complete into common windows, and each that has warmed up for a tenth of the
//! time goes on until the last windows are as fast as those before them, for three tenths at most.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shorter trials are not watched while they warm up.
const LEAST: Duration = Duration::from_secs(1);
/// A window is this part of the trial's time.
const WINDOW_PART: u32 = 50;
/// So many windows are held against as many before them, …
const HELD: usize = 3;
/// … and are as fast where they differ by no more than this.
const SAME: f64 = 0.05;
/// Three tenths of the trial's time: how long a client warms up at most.
const MOST: u32 = 15;
/// Windows counted from the first client's first transaction: what connects later than that is not waited for.
const COUNTED: usize = 64;

/// What all clients of a trial count into while they warm up.
pub(crate) struct WarmupDetector {
    began: OnceLock<Instant>,
    window: Duration,
    windows: [AtomicU64; COUNTED],
    over: AtomicBool,
}

impl WarmupDetector {
    /// `None` for a trial that is too short.
    pub(crate) fn of(duration: Duration) -> Option<Self> {
        (duration >= LEAST).then(|| Self {
            began: OnceLock::new(),
            window: duration / WINDOW_PART,
            windows: [const { AtomicU64::new(0) }; COUNTED],
            over: AtomicBool::new(false),
        })
    }

    /// The longest that a client warms up from its own beginning.
    pub(crate) fn most(&self) -> Duration {
        self.window * MOST
    }

    /// Counts what was completed; true once throughput has become even.
    pub(crate) fn done(&self, completed: u64, now: Instant) -> bool {
        let began = *self.began.get_or_init(|| now);
        let at = now.saturating_duration_since(began).as_nanos() / self.window.as_nanos().max(1);
        let at = at as usize;
        if let Some(window) = self.windows.get(at) {
            window.fetch_add(completed, Ordering::Relaxed);
        }
        if at >= COUNTED || self.even(at) {
            self.over.store(true, Ordering::Relaxed);
        }
        self.over.load(Ordering::Relaxed)
    }

    /// Whether the whole windows before `at` have become even.
    fn even(&self, at: usize) -> bool {
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

    /// In which window throughput is found even, when each of these is that of one.
    fn even_in(rates: impl Fn(usize) -> u64) -> usize {
        let warmup_detector = WarmupDetector::of(Duration::from_secs(5)).expect("it is long enough");
        let began = Instant::now();
        let time = |window: usize| began + warmup_detector.window * window as u32;
        (0..=COUNTED).find(|window| warmup_detector.done(rates(*window), time(*window))).expect("it ends")
    }

    #[test]
    fn it_ends_when_throughput_no_longer_changes() {
        assert_eq!(even_in(|_| 1_000), 2 * HELD);
        assert_eq!(even_in(|window| if window < 4 { 400 } else { 1_000 }), 10);
    }

    #[test]
    fn it_ends_whatever_happens() {
        assert_eq!(even_in(|window| 100 + (window as u64).pow(6)), COUNTED);
        assert_eq!(even_in(|_| 0), COUNTED);
    }

    #[test]
    fn a_short_trial_is_not_watched() {
        assert!(WarmupDetector::of(Duration::from_millis(999)).is_none());
    }
}
