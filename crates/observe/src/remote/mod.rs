//! Observes a server on another host, through an agent there; and what every program has that speaks to an agent over a
//! pipe: lines of JSON, a greeting with a version, a process that ends when its input does.
//!
//! A run starts the agent with `ssh`, or with another command that connects its input and output. `docs/observe.md`
//! describes the protocol: lines of JSON. The command authenticates both sides and protects the messages.

mod agent;
mod client;

pub use agent::ServerObserver;
pub(crate) use client::RemoteMonitor;
pub use client::{ANSWER, AgentProcess, Conversation, DEFAULT_COMMAND, Remote};

use kurabe_core::observation::{HostUse, ProcessUse, Sample};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};

/// The version of the protocol. A run and an agent with different versions refuse each other.
pub const PROTOCOL: u32 = 3;

/// The maximum length of a message in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The agent's first message.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// Its version of the protocol.
    pub kurabe_agent: u32,
}

/// A request of the run's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Begin to observe the server that listens at this host and port.
    Begin {
        /// The host, as the run reaches it.
        host: String,
        port: u16,
    },
    /// End the observation.
    End,
}

/// An answer of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The observation has begun.
    Begun {
        /// The boot identifier of the agent's kernel.
        boot: Option<String>,
    },
    /// The observation is impossible; the reason, as a clause.
    Not(String),
    /// The observation.
    Ended(Box<RemoteSample>),
}

/// The observation of a server and of its machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoteSample {
    /// The server's processes.
    pub server: ProcessUse,
    /// Its machine.
    pub host: HostUse,
    /// The time series.
    pub samples: Vec<Sample>,
    /// As in `WireUse`, from the server's ends of the connections.
    pub classified: u64,
    /// Likewise.
    pub at_server: u64,
}

/// The kernel's boot identifier, which is the same in all containers of a machine.
pub fn boot() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned())
}

/// Writes a message: one line of JSON.
///
/// # Errors
/// If it cannot be written.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads a line; `None` at the end of the stream.
///
/// # Errors
/// Also if the line is longer than a message may be.
pub fn read_line(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(MAX_BYTES).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if (line.len() as u64) < MAX_BYTES => Ok(None),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long")),
    }
}
