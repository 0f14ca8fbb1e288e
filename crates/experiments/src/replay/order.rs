//! Units wait until others are answered, over all connections of a replay.
//!
//! What each unit of a replay waits for. A *commit* is a unit after which changes are seen by others, or locks are released.
//!
//! Order between connections follows from recorded times. The *effect* of a commit was at the earliest when it began, or, if it
//! is a change by itself, is taken to have been when it was answered. A unit begins after all commits with an effect before it
//! began. One that may wait for locks begins after all commits with an effect before it was answered: it may have waited for
//! them. A commit begins after all units that were answered before it began, so that no reader sees it too soon. So does what inserts rows, since the
//! server may give them numbers. Each of these
//! points back in time (to the effect of a commit, or the answer of another unit), so that there is no circle, nor one with
//! locks of the server.

use super::traffic::{Commit, Template, Traffic, Unit, names};
use kurabe_reactor::{Condition, Lock};
use kurabe_wire::view::{Step, Transaction};
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

/// Follows what the transactions of a connection change.
pub(super) struct Changes<'a> {
    pub(super) templates: &'a [Template],
    pub(super) is_open: bool,
    /// Tables that the transaction has changed; `None`: nothing was changed.
    pub(super) tables: Option<Vec<String>>,
    /// When the transaction began to read, and whether it has only begun.
    pub(super) snapshot: Option<([u64; 2], bool)>,
}

impl Changes<'_> {
    /// If the unit is a commit, the tables of which others see changes then.
    pub(super) fn follow(&mut self, unit: &mut Unit) -> Option<Vec<String>> {
        for sent in unit.requests.iter().filter(|sent| sent.request.step != Step::Prepare) {
            let template = &self.templates[sent.template];
            if template.inserts {
                unit.inserts.extend(template.tables.iter().cloned());
            }
            if template.may_change() {
                unit.may_wait = true;
                let tables = self.tables.get_or_insert_default();
                let writes = template.judged.writes.is_some();
                tables.extend(names(template, sent, true).into_iter().filter(|_| writes));
            }
        }
        if unit.may_wait {
            unit.effect = unit.end;
        }
        let begins = unit.requests.iter().all(|sent| self.templates[sent.template].judged.is_setup);
        let (snapshot, begins) = match self.snapshot {
            None => ([unit.at, unit.end], begins),
            Some(([at, _], true)) => ([at, unit.end], begins),
            Some(known) => known,
        };
        unit.snapshot = snapshot;
        self.snapshot = Some((snapshot, begins));
        match unit.requests.last().map(|sent| sent.request.transaction) {
            Some(Transaction::None) => self.is_open = false,
            Some(Transaction::Open | Transaction::Failed) => self.is_open = true,
            _ => {}
        }
        self.snapshot.take_if(|_| !self.is_open);
        self.tables.take_if(|_| !self.is_open)
    }
}

/// Says what each unit has to wait for.
pub(super) fn order(units: &mut [Unit], mut commits: Vec<(usize, Vec<String>)>) -> Vec<Commit> {
    let mut by_end: Vec<usize> = (0..units.len()).collect();
    by_end.sort_by_key(|unit| units[*unit].end);
    for (rank, unit) in by_end.iter().enumerate() {
        units[*unit].rank = rank;
    }
    commits.sort_by_key(|(unit, _)| units[*unit].effect);
    for (number, (unit, _)) in commits.iter().enumerate() {
        units[*unit].commit = Some(number);
    }
    let ends: Vec<u64> = by_end.iter().map(|unit| units[*unit].end).collect();
    let effects: Vec<u64> = commits.iter().map(|(unit, _)| units[*unit].effect).collect();
    let before = |ends: &[u64], time: u64| ends.partition_point(|end| *end < time);
    for unit in units.iter_mut() {
        unit.after_commits = before(&effects, if unit.may_wait { unit.end } else { unit.at });
        let begins = if unit.may_wait || unit.goes_on { unit.at } else { unit.effect };
        // The numbers that a server gives to rows follow the order in which these are inserted.
        let waits = unit.commit.is_some() || unit.goes_on || !unit.inserts.is_empty();
        unit.after_units = if waits { before(&ends, begins) } else { 0 };
    }
    let commit = |(number, (unit, tables)): (usize, (usize, Vec<String>))| Commit {
        number,
        at: units[unit].at,
        end: units[unit].end,
        tables,
    };
    commits.into_iter().enumerate().map(commit).collect()
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
