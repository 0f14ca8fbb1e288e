//! The gate: whether a comparison of two runs stops a release.
//!
//! A result is judged by the margin that `--fail-on` gives its metric: primary metrics and the mean time of each kind of
//! transaction by `slower`, 99th percentiles by `p99`. A 99th percentile that `--fail-on` does not name fails the gate if it is
//! worse by more than 20 %, and holds it up in no case: a tail is undecided where all else is decided. By the ratio that is above
//! 1 where the second is better, a result is *slower* if the whole interval lies below 1 ÷ (1 + margin), and *passed* if the
//! whole interval lies above. In between it is *undecided*: a slowdown beyond the margin is neither shown nor
//! excluded. A result that cannot be compared is *not judged*.
//!
//! Other load on the machine is part of the interval where trials of both sides alternate in slices: it forbids that a result
//! *passed*, and hides no slowdown. Two runs at different times may have had different loads: there a result during which
//! other processes used the CPU is *undecided*.

use crate::cell::{CellResult, Status};
use crate::claim::Range;
use crate::compare::render::value;
use crate::compare::{Compared, Difference, FIRST, SECOND, is_tail};
use crate::finding::runs::TAIL;
use crate::finding::{Criteria, Gated, Gates, Section, Statement};
use crate::labels::Labels;
use crate::messages::{Language, Message};
use crate::server_statistics::statements_of;
use crate::summary::Summary;
use crate::target::TargetSummary;
use crate::verdict::{Verdict, Why};
use kurabe_core::query_plan::QueryPlan;
use kurabe_core::stats_probe::{Counter, StatementUse, WaitState};
use kurabe_core::{Error, Result, sort};
use kurabe_stats::{Decision, Estimate, Interval};
use serde::Serialize;

/// By how many times more rounds than were made are still advised.
const FORESEEN: f64 = 30.0;
/// The widest margin that is advised.
const MOST_WIDE: f64 = 0.5;

impl Criteria {
    /// Reads `slower`, `slower:10%`, `p99:20%` or several with commas; without one, a margin is `default`.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if it is anything else, or names a metric twice.
    pub fn parse(text: &str, default: f64, margin: impl Fn(&str) -> Result<f64>) -> Result<Self> {
        let mut criteria = Self::default();
        for one in text.split(',') {
            let (metric, share) =
                one.split_once(':').map_or((one, None), |(metric, share)| (metric, Some(share)));
            let of = match metric {
                "slower" => &mut criteria.slower,
                "p99" => &mut criteria.p99,
                _ => return Err(unknown(one)),
            };
            if of.replace(share.map_or(Ok(default), &margin)?).is_some() {
                return Err(unknown(text));
            }
        }
        Ok(criteria)
    }

    /// The margin of a result, and whether it was asked for; `None` if the result is not judged.
    pub(super) fn of(&self, row: &Verdict) -> Option<(f64, bool)> {
        let tail = is_tail(&row.pair.metric) && (row.primary || row.of_kind);
        let named = self.p99.filter(|_| tail).or(self.slower.filter(|_| row.primary || row.of_kind && !tail));
        let unnamed = self.slower.filter(|_| tail).map(|slower| (slower.max(TAIL), false));
        named.map(|margin| (margin, true)).or(unnamed)
    }
}

fn unknown(text: &str) -> Error {
    Error::usage(format!("'{text}' is not a criterion"))
        .hint("write slower, slower:5%, p99:10% or slower:5%,p99:10%")
}

/// The gate's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    #[serde(flatten)]
    pub decided: Gated,
    /// Differences between the runs because of which nothing is judged.
    pub obstacles: Vec<Difference>,
}

/// Judges the results of a comparison of these runs by these criteria, and adds the decision to its findings.
pub fn judge(compared: &mut Compared, first: &Summary, second: &Summary, criteria: Criteria) {
    // Two targets of one run differ in what is to be judged.
    let is_obstacle = |one: &&Difference| one.is_obstacle && compared.between.is_some();
    let obstacles: Vec<Difference> = compared.differences.iter().filter(is_obstacle).cloned().collect();
    for row in &mut compared.rows {
        row.gate = criteria
            .of(row)
            .and_then(|(margin, _)| of_row(row, margin))
            .map(|judged| if obstacles.is_empty() { judged } else { Decision::NotTestable });
        let shown_beside_load = row.gate == Some(Decision::Below) && compared.between.is_none();
        let decided = matches!(row.gate, Some(Decision::Within | Decision::Below));
        if decided && !shown_beside_load && !row.disturbed.is_empty() {
            row.gate = Some(Decision::Undecided);
            row.why = Some(Why::Disturbed { sides: row.disturbed.clone() });
        }
    }
    let of = |wanted: Decision| compared.rows.iter().filter(move |row| row.gate == Some(wanted));
    let count = |wanted: Decision| of(wanted).count() as u32;
    let is_asked = |row: &&Verdict| criteria.of(row).is_some_and(|(_, asked)| asked);
    let mut decided = Gated {
        criteria,
        decision: Decision::Within,
        passed: count(Decision::Within),
        slower: count(Decision::Below),
        undecided: count(Decision::Undecided),
        tails: of(Decision::Undecided).filter(|row| !is_asked(row)).count() as u32,
        not_judged: count(Decision::NotTestable) + missing(first, second),
    };
    decided.decision = match &decided {
        Gated { slower: 1.., .. } => Decision::Below,
        Gated { passed: 0, .. } | Gated { not_judged: 1.., .. } => Decision::Undecided,
        gate if gate.undecided > gate.tails => Decision::Undecided,
        _ => Decision::Within,
    };
    let open: Vec<&Verdict> = of(Decision::Undecided).filter(is_asked).collect();
    let unjudged =
        of(Decision::NotTestable).find_map(|row| row.why.as_ref()).filter(|_| obstacles.is_empty());
    let next = if decided.decision == Decision::Undecided {
        next(&open, &criteria, first, unjudged)
    } else {
        Vec::new()
    };
    let differing = obstacles.iter().map(|one| Gates::Obstacle {
        what: one.what.clone(),
        first: one.first.clone(),
        second: one.second.clone(),
    });
    let state = |finding: Gates| Statement { section: Section::Verdict, finding: finding.into() };
    let (worst, causes) = (worst(compared), causes(compared, decided.decision, first, second));
    let said = [state(Gates::Gated(decided.clone()))]
        .into_iter()
        .chain(worst.map(state))
        .chain(causes.into_iter().map(state))
        .chain(differing.map(state))
        .chain(next.into_iter().map(state));
    let at = compared.findings.iter().position(|one| one.section != Section::Publishing);
    let at = at.unwrap_or(compared.findings.len());
    compared.findings.splice(at..at, said);
    compared.gate = Some(Gate { decided, obstacles });
}

/// The result that failed by the most.
fn worst(compared: &Compared) -> Option<Gates> {
    let failed = compared.rows.iter().filter(|row| row.gate == Some(Decision::Below));
    let by = |row: &&Verdict| row.ratio.map_or(1.0, |gain| gain.value);
    let row = failed.min_by(|a, b| by(a).total_cmp(&by(b)))?;
    let [from, to] = [FIRST, SECOND].map(|side| value(row, side));
    let disturbed = !row.disturbed.is_empty();
    let ratio = row.ratio?.inverse();
    Some(Gates::Worst { result: row.name(), from, to, ratio, disturbed })
}

/// What to do about a gate that is undecided, from the results that hold it up.
fn next(open: &[&Verdict], criteria: &Criteria, first: &Summary, unjudged: Option<&Why>) -> Vec<Gates> {
    let mut next = Vec::new();
    let disturbed = open.iter().filter(|row| matches!(row.why, Some(Why::Disturbed { .. }))).count();
    if disturbed > 0 {
        next.push(Gates::OtherLoad { results: disturbed as u32 });
    }
    // The width of an interval falls with the root of the number of rounds.
    let factor = |row: &&Verdict| {
        let ((margin, _), gain) = (criteria.of(row)?, row.ratio?);
        let (low, high) = gain.ends()?;
        let distance = (gain.value.ln() + margin.ln_1p()).abs();
        Some((((high / low).ln() / 2.0 / distance).powi(2), low, margin))
    };
    let undisturbed = open.iter().filter(|row| row.why.is_none());
    let found = undisturbed.filter_map(|row| Some((*row, factor(row)?)));
    if let Some((row, (factor, low, margin))) = found.max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0)) {
        let rounds = first.rounds;
        next.push(if factor < FORESEEN {
            Gates::MoreRounds { rounds, needed: (f64::from(rounds) * factor).ceil() as u32 + 1 }
        } else {
            // A margin that the interval would lie within, in whole per cent.
            let wider = ((1.0 / low - 1.0) * 100.0).ceil() / 100.0;
            let of_tail = is_tail(&row.pair.metric);
            let wider = (wider > margin && wider <= MOST_WIDE).then_some(wider);
            Gates::AtMargin { result: row.name(), of_tail, margin, wider }
        });
    }
    next.extend(unjudged.map(|why| Gates::NotJudged { why: why.clone() }));
    next
}

/// The words for what the gate says of a result.
pub(super) fn message(answer: Decision) -> Message {
    match answer {
        Decision::Above | Decision::Within => Message::Passed,
        Decision::Below => Message::Slower,
        Decision::Undecided => Message::Undecided,
        Decision::NotTestable => Message::NotJudged,
    }
}

/// The words, with the reason if other load on the machine is one.
pub(super) fn words(row: &Verdict, answer: Decision, labels: &Labels, language: Language) -> String {
    let words = message(answer).text(language);
    match &row.why {
        Some(why @ Why::Disturbed { .. }) => format!("{words} ({})", why.clause(labels, &row.pair.axis)),
        _ => words.to_owned(),
    }
}

/// Whether a result is no slower than the margin allows; `None` if the first run has no result.
fn of_row(row: &Verdict, margin: f64) -> Option<Decision> {
    row.values[FIRST]?;
    let allowed = Range { at_least: Some(1.0), at_most: None, tolerance: margin };
    let ends = row.ratio.and_then(Estimate::ends);
    let answer = ends.map_or(Decision::Undecided, |(low, high)| allowed.answer(Interval { low, high }));
    Some(match (&row.why, answer) {
        // A saturated client hides what the server could do, and the application still gets no less.
        (None, _) | (Some(Why::ClientBound { .. }), Decision::Within) => answer,
        (Some(_), _) => Decision::NotTestable,
    })
}

/// The number of results that only the first run has.
fn missing<'a>(first: &'a Summary, second: &'a Summary) -> u32 {
    let target = |run: &'a Summary, at: usize| TargetSummary::nth_of_engine(&run.targets, at);
    let has = |cell: &&CellResult| {
        let place = target(first, cell.target.at());
        second.cells.iter().any(|other| other.is_like(cell) && target(second, other.target.at()) == place)
    };
    let results = first.cells.iter().filter(|cell| !cell.aa_control && cell.status == Status::Ok);
    results.filter(|cell| !has(cell)).count() as u32
}

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
fn causes(compared: &Compared, decision: Decision, first: &Summary, second: &Summary) -> Vec<Gates> {
    let is_of = |row: &&Verdict| decision != Decision::Within && row.gate == Some(decision);
    let by = |row: &&Verdict| row.ratio.map_or(1.0, |gain| gain.value);
    let worst = compared.rows.iter().filter(is_of).min_by(|a, b| by(a).total_cmp(&by(b)));
    let place = |side: usize| worst.and_then(|row| row.cells[side]);
    let [a, b] = [(first, FIRST), (second, SECOND)].map(|(run, side)| run.cells.get(place(side)?));
    let (Some(a), Some(b)) = (a, b) else { return Vec::new() };
    let mut all = plans(a, b);
    all.extend(work(a, b));
    all.extend(statement(a, b));
    all.extend(locks(a, b));
    all
}

/// The plans that changed.
fn plans(a: &CellResult, b: &CellResult) -> Vec<Gates> {
    let is_same = |one: &QueryPlan, other: &QueryPlan| {
        let digits = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        one.statement == other.statement && digits(&one.text) == digits(&other.text)
    };
    let changed = |plan: &QueryPlan| {
        let other = b.plans.iter().find(|other| is_same(plan, other)).filter(|other| !other.is_like(plan))?;
        let [first, second] = [plan, other].map(|plan| plan.steps().map(str::to_owned).collect());
        let QueryPlan { statement, text, .. } = plan.clone();
        Some(Gates::PlanChanged { statement, text, first, second })
    };
    a.plans.iter().filter_map(changed).take(TOLD).collect()
}

/// The counters that grew most for each operation.
fn work(a: &CellResult, b: &CellResult) -> Vec<Gates> {
    let of = |what: Counter| {
        let [first, second] = [a, b].map(|cell| cell.counter(what).map(|one| one.per_operation));
        let (first, second) = (first?, second?);
        let is_more = second > first * MORE && second - first > LEAST;
        is_more.then(|| {
            (
                second / first.max(LEAST),
                Gates::MoreWork { counter: what, operation: a.operation.clone(), first, second },
            )
        })
    };
    let mut found: Vec<(f64, Gates)> = WORK.into_iter().filter_map(of).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().take(TOLD).map(|(_, found)| found).collect()
}

/// The statement whose time grew most, by the server's own statistics.
fn statement(a: &CellResult, b: &CellResult) -> Option<Gates> {
    let [before, after] = [a, b].map(|cell| statements_of(&cell.observed));
    let each = |used: &StatementUse| used.time_ns as f64 / (used.calls as f64).max(1.0);
    let pairs = after.iter().filter_map(|now| {
        let then = before.iter().find(|then| then.text == now.text)?;
        (each(now) > each(then) * MORE)
            .then(|| (each(now) * now.calls as f64 - each(then) * now.calls as f64, then, now))
    });
    let (_, then, now) = pairs.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Gates::SlowerStatement { text: now.text.clone(), first_ns: each(then), second_ns: each(now) })
}

/// More time of sessions in waits for locks, with a statement that waited.
fn locks(a: &CellResult, b: &CellResult) -> Option<Gates> {
    let share = |cell: &CellResult| -> f64 {
        let waits = cell.sessions.iter().filter(|one| one.wait_state == WaitState::Lock);
        waits.map(|one| one.share).sum()
    };
    let (first, second) = (share(a), share(b));
    let mut waiting: Vec<_> = b.sessions.iter().filter(|one| one.wait_state == WaitState::Lock).collect();
    sort::by_key(&mut waiting, |one| one.statement.is_empty());
    let text = waiting.first().map(|one| one.statement.clone()).unwrap_or_default();
    (second > first + WAITS).then_some(Gates::MoreLocks { first, second, text })
}
