//! Static information about drivers.

use crate::prelude::*;
use kurabe_core::run::PublishingClause;

/// An option that a target's URL may have: `?name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// Its effect and its default, in one line.
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
    /// Whether it applies to the server with these facts: editions of an engine may have different licences.
    pub holds_for: fn(&ServerFacts) -> bool,
}

/// Static information about a driver.
#[derive(Debug)]
pub struct DriverInfo {
    /// The URL schemes that name it; the first is the usual one.
    pub schemes: &'static [&'static str],
    /// The engine's name.
    pub engine: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The format of its URL: `postgres://[user[:password]@]host[:port]/database`.
    pub url: &'static str,
    /// Its options; others are refused before [`DriverInfo::open`] is called.
    pub options: &'static [OptionInfo],
    /// The licence clause that restricts publishing results, if there is one.
    pub benchmark_clause: Option<BenchmarkClause>,
    /// Creates the driver, without network access: `connect` and `describe` are the first to contact the server.
    pub open: fn(&TargetUrl) -> Result<Box<dyn Driver>>,
}

impl DriverInfo {
    /// The clause that restricts publishing results of this server, as a run records it.
    pub fn clause(&self, facts: &ServerFacts) -> Option<PublishingClause> {
        let clause = self.benchmark_clause.filter(|clause| (clause.holds_for)(facts))?;
        Some(PublishingClause {
            name: clause.name.to_owned(),
            says: clause.says.to_owned(),
            source: clause.source.to_owned(),
        })
    }
}
