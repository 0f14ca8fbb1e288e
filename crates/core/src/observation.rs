//! Observations, as recorded: what the machine, the client's process and the server's processes did during a trial.
//!
//! Counters are read when the gate opens and when the last client has ended. Samples are taken in between. What
//! cannot be observed is absent, with a reason if the reader needs one.

use crate::stats_probe::{EngineUse, EngineWaits};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where a target's server listens, so that an observer can find its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The database runs within this process.
    InProcess,
    /// A server that listens at a host (name or address, without brackets) and a port.
    Tcp {
        /// The name or address.
        host: String,
        port: u16,
    },
    /// A server that listens at a Unix socket.
    Unix(PathBuf),
    /// Several servers, or a server with an unknown location; the reason, as a clause.
    Elsewhere(String),
    /// Servers that form one target, such as a store and its caches, or applications and the database behind them.
    /// They are observed as one, and tiers separately too.
    Composite(Vec<Member>),
}

/// A server of a composite target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub endpoint: Endpoint,
    /// Its tier; `None` if it is observed only as a part of the whole.
    pub tier: Option<Tier>,
}

/// A tier between a client and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// An application, to which clients connect.
    Application,
    /// The database behind it, or the target of which another tier is the remote.
    Database,
    /// The second server, to which the target is linked.
    Remote,
}

impl Tier {
    /// Its name if there is only one of its kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => TierUse::APPLICATION,
            Self::Database => TierUse::DATABASE,
            Self::Remote => TierUse::REMOTE,
        }
    }
}

impl Endpoint {
    /// Whether it is on this machine, judged by its address.
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

/// Observes trials. The engine uses observers only through this trait.
pub trait Observer: Send + Sync {
    /// Starts to observe a trial. All clients are connected and wait at the gate. The connection from `probe_port` is not a
    /// client's.
    fn begin(&self, endpoint: &Endpoint, probe_port: Option<u16>) -> Box<dyn MonitorGuard>;

    /// The current memory usage of the server's processes, or of this process if it contains the database.
    ///
    /// # Errors
    /// The reason, as a clause, if the processes cannot be observed.
    fn memory_usage(&self, endpoint: &Endpoint) -> Result<MemoryUsage, String> {
        let _ = endpoint;
        Err("no observer ran".to_owned())
    }
}

/// The memory usage of a server's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// The number of processes.
    pub processes: u64,
    /// The number of their threads.
    pub threads: u64,
    /// Resident memory in bytes without pages of files; a page shared by several processes is divided among them
    /// (PSS).
    pub memory_bytes: u64,
    /// The private part of it.
    pub private_bytes: u64,
}

/// The observation of one trial while it runs.
pub trait MonitorGuard: Send {
    /// Ends the observation. All clients have made their last transaction, and their connections are still open.
    fn end(self: Box<Self>) -> Observation;
}

/// What happened from the opening of the gate until the last client's last transaction ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Its length in nanoseconds.
    pub wall_ns: u64,
    /// The client's process, including an embedded database.
    pub client: ProcessUse,
    /// The server's processes.
    pub server: ServerUse,
    /// Each tier, if the server consists of applications and a database. `server` includes all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierUse>,
    /// The machine that the client ran on.
    pub host: HostUse,
    /// The server's machine, if it is another one and an observer ran there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<HostUse>,
    /// The TCP connections to the server; `None` for a Unix socket, an embedded database, or if the kernel does not
    /// report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireUse>,
    /// Wait states of the server's sessions, if its driver has a stats probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<EngineWaits>,
    /// Counters of the server, if its driver has a stats probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineUse>,
    /// The time series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// The number of samples taken. Fewer are recorded if adjacent ones were merged.
    pub samples_taken: u64,
    /// CPU time of sampling, in nanoseconds; part of the client's.
    pub cost_ns: u64,
}

/// One of several tiers between a client and its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TierUse {
    /// Its name: [`TierUse::APPLICATION`], numbered if there are several, [`TierUse::DATABASE`] or
    /// [`TierUse::REMOTE`].
    pub name: String,
    /// The resource usage of its processes.
    pub used: ServerUse,
}

impl TierUse {
    /// The name of the application tier.
    pub const APPLICATION: &str = "application";
    /// The name of the database tier.
    pub const DATABASE: &str = "database";
    /// The name of the tier of the second server.
    pub const REMOTE: &str = "remote";
}

/// The server's processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerUse {
    /// None: the database runs within the client's process.
    InClient,
    /// They were observed.
    Seen(Box<ProcessUse>),
    /// They could not be observed; the reason, as a clause.
    NotObserved(String),
}

impl Default for ServerUse {
    fn default() -> Self {
        Self::NotObserved("no observer ran".to_owned())
    }
}

/// The resource usage of a process, or of several processes that form one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// The program's name.
    pub name: String,
    /// The number of processes at the end.
    pub processes: u64,
    /// The number of threads at the end.
    pub threads: u64,
    /// CPU time, user and system, of all threads, including those that ended.
    pub cpu_ns: u64,
    /// Time that threads were runnable and waited for a processor; `None` if the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ns: Option<u64>,
    /// The threads with the most CPU time, in descending order; at most [`BUSIEST`].
    pub busiest: Vec<ThreadUse>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Bytes read from storage; `None` if this user may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Resident memory at the end, in bytes. Shared memory is counted once per process.
    pub memory_bytes: u64,
    /// The processors that it may run on.
    pub cpus: Vec<u32>,
    /// The CPU limit of its control group, in processors; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_cpus: Option<f64>,
    /// Time for which that limit throttled its control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// The share of samples with at least one thread in uninterruptible sleep, which nearly always waits for storage;
    /// `None` without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_wait: Option<f64>,
    /// The share of samples with at least one thread stopped by a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<f64>,
}

/// The number of threads of a process that are recorded individually.
pub const BUSIEST: usize = 8;

/// The resource usage of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    pub name: String,
    /// CPU time.
    pub cpu_ns: u64,
    /// Time that it was runnable and waited for a processor.
    pub queue_ns: u64,
}

/// The resource usage of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUse {
    /// Each processor.
    pub cpus: Vec<CpuUse>,
    /// Disks with any activity.
    pub disks: Vec<DiskUse>,
    /// Network interfaces with any activity.
    pub interfaces: Vec<InterfaceUse>,
    /// Time in which at least one task waited for storage (pressure stall information).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_stall_ns: Option<u64>,
}

impl HostUse {
    /// Busy time of all processors together.
    pub fn busy_ns(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.busy_ns).sum()
    }
}

/// The usage of a processor, with a resolution of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Its number.
    pub cpu: u32,
    /// Busy time.
    pub busy_ns: u64,
    /// Time that the hypervisor gave to other machines.
    pub steal_ns: u64,
}

/// The usage of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    pub name: String,
    /// Time with at least one request in progress.
    pub busy_ns: u64,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Flushes of its cache, as caused by syncs.
    pub flushes: u64,
    /// Total time of flushes.
    pub flush_ns: u64,
}

/// The usage of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceUse {
    pub name: String,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Its speed in each direction, in bits per second; `None` if unknown, as for loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<u64>,
}

/// The TCP connections of the trial's clients to the server, from the kernel's counters. Connections closed within
/// the trial are not included: with a connection per request, only the last ones are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WireUse {
    /// Connections that were open at the end.
    pub connections: u64,
    /// Payload bytes that the clients sent, without retransmissions.
    pub sent_bytes: u64,
    /// Payload bytes that they received.
    pub received_bytes: u64,
    /// Segments that they sent.
    pub segments_out: u64,
    /// Segments that they received.
    pub segments_in: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// The mean over connections of the minimum network round-trip time, in microseconds.
    pub rtt_us: f64,
    /// Samples, over all connections, in which it was clear whether the client or the server had to act next. Only if
    /// both ends are on this machine.
    pub classified: u64,
    /// Of these, those in which the server had an unanswered request.
    pub at_server: u64,
}

/// One sample of the time series. Shares are of one processor; those of processes are since the previous sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds since the gate opened.
    pub at_ms: u64,
    /// The client's CPU usage, in processors.
    pub client_cpu: f64,
    /// The server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu: Option<f64>,
    /// The whole machine's.
    pub host_cpu: f64,
    /// Threads of the server (or of the client, for an embedded database) in uninterruptible sleep.
    pub disk_waits: u64,
    /// The share of the time in which the busiest disk of the server's machine had a request; `None` if it has no disk
    /// with counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_busy: Option<f64>,
    /// Bytes per second over the busiest network interface of the client's machine, in its busier direction; `None` if
    /// there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<u64>,
}

impl Observation {
    /// CPU time on the client's machine of everything except client and server, if the server was observed.
    pub fn others_cpu_ns(&self) -> u64 {
        let server = self.server_seen().filter(|_| self.server_host.is_none()).map_or(0, |s| s.cpu_ns);
        self.host.busy_ns().saturating_sub(self.client.cpu_ns).saturating_sub(server)
    }

    /// Stolen time as a share of all processors' time; of two machines, the larger share.
    pub fn steal(&self) -> f64 {
        let of = |host: &HostUse| {
            let steal: u64 = host.cpus.iter().map(|cpu| cpu.steal_ns).sum();
            let all = self.wall_ns as f64 * host.cpus.len() as f64;
            if all > 0.0 { steal as f64 / all } else { 0.0 }
        };
        of(&self.host).max(self.server_host.as_ref().map_or(0.0, of))
    }

    /// The server's processes, if they are separate from the client and were observed.
    pub fn server_seen(&self) -> Option<&ProcessUse> {
        match &self.server {
            ServerUse::Seen(seen) => Some(seen),
            ServerUse::InClient | ServerUse::NotObserved(_) => None,
        }
    }

    /// Removes the names of programs and threads, which reveal the engine.
    pub fn without_names(&mut self) {
        let servers = self.tiers.iter_mut().map(|tier| &mut tier.used).chain([&mut self.server]);
        let seen = servers.filter_map(|server| match server {
            ServerUse::Seen(seen) => Some(&mut **seen),
            ServerUse::InClient => None,
            ServerUse::NotObserved(why) => {
                "withheld".clone_into(why);
                None
            }
        });
        for process in seen.chain([&mut self.client]) {
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
