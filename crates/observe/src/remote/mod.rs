//! Observes a server on another host, through an agent there.
//!
//! `docs/observe.md` describes the protocol. Both sides prove that they have the same token, which never crosses the
//! network. Afterwards every message has an authentication code that only these two can compute.

mod agent;
mod channel;
mod client;

pub use agent::{Agent, AgentEvent};
pub use channel::Token;
pub use client::Remote;
pub(crate) use client::RemoteMonitor;

use kurabe_core::observation::{HostUse, ProcessUse, Sample};
use serde::{Deserialize, Serialize};

/// The version of the protocol. Sides with different versions refuse each other.
const VERSION: u32 = 1;

/// The default port: unassigned by IANA.
pub const PORT: u16 = 7_117;

/// A request of the run's side.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    /// Begin to observe the server that listens at this host and port.
    Begin { host: String, port: u16 },
    /// End the observation.
    End,
}

/// An answer of the agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// The observation has begun. `boot`: the boot identifier of the agent's kernel.
    Begun { boot: Option<String> },
    /// The observation is impossible; the reason, as a clause.
    Not(String),
    /// The observation.
    Ended(Box<RemoteSample>),
}

/// The observation of a server and of its machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RemoteSample {
    pub server: ProcessUse,
    pub host: HostUse,
    pub samples: Vec<Sample>,
    /// As in `WireUse`, from the server's ends of the connections.
    pub classified: u64,
    pub at_server: u64,
}

/// The kernel's boot identifier, which is the same in all containers of a machine.
fn boot() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned())
}
