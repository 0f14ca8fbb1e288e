//! Trials made in turns: several stand ready at once, and each has the machine to itself for some milliseconds at a time.
//!
//! What a shared machine does to a trial, such as where its scheduler put client and server, or what the neighbours of a
//! virtual machine do, lasts for tenths of a second and is another in the next trial. Trials made one after the other meet
//! different machines; those that take turns much shorter than that meet the same one, and the ratio of their figures is free of
//! it. Bulej et al., "Duet Benchmarking: Improving Measurement Accuracy in the Cloud" (ICPE 2020), run two at the same time to
//! that end; here they alternate, so that neither takes a processor from the other.
//!
//! Each cycle has two turns of each trial, in a random order and back again, so that what changes evenly meets all alike.

use crate::clock::process_cpu;
use kurabe_stats::rng::{Rng, mix};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Sets the order of turns apart from all else that a seed decides.
const ORDER: u64 = 0x0007_0b45;

/// Trials that take turns.
pub(crate) struct Turns {
    turn: Duration,
    state: Mutex<State>,
    /// For the clients of each trial: a turn of one must not wake those of the others.
    called: Vec<Condvar>,
    /// For whoever gives the turns.
    changed: Condvar,
}

struct State {
    places: Vec<Place>,
    /// Whose turn it is, and the how many-th of all.
    turn: Option<(usize, u64)>,
    over: bool,
}

/// A trial among those that take turns.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Its clients stand ready, or it ended before they did.
    seated: bool,
    /// Clients that have not ended.
    clients: usize,
    /// Those whose turn has not ended.
    at_work: usize,
}

/// What turns a trial had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Had {
    pub(crate) turns: u64,
    /// CPU time of the whole process in them.
    pub(crate) cpu: Duration,
    /// How long this process stood still meanwhile, in any trial's turns.
    pub(crate) stood_still: Duration,
}

impl Turns {
    pub(crate) fn new(trials: usize, turn: Duration) -> Self {
        Self {
            turn,
            state: Mutex::new(State { places: vec![Place::default(); trials], turn: None, over: false }),
            called: (0..trials).map(|_| Condvar::new()).collect(),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Plain numbers: a client that panicked left them right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seat of a trial.
    pub(crate) fn seat(&self, trial: usize) -> Seat<'_> {
        Seat { turns: self, trial }
    }

    /// Waits until a trial stands ready or has ended.
    pub(crate) fn wait_until_seated(&self, trial: usize) {
        let mut state = self.lock();
        while !state.places[trial].seated {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives turns until each trial has ended, or has had this much time of them.
    pub(crate) fn give(&self, time: Option<Duration>, seed: u64, cancel: &AtomicBool) -> Vec<Had> {
        let trials = self.called.len();
        let mut had = vec![Had::default(); trials];
        let mut rng = Rng::new(mix(seed, ORDER));
        let most = time.map_or(u64::MAX, |time| time.as_nanos().div_ceil(self.turn.as_nanos().max(1)) as u64);
        let mut number = 0;
        'all: loop {
            let mut order: Vec<usize> = (0..trials).collect();
            rng.shuffle(&mut order);
            let mut gave = false;
            for &trial in order.iter().chain(order.iter().rev()) {
                if cancel.load(Ordering::Relaxed) {
                    break 'all;
                }
                if had[trial].turns < most && self.give_one(trial, &mut number, &mut had[trial]) {
                    gave = true;
                }
            }
            if !gave {
                break;
            }
        }
        self.lock().over = true;
        self.called.iter().for_each(Condvar::notify_all);
        had
    }

    /// False where the trial has ended.
    fn give_one(&self, trial: usize, number: &mut u64, had: &mut Had) -> bool {
        let mut state = self.lock();
        let clients = state.places[trial].clients;
        if clients == 0 {
            return false;
        }
        *number += 1;
        state.places[trial].at_work = clients;
        state.turn = Some((trial, *number));
        let cpu = process_cpu();
        self.called[trial].notify_all();
        while state.places[trial].at_work > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.turn = None;
        had.turns += 1;
        had.cpu += process_cpu().saturating_sub(cpu);
        true
    }
}

/// Where a trial sits among those that take turns.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'a> {
    turns: &'a Turns,
    trial: usize,
}

impl<'a> Seat<'a> {
    /// So many clients stand ready.
    pub(crate) fn take(&self, clients: usize) {
        let mut state = self.turns.lock();
        state.places[self.trial] = Place { seated: true, clients, at_work: 0 };
        self.turns.changed.notify_all();
    }

    /// The trial is over, however far it came: nobody waits for it, and its clients wait for nothing.
    pub(crate) fn leave(&self) {
        self.take(0);
    }

    /// The place of one of its clients.
    pub(crate) fn client(&self) -> Sitter<'a> {
        Sitter { turns: self.turns, trial: self.trial, last: 0, at_work: false }
    }
}

/// A client of a trial in turns. One that is dropped has ended.
pub(crate) struct Sitter<'a> {
    turns: &'a Turns,
    trial: usize,
    /// The last turn that it had.
    last: u64,
    at_work: bool,
}

impl Sitter<'_> {
    /// Ends the turn that it had, and waits for the next: how long that is, or `None` where there is none.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        let turns = self.turns;
        let mut state = turns.lock();
        self.rest(&mut state);
        loop {
            match state.turn {
                Some((trial, number)) if trial == self.trial && number != self.last => {
                    (self.last, self.at_work) = (number, true);
                    return Some(turns.turn);
                }
                _ if state.over => return None,
                _ => state = turns.called[self.trial].wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn rest(&mut self, state: &mut State) {
        if std::mem::take(&mut self.at_work) {
            let place = &mut state.places[self.trial];
            place.at_work = place.at_work.saturating_sub(1);
            if place.at_work == 0 {
                self.turns.changed.notify_all();
            }
        }
    }
}

impl Drop for Sitter<'_> {
    fn drop(&mut self) {
        let turns = self.turns;
        let mut state = turns.lock();
        // It may have been called and not have come: nobody else ends that turn for it.
        let called = state.turn.is_some_and(|(trial, number)| trial == self.trial && number != self.last);
        self.at_work |= called;
        let place = &mut state.places[self.trial];
        place.clients = place.clients.saturating_sub(1);
        self.rest(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex as Log;
    use std::thread;

    /// What each of some trials of so many clients did in turn, where each client ends after so many turns.
    fn played(clients: &[usize], ends_after: &[usize], time: Option<Duration>) -> (Vec<usize>, Vec<Had>) {
        let turns = Turns::new(clients.len(), Duration::from_millis(1));
        let log = Log::new(Vec::new());
        let inside = Log::new(0_usize);
        let never = AtomicBool::new(false);
        let had = thread::scope(|scope| {
            for (trial, (clients, ends_after)) in clients.iter().zip(ends_after).enumerate() {
                let seat = turns.seat(trial);
                seat.take(*clients);
                for client in 0..*clients {
                    let (log, inside) = (&log, &inside);
                    scope.spawn(move || {
                        let mut sitter = seat.client();
                        for _ in 0..*ends_after {
                            let Some(turn) = sitter.next() else { return };
                            {
                                let mut inside = inside.lock().unwrap();
                                assert!(*inside == 0 || *inside == trial + 1, "two trials are at work");
                                *inside = trial + 1;
                            }
                            thread::sleep(turn);
                            if client == 0 {
                                log.lock().unwrap().push(trial);
                            }
                            *inside.lock().unwrap() = 0;
                        }
                    });
                }
                turns.wait_until_seated(trial);
            }
            turns.give(time, 1, &never)
        });
        (log.into_inner().unwrap(), had)
    }

    #[test]
    fn each_cycle_goes_there_and_back() {
        let (log, had) = played(&[1, 1, 1], &[100, 100, 100], Some(Duration::from_millis(4)));
        assert_eq!(had.iter().map(|had| had.turns).collect::<Vec<_>>(), [4, 4, 4]);
        assert_eq!(log.len(), 12);
        for cycle in log.chunks(6) {
            assert!((0..3).all(|at| cycle[at] == cycle[5 - at]), "{log:?}");
        }
    }

    #[test]
    fn one_that_ends_early_holds_nobody_up() {
        let (_, had) = played(&[1, 1], &[2, 6], None);
        assert!(had[0].turns >= 2 && had[1].turns >= 6, "{had:?}");
    }

    #[test]
    fn one_that_never_came_is_not_waited_for() {
        let turns = Turns::new(2, Duration::from_millis(1));
        turns.seat(0).leave();
        turns.seat(1).take(1);
        let never = AtomicBool::new(false);
        let had = thread::scope(|scope| {
            // Called, and gone before it came.
            let sitter = turns.seat(1).client();
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(5));
                drop(sitter);
            });
            turns.give(None, 1, &never)
        });
        assert_eq!(had[0].turns, 0);
    }
}
