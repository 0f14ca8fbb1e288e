//! Observes the host, the client's process and the server's processes during a trial.
//!
//! Everything is read from the kernel (Linux): cumulative counters when the gate opens and when the last client has
//! ended, and a few samples a second between, for quantities without a counter. Nothing of this is on the measured
//! path. The first reading ends before the gate opens, and the last begins when all clients have stopped. The sampler
//! sleeps at least a hundred times as long as a sample took.
//!
//! - processes: `/proc/PID/{stat,io,cgroup}` and `/proc/PID/task/TID/{stat,schedstat,status}` (`proc_pid(5)`)
//! - machine: `/proc/{stat,diskstats,net/dev,pressure/io}`
//! - a server on another host: from an agent there ([`ServerObserver`])
//! - connections: `NETLINK_SOCK_DIAG` (`sock_diag(7)`), which has each TCP socket's `tcp_info`

mod facts;
mod find;
mod group;
mod host;
mod live;
mod machine;
mod memory;
mod monitor;
mod own_host;
mod process;
mod remote;
mod sampler;
mod tiers;
mod wire;

pub use facts::machine_facts;
pub use live::Live;
pub use machine::{dishonest_sync, disturbances, is_busy};
pub use monitor::Monitor;
pub use remote::{
    ANSWER, AgentProcess, Answer, Conversation, DEFAULT_COMMAND, Greeting, PROTOCOL, Remote, RemoteSample,
    Request, ServerObserver, boot, read_line, send,
};

use kurabe_core::{Error, ErrorKind};

/// Whether this machine can be observed. Without the kernel's counters, a resource that was not seen would look idle.
///
/// # Errors
/// [`Environment`](ErrorKind::Environment) if `/proc` cannot be read, as in a container or chroot without it.
pub fn check() -> Result<(), Error> {
    for file in ["/proc/self/stat", "/proc/stat"] {
        std::fs::read(file).map_err(|error| {
            Error::of_cause(
                ErrorKind::Environment,
                format_args!("this machine cannot be observed: {file}"),
                error,
            )
            .hint("mount it: mount -t proc proc /proc")
        })?;
    }
    Ok(())
}

/// The numbers of a server's processes: those that listen at its endpoint, and all their descendants.
///
/// # Errors
/// Why they were not found, as a clause.
pub fn processes(endpoint: &kurabe_core::observation::Endpoint) -> Result<Vec<u32>, String> {
    Ok(process::process_tree(&find::listeners(endpoint)?).into_iter().map(|pid| pid.number).collect())
}
