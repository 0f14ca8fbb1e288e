//! Why a side of a gate is slower: what its server did that the other's did not.

use super::{Answer, Compared, Row};
use crate::cell::CellResult;
use crate::finding::Runs;
use crate::server_statistics::statements_of;
use crate::summary::Summary;
use kurabe_core::query_plan::QueryPlan;
use kurabe_core::sort;
use kurabe_core::stats_probe::{Counter, StatementUse, WaitState};

/// Counters of work, of which more for each operation costs time.
const WORK: [Counter; 9] = [
    Counter::RowsExamined,
    Counter::PagesRequested,
    Counter::PagesMissed,
    Counter::LockWaits,
    Counter::LockNs,
    Counter::Temporary,
    Counter::LogBytes,
    Counter::LogSyncs,
    Counter::FileBytes,
];

/// From this factor on, more work is worth a sentence; …
const MORE: f64 = 1.5;
/// … for each operation, at least so much more; …
const LEAST: f64 = 0.05;
/// … and so much more of all time in waits for locks.
const WAITS: f64 = 0.1;
/// Counters, and plans, that are told.
const TOLD: usize = 2;

/// What explains the results of a gate that failed, or is undecided: of the cells whose result is worst.
pub(super) fn of(compared: &Compared, decision: Answer, first: &Summary, second: &Summary) -> Vec<Runs> {
    let is_of = |row: &&Row| decision != Answer::Holds && row.gate == Some(decision);
    let by = |row: &&Row| row.gain().map_or(1.0, |gain| gain.value);
    let worst = compared.rows.iter().filter(is_of).min_by(|a, b| by(a).total_cmp(&by(b)));
    let Some([a, b]) = worst.map(|row| row.cells) else { return Vec::new() };
    let (Some(a), Some(b)) = (first.cells.get(a), second.cells.get(b)) else { return Vec::new() };
    let mut all = plans(a, b);
    all.extend(work(a, b));
    all.extend(statement(a, b));
    all.extend(locks(a, b));
    all
}

/// The plans that changed.
fn plans(a: &CellResult, b: &CellResult) -> Vec<Runs> {
    let is_same = |one: &QueryPlan, other: &QueryPlan| {
        let digits = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        one.statement == other.statement && digits(&one.text) == digits(&other.text)
    };
    let changed = |plan: &QueryPlan| {
        let other = b.plans.iter().find(|other| is_same(plan, other)).filter(|other| !other.is_like(plan))?;
        let [first, second] = [plan, other].map(|plan| plan.steps().map(str::to_owned).collect());
        let QueryPlan { statement, text, .. } = plan.clone();
        Some(Runs::PlanChanged { statement, text, first, second })
    };
    a.plans.iter().filter_map(changed).take(TOLD).collect()
}

/// The counters that grew most for each operation.
fn work(a: &CellResult, b: &CellResult) -> Vec<Runs> {
    let of = |what: Counter| {
        let [first, second] = [a, b].map(|cell| cell.counter(what).map(|one| one.per_operation));
        let (first, second) = (first?, second?);
        let is_more = second > first * MORE && second - first > LEAST;
        is_more.then(|| {
            (
                second / first.max(LEAST),
                Runs::MoreWork { counter: what, operation: a.operation.clone(), first, second },
            )
        })
    };
    let mut found: Vec<(f64, Runs)> = WORK.into_iter().filter_map(of).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().take(TOLD).map(|(_, found)| found).collect()
}

/// The statement whose time grew most, by the server's own statistics.
fn statement(a: &CellResult, b: &CellResult) -> Option<Runs> {
    let [before, after] = [a, b].map(|cell| statements_of(&cell.observed));
    let each = |used: &StatementUse| used.time_ns as f64 / (used.calls as f64).max(1.0);
    let pairs = after.iter().filter_map(|now| {
        let then = before.iter().find(|then| then.text == now.text)?;
        (each(now) > each(then) * MORE)
            .then(|| (each(now) * now.calls as f64 - each(then) * now.calls as f64, then, now))
    });
    let (_, then, now) = pairs.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Runs::SlowerStatement { text: now.text.clone(), first_ns: each(then), second_ns: each(now) })
}

/// More time of sessions in waits for locks, with a statement that waited.
fn locks(a: &CellResult, b: &CellResult) -> Option<Runs> {
    let share = |cell: &CellResult| -> f64 {
        let waits = cell.sessions.iter().filter(|one| one.wait_state == WaitState::Lock);
        waits.map(|one| one.share).sum()
    };
    let (first, second) = (share(a), share(b));
    let mut waiting: Vec<_> = b.sessions.iter().filter(|one| one.wait_state == WaitState::Lock).collect();
    sort::by_key(&mut waiting, |one| one.statement.is_empty());
    let text = waiting.first().map(|one| one.statement.clone()).unwrap_or_default();
    (second > first + WAITS).then_some(Runs::MoreLocks { first, second, text })
}
