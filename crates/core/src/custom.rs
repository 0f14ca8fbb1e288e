//! A workload that a user wrote, as a run file keeps it: its text and all that it needs, so that the run can be repeated
//! where the files are no more.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A custom workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomWorkload {
    /// In which language it is written.
    pub language: Language,
    /// Its files: for TOML the workload and then the lists of values that it names; for pgbench the scripts.
    pub files: Vec<CustomFile>,
    /// Variables that were given beside the files (`--define`).
    pub define: BTreeMap<String, String>,
    /// The scale of pgbench's tables: as `--scale` gave it, or as their rows told it; `None`, and not written: neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<u64>,
    /// Whether the tables of pgbench are made for the run (`--init`).
    pub init: bool,
    /// Whether statements may change tables that Kurabe did not make (`--write`).
    pub write: bool,
}

/// A language in which workloads are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// Kurabe's own.
    Toml,
    /// Scripts of pgbench.
    Pgbench,
}

/// A file of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomFile {
    /// Its name as it was given, for messages.
    pub name: String,
    /// Its content.
    pub text: String,
    /// How often it is chosen, beside the others; of scripts only.
    pub weight: u64,
}
