//! The application at work: it listens, serves, and stops.

use crate::crew::{self, Office};
use crate::door::Door;
use crate::{Application, Outcome, porter};
use kurabe_core::Result;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Files that the process has open beside connections.
const OWN_FILES: u64 = 64;
/// Files that one connection to a database may need: SQLite keeps a database, its log and its index open.
const FILES_A_SEAT: u64 = 4;
/// An application that listens and has not begun to answer.
pub struct Listening {
    office: Arc<Office>,
    workers: Vec<JoinHandle<()>>,
    address: SocketAddr,
}

impl Application {
    /// Listens at an address; port 0 is one that is free.
    ///
    /// # Errors
    /// Where the address cannot be had, or threads.
    pub fn listen(self, address: SocketAddr) -> Result<Listening> {
        let own_files = OWN_FILES + FILES_A_SEAT * self.options.seats() as u64;
        let door = Door::open(address, most_connections(own_files), own_files as usize)?;
        let address = door.address()?;
        let office = Arc::new(Office::new(self, door));
        let workers = crew::start(&office)?;
        Ok(Listening { office, workers, address })
    }
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it takes at once: as many files as the process may open, less what it needs itself.
    pub fn most_connections(&self) -> usize {
        self.office.door.most()
    }

    /// Serves until `stop` is set; then answers what has been asked, and ends.
    ///
    /// # Errors
    /// None so far: what keeps it from serving is found when it listens.
    pub fn serve(self, stop: &AtomicBool) -> Result<Outcome> {
        let Self { office, workers, .. } = self;
        let cpu = process_cpu();
        porter::work(&office, stop);
        office.queue.close();
        office.door.ring();
        for worker in workers {
            // A worker catches panics of drivers; its own would have been answered by 500.
            let _ = worker.join();
        }
        let cpu_ns = process_cpu().saturating_sub(cpu).as_nanos() as u64;
        let tallies = office.close();
        let counts = &office.counts;
        let [answered, refused, failed, malformed] =
            [&counts.answered, &counts.refused, &counts.failed, &counts.malformed]
                .map(|count| count.load(Ordering::Relaxed));
        let database_cpu_ns = office.ledger.database_cpu_ns();
        Ok(Outcome { answered, refused, failed, malformed, cpu_ns, database_cpu_ns, tallies })
    }
}

/// Raises this process's limit of open files as far as it may, and says how many connections that leaves.
fn most_connections(own_files: u64) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(hard), maximum: limit.maximum });
    let files = if raised.is_ok() { hard } else { limit.current.unwrap_or(hard) };
    files.saturating_sub(own_files).clamp(1, 1 << 20) as usize
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
