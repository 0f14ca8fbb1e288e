//! What is known of a driver before anything is opened.

use crate::prelude::*;
use kurabe_core::run::PublishingClause;

/// An option that a target's URL may have: `?name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does and what it is by default, one line.
    pub help: &'static str,
}

impl OptionInfo {
    /// An option and its help.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help }
    }
}

/// A clause of an engine's licence that restricts publishing results of benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct BenchmarkClause {
    /// The licence, and the clause's name in it.
    pub name: &'static str,
    /// What it restricts, one sentence.
    pub says: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Whether it holds for the server that said this of itself: an engine may be sold under such a licence and given
    /// away under another. [`every_edition`] where there is but one.
    pub holds_for: fn(&ServerFacts) -> bool,
}

/// Reads the statements out of what a client sent from the beginning of a connection on; nothing where it is encrypted.
pub type ReadStatements = fn(&[u8]) -> Option<Vec<String>>;

/// For a clause that every edition of the engine is licensed under.
pub fn every_edition(_: &ServerFacts) -> bool {
    true
}

/// A driver, as it is known before anything is opened.
#[derive(Debug)]
pub struct DriverInfo {
    /// The URL schemes that name it; the first is the usual one.
    pub schemes: &'static [&'static str],
    /// The engine's name as people write it.
    pub engine: &'static str,
    /// What it is and what it is good for here, one line.
    pub about: &'static str,
    /// The shape of its URL: `postgres://[user[:password]@]host[:port]/database`.
    pub url: &'static str,
    /// Its options; others are refused before [`DriverInfo::open`] is called.
    pub options: &'static [OptionInfo],
    /// What the engine's licence says about publishing results, where it restricts that.
    pub benchmark_clause: Option<BenchmarkClause>,
    /// Reads the statements of its clients, where its protocol has any.
    pub statements: Option<ReadStatements>,
    /// Makes the driver. Reads nothing from the network: the server is first met by `connect` or `describe`.
    pub open: fn(&TargetUrl) -> Result<Box<dyn Driver>>,
}

impl DriverInfo {
    /// The clause that restricts publishing figures of this server, in the form in which a run records it.
    pub fn clause(&self, facts: &ServerFacts) -> Option<PublishingClause> {
        let clause = self.benchmark_clause.filter(|clause| (clause.holds_for)(facts))?;
        Some(PublishingClause {
            name: clause.name.to_owned(),
            says: clause.says.to_owned(),
            source: clause.source.to_owned(),
        })
    }
}
