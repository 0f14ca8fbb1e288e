//! A custom workload as a run file keeps it: its text and everything that it needs. A run can be repeated after
//! its files are deleted.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomWorkload {
    /// The language that it is written in.
    pub language: Language,
    /// Its files. TOML: the workload, then the lists of values that it refers to. pgbench: the scripts.
    pub files: Vec<CustomFile>,
    /// Variables given on the command line (`--define`).
    pub define: BTreeMap<String, String>,
    /// The scale of pgbench's tables, from `--scale` or from the number of their rows; `None`, and not written:
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<u64>,
    /// How often a transaction of a script is tried where the server's error says that another try may succeed
    /// (`--max-tries`); `None`, and not written: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tries: Option<u32>,
    /// Whether the run creates the tables of pgbench (`--init`).
    pub init: bool,
    /// Whether statements may change tables that Kurabe did not create (`--write`).
    pub write: bool,
}

impl CustomWorkload {
    /// The value of `max_tries` without a limit: a transaction is tried until it succeeds, or the time limit of a reply is over.
    pub const UNLIMITED: u32 = u32::MAX;

    /// A workload without pgbench's tables, whose transactions are tried once.
    pub fn new(
        language: Language,
        files: Vec<CustomFile>,
        define: BTreeMap<String, String>,
        write: bool,
    ) -> Self {
        Self { language, files, define, scale: None, max_tries: None, init: false, write }
    }
}

/// A language of custom workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// Kurabe's own TOML format.
    Toml,
    /// pgbench scripts.
    Pgbench,
    /// A capture that is replayed: its file has another place, and the text is a summary of it.
    Capture,
    /// Queries that are compared: one a file.
    Query,
}

/// A file of a custom workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomFile {
    /// Its name as given, for messages.
    pub name: String,
    /// Its content.
    pub text: String,
    /// Its weight among the scripts; used for scripts only.
    pub weight: u64,
}
