//! Where a run comes from: its suite, its labels, and the commit of the repository in which it was made.

use serde::{Deserialize, Serialize};

/// Where a run comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file name of its suite without the extension; `None`, and not written, for a run without a suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The user's labels, such as `main`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The commit of the git repository in which it was made; `None`, and not written, outside of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitCommit>,
}

/// A commit of a git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitCommit {
    /// Its full hash.
    pub commit: String,
    /// The branch that was checked out; `None`, and not written, if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether files under version control had changes that were not committed.
    pub dirty: bool,
}
