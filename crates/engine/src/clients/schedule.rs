//! The schedule of an open loop, from which all clients of a trial take transactions in turn.

use crate::fleet::ClientShare;
use kurabe_core::load::Arrivals;
use kurabe_core::planned::Capacity;
use kurabe_reactor::{Guard, Lock};
use kurabe_stats::rng::Rng;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// After the last transaction was due, waiting ones are still started for half the trial's time, but at least this
/// long, …
const MIN_GRACE: Duration = Duration::from_secs(1);
/// … and at most this long. The rest is dropped and counted.
const MAX_GRACE: Duration = Duration::from_secs(10);

/// A warm-up takes one tenth of the time over which transactions are due, …
const WARM_UP_PART: f64 = 10.0;
/// … and at most three tenths.
const WARM_UP_MAX: f64 = 10.0 / 3.0;

/// How load is offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadModel {
    /// Closed loop: each client starts its next transaction when its last one has ended.
    Closed,
    /// Open loop: transactions are due at a rate, whether or not earlier ones have ended.
    Open {
        /// Transactions per second.
        rate: f64,
        /// The distribution of arrivals.
        arrivals: Arrivals,
    },
}

/// The parameters of an open loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalPlan {
    /// Transactions due per second.
    pub(crate) rate: f64,
    pub(crate) arrivals: Arrivals,
    /// The time over which they are due.
    pub(crate) time: Duration,
    /// The maximum number of transactions.
    pub(crate) max: u64,
    /// Whether `max` is limited by records: below what the trial's time and requests would allow.
    pub(crate) is_cut: bool,
    pub(crate) seed: u64,
    /// The part whose clients take from it. Arrivals are dealt out to all clients in turn.
    pub(crate) part: ClientShare,
    /// The number of all clients.
    pub(crate) clients: usize,
}

/// A schedule. Times are offsets from the trial's start, in nanoseconds.
pub(crate) struct Schedule {
    end: f64,
    /// See [`ArrivalPlan::due_until`].
    due_until: u64,
    /// The number of transactions that its part takes.
    own: u64,
    state: Lock<ScheduleState>,
    /// Idle clients, each holding a transaction that is not started yet.
    ready: AtomicUsize,
}

/// The number of open-loop requests for which there are records. Clients share one schedule, so that one may make
/// more requests than another, and they have warmed up before.
pub(crate) fn capacity(capacity: &Capacity, clients: usize) -> u64 {
    // A warm-up takes at most three tenths of the time.
    let all = capacity.records.saturating_mul(capacity.requests_per_record) / 13 * 10;
    if clients > 1 { all / 2 } else { all }
}

/// The number of requests to provide records for if this many are due. [`capacity`] of it is at least `due`.
pub(crate) fn requests(due: u64, clients: usize) -> u64 {
    let all = if clients > 1 { due.saturating_mul(2) } else { due };
    all.div_ceil(10).saturating_mul(13) + 13
}

struct ScheduleState {
    taken: u64,
    over: bool,
    arrivals: Stream,
    /// Arrivals that the backlog has counted.
    counted: u64,
    count: Stream,
}

/// The sequence of due times.
#[derive(Clone)]
struct Stream {
    arrivals: Arrivals,
    gap: f64,
    /// How many have passed.
    number: u64,
    /// When the last one was due.
    last: f64,
    rng: Rng,
    part: ClientShare,
    clients: u64,
}

impl Stream {
    /// When the next transaction of the part is due.
    fn next(&mut self) -> f64 {
        loop {
            let is_own = self.part.has((self.number % self.clients) as usize);
            let due = self.step();
            if is_own {
                return due;
            }
        }
    }

    /// When the next transaction is due.
    fn step(&mut self) -> f64 {
        self.last = match self.arrivals {
            Arrivals::Even => self.number as f64 * self.gap,
            // The gaps of a Poisson process: -ln(u) / rate, u uniform in (0, 1].
            Arrivals::Poisson => self.last - (1.0 - self.rng.unit_f64()).ln() * self.gap,
        };
        self.number += 1;
        self.last
    }
}

/// An idle client, until it is dropped.
pub(crate) struct Ready<'a>(&'a AtomicUsize);

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ArrivalPlan {
    /// The schedule of the warm-up: a tenth of the trial's time. If that is less than one transaction per client, it
    /// is longer, up to three tenths.
    pub(crate) fn warm_up(&self, clients: usize, seed: u64) -> Self {
        let time = self.time.as_secs_f64().min(self.max as f64 / self.rate);
        let each = clients as f64 / self.rate;
        let time = (time / WARM_UP_PART).max(each).min(time / WARM_UP_MAX);
        Self { time: Duration::from_secs_f64(time), max: u64::MAX, seed, ..*self }
    }

    /// The time over which transactions are due, in nanoseconds: the requested time, or, with a number of requests, until
    /// the gap after the last.
    pub(crate) fn due_until(&self) -> u64 {
        (self.time.as_nanos() as f64).min(self.max as f64 * (1e9 / self.rate)) as u64
    }
}

impl Schedule {
    pub(crate) fn new(plan: &ArrivalPlan) -> Self {
        let (arrivals, gap) = (plan.arrivals, 1e9 / plan.rate);
        let (part, clients) = (plan.part, plan.clients.max(1));
        let rng = Rng::new(plan.seed);
        let stream = Stream { arrivals, gap, number: 0, last: 0.0, rng, part, clients: clients as u64 };
        Self {
            end: plan.time.as_nanos() as f64,
            due_until: plan.due_until(),
            own: part.arrivals(plan.max, clients),
            state: Lock::new(ScheduleState {
                taken: 0,
                over: false,
                arrivals: stream.clone(),
                counted: 0,
                count: stream,
            }),
            ready: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> Guard<'_, ScheduleState> {
        self.state.lock()
    }

    /// Takes the next transaction and returns when it is due; `None` if there is none.
    pub(crate) fn take(&self) -> Option<u64> {
        let mut state = self.lock();
        // Later clients must not draw another gap.
        if state.over || state.taken == self.own {
            return None;
        }
        let due = state.arrivals.next();
        if due >= self.end {
            state.over = true;
            return None;
        }
        state.taken += 1;
        Some(due as u64)
    }

    /// Counts the calling client as idle until the result is dropped.
    pub(crate) fn ready_client(&self) -> Ready<'_> {
        self.ready.fetch_add(1, Ordering::Relaxed);
        Ready(&self.ready)
    }

    /// Whether a client is idle. Waiting transactions then wait for that client to wake up, not for the server.
    pub(crate) fn has_ready_client(&self) -> bool {
        self.ready.load(Ordering::Relaxed) > 0
    }

    /// The number of transactions that are due and not started, if one is being started and all other clients are
    /// busy.
    pub(crate) fn waiting(&self, now: u64) -> u64 {
        let mut guard = self.lock();
        let state = &mut *guard;
        let end = self.end.min(now as f64 + 1.0);
        loop {
            let mut next = state.count.clone();
            if state.counted == self.own || next.next() >= end {
                break;
            }
            state.count = next;
            state.counted += 1;
        }
        // The one being started is among those taken.
        (state.counted + 1).saturating_sub(state.taken)
    }

    /// The latest start of a transaction after the trial's start. Later ones are dropped.
    pub(crate) fn last_begin(&self) -> u64 {
        let end = Duration::from_nanos(self.due_until());
        (end + (end / 2).clamp(MIN_GRACE, MAX_GRACE)).as_nanos() as u64
    }

    /// As [`ArrivalPlan::due_until`].
    pub(crate) fn due_until(&self) -> u64 {
        self.due_until
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(arrivals: Arrivals, rate: f64, seconds: u64, max: u64) -> Schedule {
        Schedule::new(&ArrivalPlan {
            rate,
            arrivals,
            time: Duration::from_secs(seconds),
            max,
            is_cut: false,
            seed: 7,
            part: ClientShare::WHOLE,
            clients: 1,
        })
    }

    fn all(schedule: &Schedule) -> Vec<u64> {
        std::iter::from_fn(|| schedule.take()).collect()
    }

    #[test]
    fn records_suffice_for_what_is_due_after_a_warm_up_even_if_one_client_makes_more_than_another() {
        // Thirteen tenths, and thirteen more; twice as many of what is due for several clients.
        assert_eq!(
            [(100, 1), (101, 1), (100, 2)].map(|(due, clients)| requests(due, clients)),
            [143, 156, 273]
        );
        let of = |records, requests_per_record, clients| {
            capacity(&Capacity { records, requests_per_record, of_memory: false }, clients)
        };
        assert_eq!([of(143, 1, 1), of(273, 1, 2), of(13, 3, 1)], [110, 105, 30]);
        for due in [1, 9, 10, 11, 999, 123_456] {
            assert!(
                [1, 2, 64].into_iter().all(|clients| of(requests(due, clients), 1, clients) >= due),
                "{due}"
            );
        }
    }

    #[test]
    fn transactions_begin_until_half_as_long_again_within_bounds() {
        let last =
            |seconds| Duration::from_nanos(schedule(Arrivals::Even, 10.0, seconds, u64::MAX).last_begin());
        let time = Duration::from_secs;
        let within = time(4).clamp(MIN_GRACE, MAX_GRACE);
        assert_eq!(last(8), time(8) + within);
        assert_eq!((last(0), last(10_000)), (MIN_GRACE, time(10_000) + MAX_GRACE));
    }

    #[test]
    fn thread_that_sleeps_sharply_has_the_least_slack() {
        std::thread::spawn(|| {
            sleep_sharply();
            assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn work_counts_as_processor_time() {
        let before = process_cpu();
        while process_cpu() < before + Duration::from_millis(5) {}
        assert!(process_cpu() < before + Duration::from_secs(60));
    }

    #[test]
    fn even_arrivals_have_requested_number_and_equal_gaps() {
        let due = all(&schedule(Arrivals::Even, 5_000.0, 2, u64::MAX));
        assert_eq!(due.len(), 10_000);
        assert!(due.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(200_000) <= 1));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_exponential_gaps() {
        let schedule = schedule(Arrivals::Poisson, 10_000.0, 10, u64::MAX);
        let due = all(&schedule);
        assert_eq!(schedule.take(), None, "it stays ended");
        // 100,000 expected, with a standard deviation of 316.
        assert!(due.len().abs_diff(100_000) < 1_600, "{}", due.len());
        assert!(due.is_sorted());
        // For exponential gaps, a share of 1 - 1/e is below the mean.
        let short = due.windows(2).filter(|pair| pair[1] - pair[0] < 100_000).count() as f64;
        let part = short / due.len() as f64;
        assert!((part - 0.632).abs() < 0.01, "{part}");
    }

    #[test]
    fn number_of_requests_ends_schedule() {
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
    fn parts_share_out_one_schedule() {
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            for max in [u64::MAX, 1_003] {
                let of = |part, clients| {
                    let (rate, time) = (1_000.0, Duration::from_secs(2));
                    let plan =
                        ArrivalPlan { rate, arrivals, time, max, is_cut: false, seed: 7, part, clients };
                    all(&Schedule::new(&plan))
                };
                let parts = (0..3).map(|number| of(ClientShare { number, of: 3 }, 5));
                let parts: Vec<Vec<u64>> = parts.collect();
                // Two of five clients are in each of the first two parts, and one in the third.
                assert!(parts[2].len().abs_diff(parts[0].len() / 2) <= 2);
                let mut together = parts.concat();
                together.sort_unstable();
                assert_eq!(together, of(ClientShare::WHOLE, 5));
            }
        }
    }

    #[test]
    fn backlog_counts_due_transactions_that_are_not_started() {
        let even = schedule(Arrivals::Even, 1_000.0, 2, u64::MAX);
        even.take();
        assert_eq!(even.waiting(0), 1, "the one that is being started");
        assert_eq!(even.waiting(999_999), 1);
        assert_eq!(even.waiting(1_000_000_000), 1_001);
        let poisson = schedule(Arrivals::Poisson, 1_000.0, 2, u64::MAX);
        let due = all(&schedule(Arrivals::Poisson, 1_000.0, 2, u64::MAX));
        for _ in 0..10 {
            poisson.take();
        }
        assert_eq!(poisson.waiting(due[9]), 1);
        assert_eq!(poisson.waiting(due[99]), 91);
        assert_eq!(poisson.waiting(u64::MAX), due.len() as u64 - 9);
    }

    #[test]
    fn client_counts_as_ready_until_it_starts() {
        let schedule = schedule(Arrivals::Even, 1_000.0, 1, u64::MAX);
        let client = schedule.ready_client();
        assert!(schedule.has_ready_client());
        drop(client);
        assert!(!schedule.has_ready_client());
    }

    #[test]
    fn warm_up_has_the_rate_of_its_trial_and_a_tenth_of_its_time() {
        let trial = ArrivalPlan {
            rate: 100.0,
            arrivals: Arrivals::Even,
            time: Duration::from_secs(10),
            max: u64::MAX,
            is_cut: false,
            seed: 7,
            part: ClientShare::WHOLE,
            clients: 1,
        };
        let count = |plan: ArrivalPlan, clients| all(&Schedule::new(&plan.warm_up(clients, 1))).len();
        assert_eq!(count(trial, 1), 100);
        assert_eq!(count(trial, 200), 200, "one for each client");
        assert_eq!(count(trial, 10_000), 300, "but not for more than three tenths of the time");
        assert_eq!(count(ArrivalPlan { max: 200, ..trial }, 1), 20);
    }
}
