//! Comparisons of two runs, and the decision of a gate.

use crate::catalogue;
use crate::comparison::TARGET;
use crate::format::{figure, micros, percent};
use crate::labels::{Labels, Scope};
use crate::messages::Language;
use crate::metrics::is_speed;
use crate::verdict::Why;
use crate::wording::{self, gained, many, say, subject};
use kurabe_core::stats_probe::Counter;
use kurabe_core::units;
use kurabe_stats::{Decision, Estimate};
use serde::{Serialize, Serializer};
use std::time::Duration;

/// The margin of 99th percentiles that `--fail-on` does not name.
pub(crate) const TAIL: f64 = 0.2;

/// The steps of a plan that a sentence names.
const STEPS: usize = 4;
/// The characters of a statement that a sentence has.
const TEXT: usize = 120;

/// The beginning of a statement.
fn cut(text: &str) -> String {
    let shown: String = text.chars().take(TEXT).collect();
    if shown.len() < text.len() { format!("{shown}…") } else { shown }
}

/// The first steps of a plan.
fn shown(steps: &[String]) -> String {
    let more = if steps.len() > STEPS { ", …" } else { "" };
    format!("{}{more}", steps.iter().take(STEPS).cloned().collect::<Vec<_>>().join(", "))
}

/// What a counter counted, in its unit.
fn count(of: Counter, value: f64) -> String {
    match of {
        Counter::LockNs => units::time(Duration::from_nanos(value as u64)),
        Counter::LogBytes | Counter::FileBytes => units::size(value.round() as u64),
        _ => figure(value),
    }
}

/// The margins of what is judged: 0.05 is 5 %. `None`: it is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Criteria {
    /// That of primary metrics and of each kind of transaction.
    pub slower: Option<f64>,
    /// That of 99th percentiles, if it is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
}

/// The decision of a gate, and the number of results for each answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gated {
    /// The margins.
    pub criteria: Criteria,
    /// Whether no result is slower by more than the margin.
    #[serde(serialize_with = "decision")]
    pub decision: Decision,
    pub passed: u32,
    /// Results that are slower by more than the margin.
    pub slower: u32,
    /// Results for which that is neither shown nor excluded.
    pub undecided: u32,
    /// Of these, 99th percentiles that `--fail-on` does not name, which do not hold the gate up.
    pub tails: u32,
    /// Results that could not be compared, including those that only the first run has.
    pub not_judged: u32,
}

/// The decision of a gate, as its JSON names it.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn decision<S: Serializer>(decision: &Decision, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match decision {
        Decision::Above | Decision::Within => "passed",
        Decision::Below => "failed",
        Decision::Undecided | Decision::NotTestable => "undecided",
    })
}

impl Criteria {
    /// Their words: `more than 5 % (p99: 20 %)`.
    fn words(&self, language: Language) -> String {
        let tail = |slower: f64| percent(self.p99.unwrap_or(slower.max(TAIL)));
        let margins = match self.slower {
            Some(slower) => Some(format!("{} (p99: {})", percent(slower), tail(slower))),
            None => self.p99.map(percent),
        };
        margins.map_or_else(
            || say!(language, "any margin", "少しでも"),
            |margins| say!(language, "more than {margins}", "{margins} を超えて"),
        )
    }
}

/// The samples by which two runs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Between {
    /// The starts of servers that both runs sampled.
    Starts,
    /// Earlier runs of the suite under the same conditions: their number.
    Runs {
        /// The number of runs.
        runs: u32,
    },
    /// Nothing: nothing is decided.
    Nothing {
        /// The number of earlier runs of the suite under the same conditions.
        runs: u32,
        /// The number that is needed.
        needed: u32,
        /// The time that they cover, in seconds.
        covered: u64,
        /// The time that is needed: a multiple of that between the two.
        needed_time: u64,
    },
}

impl Between {
    /// What the two runs lack that one run with both would have.
    fn sentence(self, language: Language) -> String {
        let weaker = say!(
            language,
            "weaker evidence than a single run with both",
            "両方を 1 つの実行で測るより弱い証拠です。",
        );
        match self {
            Self::Starts => say!(
                language,
                "the runs were made at different times: this is {weaker}.",
                "2 つの実行は別の時に測りました。{weaker}",
            ),
            Self::Runs { runs } => say!(
                language,
                "the runs were made at different times, and are compared by what {runs} earlier runs of this suite differ by: \
                 {weaker}.",
                "2 つの実行は別の時に測り、この組の以前の実行 {runs} 件の違いを基準に比べました。{weaker}",
            ),
            Self::Nothing { runs, needed, covered, needed_time } => {
                let time = |seconds| units::time(Duration::from_secs(seconds));
                let (covered, needed_time) = (time(covered), time(needed_time));
                let lacks = if runs < needed {
                    say!(
                        language,
                        "there are {runs} of {needed} earlier runs of this suite under the same conditions",
                        "同じ条件の以前の実行が、必要な {needed} 件のうち {runs} 件しかありません。",
                    )
                } else {
                    say!(
                        language,
                        "the {runs} earlier runs of this suite cover {covered}, of {needed_time} that are needed",
                        "以前の実行 {runs} 件の期間が、必要な {needed_time} に対して {covered} です。",
                    )
                };
                say!(
                    language,
                    "nothing is decided: two separate runs cannot. Put both into one run, restart throwaway servers in both \
                     (--restarts 3), or keep earlier runs: {lacks}.",
                    "何も判定できません。別々の 2 つの実行では決まりません。1 つの実行で両方を測るか、両方で一時サーバーを再起動するか\
                     (--restarts 3)、以前の実行を残してください。{lacks}",
                )
            }
        }
    }
}

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Runs {
    /// An incomplete run is not compared with another.
    NotCompared { run: String },
    /// A primary metric changed from the first run to the second: better ÷ worse, above 1.
    Changed { scope: Scope, metric: String, better: bool, ratio: Estimate, lower_bound: bool },
    /// The changes between two runs, of all results that tables have.
    Changes { better: u32, worse: u32, no_difference: u32, undecided: u32, not_comparable: u32 },
    /// Two runs at different times are weaker evidence than a single run with both, and decide nothing if what changes
    /// from one run to the next was not sampled.
    NotInterleaved { between: Between },
    /// A target that only one of two runs has.
    OnlyIn { run: String, target: String },
    /// Results that only one of two runs has.
    Unmatched { run: String, results: u32 },
}

/// What a gate decided, what explains it, and what would decide it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Gates {
    /// The decision of a gate over the results that it judges.
    Gated(Gated),
    /// The result of a gate that failed by the most: how many times as bad the second is.
    Worst { result: String, from: String, to: String, ratio: Estimate, disturbed: bool },
    /// A statement that the server of the second side executes in another way.
    PlanChanged { statement: String, text: String, first: Vec<String>, second: Vec<String> },
    /// The server of the second side did more of something for each operation.
    MoreWork { counter: Counter, operation: String, first: f64, second: f64 },
    /// A statement that took the server of the second side longer, in nanoseconds for each execution.
    SlowerStatement { text: String, first_ns: f64, second_ns: f64 },
    /// Sessions of the second side waited longer for locks, as shares of their time.
    MoreLocks { first: f64, second: f64, text: String },
    /// What would decide a gate: about so many rounds instead of these.
    MoreRounds { rounds: u32, needed: u32 },
    /// A result lies at its margin, so that more rounds may not decide it; and a margin with which it would pass.
    AtMargin { result: String, of_tail: bool, margin: f64, wider: Option<f64> },
    /// Other load on the machine holds a gate up.
    OtherLoad { results: u32 },
    /// Why a gate could not judge a result.
    NotJudged { why: Why },
    /// A difference between two runs because of which a gate judges no result.
    Obstacle { what: String, first: String, second: String },
}

impl Runs {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        match self {
            Self::NotCompared { run } => say!(
                language,
                "{run} is not complete: its results are shown, but not compared.",
                "{run} は途中です。結果は示しますが、比較しません。",
            ),
            Self::Changed { scope, metric, better, ratio, lower_bound } => {
                let (subject, place) = (subject(metric, &scope.operations, labels), labels.place(scope));
                let speed = is_speed(metric);
                let verb = match (better, speed) {
                    (true, true) => "are",
                    (true, false) => "is",
                    (false, true) => "were",
                    (false, false) => "was",
                };
                let (run, number) = if *better { ("second", 2) } else { ("first", 1) };
                let than = if speed { "の速さ" } else { "良い値" };
                let gained = gained(metric, *ratio, *lower_bound, labels);
                say!(
                    language,
                    "{subject}{place} {verb} {gained} in the {run} run.",
                    "{subject}{place}: {number} 番目の実行が {gained}{than}です。",
                )
            }
            Self::Changes { better, worse, no_difference, undecided, not_comparable } => {
                let all = better + worse + no_difference + undecided + not_comparable;
                if all == 0 {
                    return say!(
                        language,
                        "the two runs have no results in common.",
                        "2 つの実行に共通の結果がありません。",
                    );
                }
                let rest = counts(
                    &[
                        (*no_difference, "equal", "同等"),
                        (*undecided, "undecided", "未決"),
                        (*not_comparable, "not comparable", "比較不可"),
                    ],
                    language,
                );
                say!(
                    language,
                    "of {all} results in both runs, {better} are better in the second and {worse} worse{rest}.",
                    "共通の結果 {all} 件のうち、2 番目の実行で良くなったもの {better} 件、悪くなったもの {worse} 件{rest}。",
                )
            }
            Self::NotInterleaved { between } => between.sentence(language),
            Self::OnlyIn { run, target } => {
                say!(language, "only {run} has {target}.", "{target} は {run} だけにあります。")
            }
            Self::Unmatched { run, results } => {
                let some = many((*results).into(), "result", "results");
                say!(
                    language,
                    "{some} of {run} have no counterpart: their axis values differ.",
                    "{run} の結果 {results} 件には、軸の値が違うため、対応する結果がありません。",
                )
            }
        }
    }
}

impl Gates {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        match self {
            Self::Gated(gated) => gated.sentence(language),
            Self::Worst { result, from, to, ratio, disturbed } => {
                let times = wording::ratio(*ratio, language);
                let load = if *disturbed {
                    say!(
                        language,
                        " Other programs used the CPU meanwhile, on both sides alike; repeat it to be surer.",
                        "測定中、ほかのプログラムも両方に等しく CPU を使いました。確かめるには測り直してください。",
                    )
                } else {
                    String::new()
                };
                say!(
                    language,
                    "worst is {result}: {from} → {to}, worse by {times}.{load}",
                    "最も悪化: {result}、{from} → {to}、{times}の悪化。{load}",
                )
            }
            Self::PlanChanged { statement, text, first, second } => {
                let (first, second, text) = (shown(first), shown(second), cut(text));
                say!(
                    language,
                    "the plan of “{statement}” changed: {first} → {second} ({text}).",
                    "「{statement}」の実行計画が変わりました: {first} → {second}({text})。",
                )
            }
            Self::MoreWork { counter, operation, first, second } => {
                let (what, [first, second]) =
                    (counter.word(), [first, second].map(|one| count(*counter, *one)));
                say!(
                    language,
                    "{what} per {operation}: {first} → {second}.",
                    "{operation} あたりの {what}: {first} → {second}。",
                )
            }
            Self::SlowerStatement { text, first_ns, second_ns } => {
                let [first, second] = [*first_ns, *second_ns].map(|ns| micros(ns / 1e3));
                let text = cut(text);
                say!(
                    language,
                    "on the server, this statement went from {first} to {second}: {text}",
                    "サーバーでの時間が {first} から {second} になった文: {text}",
                )
            }
            Self::MoreLocks { first, second, text } => {
                let (first, second, text) = (percent(*first), percent(*second), cut(text));
                say!(
                    language,
                    "sessions waited for locks {second} of their time, and {first} before: {text}",
                    "セッションがロックを待った時間の割合は {first} から {second} になりました: {text}",
                )
            }
            Self::MoreRounds { rounds, needed } => say!(
                language,
                "about {needed} rounds would decide it, in place of {rounds}: add --rounds {needed}, longer trials, or a wider \
                 margin.",
                "{rounds} ラウンドでなく約 {needed} ラウンドで決まる見込みです。--rounds {needed}、長い試行、または広い許容差を使ってください。",
            ),
            Self::AtMargin { result, of_tail, margin, wider } => {
                let margin = percent(*margin);
                let criterion = if *of_tail { "p99" } else { "slower" };
                match wider.map(percent) {
                    Some(wider) => {
                        let option = format!("--fail-on {criterion}:{}", wider.replace(' ', ""));
                        say!(
                            language,
                            "{result} is near its margin of {margin}, where more rounds hardly help; {option} would let it pass.",
                            "{result} は許容差 {margin} の近くにあり、ラウンドを増やしてもほぼ決まりません。{option} なら合格です。",
                        )
                    }
                    None => say!(
                        language,
                        "{result} varies too much for its margin of {margin}: measure longer, with --duration 2s or more.",
                        "{result} は許容差 {margin} に対してばらつきが大きすぎます。--duration 2s 以上で長く測ってください。",
                    ),
                }
            }
            Self::OtherLoad { results } => {
                let some = many((*results).into(), "result", "results");
                say!(
                    language,
                    "other programs used the CPU during {some}: none of these can pass. Repeat it on a quiet machine, or with \
                     --wait-quiet 10min.",
                    "結果 {results} 件の測定中、ほかのプログラムが CPU を使ったため、合格にできません。空いたマシンで、または \
                     --wait-quiet 10min を付けて測り直してください。",
                )
            }
            Self::NotJudged { why } => {
                let reason = why.clause(labels, TARGET);
                say!(language, "a result is not judged: {reason}.", "判定しない結果があります: {reason}。")
            }
            Self::Obstacle { what, first, second } => obstacle(what, [first, second], language),
        }
    }
}

/// That two runs differ in what makes a comparison say nothing.
fn obstacle(what: &str, values: [&String; 2], language: Language) -> String {
    let what = catalogue::translated(what, language);
    let [first, second] = values.map(|value| catalogue::value(value, language));
    say!(
        language,
        "no result is judged: {what} differs: {first} in the first run, {second} in the second.",
        "どの結果も判定しません。{what} が違います: 1 番目 {first}、2 番目 {second}。",
    )
}

impl Gated {
    fn sentence(&self, language: Language) -> String {
        let Self { criteria, decision, passed, slower, undecided, tails, not_judged } = self;
        let n = passed + slower + undecided + not_judged;
        let all = many(n.into(), "result", "results");
        let decision = match decision {
            Decision::Above | Decision::Within => say!(language, "passed", "合格"),
            Decision::Below => say!(language, "failed", "不合格"),
            Decision::Undecided | Decision::NotTestable => say!(language, "is undecided", "未決"),
        };
        let worse = match slower {
            0 => "none is".to_owned(),
            1 => "1 is".to_owned(),
            n => format!("{n} are"),
        };
        let rest = counts(
            &[
                (*passed, "passed", "合格"),
                (undecided - tails, "undecided", "未決"),
                (*tails, "undecided of p99, which --fail-on does not name", "--fail-on にない p99 で未決"),
                (*not_judged, "not judged", "判定なし"),
            ],
            language,
        );
        let criteria = criteria.words(language);
        say!(
            language,
            "the gate {decision}: of {all}, {worse} worse by {criteria}{rest}.",
            "ゲートは{decision}です。結果 {n} 件のうち、{criteria} 悪くなったもの {slower} 件{rest}。",
        )
    }
}

/// The counts that are not 0, each with its word.
fn counts(all: &[(u32, &str, &str)], language: Language) -> String {
    let all = all.iter().filter(|(n, ..)| *n > 0);
    all.map(|(n, word, japanese)| say!(language, ", {n} {word}", "、{japanese} {n} 件")).collect()
}
