//! The throughput of a closed loop.
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
//!   waited for a lock. What it did after the others had ended is not part of the common throughput. It counts with
//!   what it had completed at the median end. Clients with fewer than ten transactions never count as starved: chance
//!   alone spreads their ends that far.

use crate::trial::recorded::ClientResult;
use kurabe_core::metric::{MetricValue, STARVED};
use std::time::Duration;

/// A client starves if it ends later than this multiple of the median end, …
const LATE: u64 = 2;
/// … and the client of the median end made at least this many transactions.
const MIN: u64 = 10;

/// The median end of the clients that worked, in nanoseconds, if any of them may count as starved.
fn median_end(clients: &[ClientResult]) -> Option<u64> {
    let mut ends: Vec<(u64, u64)> =
        working(clients).map(|client| (client.elapsed_ns, client.measured)).collect();
    ends.sort_unstable();
    // The lower of two, since one of two clients can starve.
    let (time, completed) = *ends.get(ends.len().saturating_sub(1) / 2)?;
    (completed >= MIN).then_some(time)
}

fn working(clients: &[ClientResult]) -> impl Iterator<Item = &ClientResult> {
    clients.iter().filter(|client| client.measured > 0)
}

fn starves(client: &ClientResult, median: Option<u64>) -> bool {
    median.is_some_and(|median| client.elapsed_ns > median.saturating_mul(LATE))
}

/// The time in which all completed transactions are made at the trial's throughput.
pub(crate) fn elapsed(clients: &[ClientResult], completed: u64) -> Duration {
    let median = median_end(clients);
    let (mut count, mut made, mut time) = (0_u64, 0_u64, 0_u64);
    let mut starving = 0.0;
    for client in working(clients) {
        if let Some(median) = median.filter(|_| starves(client, median)) {
            starving += client.at(median as f64) / median as f64;
        } else {
            count += 1;
            time += client.elapsed_ns;
            made += client.measured;
        }
    }
    if time == 0 {
        return Duration::ZERO;
    }
    let per_nanosecond = count as f64 * made as f64 / time as f64 + starving;
    Duration::from_nanos((completed as f64 / per_nanosecond) as u64)
}

/// The number of starved clients, if any.
pub(crate) fn metrics(clients: &[ClientResult]) -> Vec<MetricValue> {
    let median = median_end(clients);
    let count = working(clients).filter(|client| starves(client, median)).count();
    if count == 0 {
        return Vec::new();
    }
    vec![STARVED.value(count as f64)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::client::Tick;
    use crate::trial::timeline::Timeline;

    /// A client that worked until `until` and then waited for one reply until `end`, in milliseconds.
    fn client(until: u64, each_ms: u64, end: u64) -> ClientResult {
        let mut timeline = Timeline::new(1);
        let start = Tick::now();
        timeline.begin(Duration::ZERO);
        for at in 1..=until {
            timeline.note(start + Duration::from_millis(at), at * each_ms);
        }
        let completed = until * each_ms + u64::from(end > until);
        ended(timeline, end * 1_000_000, completed)
    }

    fn ended(mut timeline: Timeline, elapsed_ns: u64, measured: u64) -> ClientResult {
        let timeline = timeline.take_points();
        ClientResult { index: 0, completed: measured, rows_written: 0, elapsed_ns, measured, timeline }
    }

    /// Transactions per second.
    fn throughput(clients: &[ClientResult]) -> f64 {
        let completed = clients.iter().map(|client| client.measured).sum();
        completed as f64 / elapsed(clients, completed).as_secs_f64()
    }

    fn about(figure: f64, wanted: f64) {
        assert!((figure / wanted - 1.0).abs() < 0.01, "{figure} is not about {wanted}");
    }

    #[test]
    fn throughput_of_equal_clients_is_completed_over_mean_time() {
        let clients: Vec<_> = [1_000, 1_010, 1_020].map(|ms| client(ms, 5, ms)).into();
        about(throughput(&clients), 15_000.0);
        assert!(metrics(&clients).is_empty());
    }

    #[test]
    fn clients_without_transactions_count_neither_work_nor_time() {
        let two = || [client(100, 1, 100), client(100, 1, 100)];
        let idle = || ended(Timeline::new(1), 90_000_000, 0);
        let with_idle: Vec<_> = two().into_iter().chain((0..14).map(|_| idle())).collect();
        about(throughput(&with_idle), throughput(&two()));
    }

    #[test]
    fn starving_client_does_not_stretch_the_time_of_the_others() {
        let others = || (0..15).map(|_| client(1_000, 5, 1_000));
        // It waits thirty seconds for its first reply.
        let clients: Vec<_> = others().chain([client(0, 5, 30_000)]).collect();
        about(throughput(&clients), 75_000.0);
        assert_eq!(metrics(&clients), [STARVED.value(1.0)]);
    }

    #[test]
    fn client_that_works_only_after_the_other_has_ended_adds_nothing() {
        // Two clients compete for a lock: one makes a thousand transactions in the first second, the other a thousand
        // later.
        let mut late = Timeline::new(1);
        let start = Tick::now();
        late.begin(Duration::ZERO);
        late.note(start + Duration::from_secs(1), 0);
        for at in 1_001..=2_500 {
            late.note(start + Duration::from_millis(at), at - 1_000);
        }
        let clients = [client(1_000, 1, 1_000), ended(late, 2_500_000_000, 1_500)];
        // The timeline has a point in 20 ms.
        let throughput = throughput(&clients);
        assert!((1_000.0..1_100.0).contains(&throughput), "{throughput}");
    }

    #[test]
    fn few_transactions_never_count_as_starvation() {
        let clients = [client(1, 1, 1), client(1, 1, 1), client(0, 1, 10)];
        assert!(metrics(&clients).is_empty());
        about(throughput(&clients), 3.0 * 3.0 / 0.012);
    }
}
