//! The errors of the testbed.

use serde::{Deserialize, Serialize};

/// Why a throwaway server could not be started. All fields are text, because most errors occur in the supervisor and
/// are sent as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TestbedError {
    /// No engine of that name is in the registry.
    #[error("unknown engine `{engine}`; available: {known}")]
    UnknownEngine {
        /// The unknown name.
        engine: String,
        /// The known names.
        known: String,
    },
    /// The engine's programs are not installed.
    #[error("{engine} is not installed: {missing}; {how}")]
    NotInstalled {
        engine: String,
        /// What was not found.
        missing: String,
        /// How to install it.
        how: String,
    },
    /// An invalid option, or one that only the testbed may set.
    #[error("{engine}: {what}")]
    BadOption {
        engine: String,
        /// What is wrong.
        what: String,
    },
    /// The server, or a program that prepares its data, failed.
    #[error("{engine} did not start: {what}{}", excerpt(.log))]
    Failed {
        engine: String,
        /// What happened.
        what: String,
        /// The last lines of the log, without passwords; may be empty.
        log: String,
    },
    /// The server did not answer within the time limit.
    #[error("{engine} did not answer within {seconds} s: {what}{}", excerpt(.log))]
    TimedOut {
        engine: String,
        /// The time limit in seconds.
        seconds: u64,
        /// The error of the last attempt.
        what: String,
        /// The last lines of the log, without passwords; may be empty.
        log: String,
    },
    /// An error of a file or folder.
    #[error("{what}: {error}")]
    Io {
        /// The failed action, with the path.
        what: String,
        /// The system's error.
        error: String,
    },
    /// The supervisor process of a server could not be started or does not answer.
    #[error("the supervisor of {engine}: {what}")]
    Supervisor {
        engine: String,
        /// What is wrong.
        what: String,
    },
}

impl TestbedError {
    /// For `map_err`: adds the failed action.
    pub(crate) fn io<E: std::fmt::Display>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| Self::Io { what: what.into(), error: error.to_string() }
    }

    /// Whether the only problem is that the engine is not installed. Tests are skipped then.
    pub const fn is_not_installed(&self) -> bool {
        matches!(self, Self::NotInstalled { .. })
    }
}

/// The end of a log below a message, or nothing.
fn excerpt(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\nits log ends with:\n{log}") }
}
