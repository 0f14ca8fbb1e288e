//! Units wait until others are answered, over all connections of a replay.

use super::traffic::{Traffic, Unit};
use kurabe_reactor::{Condition, Lock};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is answered so far, and who waits.
pub(super) struct Order {
    state: Lock<State>,
    /// Of each lane.
    conditions: Vec<Condition>,
}

#[derive(Default)]
struct State {
    units: Answered,
    commits: Answered,
    has_failed: bool,
}

/// A sequence of which the first ones are answered, and some of the others.
#[derive(Default)]
struct Answered {
    first: usize,
    all: Vec<bool>,
    /// Lanes by how many they wait for.
    waiting: BinaryHeap<Reverse<(usize, usize)>>,
}

impl Answered {
    fn new(count: usize) -> Self {
        Self { all: vec![false; count], ..Self::default() }
    }

    /// Enters an answer, and gives the lanes that need not wait any more.
    fn enter(&mut self, place: usize, woken: &mut Vec<usize>) {
        if let Some(answered) = self.all.get_mut(place) {
            *answered = true;
        }
        while self.all.get(self.first) == Some(&true) {
            self.first += 1;
        }
        while let Some(Reverse((count, lane))) = self.waiting.peek().copied()
            && count <= self.first
        {
            self.waiting.pop();
            woken.push(lane);
        }
    }
}

impl Order {
    pub(super) fn new(traffic: &Traffic) -> Self {
        let commits = traffic.units.iter().filter(|unit| unit.commit.is_some()).count();
        Self::of(traffic.units.len(), commits, traffic.lanes.len())
    }

    fn of(units: usize, commits: usize, lanes: usize) -> Self {
        let (units, commits) = (Answered::new(units), Answered::new(commits));
        Self {
            state: Lock::new(State { units, commits, has_failed: false }),
            conditions: (0..lanes).map(|_| Condition::new()).collect(),
        }
    }

    /// Waits until a unit may begin. Returns whether it may: not if another lane has failed.
    pub(super) fn wait(&self, lane: usize, unit: &Unit) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.has_failed {
                return false;
            }
            let State { units, commits, .. } = &mut *state;
            if units.first < unit.after_units {
                units.waiting.push(Reverse((unit.after_units, lane)));
            } else if commits.first < unit.after_commits {
                commits.waiting.push(Reverse((unit.after_commits, lane)));
            } else {
                return true;
            }
            state = self.conditions[lane].wait(state);
        }
    }

    /// A unit is answered.
    pub(super) fn answered(&self, unit: &Unit) {
        let mut woken = Vec::new();
        {
            let mut state = self.state.lock();
            state.units.enter(unit.rank, &mut woken);
            if let Some(commit) = unit.commit {
                state.commits.enter(commit, &mut woken);
            }
        }
        for lane in woken {
            self.conditions[lane].notify_all();
        }
    }

    /// A lane has failed: no other unit begins.
    pub(super) fn fail(&self) {
        self.state.lock().has_failed = true;
        self.conditions.iter().for_each(Condition::notify_all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn reader_waits_until_commit_is_answered_or_a_lane_has_failed() {
        for fails in [false, true] {
            let order = Order::of(3, 1, 2);
            let (commit, answered) =
                (Unit { rank: 1, commit: Some(0), ..Unit::default() }, AtomicBool::new(false));
            let reader = Unit { rank: 2, after_commits: 1, ..Unit::default() };
            assert!(order.wait(0, &commit));
            thread::scope(|scope| {
                let waits = scope.spawn(|| order.wait(1, &reader) && answered.load(Ordering::SeqCst));
                while order.state.lock().commits.waiting.is_empty() && !waits.is_finished() {
                    thread::yield_now();
                }
                answered.store(true, Ordering::SeqCst);
                if fails {
                    order.fail();
                } else {
                    order.answered(&commit);
                }
                assert_eq!(waits.join().unwrap(), !fails);
            });
            // Of all units the first is not answered yet.
            assert_eq!(order.state.lock().units.first, 0);
        }
    }
}
