//! What the host, the client's process and the server's processes did during a trial, as it is recorded; and who looks.
//!
//! Counters are read when the gate opens and when the last client has ended; samples are taken between. What could not
//! be seen is absent, with the reason where a reader needs one: nothing is made up.

use crate::stats_probe::{EngineUse, EngineWaits};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where a target's server is: what an observer needs to find its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The database works within this process.
    InProcess,
    /// A server that listens at a host (name or address, without brackets) and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A server that listens at a Unix socket.
    Unix(PathBuf),
    /// Several servers, or one whose place this driver does not know; the reason, as a clause.
    Elsewhere(String),
    /// Servers that work together, such as a store and the caches in front of it, or applications and the database behind
    /// them: looked at as one, and those that are a tier each apart too.
    Composite(Vec<Member>),
}

/// One of several servers that work together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The tier that it is; `None` where it is looked at with the others alone.
    pub tier: Option<Tier>,
}

/// A tier between a client and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// An application, to which clients speak.
    Application,
    /// The database behind it, to which they do not.
    Database,
}

impl Tier {
    /// What it is called where there is one of its kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => TierUse::APPLICATION,
            Self::Database => TierUse::DATABASE,
        }
    }
}

impl Endpoint {
    /// Whether it is on this machine as far as its address says so.
    pub fn is_here(&self) -> bool {
        match self {
            Self::InProcess | Self::Unix(_) => true,
            Self::Tcp { host, .. } => {
                host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
            Self::Elsewhere(_) => false,
            Self::Composite(members) => members.iter().all(|member| member.endpoint.is_here()),
        }
    }
}

/// Watches trials. The engine knows observers only as this.
pub trait Observer: Send + Sync {
    /// Begins to watch: all clients of the trial are connected and stand at the gate.
    fn begin(&self, endpoint: &Endpoint) -> Box<dyn MonitorGuard>;

    /// The same, where a connection that begins at this local port is ours and no client's.
    fn begin_excluding(&self, endpoint: &Endpoint, probe_port: Option<u16>) -> Box<dyn MonitorGuard> {
        let _ = probe_port;
        self.begin(endpoint)
    }

    /// What the server's processes hold at this moment; this process itself where the database is in it. The reason, as
    /// a clause, where they cannot be seen.
    ///
    /// # Errors
    /// That reason.
    fn memory_usage(&self, endpoint: &Endpoint) -> Result<MemoryUsage, String> {
        let _ = endpoint;
        Err("nobody looked".to_owned())
    }
}

/// What the processes of a server hold at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Processes.
    pub processes: u64,
    /// Threads of all of them.
    pub threads: u64,
    /// Resident memory in bytes but for pages of files, a page that several processes share divided among them (PSS).
    pub memory_bytes: u64,
    /// The part of it that no other process has.
    pub private_bytes: u64,
}

/// One trial under watch.
pub trait MonitorGuard: Send {
    /// Ends it: all clients have made their last transaction, and their connections are still open.
    fn end(self: Box<Self>) -> Observation;
}

/// What happened from the opening of the gate to the end of the last client's last transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// How long that was, in nanoseconds.
    pub wall_ns: u64,
    /// The client's own process; with the database in it, where that is embedded.
    pub client: ProcessUse,
    /// The server's processes.
    pub server: ServerUse,
    /// Where the server is applications and the database behind them: each of these apart. All of them are in `server`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierUse>,
    /// The machine that the client ran on.
    pub host: HostUse,
    /// The server's, where that is another one and an observer looked there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<HostUse>,
    /// The TCP connections to the server; `None` for a Unix socket, an embedded database, or where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireUse>,
    /// What the engine itself says its sessions were doing, where its driver asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<EngineWaits>,
    /// What came to the engine's own counters, where its driver asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineUse>,
    /// The same along the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// How many samples were taken; more than are recorded where neighbours were put together.
    pub samples_taken: u64,
    /// CPU time that sampling took, in nanoseconds; it is in the client's.
    pub cost_ns: u64,
}

/// One tier of several between a client and its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TierUse {
    /// What it is: [`TierUse::APPLICATION`], with a number where there are several, or [`TierUse::DATABASE`].
    pub name: String,
    /// What its processes did.
    pub used: ServerUse,
}

impl TierUse {
    /// The name of an application's tier.
    pub const APPLICATION: &str = "application";
    /// The name of the database's.
    pub const DATABASE: &str = "database";
}

/// The server's processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerUse {
    /// There are none: the database works within the client's process.
    InClient,
    /// They were seen.
    Seen(Box<ProcessUse>),
    /// They were not; the reason, as a clause.
    NotObserved(String),
}

impl Default for ServerUse {
    fn default() -> Self {
        Self::NotObserved("nobody looked".to_owned())
    }
}

/// What a process, or several that are one server, did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// The program's name.
    pub name: String,
    /// Processes at the end.
    pub processes: u64,
    /// Threads at the end.
    pub threads: u64,
    /// CPU time, user and system, of all threads, those that ended meanwhile included.
    pub cpu_ns: u64,
    /// Time that threads were ready to run and waited for a processor; `None` where the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ns: Option<u64>,
    /// The threads that used the most CPU, the first first; at most [`BUSIEST`].
    pub busiest: Vec<ThreadUse>,
    /// Times that a thread gave the processor up to wait for something.
    pub voluntary_switches: u64,
    /// Times that it was taken from one.
    pub involuntary_switches: u64,
    /// Bytes that storage had to deliver; `None` where this user may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that were to go to storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Resident memory at the end, in bytes; what processes share is counted in each.
    pub memory_bytes: u64,
    /// Processors that it may run on.
    pub cpus: Vec<u32>,
    /// Processors' worth of time that its control group may use; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_cpus: Option<f64>,
    /// Time for which its control group was kept from running by that limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// The share of samples in which at least one of its threads was in uninterruptible sleep, which is waiting for
    /// storage in all but rare cases; `None` without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_wait: Option<f64>,
    /// The share of samples in which at least one of its threads was stopped by a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<f64>,
}

/// How many threads of a process are recorded one by one.
pub const BUSIEST: usize = 8;

/// What a thread did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// Its name.
    pub name: String,
    /// CPU time.
    pub cpu_ns: u64,
    /// Time that it was ready to run and waited for a processor.
    pub queue_ns: u64,
}

/// What the machine did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUse {
    /// Each processor.
    pub cpus: Vec<CpuUse>,
    /// Disks that did anything.
    pub disks: Vec<DiskUse>,
    /// Network interfaces that did anything.
    pub interfaces: Vec<InterfaceUse>,
    /// Time in which at least one task of the machine waited for storage (pressure stall information).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_stall_ns: Option<u64>,
}

impl HostUse {
    /// Time at work of all processors together.
    pub fn busy_ns(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.busy_ns).sum()
    }
}

/// What a processor did, to a hundredth of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Its number.
    pub cpu: u32,
    /// Time at work.
    pub busy_ns: u64,
    /// Time that the machine below gave to somebody else.
    pub steal_ns: u64,
}

/// What a disk did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Its name.
    pub name: String,
    /// Time in which at least one request was under way.
    pub busy_ns: u64,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes of its cache: what a sync ends in.
    pub flushes: u64,
    /// Time that flushes took together.
    pub flush_ns: u64,
}

/// What a network interface did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceUse {
    /// Its name.
    pub name: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// What it can carry each way, in bits per second; `None` where it does not say, as loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<u64>,
}

/// The TCP connections of the trial's clients to the server, from the kernel's own counters. Those that were closed within
/// the trial are not in it: where each request has a connection of its own, it is of the last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WireUse {
    /// Connections that were open at the end.
    pub connections: u64,
    /// Payload that the clients sent, each byte once.
    pub sent_bytes: u64,
    /// Payload that they received.
    pub received_bytes: u64,
    /// Segments that they sent.
    pub segments_out: u64,
    /// Segments that they received.
    pub segments_in: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
    /// The mean over connections of the least round-trip time of the wire itself, in microseconds.
    pub rtt_us: f64,
    /// How often it could be told, connection by connection and sample by sample, who had the move. Only where both
    /// ends are on this machine.
    pub classified: u64,
    /// In how many of these the server had a request and had not answered it.
    pub at_server: u64,
}

/// One moment. Shares are of one processor, and those of processes since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds since the gate opened.
    pub at_ms: u64,
    /// Processors' worth of time that the client used.
    pub client_cpu: f64,
    /// The same of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu: Option<f64>,
    /// The same of the whole machine.
    pub host_cpu: f64,
    /// Threads of the server (or of the client, where the database is in it) in uninterruptible sleep.
    pub disk_waits: u64,
}

impl Observation {
    /// CPU time of everything on the client's machine that was neither client nor server, where the server was seen.
    pub fn others_cpu_ns(&self) -> u64 {
        let server = self.server_seen().filter(|_| self.server_host.is_none()).map_or(0, |s| s.cpu_ns);
        self.host.busy_ns().saturating_sub(self.client.cpu_ns).saturating_sub(server)
    }

    /// Time that the machine below gave to somebody else, as a share of all its processors' time; of two machines, the
    /// one that lost more.
    pub fn steal(&self) -> f64 {
        let of = |host: &HostUse| {
            let steal: u64 = host.cpus.iter().map(|cpu| cpu.steal_ns).sum();
            let all = self.wall_ns as f64 * host.cpus.len() as f64;
            if all > 0.0 { steal as f64 / all } else { 0.0 }
        };
        of(&self.host).max(self.server_host.as_ref().map_or(0.0, of))
    }

    /// The server's processes, where they are apart from the client and were seen.
    pub fn server_seen(&self) -> Option<&ProcessUse> {
        match &self.server {
            ServerUse::Seen(seen) => Some(seen),
            ServerUse::InClient | ServerUse::NotObserved(_) => None,
        }
    }

    /// Takes the names of programs and threads out, which tell the engine.
    pub fn without_names(&mut self) {
        let server = match &mut self.server {
            ServerUse::Seen(seen) => Some(&mut **seen),
            ServerUse::InClient => None,
            ServerUse::NotObserved(why) => {
                "withheld".clone_into(why);
                None
            }
        };
        let tiers = self.tiers.iter_mut().filter_map(|tier| match &mut tier.used {
            ServerUse::Seen(seen) => Some(&mut **seen),
            ServerUse::InClient => None,
            ServerUse::NotObserved(why) => {
                "withheld".clone_into(why);
                None
            }
        });
        for process in server.into_iter().chain(tiers).chain([&mut self.client]) {
            process.name.clear();
            for thread in &mut process.busiest {
                thread.name.clear();
            }
        }
        if let Some(waits) = &mut self.waits {
            waits.without_names();
        }
        if let Some(engine) = &mut self.engine {
            engine.without_names();
        }
    }
}
