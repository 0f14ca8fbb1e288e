//! How far a run is: what it has not shown yet, and what would.

use crate::finding::Context;
use crate::format::percent;
use crate::labels::Labels;
use crate::verdict::Verdict;
use crate::wording::{many, rounds, say, taking};
use kurabe_core::run::CellRecord;
use kurabe_core::units;
use kurabe_stats::Decision;
use serde::Serialize;

/// Why a run shows no results or verdicts, or not all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Progress {
    /// No cell has results.
    NoResults,
    /// The next planned analysis is after this many rounds; nothing is compared before.
    NotAnalysed { next: u32 },
    /// There is nothing to compare.
    NothingCompared,
    /// One round has no interval, so that no verdict is possible.
    OneRound,
    /// Planned trials are missing.
    Incomplete { made: u64, planned: u64 },
    /// Undecided comparisons, of those with intervals; how many of them additional rounds are expected to decide,
    /// and the number of rounds with their time. `until`: the run adds rounds until all are conclusive. `slices_help`: interleaving
    /// could detect smaller differences. `restarts`: the number of restarts that is expected to decide them, if the run had some.
    MoreRounds {
        undecided: u32,
        of: u32,
        margin: f64,
        decidable: u32,
        further_rounds: Option<u32>,
        further_seconds: Option<u64>,
        until: bool,
        slices_help: bool,
        restarts: Option<u32>,
    },
    /// Additional rounds would change nothing: some comparisons cannot be made, and the others are conclusive.
    AllConclusive { margin: f64, of: u32, not_comparable: u32 },
}

impl Progress {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        match self {
            Self::NoResults => say!(language, "there are no results.", "結果がありません。"),
            Self::NotAnalysed { next } => {
                let rounds = rounds(*next);
                say!(
                    language,
                    "no verdicts yet: the next planned analysis is after {rounds}. 'kurabe run --resume' continues a run that was stopped.",
                    "判定はまだありません。次の解析は {next} ラウンドの後です。止めた実行は 'kurabe run --resume' で続けられます。",
                )
            }
            Self::NothingCompared => say!(language, "nothing was compared.", "比較したものはありません。"),
            Self::OneRound => say!(
                language,
                "one round has no interval, so no verdict is possible; use more rounds.",
                "1 ラウンドでは区間がなく、判定できません。ラウンドを増やしてください。",
            ),
            Self::Incomplete { made, planned } => {
                let is_extended = made > planned;
                let (made, planned) = (units::count(*made), units::count(*planned));
                let why = if is_extended {
                    say!(
                        language,
                        "it was stopped before its comparisons were conclusive",
                        "この実行は、決着の前に止められました。",
                    )
                } else {
                    say!(
                        language,
                        "{made} of {planned} planned trials were made",
                        "この実行は途中です。予定した試行 {planned} 回のうち {made} 回を測りました。",
                    )
                };
                say!(
                    language,
                    "this run is not complete: {why}; 'kurabe run --resume' continues a run that was stopped.",
                    "{why}止めた実行は 'kurabe run --resume' で続けられます。",
                )
            }
            Self::MoreRounds { undecided, of, margin, slices_help, .. } => {
                let all = units::count(u64::from(*of));
                let verb = if *undecided == 1 { "is" } else { "are" };
                let (margin, more) = (percent(*margin), self.more(labels));
                let finer = say!(
                    language,
                    "; --interleave detects smaller differences",
                    "--interleave を使うと、より小さな差がわかります。",
                );
                let finer = if *slices_help { finer } else { String::new() };
                say!(
                    language,
                    "{undecided} of {all} comparisons {verb} undecided at ±{margin}; {more}{finer}.",
                    "比較 {of} 件のうち {undecided} 件は ±{margin} では未決です。{more}{finer}",
                )
            }
            Self::AllConclusive { margin, of, not_comparable } => {
                let (margin, decided) = (percent(*margin), of - not_comparable);
                let all = format!("conclusive: different, or equal to within {margin}");
                let cannot = "cannot be made with any number of rounds";
                let english = match not_comparable {
                    0 => format!("every comparison is {all}."),
                    1 if *of == 1 => format!("the comparison {cannot}."),
                    n if n == of => format!("all {n} comparisons {cannot}."),
                    n => format!("{n} of {of} comparisons {cannot}; every other one is {all}."),
                };
                let refused = match not_comparable {
                    0 => String::new(),
                    n => format!("{n} 件は、何ラウンド測っても比較できません。"),
                };
                let rest = match decided {
                    0 => String::new(),
                    n => format!("比較 {n} 件はすべて決着しました。違いがあるか、{margin} 以内で同等です。"),
                };
                say!(language, "{english}", "{refused}{rest}")
            }
        }
    }

    /// What more rounds would decide, as a clause; in Japanese as a sentence.
    fn more(&self, labels: &Labels) -> String {
        let language = labels.language;
        let Self::MoreRounds {
            further_rounds: Some(more),
            further_seconds,
            restarts,
            until,
            decidable,
            undecided,
            ..
        } = self
        else {
            return say!(
                language,
                "more rounds are not expected to decide that",
                "ラウンドを増やしても決まらない見込みです。",
            );
        };
        let how = match restarts {
            Some(restarts) => format!("--restarts {restarts}"),
            None if *until => say!(
                language,
                "'kurabe run --resume' with more --max-rounds",
                "--max-rounds を増やした 'kurabe run --resume'",
            ),
            None => "--until conclusive".to_owned(),
        };
        let which = match (decidable == undecided, decidable) {
            (true, 1) => "it".to_owned(),
            (true, _) => "them".to_owned(),
            (false, n) => format!("{n} of them"),
        };
        let rounds = many((*more).into(), "more round", "more rounds");
        let time = taking(*further_seconds, language);
        say!(
            language,
            "about {rounds}{time} would decide {which}: {how}",
            "あと約 {more} ラウンド{time}で {decidable} 件が決まる見込みです: {how}。",
        )
    }
}

/// Which part of the planned trials was made, of a run that is not complete.
pub(super) fn incomplete(context: &Context<'_>) -> Option<Progress> {
    let run = context.run;
    let operations = &run.header.spec.operations;
    let spec = &run.header.spec;
    let trials = |cell: &CellRecord| {
        let made = operations.iter().filter(|name| cell.refusal(name).is_none()).count() as u64;
        made * u64::from(spec.rounds_of(cell.aa_control, spec.rounds))
    };
    let planned = run.header.cells.iter().map(trials).sum();
    let made = run.trials.iter().filter(|trial| trial.rerun_reason.is_none()).count() as u64;
    (!run.is_complete()).then_some(Progress::Incomplete { made, planned })
}

/// The undecided comparisons, or that there are none, if the run had a stopping rule.
pub(super) fn undecided(context: &Context<'_>) -> Option<Progress> {
    let rule = context.rule;
    let compared: Vec<&Verdict> =
        context.verdicts.iter().filter(|verdict| verdict.primary && verdict.has_interval()).collect();
    let open: Vec<&Verdict> = compared.iter().copied().filter(|verdict| !verdict.conclusive).collect();
    let (of, margin) = (compared.len() as u32, rule.margin);
    if open.is_empty() {
        let refused = compared.iter().filter(|verdict| verdict.result == Decision::NotTestable);
        let all = Progress::AllConclusive { margin, of, not_comparable: refused.count() as u32 };
        return (rule.until && of > 0).then_some(all);
    }
    let further_rounds = open.iter().filter_map(|verdict| verdict.further_rounds).max();
    Some(Progress::MoreRounds {
        undecided: open.len() as u32,
        of,
        margin,
        decidable: open.iter().filter(|verdict| verdict.further_rounds.is_some()).count() as u32,
        further_rounds,
        further_seconds: further_rounds.and_then(|rounds| rule.seconds(rounds)),
        until: rule.until,
        slices_help: rule.slices_help,
        restarts: further_rounds.and_then(|further| rule.restarts(further)),
    })
}
