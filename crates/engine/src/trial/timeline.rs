//! Throughput over the course of a trial: the progress of each client at some points in time, combined into windows.
//!
//! A client records a point now and then. When its list is full, every second point is removed and the interval
//! doubles. So memory is bounded for trials of any length, and nothing is allocated while measuring.

use crate::clients::client::Tick;
use crate::trial::recorded::ClientResult;
use std::time::Duration;

/// The number of windows of a trial.
pub(crate) const WINDOWS: usize = 20;
/// The maximum number of points per client: several for each window. Of more clients, fewer points each are as good.
const POINTS: usize = 128;
/// The minimum.
const MIN_POINTS: usize = 16;
/// The number of points of all clients from which each has fewer.
const ALL_POINTS: usize = 32_000;
/// The initial interval between two points.
const FIRST: Duration = Duration::from_micros(250);
/// The minimum number of transactions per window. With fewer, their number is mostly chance.
const MIN: u64 = 10;

/// The progress of one client over time.
#[derive(Debug)]
pub(crate) struct Timeline {
    start: Tick,
    /// Nanoseconds since the start, and transactions.
    points: Vec<(u64, u64)>,
    /// The maximum number of points.
    most: usize,
    every: u64,
    next: u64,
}

impl Timeline {
    /// The timeline of one of this many clients.
    pub(crate) fn new(clients: usize) -> Self {
        let every = FIRST.as_nanos() as u64;
        let most = (ALL_POINTS / clients.max(1)).clamp(MIN_POINTS, POINTS);
        Self { start: Tick::now(), points: Vec::with_capacity(most), most, every, next: every }
    }

    /// Its points: times in nanoseconds, and transactions completed then.
    pub(crate) fn take_points(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.points)
    }

    /// Starts, or continues after this much work in earlier slices.
    pub(crate) fn begin(&mut self, worked: Duration) {
        let now = Tick::now();
        self.start = now.checked_sub(worked).unwrap_or(now);
    }

    /// Forgets what was noted after this much work.
    pub(crate) fn rewind(&mut self, worked: Duration) {
        let worked = worked.as_nanos() as u64;
        self.points.retain(|point| point.0 <= worked);
        self.next = worked + self.every;
    }

    /// Nanoseconds of work until now.
    #[inline]
    pub(crate) fn since_start(&self, now: Tick) -> u64 {
        now.saturating_duration_since(self.start).as_nanos() as u64
    }

    #[inline]
    pub(crate) fn note(&mut self, now: Tick, completed: u64) {
        let at = self.since_start(now);
        if at >= self.next {
            self.point(at, completed);
        }
    }

    #[cold]
    fn point(&mut self, at: u64, completed: u64) {
        if self.points.len() == self.most {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                !keep
            });
            self.every *= 2;
        }
        self.points.push((at, completed));
        self.next = at + self.every;
    }
}

/// Transactions completed at this time, interpolated linearly; `end` is the last point.
pub(crate) fn at(points: &[(u64, u64)], at: f64, end: (u64, u64)) -> f64 {
    let after = points.partition_point(|point| (point.0 as f64) <= at);
    let low = after.checked_sub(1).map_or((0, 0), |before| points[before]);
    let high = points.get(after).copied().unwrap_or(end);
    if high.0 <= low.0 {
        return high.1 as f64;
    }
    let part = ((at - low.0 as f64) / (high.0 - low.0) as f64).clamp(0.0, 1.0);
    (high.1 - low.1) as f64 * part + low.1 as f64
}

/// Transactions completed in each of [`WINDOWS`] equal parts of the time in which all clients ran; empty if they are
/// too few. Also that time in nanoseconds: 0 without windows.
pub(crate) fn windows(clients: &[ClientResult]) -> (Vec<u64>, u64) {
    let at_work = || clients.iter().filter(|client| client.measured > 0);
    let Some(time) = at_work().map(|client| client.elapsed_ns).min() else { return (Vec::new(), 0) };
    if at_work().map(|client| client.measured).sum::<u64>() < MIN * WINDOWS as u64 {
        return (Vec::new(), 0);
    }
    let until = |window: usize| -> f64 {
        let at = time as f64 * window as f64 / WINDOWS as f64;
        at_work().map(|client| client.at(at)).sum()
    };
    let ends: Vec<f64> = (0..=WINDOWS).map(until).collect();
    (ends.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0).round() as u64).collect(), time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client with `rate(second)` transactions per millisecond over this many milliseconds.
    fn client(ms: u64, rate: impl Fn(u64) -> u64) -> ClientResult {
        let mut timeline = Timeline::new(1);
        let (start, mut completed) = (timeline.start, 0);
        for at in 1..=ms {
            completed += rate(at);
            timeline.note(start + Duration::from_millis(at), completed);
        }
        ended(timeline, ms * 1_000_000, completed)
    }

    fn ended(mut timeline: Timeline, elapsed_ns: u64, measured: u64) -> ClientResult {
        let timeline = timeline.take_points();
        ClientResult { index: 0, completed: measured, rows_written: 0, elapsed_ns, measured, timeline }
    }

    #[test]
    fn even_trial_of_any_length_has_even_windows() {
        for ms in [20, 100, 1_000, 100_000] {
            let clients = [client(ms, |_| 20), client(ms, |_| 30)];
            let (windows, time) = windows(&clients);
            assert_eq!(time, ms * 1_000_000);
            let wanted = 50 * ms / WINDOWS as u64;
            assert_eq!(windows.len(), WINDOWS);
            assert!(windows.iter().all(|n| n.abs_diff(wanted) * 10 <= wanted), "{ms}: {windows:?}");
            assert!(clients[0].timeline.len() <= POINTS);
        }
    }

    #[test]
    fn slower_half_has_smaller_windows() {
        let (windows, _) = windows(&[client(1_000, |at| if at <= 500 { 10 } else { 30 })]);
        assert!(windows[..9].iter().all(|n| n.abs_diff(500) < 60), "{windows:?}");
        assert!(windows[11..].iter().all(|n| n.abs_diff(1_500) < 160), "{windows:?}");
    }

    #[test]
    fn few_transactions_or_idle_clients_yield_no_windows() {
        assert!(windows(&[client(100, |at| u64::from(at % 2 == 0))]).0.is_empty());
        assert_eq!(windows(&[]), (Vec::new(), 0));
        let idle = ended(Timeline::new(1), 1, 0);
        assert_eq!(windows(&[client(100, |_| 10), idle]).0.len(), WINDOWS);
    }

    #[test]
    fn windows_end_with_the_first_client() {
        let (windows, time) = windows(&[client(1_000, |_| 20), client(4_000, |_| 5)]);
        assert_eq!(time, 1_000_000_000);
        let sum: u64 = windows.iter().sum();
        assert!(sum.abs_diff(25_000) < 300, "{windows:?}");
    }
}
