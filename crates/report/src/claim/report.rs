//! The answers to several claims, and their JSON.

use super::{Answer, Part, Reason, Test, judge};
use crate::group::distinct;
use crate::json::indented;
use crate::messages::Language;
use crate::summary::Summary;
use crate::wording::{joined, many};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::run::{MachineFacts, Run};
use serde::Serialize;

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    pub answer: Answer,
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
        let answer = Answer::of(parts.iter().map(|part| part.answer));
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
    pub fn without_run(answer: Answer, why: impl Into<Reason>) -> Self {
        Self {
            answer,
            why: Some(why.into()),
            run: None,
            began: None,
            targets: Vec::new(),
            publishing: Vec::new(),
            tests: Vec::new(),
        }
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
    pub answer: Answer,
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
        let no_longer_holds = held.is_some() && answer == Answer::DoesNotHold;
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
        let of = |answer: Answer| {
            let [one, several] = match answer {
                Answer::Holds => ["holds", "hold"],
                Answer::DoesNotHold => ["does not hold", "do not hold"],
                Answer::Undecided => ["is undecided", "are undecided"],
                Answer::NotTestable => ["is not testable here", "are not testable here"],
            };
            let count = self.claims.iter().filter(|card| card.answer == answer).count() as u64;
            (count > 0).then(|| match language {
                Language::English => many(count, one, several),
                Language::Japanese => format!("{} {count} 件", answer.word(language)),
            })
        };
        joined(&Answer::ALL.into_iter().filter_map(of).collect::<Vec<_>>(), ", ", language)
    }
}

/// The report as JSON that ends with a newline.
pub fn json(report: &Report) -> String {
    indented(report)
}
