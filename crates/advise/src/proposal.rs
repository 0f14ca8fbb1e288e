//! A proposal: a change, and why it could help.

use crate::change::Change;

/// A change, and why it could help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub change: Change,
    /// The reason, as a clause.
    pub reason: String,
    /// What it costs beside what is measured: memory of a setting.
    pub costs: Option<String>,
}
