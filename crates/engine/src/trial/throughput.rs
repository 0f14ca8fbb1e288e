//! The throughput of a closed loop, and its course.
//!
//! Throughput is what all clients complete per second while all of them work. In most trials all clients end at about
//! the same time: at the deadline, or when their equal shares are done. Then throughput is the number of completed
//! transactions divided by the mean time from the common start to each client's last reply. Each client stops at a
//! reply, so that no transaction is cut, and that mean is unbiased even for few transactions.
//!
//! Two cases have their own rules:
//! - A client without any requests, since there are fewer requests than clients, counts neither with transactions nor
//!   with time.
//! - A client starves if its last reply came later than twice the median of all clients' ends, for example because it
//!   waited for a lock. What it did after the others had ended is not part of the common throughput: it counts with what
//!   it had made until then. Clients with fewer than ten transactions never count as starved: chance alone spreads
//!   their ends that far.

use crate::trial::course::Course;
use crate::trial::recorded::ClientResult;
use kurabe_core::metric::{MetricValue, STARVED};

/// A client starves if it ends later than this multiple of the median end, …
const LATE: u64 = 2;
/// … and the client of the median end made at least this many transactions.
const MIN: u64 = 10;
/// The number of windows of a trial.
const WINDOWS: usize = 20;
/// The minimum number of transactions per window. With fewer, their number is mostly chance.
const MIN_IN_WINDOW: u64 = 10;

/// The clients of a closed loop that completed transactions.
pub(crate) struct Throughput<'a> {
    /// When each ended, in nanoseconds, and how many it completed; sorted.
    ends: Vec<(u64, u64)>,
    course: &'a Course,
}

impl<'a> Throughput<'a> {
    /// `None` if there are none.
    pub(crate) fn new(clients: &[ClientResult], course: &'a Course) -> Option<Self> {
        let working = clients.iter().filter(|client| client.measured > 0);
        let mut ends: Vec<(u64, u64)> = working.map(|client| (client.elapsed_ns, client.measured)).collect();
        ends.sort_unstable();
        (!ends.is_empty()).then_some(Self { ends, course })
    }

    fn completed(&self) -> u64 {
        self.ends.iter().map(|(_, completed)| completed).sum()
    }

    fn made_until(&self, at: f64) -> f64 {
        let end = self.ends.last().map_or(0, |(end, _)| *end);
        self.course.made_until(at, end)
    }

    /// The number of clients that starved.
    fn starved(&self) -> usize {
        // The lower of two, since one of two clients can starve.
        let (median, completed) = self.ends[(self.ends.len() - 1) / 2];
        let late = self.ends.iter().filter(|(end, _)| *end > median.saturating_mul(LATE)).count();
        if completed < MIN { 0 } else { late }
    }

    /// The time in which all completed transactions are made at the trial's throughput, in nanoseconds.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        let (on_time, late) = self.ends.split_at(self.ends.len() - self.starved());
        let time: u128 = on_time.iter().map(|(end, _)| u128::from(*end)).sum();
        let mean = time as f64 / on_time.len() as f64;
        let made: u64 = on_time.iter().map(|(_, completed)| completed).sum();
        let (Some((last, _)), false) = (on_time.last(), late.is_empty()) else { return mean as u64 };
        // What the starving clients had made when the others had ended.
        let (until, all) = self.course.made_with(*last);
        let starving = (all - made as f64).max(0.0) / until as f64;
        (self.completed() as f64 / (made as f64 / mean + starving)) as u64
    }

    /// The number of starved clients, if any.
    pub(crate) fn metric(&self) -> Option<MetricValue> {
        let starved = self.starved();
        (starved > 0).then(|| STARVED.value(starved as f64))
    }

    /// Transactions completed in each of [`WINDOWS`] equal parts of the time in which all clients ran; empty if they are
    /// too few. Also that time in nanoseconds: 0 without windows.
    pub(crate) fn windows(&self) -> (Vec<u64>, u64) {
        if self.completed() < MIN_IN_WINDOW * WINDOWS as u64 {
            return (Vec::new(), 0);
        }
        let time = self.ends[0].0;
        let until = |window: usize| self.made_until(time as f64 * window as f64 / WINDOWS as f64);
        let ends: Vec<f64> = (0..=WINDOWS).map(until).collect();
        (ends.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0).round() as u64).collect(), time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that completes `rate(ms)` transactions in each millisecond until `until`, and another one at `end` if that
    /// is later.
    fn client(until: u64, rate: impl Fn(u64) -> u64, end: u64) -> (ClientResult, Course) {
        let mut course = Course::new(1, false);
        let mut measured = 0;
        for ms in (1..=until).chain((end > until).then_some(end)) {
            let completed = if ms > until { 1 } else { rate(ms) };
            for left in 0..completed {
                let took = if ms > until { end - until } else { 1 } * 1_000_000 / completed;
                course.record(ms * 1_000_000 - left * 1_000_000 / completed, took, 1);
            }
            measured += completed;
        }
        let elapsed_ns = end * 1_000_000;
        (ClientResult { index: 0, completed: measured, rows_written: 0, elapsed_ns, measured }, course)
    }

    /// A client whose transactions take about so long, in milliseconds, until `end`.
    fn slow(each: u64, varies: u64, end: u64) -> (ClientResult, Course) {
        let (mut course, mut at, mut measured) = (Course::new(1, false), 0, 0);
        while at < end {
            let took = each + (at * 7 + measured * 13) % (2 * varies + 1) - varies;
            at += took;
            measured += 1;
            course.record(at * 1_000_000, took * 1_000_000, 1);
        }
        (
            ClientResult {
                index: 0,
                completed: measured,
                rows_written: 0,
                elapsed_ns: at * 1_000_000,
                measured,
            },
            course,
        )
    }

    fn together(all: Vec<(ClientResult, Course)>) -> (Vec<ClientResult>, Course) {
        let mut sum = Course::new(1, false);
        for (_, course) in &all {
            sum.merge(course);
        }
        (all.into_iter().map(|(client, _)| client).collect(), sum)
    }

    fn windows(all: Vec<(ClientResult, Course)>) -> (Vec<u64>, u64) {
        let (clients, course) = together(all);
        Throughput::new(&clients, &course).unwrap().windows()
    }

    /// Checks the transactions per second, and the number of starved clients.
    fn check(all: Vec<(ClientResult, Course)>, wanted: f64, starved: usize) {
        let (clients, course) = together(all);
        let found = Throughput::new(&clients, &course).unwrap();
        let per_second = found.completed() as f64 * 1e9 / found.elapsed_ns() as f64;
        assert!((per_second / wanted - 1.0).abs() < 0.01, "{per_second} is not about {wanted}");
        assert_eq!(found.metric(), (starved > 0).then(|| STARVED.value(starved as f64)));
    }

    #[test]
    fn throughput_of_equal_clients_is_completed_over_mean_time() {
        check([1_000, 1_010, 1_020].map(|ms| client(ms, |_| 5, ms)).into(), 15_000.0, 0);
    }

    #[test]
    fn clients_without_transactions_count_neither_work_nor_time() {
        let two = [client(100, |_| 1, 100), client(100, |_| 1, 100)];
        check(two.into_iter().chain((0..14).map(|_| client(0, |_| 0, 0))).collect(), 2_000.0, 0);
        assert!(Throughput::new(&[client(0, |_| 0, 0).0], &Course::new(1, false)).is_none());
    }

    #[test]
    fn starving_client_does_not_stretch_the_time_of_the_others() {
        let others = (0..15).map(|_| client(1_000, |_| 5, 1_000));
        // It waits thirty seconds for its first reply.
        check(others.chain([client(0, |_| 5, 30_000)]).collect(), 75_000.0, 1);
    }

    #[test]
    fn clients_of_few_long_transactions_count_whole_beside_a_starving_one() {
        for (each, varies) in [(1_000, 0), (1_000, 50), (300, 15)] {
            let others = (0..15).map(|client| slow(each, varies * (1 + client % 3) / 3, 10_000));
            check(others.chain([client(0, |_| 1, 30_000)]).collect(), 15_000.0 / each as f64, 1);
        }
    }

    #[test]
    fn long_transactions_that_end_together_have_even_windows() {
        for (clients, each) in [(64, 1_000), (64, 600), (16, 600)] {
            let (windows, time) = windows((0..clients).map(|_| slow(each, 0, 12_000)).collect());
            let wanted = (clients * time / 1_000_000 / each) as f64 / WINDOWS as f64;
            assert_eq!(windows.len(), WINDOWS);
            let near = |made: &u64| (*made as f64 / wanted - 1.0).abs() < 0.12;
            assert!(windows.iter().all(near), "{clients} clients, {each} ms: {windows:?}");
        }
    }

    #[test]
    fn client_that_works_only_after_the_other_has_ended_adds_nothing() {
        // Two clients compete for a lock: one makes a thousand transactions in the first second, the other 1,500 later.
        let late = client(2_500, |ms| u64::from(ms > 1_000), 2_500);
        check(vec![client(1_000, |_| 1, 1_000), late], 1_000.0, 1);
    }

    #[test]
    fn few_transactions_never_count_as_starvation() {
        check(vec![client(1, |_| 1, 1), client(1, |_| 1, 1), client(0, |_| 1, 10)], 750.0, 0);
    }

    #[test]
    fn even_trial_of_any_length_has_even_windows() {
        for ms in [20, 100, 1_000, 100_000] {
            let (windows, time) = windows(vec![client(ms, |_| 20, ms), client(ms, |_| 30, ms)]);
            assert_eq!(time, ms * 1_000_000);
            let wanted = 50 * ms / WINDOWS as u64;
            assert_eq!(windows.len(), WINDOWS);
            assert!(windows.iter().all(|n| n.abs_diff(wanted) * 10 <= wanted), "{ms}: {windows:?}");
        }
    }

    #[test]
    fn windows_of_many_hours_are_even() {
        let (windows, _) = windows(vec![slow(1_000, 0, 30_000_000)]);
        assert!(windows.len() == WINDOWS && windows.iter().all(|n| n.abs_diff(1_500) < 20), "{windows:?}");
    }

    #[test]
    fn slower_half_has_smaller_windows() {
        let all = vec![client(1_000, |at| if at <= 500 { 10 } else { 30 }, 1_000)];
        let (windows, _) = windows(all);
        assert!(windows[..9].iter().all(|n| n.abs_diff(500) < 60), "{windows:?}");
        assert!(windows[11..].iter().all(|n| n.abs_diff(1_500) < 160), "{windows:?}");
    }

    #[test]
    fn few_transactions_or_idle_clients_yield_no_windows() {
        let few = vec![client(100, |at| u64::from(at % 2 == 0), 100)];
        assert!(windows(few).0.is_empty());
        let with_idle = vec![client(100, |_| 10, 100), client(0, |_| 0, 0)];
        assert_eq!(windows(with_idle).0.len(), WINDOWS);
    }

    #[test]
    fn windows_end_with_the_first_client() {
        let (windows, time) = windows(vec![client(1_000, |_| 20, 1_000), client(4_000, |_| 5, 4_000)]);
        assert_eq!(time, 1_000_000_000);
        let sum: u64 = windows.iter().sum();
        assert!(sum.abs_diff(25_000) < 300, "{windows:?}");
    }
}
