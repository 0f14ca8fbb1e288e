//! Interleaved trials: several trials are ready at once, and they take turns in slices of a few
//! milliseconds.
//!
//! Disturbances of a shared machine, such as the scheduler's placement or other virtual machines, last for tenths of
//! a second and differ between consecutive trials. Trials that alternate in much shorter slices see the same
//! disturbances, so that these cancel out in the ratio of their results. Bulej et al., "Duet Benchmarking: Improving
//! Measurement Accuracy in the Cloud" (ICPE 2020), run two trials at the same time for that purpose; here they
//! alternate, so that neither takes a processor from the other.
//!
//! Each cycle has two slices of each trial, in a random order and then in reverse, so that linear drift affects all
//! equally. A slice ends with a whole transaction of each client. Where that takes longer than the slice, the slices of
//! all trials grow to it, so that each has the same share of the time; a trial then has fewer of them.
//!
//! A slice in which this process stood still is void: it is made again, and its transactions do not count. The rest of the
//! trial does.

use crate::clients::clock::process_cpu;
use crate::trial::standstill::TICK;
use kurabe_reactor::{Condition, Guard, Lock};
use kurabe_stats::rng::{Rng, mix};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Separates the seed of the slice order from other uses of the seed.
const ORDER: u64 = 0x0007_0b45;

/// Slices grow if they take so many times as long.
const GROWN: u32 = 2;
/// A group of trials is void if more slices than this are, and more than …
const MAX_VOID: u64 = 10;
/// … one of so many.
const VOID_PART: u64 = 4;

/// Assigns slices of time to trials, one after the other.
pub(crate) struct SliceScheduler {
    state: Lock<State>,
    /// For the clients of each trial separately: a slice of one trial must not wake the clients of another.
    called: Vec<Condition>,
    /// For the thread that assigns slices.
    changed: Condition,
}

struct State {
    lanes: Vec<LaneState>,
    /// The length of a slice.
    slice: Duration,
    /// The trial that has the current slice, and the slice's number.
    current: Option<(usize, u64)>,
    over: bool,
}

/// The state of an interleaved trial.
#[derive(Clone, Default)]
struct LaneState {
    /// Its clients are ready, or it ended before they were.
    ready: bool,
    /// Clients that have not ended.
    clients: usize,
    /// Clients whose slice has not ended.
    at_work: usize,
    /// Whether a client made several transactions in the last slice.
    made_several: bool,
    /// The numbers of its void slices.
    void: Vec<u64>,
}

/// The slices of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceStats {
    /// Those that count.
    pub(crate) slices: u64,
    /// Those that do not.
    pub(crate) void: u64,
    /// The length of those that count, without what they were late.
    time: Duration,
    /// CPU time of the whole process during them.
    pub(crate) cpu: Duration,
    /// How long this process stood still meanwhile, in slices of any trial.
    pub(crate) stood_still: Duration,
    /// Whether it stood still in so many slices that none counts.
    pub(crate) is_void: bool,
}

impl SliceScheduler {
    pub(crate) fn new(trials: usize, slice: Duration) -> Self {
        Self {
            state: Lock::new(State {
                lanes: vec![LaneState::default(); trials],
                slice,
                current: None,
                over: false,
            }),
            called: (0..trials).map(|_| Condition::new()).collect(),
            changed: Condition::new(),
        }
    }

    fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn lane(&self, trial: usize) -> Lane<'_> {
        Lane { scheduler: self, trial }
    }

    /// Waits until a trial is ready or has ended.
    pub(crate) fn wait_until_ready(&self, trial: usize) {
        let mut state = self.lock();
        while !state.lanes[trial].ready {
            state = self.changed.wait(state);
        }
    }

    /// Assigns slices until each trial has ended or has had this much time. `stood_still` says how long this process has
    /// stood still since the last call; it is called at least once every [`TICK`].
    pub(crate) fn run(
        &self,
        time: Option<Duration>,
        seed: u64,
        cancel: &AtomicBool,
        stood_still: &mut dyn FnMut() -> Duration,
    ) -> Vec<SliceStats> {
        let trials = self.called.len();
        let mut stats = vec![SliceStats::default(); trials];
        let mut rng = Rng::new(mix(seed, ORDER));
        let most = time.unwrap_or(Duration::MAX);
        let mut number = 0;
        'all: loop {
            // Of each trial, the shorter of its two slices in this cycle; 0 if a client made several transactions in one.
            let mut shortest = vec![Duration::MAX; trials];
            let mut order: Vec<usize> = (0..trials).collect();
            rng.shuffle(&mut order);
            let mut gave = false;
            for &trial in order.iter().chain(order.iter().rev()) {
                if cancel.load(Ordering::Relaxed) {
                    break 'all;
                }
                if stats[trial].time < most
                    && let Some(took) = self.run_slice(trial, &mut number, &mut stats[trial], stood_still)
                {
                    gave = true;
                    let sum = |of: fn(&SliceStats) -> u64| stats.iter().map(of).sum::<u64>();
                    let (counted, void) = (sum(|one| one.slices), sum(|one| one.void));
                    if void > MAX_VOID && void * VOID_PART > counted + void {
                        for one in &mut stats {
                            one.is_void = true;
                        }
                        break 'all;
                    }
                    shortest[trial] = shortest[trial].min(took);
                }
            }
            let took = shortest.into_iter().filter(|took| *took < Duration::MAX).max().unwrap_or_default();
            let mut shared = self.lock();
            // A slice of usual length ends with a transaction, too.
            if took > shared.slice * GROWN {
                shared.slice = took;
            }
            drop(shared);
            if !gave {
                break;
            }
        }
        self.lock().over = true;
        self.called.iter().for_each(Condition::notify_all);
        // Whichever slices it stood still in: an error of any trial may follow from it.
        let stood_still = stats.iter().map(|one| one.stood_still).sum();
        for one in &mut stats {
            one.stood_still = stood_still;
        }
        stats
    }

    /// How long the slice took, if it counts and was one transaction of each client; `None` if the trial has ended.
    fn run_slice(
        &self,
        trial: usize,
        number: &mut u64,
        made: &mut SliceStats,
        stood_still: &mut dyn FnMut() -> Duration,
    ) -> Option<Duration> {
        let mut state = self.lock();
        let clients = state.lanes[trial].clients;
        if clients == 0 {
            return None;
        }
        *number += 1;
        (state.lanes[trial].at_work, state.lanes[trial].made_several) = (clients, false);
        state.current = Some((trial, *number));
        let (cpu, began) = (process_cpu(), Instant::now());
        self.called[trial].notify_all();
        let mut still = Duration::ZERO;
        loop {
            still += stood_still();
            if state.lanes[trial].at_work == 0 {
                break;
            }
            state = self.changed.wait_for(state, TICK).0;
        }
        state.current = None;
        made.stood_still += still;
        if !still.is_zero() {
            state.lanes[trial].void.push(*number);
            made.void += 1;
            return Some(Duration::ZERO);
        }
        made.slices += 1;
        made.time += state.slice;
        made.cpu += process_cpu().saturating_sub(cpu);
        // Several transactions took longer together only if the machine was disturbed.
        Some(if state.lanes[trial].made_several { Duration::ZERO } else { began.elapsed() })
    }
}

/// One trial's part of the schedule.
#[derive(Clone, Copy)]
pub(crate) struct Lane<'a> {
    scheduler: &'a SliceScheduler,
    trial: usize,
}

impl<'a> Lane<'a> {
    /// Reports that this many clients are ready.
    pub(crate) fn ready(&self, clients: usize) {
        let mut state = self.scheduler.lock();
        let lane = &mut state.lanes[self.trial];
        (lane.ready, lane.clients, lane.at_work) = (true, clients, 0);
        self.scheduler.changed.notify_all();
    }

    /// Ends the trial's part. The scheduler no longer waits for it, and its clients stop waiting.
    pub(crate) fn leave(&self) {
        self.ready(0);
    }

    /// Whether a slice that all clients have ended is void.
    pub(crate) fn is_void(&self, slice: u64) -> bool {
        let mut state = self.scheduler.lock();
        // It is known at once: the thread that assigns slices was notified.
        while state.current == Some((self.trial, slice)) {
            state = self.scheduler.called[self.trial].wait_for(state, Duration::from_millis(1)).0;
        }
        state.lanes[self.trial].void.contains(&slice)
    }

    /// The part of one of its clients.
    pub(crate) fn client(&self) -> LaneWorker<'a> {
        LaneWorker { scheduler: self.scheduler, trial: self.trial, last: 0, at_work: false }
    }
}

/// A client of an interleaved trial. Dropping it ends the client.
pub(crate) struct LaneWorker<'a> {
    scheduler: &'a SliceScheduler,
    trial: usize,
    /// The number of its last slice.
    last: u64,
    at_work: bool,
}

impl LaneWorker<'_> {
    /// The number of its last slice; 0 before the first.
    pub(crate) fn slice(&self) -> u64 {
        self.last
    }

    /// Ends the client's slice, in which it made so many transactions, and waits for the next. Returns its length, and
    /// whether the last one is void; `None` if there is none.
    pub(crate) fn next(&mut self, transactions: u64) -> Option<(Duration, bool)> {
        let scheduler = self.scheduler;
        let mut state = scheduler.lock();
        state.lanes[self.trial].made_several |= transactions > 1;
        self.rest(&mut state);
        loop {
            match state.current {
                Some((trial, number)) if trial == self.trial && number != self.last => {
                    let was_void = state.lanes[self.trial].void.contains(&self.last);
                    (self.last, self.at_work) = (number, true);
                    return Some((state.slice, was_void));
                }
                _ if state.over => return None,
                _ => state = scheduler.called[self.trial].wait(state),
            }
        }
    }

    fn rest(&mut self, state: &mut State) {
        if std::mem::take(&mut self.at_work) {
            let lane = &mut state.lanes[self.trial];
            lane.at_work = lane.at_work.saturating_sub(1);
            if lane.at_work == 0 {
                self.scheduler.changed.notify_all();
            }
        }
    }
}

impl Drop for LaneWorker<'_> {
    fn drop(&mut self) {
        let scheduler = self.scheduler;
        let mut state = scheduler.lock();
        // It may drop between being called and starting its slice; then the slice ends here.
        let called = state.current.is_some_and(|(trial, number)| trial == self.trial && number != self.last);
        self.at_work |= called;
        let lane = &mut state.lanes[self.trial];
        lane.clients = lane.clients.saturating_sub(1);
        self.rest(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex as Log;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    /// The order of the slices of some trials, where each client ends after that many slices.
    fn executed(
        clients: &[usize],
        ends_after: &[usize],
        time: Option<Duration>,
    ) -> (Vec<usize>, Vec<SliceStats>) {
        let scheduler = SliceScheduler::new(clients.len(), Duration::from_millis(1));
        let log = Log::new(Vec::new());
        let inside = Log::new(0_usize);
        let never = AtomicBool::new(false);
        let stats = thread::scope(|scope| {
            for (trial, (clients, ends_after)) in clients.iter().zip(ends_after).enumerate() {
                let lane = scheduler.lane(trial);
                lane.ready(*clients);
                for client in 0..*clients {
                    let (log, inside) = (&log, &inside);
                    scope.spawn(move || {
                        let mut worker = lane.client();
                        for _ in 0..*ends_after {
                            let Some((slice, _)) = worker.next(2) else { return };
                            {
                                let mut inside = inside.lock().unwrap();
                                assert!(*inside == 0 || *inside == trial + 1, "two trials run at once");
                                *inside = trial + 1;
                            }
                            thread::sleep(slice);
                            if client == 0 {
                                log.lock().unwrap().push(trial);
                            }
                            *inside.lock().unwrap() = 0;
                        }
                    });
                }
                scheduler.wait_until_ready(trial);
            }
            scheduler.run(time, 1, &never, &mut || Duration::ZERO)
        });
        (log.into_inner().unwrap(), stats)
    }

    #[test]
    fn each_cycle_runs_lanes_forward_and_backward() {
        let (log, stats) = executed(&[1, 1, 1], &[4, 4, 4], None);
        assert!(stats.iter().all(|stats| stats.slices >= 4), "{stats:?}");
        assert_eq!(log.len(), 12);
        for cycle in log.chunks(6) {
            assert!((0..3).all(|at| cycle[at] == cycle[5 - at]), "{log:?}");
        }
    }

    #[test]
    fn trials_have_equal_time_where_a_transaction_takes_longer_than_a_slice() {
        let scheduler = SliceScheduler::new(2, Duration::from_millis(1));
        let never = AtomicBool::new(false);
        let time = Duration::from_millis(300);
        let stats = thread::scope(|scope| {
            for (trial, transaction) in [20, 1].into_iter().enumerate() {
                let lane = scheduler.lane(trial);
                lane.ready(1);
                scope.spawn(move || {
                    let (mut worker, mut made) = (lane.client(), 0);
                    while let Some((slice, _)) = worker.next(made) {
                        let began = Instant::now();
                        made = 0;
                        while began.elapsed() < slice {
                            thread::sleep(Duration::from_millis(transaction));
                            made += 1;
                        }
                    }
                });
            }
            scheduler.run(Some(time), 1, &never, &mut || Duration::ZERO)
        });
        // By number, there would be 300 slices of 20 ms.
        for trial in &stats {
            assert!(trial.slices <= 60 && trial.time >= time, "{stats:?}");
        }
        assert!(stats[0].slices <= 20, "{stats:?}");
    }

    /// Two trials of one client each while this process stands still in these of all slices, counted from 1: the statistics,
    /// and whether each client's slices were void, in order.
    fn with_standstills(still: impl Fn(u64) -> bool) -> (Vec<SliceStats>, Vec<Vec<(u64, bool)>>) {
        let scheduler = SliceScheduler::new(2, Duration::from_millis(1));
        let (never, current) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let clients: Vec<_> = (0..2)
                .map(|trial| {
                    let (lane, current) = (scheduler.lane(trial), &current);
                    lane.ready(1);
                    scope.spawn(move || {
                        let (mut worker, mut seen) = (lane.client(), Vec::new());
                        while let Some((_, was_void)) = worker.next(2) {
                            if let Some((last, void)) = seen.last_mut() {
                                *void = was_void;
                                assert_eq!(lane.is_void(*last), was_void);
                            }
                            seen.push((worker.slice(), false));
                            current.store(worker.slice(), Ordering::SeqCst);
                        }
                        if let Some((last, void)) = seen.last_mut() {
                            *void = lane.is_void(*last);
                        }
                        seen
                    })
                })
                .collect();
            let mut told = 0;
            let mut stood_still = || {
                let slice = current.load(Ordering::SeqCst);
                let now = slice != told && still(slice);
                told = slice;
                Duration::from_millis(if now { 200 } else { 0 })
            };
            let stats = scheduler.run(Some(Duration::from_millis(20)), 1, &never, &mut stood_still);
            (stats, clients.into_iter().map(|client| client.join().unwrap()).collect())
        })
    }

    #[test]
    fn slice_in_which_kurabe_stood_still_is_void_and_made_again() {
        let (stats, clients) = with_standstills(|slice| slice == 5 || slice == 18);
        assert_eq!(stats.iter().map(|trial| trial.void).sum::<u64>(), 2, "{stats:?}");
        for (trial, slices) in stats.iter().zip(&clients) {
            assert_eq!((trial.slices, trial.is_void), (20, false), "{stats:?}");
            assert_eq!(slices.len() as u64, 20 + trial.void);
            assert!(slices.iter().all(|(slice, void)| *void == (*slice == 5 || *slice == 18)), "{slices:?}");
            assert_eq!(trial.stood_still, Duration::from_millis(400));
        }
    }

    #[test]
    fn trials_of_which_most_slices_are_void_end() {
        let (stats, _) = with_standstills(|_| true);
        assert!(stats.iter().all(|trial| trial.is_void), "{stats:?}");
    }

    #[test]
    fn lane_that_ends_early_does_not_block_others() {
        let (_, stats) = executed(&[1, 1], &[2, 6], None);
        assert!(stats[0].slices >= 2 && stats[1].slices >= 6, "{stats:?}");
    }

    #[test]
    fn missing_lane_is_not_waited_for() {
        let scheduler = SliceScheduler::new(2, Duration::from_millis(1));
        scheduler.lane(0).leave();
        scheduler.lane(1).ready(1);
        let never = AtomicBool::new(false);
        let stats = thread::scope(|scope| {
            // Called, and dropped before it started.
            let worker = scheduler.lane(1).client();
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(5));
                drop(worker);
            });
            scheduler.run(None, 1, &never, &mut || Duration::ZERO)
        });
        assert_eq!(stats[0].slices, 0);
    }
}
