//! Why a test of a claim has no decided answer, and what a reader should know beside it.

use crate::messages::Language;
use crate::wording::say;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display, Formatter};

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

impl From<&String> for Reason {
    fn from(said: &String) -> Self {
        Self::Other(said.clone())
    }
}
