//! The server's own statistics of a cell: counters, and wait states of sessions.

use crate::cell::{CounterResult, SessionShare};
use crate::group::grouped;
use kurabe_core::run::Measurement;
use kurabe_core::sort;
use kurabe_core::stats_probe::{Counter, MAX, WaitGroup};
use std::collections::BTreeMap;

/// The server's counters over the rounds, if every round reports them.
pub(crate) fn counters(measured: &BTreeMap<u32, &Measurement>) -> Vec<CounterResult> {
    let result = |what: &Counter| {
        let (mut total, mut operations, mut first) = (0, 0, None);
        for measurement in measured.values() {
            let count = measurement.observed.as_ref()?.engine.as_ref()?.of(*what)?;
            total += count.value;
            operations += measurement.completed + if count.warmup { measurement.warmup } else { 0 };
            first.get_or_insert(count);
        }
        let first = first?;
        let per_operation = total as f64 / (operations as f64).max(1.0);
        let (from, scope) = (first.from.clone(), first.scope);
        Some(CounterResult { what: *what, total, per_operation, from, scope })
    };
    Counter::ALL.iter().filter_map(result).collect()
}

/// The wait states of the clients' sessions, as shares of all samples.
pub(crate) fn sessions(measured: &BTreeMap<u32, &Measurement>) -> Vec<SessionShare> {
    let waits = || measured.values().filter_map(|m| m.observed.as_ref()?.waits.as_ref());
    let samples: u64 = waits().map(|waits| waits.sessions).sum();
    let groups = waits().flat_map(|waits| &waits.groups);
    let groups = grouped(groups.map(|group| (WaitGroup { seen: 0, ..group.clone() }, group.seen)));
    let mut groups: Vec<(WaitGroup, u64)> =
        groups.into_iter().map(|(group, seen)| (group, seen.iter().sum())).collect();
    sort::by_key(&mut groups, |(_, seen)| std::cmp::Reverse(*seen));
    groups.truncate(MAX);
    let share = |(group, seen): (WaitGroup, u64)| SessionShare {
        share: seen as f64 / (samples as f64).max(1.0),
        wait_state: group.wait_state,
        state: group.state,
        event: group.event,
        statement: group.statement,
    };
    groups.into_iter().map(share).collect()
}
