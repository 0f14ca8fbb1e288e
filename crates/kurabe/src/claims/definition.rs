//! A claim as a file describes it.

use crate::suite::Request;
use kurabe_report::claim::{About, Test};

/// A claim of a file.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) about: About,
    /// The name of the file without its extension: the suite of its runs.
    pub(crate) suite: String,
    /// Whether the file says that it held.
    pub(crate) held: bool,
    /// What tests it, or why nothing does.
    pub(crate) work: std::result::Result<Work, String>,
}

/// What tests a claim.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) request: Request,
    /// Its targets, to which the sides of tests refer by position.
    pub(crate) targets: Vec<String>,
    /// Servers of the claim's time, in the same order; empty if it names none.
    pub(crate) then: Vec<String>,
    pub(crate) tests: Vec<Test>,
}

impl Definition {
    /// The label of its runs; `then`: of those on servers of its time.
    pub(crate) fn label(&self, then: bool) -> String {
        format!("claim/{}{}", self.about.id, if then { "/then" } else { "" })
    }
}
