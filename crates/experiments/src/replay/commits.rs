//! What each unit of a replay waits for. A *commit* is a unit after which changes are seen by others, or locks are released.
//!
//! Order between connections follows from recorded times. The *effect* of a commit was at the earliest when it began, or, if it
//! is a change by itself, is taken to have been when it was answered. A unit begins after all commits with an effect before it
//! began. One that may wait for locks begins after all commits with an effect before it was answered: it may have waited for
//! them. A commit begins after all units that were answered before it began, so that no reader sees it too soon. So does what inserts rows, since the
//! server may give them numbers. Each of these
//! points back in time (to the effect of a commit, or the answer of another unit), so that there is no circle, nor one with
//! locks of the server.

use super::traffic::{Commit, Template, Unit, names};
use kurabe_wire::view::{Step, Transaction};

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
            if template.locks || template.writes.is_some() {
                unit.may_wait = true;
                let tables = self.tables.get_or_insert_default();
                tables.extend(names(template, sent, true).into_iter().filter(|_| template.writes.is_some()));
            }
        }
        if unit.may_wait {
            unit.effect = unit.end;
        }
        let begins = unit.requests.iter().all(|sent| self.templates[sent.template].is_setup);
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
