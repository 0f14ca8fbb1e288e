//! Notes on a run and its targets that trials do not show.

use crate::catalogue::{self, translated};
use crate::cell::CellResult;
use crate::finding::Context;
use crate::group::{distinct, grouped};
use crate::labels::{Labels, Scope};
use crate::target::{TargetId, TargetSummary};
use crate::wording::{joined, listed, many, ratio, say, with_version};
use kurabe_core::custom::Language as CustomLanguage;
use kurabe_core::facts::LOGIN;
use kurabe_core::metric::CONNECT;
use kurabe_core::run::{MachineFacts, Resumption};
use kurabe_core::units;
use kurabe_stats::{Estimate, median};
use serde::Serialize;

/// What a reader must know of the run and its targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Note {
    /// A warning from before the first trial.
    Preflight { warning: String },
    /// The run was resumed, and trials from this one on used something else.
    Resumed { from_trial: u64, changes: Vec<String> },
    /// A driver's note on its target.
    TargetNote { target: TargetId, note: String },
    /// The report omits targets of the run.
    LeftOut { targets: u32, noise_floor_lost: bool },
    /// Trials that have the machine to themselves have other rates than those in slices, by more than the margin: so many
    /// times, the median of so many results.
    Alone { times: f64, results: u32 },
    /// A licence restricts publishing a target's results.
    PublishingRestricted { target: TargetId, version: String, says: String, name: String, source: String },
    /// How new connections log in to targets, of a run in which requests open some.
    Logins { targets: Vec<Login> },
    /// How a target executes a query: the steps of its plan, with the rows of the answer and the pages that were read.
    Plan { query: String, target: TargetId, steps: Vec<String>, rows: Option<f64>, pages: Option<u64> },
    /// A server does not report something.
    NotReported { target: TargetId, what: Vec<String>, reason: String },
}

/// What a server does not report, as findings name it.
const SESSIONS: &str = "wait states of sessions";
const ALL_STATISTICS: &str = "all statistics";

/// How connections log in to a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Login {
    pub target: TargetId,
    /// The method, by the server's word for it, or `none`.
    pub method: String,
}

impl Note {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        match self {
            Self::Preflight { warning } => {
                let warning = warning.trim_end_matches('.');
                // Behind the name of a target.
                let of_target = || {
                    let (name, warning) = warning.split_once(": ")?;
                    Some(format!("{name}: {}", catalogue::find(warning, language)?))
                };
                let found = catalogue::find(warning, language).or_else(of_target);
                let warning = found.unwrap_or_else(|| warning.to_owned());
                say!(language, "{warning}.", "{warning}。")
            }
            Self::Resumed { from_trial, changes } => {
                let changes: Vec<String> = changes.iter().map(|one| translated(one, language)).collect();
                let (from, changes) = (units::count(*from_trial), listed(&changes, language));
                say!(
                    language,
                    "trials from number {from} on used {changes}, which may change results.",
                    "試行 {from} からは {changes} が変わり、結果に影響しうる状態です。",
                )
            }
            Self::TargetNote { target, note } => {
                let (target, note) = (labels.target(target), catalogue::note(note, language));
                say!(language, "note on {target}: {note}", "{target} について: {note}")
            }
            Self::LeftOut { targets, noise_floor_lost } => {
                let floor = say!(
                    language,
                    "; what equal measurements differ by is not known, since it was measured on one of them",
                    "同じ条件の測定の差は、そのうちの 1 つで測ったため不明です。",
                );
                let floor = if *noise_floor_lost { floor } else { String::new() };
                let verb = if *targets == 1 { "is" } else { "are" };
                let some = many((*targets).into(), "target", "targets");
                say!(
                    language,
                    "{some} of this run {verb} left out of this report{floor}.",
                    "この実行の対象のうち {targets} 件は、この報告に含みません。{floor}",
                )
            }
            Self::Alone { times, results } => {
                let times = ratio(Estimate { value: *times, low: None, high: None }, language);
                let some = many((*results).into(), "result", "results");
                say!(
                    language,
                    "rates and ratios are of trials that alternate in slices. With the machine to itself a trial had {times} \
                     the rate (median of {some}).",
                    "数値と倍率は交互の試行のものです。マシンを独占した試行の速さはその {times}でした(結果 {results} 件の中央値)。",
                )
            }
            Self::PublishingRestricted { target, version, says, name, source } => {
                let target = with_version(target, version, labels);
                say!(
                    language,
                    "publishing is restricted for {target}: {says} ({name}; {source}).",
                    "{target} の結果の公表は制限されています: {says}({name}、{source})。",
                )
            }
            Self::Logins { targets } => {
                let each = targets.iter().map(|Login { target, method }| {
                    let target = labels.target(target);
                    say!(language, "{target} by {method}", "{target} は {method}")
                });
                let each = joined(&each.collect::<Vec<_>>(), ", ", language);
                say!(
                    language,
                    "each new connection logs in, which its time includes: {each}.",
                    "新しい接続の時間には認証が含まれます: {each}。",
                )
            }
            Self::Plan { query, target, steps, rows, pages } => {
                let on = labels.place(&Scope { targets: vec![target.clone()], ..Scope::default() });
                let more = if steps.len() > STEPS { ", …" } else { "" };
                let steps = steps.iter().take(STEPS).cloned().collect::<Vec<_>>().join(", ");
                let count = |value: f64| units::count(value.round() as u64);
                let rows = rows.map_or_else(String::new, |rows| {
                    let rows = count(rows);
                    say!(language, "; {rows} rows", "、{rows} 行")
                });
                let pages = pages.map_or_else(String::new, |pages| {
                    let pages = units::count(pages);
                    say!(language, ", {pages} pages read", "、{pages} ページを読み出し")
                });
                say!(
                    language,
                    "plan of {query}{on}: {steps}{more}{rows}{pages}.",
                    "{query} の実行計画{on}: {steps}{more}{rows}{pages}。",
                )
            }
            Self::NotReported { target, what, reason } => {
                let what: Vec<String> = what.iter().map(|one| translated(one, language)).collect();
                let (target, what) = (labels.target(target), joined(&what, ", ", language));
                let reason = translated(reason, language);
                say!(
                    language,
                    "not reported by {target}: {what} ({reason}).",
                    "{target} が報告しないもの: {what}({reason})。",
                )
            }
        }
    }
}

/// What was warned of before the first trial, and the drivers' notes.
pub(super) fn before(context: &Context<'_>) -> Vec<Note> {
    let preflight = context.run.header.warnings.iter();
    let preflight = preflight.map(|warning| Note::Preflight { warning: warning.clone() });
    let notes = context.known_targets().flat_map(|(id, target)| {
        target.notes.iter().map(|note| Note::TargetNote { target: id.clone(), note: note.clone() })
    });
    preflight.chain(notes).collect()
}

/// The rates of trials that run alone, if they differ from the rates in slices.
pub(super) fn alone(context: &Context<'_>) -> Option<Note> {
    let of = |cell: &CellResult| Some(cell.alone_per_second? / cell.ops_per_second?.value);
    let times: Vec<f64> = context.cells.iter().filter(|cell| cell.is_reported()).filter_map(of).collect();
    let median = median(&times)?;
    let is_apart = median.ln().abs() > context.rule.margin.ln_1p();
    is_apart.then_some(Note::Alone { times: median, results: times.len() as u32 })
}

/// What changed when the run was resumed; `None` if nothing did.
pub(super) fn resumed(context: &Context<'_>, resumption: &Resumption) -> Option<Note> {
    let header = &context.run.header;
    let mut changes = Vec::new();
    if resumption.kurabe != header.kurabe {
        changes.push(format!("Kurabe {} in place of {}", resumption.kurabe, header.kurabe));
    }
    if resumption.machine != header.machine {
        let MachineFacts { cpu, cpus, memory_bytes, system } = &resumption.machine;
        changes
            .push(format!("another machine ({cpu}, {cpus} CPUs, {}, {system})", units::size(*memory_bytes)));
    }
    for (before, now) in header.targets.iter().zip(&resumption.targets) {
        let (then, facts) = (&before.facts, &now.facts);
        if (&then.engine, &then.version) != (&facts.engine, &facts.version) {
            changes.push(format!(
                "{} {} in place of {} on {}",
                facts.engine, facts.version, then.version, before.name
            ));
        } else if (&then.durability_settings, &then.settings) != (&facts.durability_settings, &facts.settings)
        {
            changes.push(format!("other settings on {}", before.name));
        }
    }
    let from_trial = resumption.trials_before + 1;
    (!changes.is_empty()).then_some(Note::Resumed { from_trial, changes })
}

/// One finding for each target whose licence restricts publishing results.
pub(super) fn publishing(context: &Context<'_>) -> Vec<Note> {
    let restricted = |(id, target): (&TargetId, &TargetSummary)| {
        let clause = target.publishing.as_ref()?;
        let (target, version) = (id.clone(), target.version.clone());
        let (says, name, source) = (clause.says.clone(), clause.name.clone(), clause.source.clone());
        Some(Note::PublishingRestricted { target, version, says, name, source })
    };
    context.known_targets().filter_map(restricted).collect()
}

/// How connections log in, if requests open some.
pub(super) fn logins(context: &Context<'_>) -> Option<Note> {
    let opens = |(id, _): &(&TargetId, &TargetSummary)| {
        context.cells.iter().any(|cell| cell.target == **id && cell.metric(CONNECT.name).is_some())
    };
    let login = |(id, target): (&TargetId, &TargetSummary)| {
        let method = target.settings.get(LOGIN)?.clone();
        Some(Login { target: id.clone(), method })
    };
    let targets: Vec<Login> = context.known_targets().filter(opens).filter_map(login).collect();
    (!targets.is_empty()).then_some(Note::Logins { targets })
}

/// The steps of a plan that a sentence names.
const STEPS: usize = 5;

/// The plans of the queries that a run compares, each once for each target.
pub(super) fn plans(context: &Context<'_>) -> Vec<Note> {
    let custom = context.run.header.spec.custom.as_ref();
    if custom.is_none_or(|custom| custom.language != CustomLanguage::Query) {
        return Vec::new();
    }
    let (mut found, mut told) = (Vec::new(), Vec::new());
    for cell in context.cells.iter().filter(|cell| cell.is_reported()) {
        for plan in &cell.plans {
            let query = (&cell.target, &plan.statement);
            if !told.contains(&query) {
                told.push(query);
                found.push(Note::Plan {
                    query: plan.statement.clone(),
                    target: cell.target.clone(),
                    steps: plan.steps().map(str::to_owned).collect(),
                    rows: cell.metric("rows").map(|rows| rows.figure.value.round()),
                    pages: plan.pages(),
                });
            }
        }
    }
    found
}

/// What servers do not report: one finding for each target and reason.
pub(super) fn not_reported(context: &Context<'_>) -> Vec<Note> {
    let mut all: Vec<((&TargetId, &str), &str)> = Vec::new();
    for cell in context.cells {
        for engine in cell.observed.iter().filter_map(|seen| seen.engine.as_ref()) {
            let sessions = engine.not_sampled.as_deref().map(|why| (SESSIONS, why));
            let counters = engine.unavailable.iter().map(|one| (one.what.as_str(), one.why.as_str()));
            all.extend(counters.chain(sessions).map(|(what, why)| ((&cell.target, why), what)));
        }
    }
    let finding = |((target, why), what): ((&TargetId, &str), Vec<&str>)| {
        // If nothing is reported at all, the rest is implied.
        let all = what.iter().copied().find(|one| *one == ALL_STATISTICS);
        let what = all.map_or_else(|| distinct(what), |all| vec![all]);
        let what = what.into_iter().map(str::to_owned).collect();
        Note::NotReported { target: target.clone(), what, reason: why.to_owned() }
    };
    grouped(all).into_iter().map(finding).collect()
}
