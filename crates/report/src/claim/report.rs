//! The answers to several claims, and their JSON.

use crate::claim::{Part, Test, judge, name, together, word, written};
use crate::group::distinct;
use crate::messages::Language;
use crate::summary::Summary;
use crate::wording::{joined, many, say};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::run::{MachineFacts, Run};
use kurabe_stats::Decision;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display, Formatter};

/// The version of the JSON.
const VERSION: u32 = 1;

/// What is known of a claim beside its tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// Its name in the claims file.
    pub id: String,
    /// The claim, a sentence without a full stop.
    pub claim: String,
    /// The year in which it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub year: Option<u32>,
    /// Who claimed it, on which systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The published result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A target of a run that tested a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tested {
    /// Its name in the run.
    pub name: String,
    pub engine: String,
    pub version: String,
    /// What an acknowledged write survives; `None` if unknown.
    pub durability: Option<DurabilityClass>,
}

/// The answer to a claim on some servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Judgement {
    #[serde(serialize_with = "written")]
    pub answer: Decision,
    /// Why it was not tested, as a clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Reason>,
    /// The name of the run; `None` if nothing was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// When the run began: seconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// The servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Tested>,
    /// Licence clauses that restrict publishing these results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publishing: Vec<String>,
    /// The answers of its tests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Part>,
}

impl Judgement {
    /// Judges a run. `lacking` are the tests that could not be part of it.
    pub fn of(run: &Run, summary: &Summary, tests: &[Test], lacking: Vec<Part>) -> Self {
        let mut parts = judge(run, summary, tests);
        parts.extend(lacking);
        let targets = &run.header.targets;
        let clauses = targets.iter().filter_map(|target| {
            let clause = target.publishing.as_ref()?;
            Some(format!("{}: {} ({})", target.name, clause.says, clause.name))
        });
        let answer = together(parts.iter().map(|part| part.answer));
        Self {
            answer,
            why: None,
            run: Some(run.header.run.clone()),
            began: Some(run.header.began),
            targets: targets
                .iter()
                .map(|target| Tested {
                    name: target.name.clone(),
                    engine: target.facts.engine.clone(),
                    version: target.facts.version.clone(),
                    durability: target.facts.durability,
                })
                .collect(),
            publishing: clauses.collect(),
            tests: parts,
        }
    }

    /// A claim that was not run, for this reason. A claim whose run was stopped is undecided.
    pub fn without_run(answer: Decision, why: impl Into<Reason>) -> Self {
        Self { answer, why: Some(why.into()), ..Self::default() }
    }

    /// Whether a trial failed.
    pub fn has_failures(&self) -> bool {
        self.tests.iter().any(|part| part.failed)
    }

    /// Why there is no answer, as far as that is known: the claim's own reason, or those of its tests.
    pub fn reasons(&self, language: Language) -> Vec<String> {
        let of_part = |part: &Part| {
            let at = if part.target.is_empty() { String::new() } else { format!("{}: ", part.target) };
            Some(format!("{at}{}", part.why.as_ref()?.clause(language)))
        };
        distinct(self.why.iter().map(|why| why.clause(language)).chain(self.tests.iter().filter_map(of_part)))
    }

    /// The servers with their versions: `MySQL 9.7.4, PostgreSQL 15.18`.
    pub(super) fn servers(&self) -> String {
        let server = |target: &Tested| format!("{} {}", target.engine, target.version);
        distinct(self.targets.iter().map(server)).join(", ")
    }
}

/// Where it is said that a claim held before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The newest earlier run in which it held; `None`: the claims file says so.
    pub run: Option<String>,
}

/// A claim with its answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// The claim.
    #[serde(flatten)]
    pub about: About,
    /// The answer for today's servers.
    #[serde(serialize_with = "written")]
    pub answer: Decision,
    /// Whether it held before; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Whether it held before, and does not any more.
    pub no_longer_holds: bool,
    /// The answer for today's servers, with its basis.
    pub now: Judgement,
    /// The answer for servers of its time, if the claim names some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<Judgement>,
}

impl Card {
    /// A claim with its answers.
    pub fn new(about: About, held: Option<Held>, now: Judgement, then: Option<Judgement>) -> Self {
        let answer = now.answer;
        let no_longer_holds = held.is_some() && answer.is_outside();
        Self { about, answer, held, no_longer_holds, now, then }
    }
}

/// The answers to several claims.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this format.
    #[serde(rename = "kurabe-claims")]
    format: u32,
    /// The version of Kurabe.
    pub kurabe: String,
    /// When it was made: seconds since 1970-01-01 UTC.
    pub made: u64,
    /// The client's machine.
    pub machine: MachineFacts,
    /// Whether all claims were answered; otherwise it was stopped.
    pub complete: bool,
    /// The claims, in the order of the file.
    pub claims: Vec<Card>,
}

impl Report {
    /// A report of these claims.
    pub fn new(kurabe: &str, made: u64, machine: MachineFacts, complete: bool, claims: Vec<Card>) -> Self {
        Self { format: VERSION, kurabe: kurabe.to_owned(), made, machine, complete, claims }
    }

    /// The number of claims with each answer: `3 hold, 2 do not hold, 1 is undecided, 4 are not testable here`.
    pub fn counts(&self, language: Language) -> String {
        let of = |answer: Decision| {
            let [one, several] = match answer {
                Decision::Within => ["holds", "hold"],
                Decision::Above | Decision::Below => ["does not hold", "do not hold"],
                Decision::Undecided => ["is undecided", "are undecided"],
                Decision::NotTestable => ["is not testable here", "are not testable here"],
            };
            let count = self.claims.iter().filter(|card| name(card.answer) == name(answer)).count() as u64;
            (count > 0).then(|| match language {
                Language::English => many(count, one, several),
                Language::Japanese => format!("{} {count} 件", word(answer, language)),
            })
        };
        let all = [Decision::Within, Decision::Below, Decision::Undecided, Decision::NotTestable];
        joined(&all.into_iter().filter_map(of).collect::<Vec<_>>(), ", ", language)
    }
}

/// A reason, or a note. In files it is the sentence in English.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The run has no such cell.
    NoCell,
    /// The run has no cell to compare with.
    NoBaseline,
    /// Another engine was started in the place of the one that the claim names.
    StandIn {
        other: &'static str,
        engine: &'static str,
    },
    TrialFailed {
        why: String,
    },
    /// What a server, this machine or a claims file says, as it says it.
    Other(String),
    /// The run has its next planned analysis after so many rounds.
    NotComplete {
        next: u32,
    },
    /// The given rate was not kept up.
    RateNotKept,
    /// The load generator was late.
    GeneratorLate,
    /// A value is zero or negative.
    NotPositive,
    NotMeasured {
        metric: String,
    },
    /// The interval has values within the claimed range and outside.
    Straddles,
    /// Other processes used the CPU.
    Disturbed,
    /// One round has no interval.
    OneRound,
    /// The durability classes of both sides.
    DurabilityDiffers {
        first: &'static str,
        second: &'static str,
    },
    /// The client was saturated on these targets.
    ClientSaturated {
        targets: Vec<String>,
    },
}

impl Reason {
    /// The reason as a clause.
    pub fn clause(&self, language: Language) -> String {
        match self {
            Self::NoCell => say!(language, "the run has no such cell", "実行に該当する条件がありません"),
            Self::NoBaseline => {
                say!(language, "the run has no cell to compare with", "実行に比べる相手の条件がありません")
            }
            Self::StandIn { other, engine } => say!(
                language,
                "{other} was started in the place of {engine}, and decides nothing of it",
                "{engine} の代わりに {other} を起動したため、{engine} については判定できません",
            ),
            Self::TrialFailed { why } => say!(language, "a trial failed: {why}", "試行が失敗しました: {why}"),
            Self::Other(said) => said.clone(),
            Self::NotComplete { next } => say!(
                language,
                "the run is not complete: its next planned analysis is after {next} rounds",
                "実行は途中です。次の解析は {next} ラウンドの後です",
            ),
            Self::RateNotKept => {
                say!(language, "the given rate was not kept up", "指定した速さに届きませんでした")
            }
            Self::GeneratorLate => say!(language, "the load generator was late", "負荷の発生が遅れました"),
            Self::NotPositive => say!(
                language,
                "a value is zero or negative, so that there is no ratio",
                "値が 0 以下のため、倍率がありません",
            ),
            Self::NotMeasured { metric } => {
                say!(language, "'{metric}' was not measured", "'{metric}' は測定していません")
            }
            Self::Straddles => say!(
                language,
                "the interval contains values within the claimed range and outside of it",
                "区間が、主張の範囲の内と外の値を含みます",
            ),
            Self::Disturbed => say!(
                language,
                "other processes used the CPU during its trials",
                "試行中、ほかのプロセスが CPU を使いました",
            ),
            Self::OneRound => say!(language, "one round has no interval", "1 ラウンドには区間がありません"),
            Self::DurabilityDiffers { first, second } => {
                say!(
                    language,
                    "durability differs: {first} : {second}",
                    "耐久性が違います: {first} : {second}"
                )
            }
            Self::ClientSaturated { targets } => {
                let targets = targets.join(say!(language, " and ", "と").as_str());
                say!(
                    language,
                    "the client was saturated on {targets}, whose server can do more",
                    "{targets} ではクライアントが飽和しており、サーバーにはまだ余裕があります",
                )
            }
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clause(Language::English))
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<String> for Reason {
    fn from(said: String) -> Self {
        Self::Other(said)
    }
}

impl From<&str> for Reason {
    fn from(said: &str) -> Self {
        Self::Other(said.to_owned())
    }
}
