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

use crate::clients::schedule::process_cpu;
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
    /// The number of slices that count.
    pub(crate) slices: u64,
    /// The number of void slices.
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
                    if is_spoiled(counted, void) {
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

/// Whether too many slices are void beside those that count.
fn is_spoiled(counted: u64, void: u64) -> bool {
    void > MAX_VOID && void * VOID_PART > counted + void
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
mod tests;
