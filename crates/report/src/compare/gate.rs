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
            .and_then(|(margin, is_asked)| of_row(row, margin, is_asked))
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
        next(&open, &criteria, first.rounds, unjudged)
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
fn next(open: &[&Verdict], criteria: &Criteria, rounds: u32, unjudged: Option<&Why>) -> Vec<Gates> {
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

/// Whether a result is no slower than the margin allows; `None` if the first run has no result, or a 99th percentile that nobody
/// asked for is of too few operations.
fn of_row(row: &Verdict, margin: f64, is_asked: bool) -> Option<Decision> {
    if matches!(row.why, Some(Why::FewOperations)) {
        return is_asked.then_some(Decision::NotTestable);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{CounterResult, MetricInfo, SessionShare};
    use crate::verdict::Side;
    use kurabe_core::metric::{Better, Source, Unit};
    use kurabe_core::observation::Observation;
    use kurabe_core::stats_probe::{CounterScope, EngineUse};

    fn counters(values: &[(Counter, f64)]) -> CellResult {
        let of = |(what, per_operation): &(Counter, f64)| CounterResult {
            what: *what,
            total: 1,
            per_operation: *per_operation,
            from: String::new(),
            scope: CounterScope::Server,
        };
        let counters = values.iter().map(of).collect();
        CellResult { operation: "read".to_owned(), counters, ..CellResult::default() }
    }

    #[test]
    fn work_is_told_from_half_as_much_again_on_and_what_grew_most_first() {
        use Counter::{LockWaits, LogBytes, PagesMissed, RowsExamined, Temporary};
        let grew = |first: &[(Counter, f64)], second: &[(Counter, f64)]| -> Vec<(Counter, f64, f64)> {
            let told = |one: Gates| match one {
                Gates::MoreWork { counter, operation, first, second } if operation == "read" => {
                    (counter, first, second)
                }
                other => panic!("{other:?}"),
            };
            work(&counters(first), &counters(second)).into_iter().map(told).collect()
        };
        assert!(grew(&[(RowsExamined, 2.0)], &[(RowsExamined, 3.0)]).is_empty());
        assert_eq!(grew(&[(RowsExamined, 2.0)], &[(RowsExamined, 3.01)]), [(RowsExamined, 2.0, 3.01)]);
        // Twice as much of nearly nothing is nothing.
        assert!(grew(&[(LockWaits, 0.04)], &[(LockWaits, 0.08)]).is_empty());
        assert_eq!(grew(&[(LockWaits, 0.0)], &[(LockWaits, 0.06)]), [(LockWaits, 0.0, 0.06)]);
        assert!(grew(&[], &[(RowsExamined, 9.0)]).is_empty() && grew(&[(RowsExamined, 9.0)], &[]).is_empty());
        // By factors of 4, 2, 0.2 ÷ 0.05 = 4 times nearly nothing, and 20; two are told.
        let first = [(RowsExamined, 1.0), (LogBytes, 100.0), (Temporary, 0.0), (PagesMissed, 0.1)];
        let second = [(RowsExamined, 3.0), (LogBytes, 200.0), (Temporary, 0.2), (PagesMissed, 2.0)];
        assert_eq!(grew(&first, &second), [(PagesMissed, 0.1, 2.0), (Temporary, 0.0, 0.2)]);
    }

    #[test]
    fn plans_of_one_statement_are_compared_whatever_values_it_has() {
        let plan = |statement: &str, text: &str, step: &str| QueryPlan {
            statement: statement.to_owned(),
            text: text.to_owned(),
            lines: vec![format!("-> {step}  (cost=1)")],
        };
        let cell = |plans: Vec<QueryPlan>| CellResult { plans, ..CellResult::default() };
        let changed = |before: QueryPlan, after: Vec<QueryPlan>| plans(&cell(vec![before]), &cell(after));
        let before = || plan("a", "SELECT 1 FROM t", "Index Scan");
        let other = || plan("a", "SELECT 1 FROM u", "Seq Scan on u");
        let found = changed(
            before(),
            vec![other(), plan("b", "SELECT 1 FROM t", "b"), plan("a", "SELECT 22 FROM t", "Seq Scan")],
        );
        let wanted = Gates::PlanChanged {
            statement: "a".to_owned(),
            text: "SELECT 1 FROM t".to_owned(),
            first: vec!["Index Scan".to_owned()],
            second: vec!["Seq Scan".to_owned()],
        };
        assert_eq!(found, [wanted]);
        assert!(
            changed(before(), vec![other(), before()]).is_empty()
                && changed(before(), vec![other()]).is_empty()
        );
    }

    #[test]
    fn statement_whose_time_grew_most_in_all_is_told() {
        let cell = |statements: &[(&str, u64, u64)]| {
            let of = |(text, calls, time_ns): &(&str, u64, u64)| StatementUse {
                text: (*text).to_owned(),
                calls: *calls,
                time_ns: *time_ns,
                cpu_ns: None,
                rows_examined: None,
                rows: 0,
            };
            let engine =
                EngineUse { statements: statements.iter().map(of).collect(), ..EngineUse::default() };
            CellResult {
                observed: vec![Observation { engine: Some(engine), ..Observation::default() }],
                ..CellResult::default()
            }
        };
        let told = |first: &[(&str, u64, u64)], second: &[(&str, u64, u64)]| match statement(
            &cell(first),
            &cell(second),
        ) {
            Some(Gates::SlowerStatement { text, first_ns, second_ns }) => Some((text, first_ns, second_ns)),
            None => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(told(&[("a", 10, 1_000)], &[("a", 10, 1_500)]), None);
        assert_eq!(told(&[("a", 10, 1_000)], &[("a", 20, 3_100)]), Some(("a".to_owned(), 100.0, 155.0)));
        // `a` took 900 ns more in all, `b` 500 in ten executions; `c` is new.
        let first = [("a", 10, 1_000), ("b", 2, 180)];
        let second = [("a", 1, 1_000), ("b", 10, 1_400), ("c", 1, 9_000)];
        assert_eq!(told(&first, &second), Some(("a".to_owned(), 100.0, 1_000.0)));
    }

    #[test]
    fn waits_for_locks_are_told_from_a_tenth_of_the_time_more_on() {
        let cell = |shares: &[(WaitState, f64, &str)]| {
            let of = |(wait_state, share, statement): &(WaitState, f64, &str)| SessionShare {
                share: *share,
                wait_state: *wait_state,
                state: String::new(),
                event: String::new(),
                statement: (*statement).to_owned(),
            };
            CellResult { sessions: shares.iter().map(of).collect(), ..CellResult::default() }
        };
        let before =
            cell(&[(WaitState::Lock, 0.125, ""), (WaitState::Lock, 0.125, "x"), (WaitState::Log, 0.5, "y")]);
        assert_eq!(locks(&before, &cell(&[(WaitState::Lock, 0.25, "x"), (WaitState::Log, 0.75, "y")])), None);
        assert_eq!(locks(&before, &cell(&[(WaitState::Lock, 0.34, "x")])), None);
        let told = locks(
            &before,
            &cell(&[(WaitState::Log, 0.2, "y"), (WaitState::Lock, 0.25, ""), (WaitState::Lock, 0.25, "z")]),
        );
        assert_eq!(told, Some(Gates::MoreLocks { first: 0.25, second: 0.5, text: "z".to_owned() }));
    }

    #[test]
    fn undecided_gate_advises_rounds_if_few_decide_it_and_else_the_margin_that_its_interval_lies_within() {
        let metric = |name: &str| MetricInfo {
            name: name.to_owned(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            primary: true,
            about: String::new(),
            source: Source::Trial,
        };
        let row = |name: &str, value: f64, low: f64, high: f64| Verdict {
            ratio: Some(Estimate { value, low: Some(low), high: Some(high) }),
            ..Verdict::new(&metric(name), ("read", "target"), [Side::Run, Side::Run], [None, None])
        };
        let criteria = Criteria { slower: Some(0.05), p99: Some(0.2) };
        let advice = |row: &Verdict| next(&[row], &criteria, 12, None);
        // Half an interval of ln 1.1, twice the distance of 1 from 1 ÷ 1.05: four times the rounds decide it, and one more.
        let half = 2.0 * 1.05_f64.ln();
        let found = advice(&row("throughput", 1.0, (-half).exp(), half.exp()));
        assert!(matches!(found[..], [Gates::MoreRounds { rounds: 12, needed: 49 | 50 }]), "{found:?}");
        // At the margin nothing decides it; the interval lies within 12 %.
        let found = advice(&row("throughput", 0.95, 0.9, 1.0));
        let [Gates::AtMargin { of_tail: false, margin, wider: Some(wider), .. }] = &found[..] else {
            panic!("{found:?}")
        };
        assert!((margin - 0.05).abs() < 1e-12 && (wider - 0.12).abs() < 1e-9, "{found:?}");
        // A margin that wide is not advised, …
        let found = advice(&row("throughput", 0.95, 0.6, 1.5));
        assert!(matches!(found[..], [Gates::AtMargin { wider: None, .. }]), "{found:?}");
        // … nor one of a tail that is narrower than its own.
        let found = advice(&row("read p99", 0.8333, 0.82, 0.84));
        assert!(matches!(found[..], [Gates::AtMargin { of_tail: true, wider: Some(_), .. }]), "{found:?}");
        // Of too few operations, it is judged only if it was asked for, and then it does not pass.
        let few = Verdict { why: Some(Why::FewOperations), ..row("read p99", 1.0, 1.0, 1.0) };
        assert_eq!([true, false].map(|asked| of_row(&few, 0.2, asked)), [Some(Decision::NotTestable), None]);
        let disturbed =
            Verdict { why: Some(Why::Disturbed { sides: Vec::new() }), ..row("throughput", 1.0, 0.9, 1.1) };
        let found = next(&[&disturbed], &criteria, 12, Some(&Why::NoCommonRound));
        assert_eq!(found, [Gates::OtherLoad { results: 1 }, Gates::NotJudged { why: Why::NoCommonRound }]);
    }
}
