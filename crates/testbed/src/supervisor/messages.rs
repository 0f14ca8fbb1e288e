//! How a tool calls its supervisor, and their messages, one line of JSON each.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::TestbedError;
use crate::password::Password;

/// The hidden subcommand: `PROGRAM supervisor …` must only call [`run`](super::run) with the arguments after `supervisor`.
pub const SUBCOMMAND: &str = "supervisor";

/// Names a file to which each start of a server appends a line, with the engine, `own` or `shared` by several tests, and
/// the number of the server's process.
pub(crate) const COUNT: &str = "KURABE_COUNT_STARTS";

/// Set in a supervisor's environment, to prevent recursion: a program that does not know [`SUBCOMMAND`] could start
/// itself forever.
pub(crate) const ENVIRONMENT: &str = "KURABE_IS_SUPERVISOR";

/// A request of the tool, after the [`crate::spec::Spec`]. There is no request to stop: the tool closes the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Kill the server, as in a power failure.
    Kill,
    /// Start it again with the same data and port; a running server is killed first. If it keeps a copy of its data, that
    /// takes the data's place.
    Restart,
    /// Stop it, keep a copy of its data, and start it again.
    Keep,
    /// Stop all its processes (SIGSTOP).
    Pause,
    /// Let them continue.
    Resume,
    /// Stop the server, and not use it again. Only the pool of tests has this request.
    Discard,
}

/// A message of the supervisor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The server answers.
    Ready(Facts),
    /// The request was executed. To a request for a server: there is none with these options.
    Done,
    /// The start or a request failed. After a failed start the supervisor cleans up and exits.
    Failed(TestbedError),
    /// The server ended unexpectedly.
    Died(String),
}

/// How to reach the server.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Its URL, which may have its password.
    pub url: String,
    /// The password of its user; `None`: it has no users.
    pub password: Option<Password>,
    pub port: u16,
    pub socket: Option<PathBuf>,
    pub pid: u32,
    pub version: String,
    pub program: PathBuf,
    pub dir: PathBuf,
    pub log: PathBuf,
    pub ca: Option<PathBuf>,
    /// The number of the supervisor's process.
    pub supervisor: u32,
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the password.
        let Self { port, pid, version, dir, .. } = self;
        f.debug_struct("Facts")
            .field("port", port)
            .field("pid", pid)
            .field("version", version)
            .field("dir", dir)
            .finish_non_exhaustive()
    }
}
