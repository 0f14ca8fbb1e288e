//! What can go wrong, in words for the person who asked for a server.

use serde::{Deserialize, Serialize};

/// Why a throwaway server could not be had. Everything is text, because most errors are met in the guard and travel
/// to the tool as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TestbedError {
    /// No engine of that name is in the registry.
    #[error("no throwaway server goes by the name `{engine}`; there are: {known}")]
    UnknownEngine {
        /// The name that was asked for.
        engine: String,
        /// The names that would have worked.
        known: String,
    },
    /// The engine's programs are not on this machine.
    #[error("{engine} is not installed: {missing}; {how}")]
    NotInstalled {
        /// Whose programs are missing.
        engine: String,
        /// Exactly what was looked for and not found.
        missing: String,
        /// How to get it.
        how: String,
    },
    /// An option that makes no sense, or that the testbed decides itself.
    #[error("{engine}: {what}")]
    BadOption {
        /// The engine it was meant for.
        engine: String,
        /// What is wrong with it.
        what: String,
    },
    /// The server, or a program that prepares its data, gave up.
    #[error("{engine} did not start: {what}{}", excerpt(.log))]
    Failed {
        /// The engine.
        engine: String,
        /// What happened.
        what: String,
        /// The last lines of the log, without passwords; may be empty.
        log: String,
    },
    /// The server was still not answering when the patience was over.
    #[error("{engine} did not answer within {seconds} s: {what}{}", excerpt(.log))]
    TimedOut {
        /// The engine.
        engine: String,
        /// How long was waited.
        seconds: u64,
        /// What the last attempt to reach it said.
        what: String,
        /// The last lines of the log, without passwords; may be empty.
        log: String,
    },
    /// A file or folder could not be handled.
    #[error("{what}: {error}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// The system's own words.
        error: String,
    },
    /// The guard, the process that looks after a server, could not be started or does not answer.
    #[error("the guard of {engine}: {what}")]
    Guard {
        /// The engine.
        engine: String,
        /// What is wrong.
        what: String,
    },
}

impl TestbedError {
    /// For `map_err`: what was being done when the system refused.
    pub(crate) fn io<E: std::fmt::Display>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| Self::Io { what: what.into(), error: error.to_string() }
    }

    /// Is it only that the programs are not there? Then tests may be skipped.
    pub const fn is_not_installed(&self) -> bool {
        matches!(self, Self::NotInstalled { .. })
    }
}

/// A log's tail below a message, or nothing.
fn excerpt(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\nits log ends with:\n{log}") }
}
