//! When the transactions of an open loop are due: one schedule, from which all clients of a trial take in turn.

use kurabe_core::load::Arrivals;
use kurabe_stats::rng::Rng;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// After the last transaction was due, those still waiting are begun for half the trial's time, but at least …
const LEAST_GRACE: Duration = Duration::from_secs(1);
/// … and at most so long; the rest is dropped, and counted.
const MOST_GRACE: Duration = Duration::from_secs(10);

/// The open loop of a trial, as it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Transactions due per second.
    pub(crate) rate: f64,
    pub(crate) arrivals: Arrivals,
    /// Over what time they are due.
    pub(crate) time: Duration,
    /// The most that are due, whatever the time.
    pub(crate) most: u64,
    pub(crate) seed: u64,
}

/// Times are offsets from the trial's start, in nanoseconds.
pub(crate) struct Schedule {
    gap: f64,
    arrivals: Arrivals,
    end: f64,
    most: u64,
    state: Mutex<State>,
}

struct State {
    taken: u64,
    /// When the last Poisson arrival was due.
    last: f64,
    rng: Rng,
}

impl Schedule {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            gap: 1e9 / plan.rate,
            arrivals: plan.arrivals,
            end: plan.time.as_nanos() as f64,
            most: plan.most,
            state: Mutex::new(State { taken: 0, last: 0.0, rng: Rng::new(plan.seed) }),
        }
    }

    /// Takes the next transaction, and says when it is due; `None` where no further one is.
    pub(crate) fn take(&self) -> Option<u64> {
        // A client that panicked elsewhere left plain numbers behind: they are still right.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.taken == self.most {
            return None;
        }
        let due = match self.arrivals {
            Arrivals::Even => state.taken as f64 * self.gap,
            // The gaps of a Poisson process: -ln(u) / rate, u uniform in (0, 1].
            Arrivals::Poisson => state.last - (1.0 - state.rng.unit_f64()).ln() * self.gap,
        };
        if due >= self.end {
            // Clients that come later must not draw another gap.
            state.taken = self.most;
            return None;
        }
        state.taken += 1;
        state.last = due;
        Some(due as u64)
    }

    /// How many transactions are due and not begun, where one is begun so many nanoseconds late and all clients were
    /// busy until then. For Poisson arrivals it is the expected number.
    pub(crate) fn waiting(&self, late: u64) -> u64 {
        (late as f64 / self.gap) as u64 + 1
    }

    /// How long after the start transactions are begun; later ones are dropped.
    pub(crate) fn last_begin(&self) -> u64 {
        let end = Duration::from_nanos(self.due_until());
        (end + (end / 2).clamp(LEAST_GRACE, MOST_GRACE)).as_nanos() as u64
    }

    /// The time over which transactions are due: until the asked time, or, where they are counted, until the gap
    /// behind the last.
    pub(crate) fn due_until(&self) -> u64 {
        self.end.min(self.most as f64 * self.gap) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(arrivals: Arrivals, rate: f64, seconds: u64, most: u64) -> Schedule {
        Schedule::new(&Plan { rate, arrivals, time: Duration::from_secs(seconds), most, seed: 7 })
    }

    fn all(schedule: &Schedule) -> Vec<u64> {
        std::iter::from_fn(|| schedule.take()).collect()
    }

    #[test]
    fn even_arrivals_are_as_many_as_asked_and_evenly_spaced() {
        let due = all(&schedule(Arrivals::Even, 5_000.0, 2, u64::MAX));
        assert_eq!(due.len(), 10_000);
        assert!(due.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(200_000) <= 1));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_exponential_gaps() {
        let schedule = schedule(Arrivals::Poisson, 10_000.0, 10, u64::MAX);
        let due = all(&schedule);
        assert_eq!(schedule.take(), None, "it ends once and for all");
        // 100,000 expected, with a standard deviation of 316.
        assert!(due.len().abs_diff(100_000) < 1_600, "{}", due.len());
        assert!(due.is_sorted());
        // Of exponential gaps the part 1 - 1/e is below the mean.
        let short = due.windows(2).filter(|pair| pair[1] - pair[0] < 100_000).count() as f64;
        let part = short / due.len() as f64;
        assert!((part - 0.632).abs() < 0.01, "{part}");
    }

    #[test]
    fn a_number_of_requests_ends_it_too() {
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            let schedule = schedule(arrivals, 1_000.0, 60, 50);
            assert_eq!(all(&schedule).len(), 50);
            assert_eq!(schedule.take(), None);
            assert_eq!(schedule.due_until(), 50_000_000);
        }
    }

    #[test]
    fn clients_share_one_schedule() {
        let schedule = schedule(Arrivals::Even, 100_000.0, 1, u64::MAX);
        let mut taken: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| all(&schedule))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        taken.sort_unstable();
        assert_eq!(taken, all(&self::schedule(Arrivals::Even, 100_000.0, 1, u64::MAX)));
    }

    #[test]
    fn lateness_says_how_many_wait() {
        let schedule = schedule(Arrivals::Even, 1_000.0, 1, u64::MAX);
        assert_eq!(schedule.waiting(0), 1);
        assert_eq!(schedule.waiting(999_999), 1);
        assert_eq!(schedule.waiting(1_000_000_000), 1_001);
    }
}
