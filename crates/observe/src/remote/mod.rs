//! A server on another host: what an observer there sees of it is asked for over the network.
//!
//! `docs/observe.md` describes the protocol. Both sides prove that they have the same token, which never crosses the
//! network; from then on every message carries a code that only the two can make.

mod agent;
mod channel;
mod client;

pub use agent::{Agent, AgentEvent};
pub use channel::Token;
pub use client::Remote;
pub(crate) use client::RemoteMonitor;

use kurabe_core::observation::{HostUse, ProcessUse, Sample};
use serde::{Deserialize, Serialize};

/// The version of the protocol. Sides of different versions do not talk.
const VERSION: u32 = 1;

/// The port where nothing else is said: unassigned by IANA.
pub const PORT: u16 = 7_117;

/// What the run's side asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    /// Begin to watch the server that listens at this host and port.
    Begin { host: String, port: u16 },
    /// End it.
    End,
}

/// What the observer answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// It watches. `boot`: the kernel that it runs on, by the number of its last start.
    Begun { boot: Option<String> },
    /// It cannot; the reason, as a clause.
    Not(String),
    /// What it saw.
    Ended(Box<RemoteSample>),
}

/// What was seen of a server, and of its machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RemoteSample {
    pub server: ProcessUse,
    pub host: HostUse,
    pub samples: Vec<Sample>,
    /// As in `WireUse`, from the server's ends of the connections.
    pub classified: u64,
    pub at_server: u64,
}

/// What tells this start of this machine from all others, in containers too.
fn boot() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned())
}
