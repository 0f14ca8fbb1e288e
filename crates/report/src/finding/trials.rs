//! Trials: what makes their results invalid or doubtful.

use crate::catalogue::translated;
use crate::cell::{CellResult, FEW_OPERATIONS, Status, Steady};
use crate::finding::Context;
use crate::format::{difference, figure};
use crate::group::distinct;
use crate::labels::{Labels, Scope};
use crate::results::latest;
use crate::target::TargetId;
use crate::wording::{listed, many, of_cells, say};
use kurabe_core::metric::THROUGHPUT;
use kurabe_core::run::{Measurement, Run, TrialRecord};
use kurabe_core::{sort, units};
use kurabe_stats::median;
use serde::Serialize;
use std::collections::BTreeMap;

/// Defects of trials that affect their results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Trials {
    /// Other load on the machine during trials: the number of affected and observed cells, and the reason for one of
    /// them.
    Disturbed { cells: u32, of: u32, targets: Vec<TargetId>, reason: String },
    /// Disturbed trials were repeated.
    Rerun { trials: u64, reason: String },
    /// The run went on without these agents, so that trials ran on fewer agents than it began with.
    FewerAgents { agents: Vec<String>, trials: u64, of: u64 },
    /// Cells have no results because a trial failed.
    Failed { cells: u64 },
    /// Trials ended early because each record is changed at most once. `needed` records make them long enough.
    RecordsExhausted { scope: Scope, trials: u64, of: u64, records: u64, needed: u64 },
    /// Trials ended early because the server has memory for no more records of one.
    MemoryExhausted { scope: Scope, trials: u64, of: u64, records: u64 },
    /// Replies were wrong.
    WrongAnswers { answers: u64 },
    /// Throughput changed until trials ended: by at most this factor from the first quarter to the last.
    Unsteady { scope: Scope, cells: u32, of: u32, change: f64 },
    /// A cell was slow in some rounds of all: the median rates, per second, of these and of the others.
    Uneven { scope: Scope, rounds: u32, of: u32, slow: f64, others: f64 },
    /// High percentiles are marked, since they are of few operations; or a 99th one is not shown, of very few.
    FewOperations { cells: u32, of: u32 },
    /// Throughput became steady only after the warm-up.
    SteadyLate { scope: Scope, cells: u32, of: u32 },
}

impl Trials {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        match self {
            Self::Disturbed { cells, of, targets, reason } => {
                other_load(labels, targets, [*cells, *of], reason)
            }
            Self::Rerun { trials, reason } => {
                let (were, reason) =
                    (many(*trials, "trial was", "trials were"), translated(reason, language));
                say!(
                    language,
                    "{were} disturbed and repeated ({reason}); the disturbed results do not count.",
                    "乱された試行 {trials} 回を測り直しました({reason})。乱された結果は数えません。",
                )
            }
            Self::FewerAgents { agents, trials, of } => {
                let (word, all) =
                    (if agents.len() == 1 { "agent" } else { "agents" }, many(*of, "trial", "trials"));
                let agents = listed(agents, language);
                say!(
                    language,
                    "the run went on without {word} {agents}: {trials} of {all} ran on fewer agents. All trials of a round ran on \
                     the same agents.",
                    "エージェント {agents} が抜け、試行 {of} 回のうち {trials} 回は少ないエージェントで測りました。同じラウンドの試行は\
                     同じエージェントで測っています。",
                )
            }
            Self::Failed { cells } => {
                let are = many(*cells, "result is", "results are");
                say!(
                    language,
                    "{are} missing because a trial failed.",
                    "試行が失敗したため、結果 {cells} 件がありません。",
                )
            }
            Self::RecordsExhausted { scope, trials, of, records, needed } => {
                let (what, records) = (labels.results_of(scope), units::count(*records));
                let some = some_trials(*trials, *of);
                say!(
                    language,
                    "{what}: {some} ended early: a trial changes each of the {records} records once. For longer trials use \
                     --records {needed}.",
                    "{what}: 試行 {of} 回のうち {trials} 回が早く終わりました。{records} 件の各レコードは 1 回だけ変更するためです。長く\
                     測るには --records {needed} を使ってください。",
                )
            }
            Self::MemoryExhausted { scope, trials, of, records } => {
                let (what, records) = (labels.results_of(scope), units::count(*records));
                let some = some_trials(*trials, *of);
                say!(
                    language,
                    "{what}: {some} ended early: the server has memory for {records} records of a trial. A smaller --payload or \
                     more memory makes trials longer.",
                    "{what}: 試行 {of} 回のうち {trials} 回が早く終わりました。サーバーのメモリーには、試行 1 回につき {records} 件のレコードしか\
                     入らないためです。長く測るには --payload を小さくするか、メモリーを増やしてください。",
                )
            }
            Self::WrongAnswers { answers } => {
                let were = many(*answers, "reply was", "replies were");
                say!(language, "{were} wrong.", "誤った応答が {answers} 件ありました。")
            }
            Self::Unsteady { scope, change, cells, of } => {
                let fell = *change < 1.0;
                let (word, by) = if fell { ("fell", 1.0 - change) } else { ("rose", change - 1.0) };
                let noun = if fell { "低下" } else { "上昇" };
                let (what, by, part) =
                    (labels.results_of(scope), difference(by, language), of_cells(*cells, *of, language));
                say!(
                    language,
                    "{what} marked ~ {word} by up to {by} during a trial. Use a longer --duration.",
                    "{what}{part} は安定しませんでした(~ の印)。試行中に速さが最大 {by} {noun}しました。--duration を長くしてください。",
                )
            }
            Self::Uneven { scope, rounds, of, slow, others } => {
                let (what, slow, others) = (labels.results_of(scope), figure(*slow), figure(*others));
                say!(
                    language,
                    "{what} stalled in {rounds} of {of} rounds: {slow}/s, beside {others}/s in the others.",
                    "{what} は {of} ラウンドのうち {rounds} ラウンドで滞りました({slow}/s、ほかのラウンドは {others}/s)。",
                )
            }
            Self::FewOperations { cells, of } => {
                let some = some(*cells, *of);
                say!(
                    language,
                    "p95 and p99 of {some} are of fewer than 1,000 operations (marked †); a p99 of fewer than 100 is not \
                     shown. Longer trials (--duration) or more rounds (--rounds) have more.",
                    "結果 {of} 件のうち {cells} 件では、p95 と p99 が 1,000 回未満の操作によるものです(† の印)。100 回未満の p99 は示しません。\
                     試行(--duration)を長くするか、ラウンド(--rounds)を増やしてください。",
                )
            }
            Self::SteadyLate { scope, cells, of } => {
                let (what, cells) = (labels.results_of(scope), of_cells(*cells, *of, language));
                say!(
                    language,
                    "{what} became steady only after the warm-up{cells}. Use a longer --duration.",
                    "{what}{cells} は、ウォームアップの後でようやく安定しました。--duration を長くしてください。",
                )
            }
        }
    }
}

/// The sentence about other load during so many cells, of all that were observed.
fn other_load(labels: &Labels, targets: &[TargetId], [cells, of]: [u32; 2], reason: &str) -> String {
    let language = labels.language;
    let on = labels.targets_of(targets);
    let on = if labels.several_targets() { format!(" (on {on})") } else { String::new() };
    let one = if cells > 1 { "; in one of them " } else { ": " };
    let (results, reason) = (some(cells, of), translated(reason, language));
    say!(
        language,
        "the machine had other load during {results}{on}{one}{reason}. Repeat the run on an idle machine.",
        "結果 {of} 件のうち {cells} 件で、マシンにほかの負荷がありました({reason})。空いたマシンで測り直してください。",
    )
}

/// So many results in English.
fn some(cells: u32, of: u32) -> String {
    if of == 1 { "the one result".to_owned() } else { format!("{cells} of {of} results") }
}

/// All of them.
pub(super) fn findings(context: &Context<'_>) -> Vec<Trials> {
    let run = context.run;
    let again: Vec<&String> = run.trials.iter().filter_map(|trial| trial.rerun_reason.as_ref()).collect();
    let rerun =
        again.first().map(|reason| Trials::Rerun { trials: again.len() as u64, reason: (*reason).clone() });
    let cells = context.cells.iter().filter(|cell| cell.status == Status::Failed).count() as u64;
    let failed = (cells > 0).then_some(Trials::Failed { cells });
    let answers = context.cells.iter().map(|cell| cell.verified.mismatches).sum();
    let wrong = (answers > 0).then_some(Trials::WrongAnswers { answers });
    let first = [rerun, fewer_agents(run), failed, wrong].into_iter().flatten();
    let last = disturbed(context).into_iter().chain(few_operations(context));
    let uneven = context.cells.iter().filter_map(|cell| uneven(context, cell));
    first.chain(exhausted(run)).chain(uneven).chain(steadiness(context)).chain(last).collect()
}

/// The agents without which the run went on; `None` if there are none. A trial with few clients needs few agents.
fn fewer_agents(run: &Run) -> Option<Trials> {
    let all: Vec<&String> = run.header.agents.iter().map(|agent| &agent.name).collect();
    let counted = latest(run).into_values().flat_map(BTreeMap::into_values);
    let with_all = |measured: &&Measurement| measured.clients >= all.len() as u64;
    let agents = counted.filter_map(TrialRecord::measured).filter(with_all).filter_map(|measured| {
        Some(measured.fleet.as_ref()?.agents.iter().map(|agent| &agent.name).collect())
    });
    let used: Vec<Vec<&String>> = agents.collect();
    let fewer = || used.iter().filter(|agents| agents.len() < all.len());
    let fewest = fewer().min_by_key(|agents| agents.len())?;
    let missing = all.iter().filter(|name| !fewest.contains(name)).map(|name| (*name).clone());
    let (trials, of) = (fewer().count() as u64, used.len() as u64);
    Some(Trials::FewerAgents { agents: missing.collect(), trials, of })
}

/// Some of all trials, as the subject of a sentence.
fn some_trials(trials: u64, of: u64) -> String {
    if of == 1 { "the trial".to_owned() } else { format!("{trials} of {of} trials") }
}

/// Trials that ended early because each record is changed at most once, or the server is full, and how to make them longer.
fn exhausted(run: &Run) -> Vec<Trials> {
    let mut findings = Vec::new();
    for operation in &run.header.spec.operations {
        let (mut all, mut ended, mut most, mut needed, mut of_memory) = (0_u64, 0_u64, 0, 0.0_f64, false);
        for (_, measured) in run.measured().filter(|(trial, _)| trial.operation == *operation) {
            all += 1;
            let Some(records) = measured.exhausted else { continue };
            ended += 1;
            most = most.max(records);
            of_memory |= measured.memory_full;
            needed = needed.max(records as f64 * longer(run, operation, measured));
        }
        if ended > 0 {
            let scope = Scope { operations: vec![operation.clone()], ..Scope::default() };
            let (trials, of, records, needed) = (ended, all, most, rounded_up(needed));
            findings.push(if of_memory {
                Trials::MemoryExhausted { scope, trials, of, records }
            } else {
                Trials::RecordsExhausted { scope, trials, of, records, needed }
            });
        }
    }
    findings
}

/// The factor by which the trial would have been longer, with a margin.
fn longer(run: &Run, operation: &str, measured: &Measurement) -> f64 {
    /// The margin, since the next trial may be faster.
    const ROOM: f64 = 1.3;
    let took = measured.open.as_ref().map_or(measured.elapsed_ns, |open| open.due_ns).max(1);
    let by_time = run.header.spec.duration_ns.map(|time| time as f64 / took as f64);
    let by_requests =
        run.header.spec.requests.get(operation).map(|n| *n as f64 / measured.offered.max(1) as f64);
    let times = match (by_time, by_requests) {
        (Some(time), Some(requests)) => time.min(requests),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => 1.0,
    };
    times.max(1.0) * ROOM
}

/// Rounds up to a number with two significant digits.
fn rounded_up(number: f64) -> u64 {
    let unit = 10_f64.powf((number.max(10.0).log10().floor() - 1.0).max(0.0));
    ((number / unit).ceil() * unit) as u64
}

/// Cells with unsteady trials: one finding for each kind and operation.
fn steadiness(context: &Context<'_>) -> Vec<Trials> {
    let mut findings = Vec::new();
    for operation in &context.labels.operations {
        let here: Vec<(&CellResult, &Steady)> = context
            .cells
            .iter()
            .filter(|cell| cell.operation == operation.name && !cell.aa_control)
            .filter_map(|cell| Some((cell, cell.steady.as_ref()?)))
            .collect();
        let of = here.len() as u32;
        let part = |wanted: fn(&Steady) -> bool| {
            let cells: Vec<_> = here.iter().filter(|(_, steady)| wanted(steady)).collect();
            let mut targets: Vec<TargetId> = cells.iter().map(|(cell, _)| cell.target.clone()).collect();
            targets.dedup();
            let operations = vec![operation.name.clone()];
            (Scope { operations, targets, ..Scope::default() }, cells)
        };
        let (scope, never) = part(Steady::is_never);
        let far = |change: &f64| change.max(f64::MIN_POSITIVE).ln().abs();
        let most = never.iter().filter_map(|(_, steady)| steady.change);
        if let Some(change) = most.max_by(|a, b| far(a).total_cmp(&far(b))) {
            findings.push(Trials::Unsteady { scope, cells: never.len() as u32, of, change });
        }
        let (scope, late) = part(Steady::is_late);
        if !late.is_empty() {
            findings.push(Trials::SteadyLate { scope, cells: late.len() as u32, of });
        }
    }
    findings
}

/// The rounds of a cell, if the widest gap between its rates leaves the smaller part of them far below.
fn uneven(context: &Context<'_>, cell: &CellResult) -> Option<Trials> {
    /// The quotient of rates beyond which the slower trial stalled.
    const STALLED: f64 = 3.0;
    let measured = cell.metric(THROUGHPUT.name).filter(|_| cell.is_reported())?;
    let mut rates: Vec<f64> = measured.by_round.values().copied().collect();
    sort::by(&mut rates, f64::total_cmp);
    let gap = |at: &usize| rates[*at] / rates[at - 1];
    let widest = (1..rates.len().div_ceil(2)).max_by(|one, other| gap(one).total_cmp(&gap(other)));
    let rounds = widest.filter(|at| gap(at) > STALLED)?;
    let (slow, others) = rates.split_at(rounds);
    Some(Trials::Uneven {
        scope: Scope::of_cell(context.labels, cell, ""),
        rounds: rounds as u32,
        of: rates.len() as u32,
        slow: median(slow)?,
        others: median(others)?,
    })
}

/// Cells whose high percentiles are of few operations.
fn few_operations(context: &Context<'_>) -> Option<Trials> {
    let has_times = |cell: &&CellResult| {
        cell.is_reported() && cell.times().is_some() && !cell.is_overloaded() && !cell.is_generator_late()
    };
    let timed: Vec<&CellResult> = context.cells.iter().filter(has_times).collect();
    let few = timed.iter().filter(|cell| cell.timed() < FEW_OPERATIONS).count() as u32;
    (few > 0).then_some(Trials::FewOperations { cells: few, of: timed.len() as u32 })
}

/// Trials with other load on the machine.
fn disturbed(context: &Context<'_>) -> Option<Trials> {
    let reason = |cell: &CellResult| cell.disturbed.clone();
    let is_observed = |cell: &&CellResult| cell.attribution.is_some() || cell.disturbed.is_some();
    let observed: Vec<&CellResult> = context.cells.iter().filter(is_observed).collect();
    let disturbed: Vec<&CellResult> =
        observed.iter().copied().filter(|cell| reason(cell).is_some()).collect();
    let reason = reason(disturbed.first()?)?;
    let mut targets: Vec<TargetId> = disturbed.iter().map(|cell| cell.target.clone()).collect();
    sort::by(&mut targets, Ord::cmp);
    targets.dedup();
    Some(Trials::Disturbed { cells: count(&disturbed), of: count(&observed), targets, reason })
}

/// The number of distinct cells; the baseline and its A/A control count as one.
fn count(cells: &[&CellResult]) -> u32 {
    distinct(cells.iter().map(|cell| (cell.target.at(), &cell.axes, &cell.operation))).len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_round_number_and_enough() {
        assert_eq!(rounded_up(7.0), 7);
        assert_eq!(rounded_up(123_456.0), 130_000);
        assert_eq!(rounded_up(2_000_000.0), 2_000_000);
        assert_eq!(rounded_up(2_000_001.0), 2_100_000);
    }
}
