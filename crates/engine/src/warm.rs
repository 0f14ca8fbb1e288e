//! How long a long trial warms up: until its throughput no longer changes.
//!
//! Short trials warm up for a part of their requests or time, as they always did: there is no room to see more in them. In a
//! trial of a second or more all clients count what they complete into common windows; when the last windows are as fast
//! as those before them, or three tenths of the trial's time are over, all of them end warming up at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shorter trials are not watched while they warm up.
const LEAST: Duration = Duration::from_secs(1);
/// A window is this part of the trial's time.
const WINDOW_PART: u32 = 50;
/// Warming up takes a tenth of it at least, in windows, as in a short trial, …
const FEWEST: usize = 5;
/// … and three tenths at most.
const MOST: usize = 15;
/// So many windows are held against as many before them, …
const HELD: usize = 3;
/// … and are as fast where they differ by no more than this.
const SAME: f64 = 0.05;

/// What all clients of a trial count into while they warm up.
pub(crate) struct Warmth {
    began: Instant,
    window: Duration,
    windows: [AtomicU64; MOST + 1],
    over: AtomicBool,
}

impl Warmth {
    /// `None` for a trial that is too short.
    pub(crate) fn of(duration: Duration) -> Option<Self> {
        (duration >= LEAST).then(|| Self {
            began: Instant::now(),
            window: duration / WINDOW_PART,
            windows: [const { AtomicU64::new(0) }; MOST + 1],
            over: AtomicBool::new(false),
        })
    }

    /// Counts what was completed; true once warming up is over.
    pub(crate) fn done(&self, completed: u64, now: Instant) -> bool {
        let at = now.saturating_duration_since(self.began).as_nanos() / self.window.as_nanos().max(1);
        let at = (at as usize).min(MOST);
        self.windows[at].fetch_add(completed, Ordering::Relaxed);
        if at >= MOST || (at >= FEWEST && self.even(at)) {
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

    /// In which window warming up ends, when each of these is the throughput of one.
    fn ends(rates: impl Fn(usize) -> u64) -> usize {
        let warmth = Warmth::of(Duration::from_secs(5)).expect("it is long enough");
        let moment = |window: usize| warmth.began + warmth.window * window as u32 + warmth.window / 2;
        (0..=MOST).find(|window| warmth.done(rates(*window), moment(*window))).expect("it ends")
    }

    #[test]
    fn it_ends_when_throughput_no_longer_changes() {
        assert_eq!(ends(|_| 1_000), 2 * HELD);
        let late = ends(|window| if window < 4 { 400 } else { 1_000 });
        assert_eq!(late, 10);
    }

    #[test]
    fn it_ends_after_three_tenths_whatever_happens() {
        assert_eq!(ends(|window| 100 << window), MOST);
        assert_eq!(ends(|_| 0), MOST);
    }

    #[test]
    fn a_short_trial_is_not_watched() {
        assert!(Warmth::of(Duration::from_millis(999)).is_none());
    }
}
