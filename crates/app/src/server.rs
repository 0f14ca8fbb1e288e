//! The application at work: it listens, serves, and stops.

use crate::answer::{Answer, Ending};
use crate::calendar::Now;
use crate::conversation::Conversation;
use crate::crew::{self, Office};
use crate::{Application, Outcome};
use kurabe_core::{Error, ErrorKind, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Connections that the system may complete before they are accepted.
const BACKLOG: i32 = 4_096;
/// Files that the process has open beside connections.
const OWN_FILES: u64 = 64;
/// Files that one connection to a database may need: SQLite keeps a database, its log and its index open.
const FILES_A_SEAT: u64 = 4;
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long requests that are being answered may take once the application stops: longer than a database is waited for.
const GRACE: Duration = Duration::from_secs(15);

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    pub failed: AtomicU64,
    pub malformed: AtomicU64,
    open: AtomicUsize,
}

impl Counts {
    pub(crate) fn one(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts an open connection as long as it lives.
struct Open(Arc<Counts>);

impl Open {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counts))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An application that listens and has not begun to answer.
pub struct Listening {
    office: Arc<Office>,
    workers: Vec<JoinHandle<()>>,
    listener: TcpListener,
    address: SocketAddr,
    /// The most connections at once.
    most: usize,
}

impl Application {
    /// Listens at an address; port 0 is one that is free.
    ///
    /// # Errors
    /// Where the address cannot be had, or threads.
    pub fn listen(self, address: SocketAddr) -> Result<Listening> {
        let refused = |error: std::io::Error| {
            let kind = match error.kind() {
                std::io::ErrorKind::AddrInUse => ErrorKind::InUse,
                std::io::ErrorKind::PermissionDenied => ErrorKind::NotPermitted,
                _ => ErrorKind::Environment,
            };
            Error::new(kind, format!("cannot listen at {address}: {error}"))
                .hint("name another address by --listen; port 0 is any that is free")
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        rustix::net::listen(&listener, BACKLOG).map_err(|error| refused(error.into()))?;
        listener.set_nonblocking(true).map_err(refused)?;
        // Answers are small and each is written at once. Linux hands this on to every connection that is accepted.
        rustix::net::sockopt::set_tcp_nodelay(&listener, true).map_err(|error| refused(error.into()))?;
        let address = listener.local_addr().map_err(refused)?;
        let most = most_connections(self.options.seats() as u64);
        let office = Arc::new(Office::new(self));
        let workers = crew::start(&office)?;
        Ok(Listening { office, workers, listener, address, most })
    }
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it takes at once: as many files as the process may open, less what it needs itself.
    pub fn most_connections(&self) -> usize {
        self.most
    }

    /// Serves until `stop` is set; then answers what has been asked, and ends.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) where the system has no way to wait for connections.
    pub fn serve(self, stop: &AtomicBool) -> Result<Outcome> {
        let Self { office, workers, listener, most, .. } = self;
        let counts = Arc::new(Counts::default());
        let cpu = process_cpu();
        let door = Door { office: Arc::clone(&office), counts: Arc::clone(&counts), most };
        let served = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .and_then(|runtime| runtime.block_on(door.accept(listener, stop)))
            .map_err(|error| {
                Error::new(ErrorKind::Environment, format!("connections cannot be served: {error}"))
            });
        office.queue.close();
        for worker in workers {
            // A worker catches panics of drivers; its own would have been answered by 500.
            let _ = worker.join();
        }
        let cpu_ns = process_cpu().saturating_sub(cpu).as_nanos() as u64;
        let tallies = office.close();
        served?;
        let [answered, refused, failed, malformed] =
            [&counts.answered, &counts.refused, &counts.failed, &counts.malformed]
                .map(|count| count.load(Ordering::Relaxed));
        let database_cpu_ns = office.ledger.database_cpu_ns();
        Ok(Outcome { answered, refused, failed, malformed, cpu_ns, database_cpu_ns, tallies })
    }
}

/// Where clients come in.
struct Door {
    office: Arc<Office>,
    counts: Arc<Counts>,
    most: usize,
}

impl Door {
    async fn accept(&self, listener: TcpListener, stop: &AtomicBool) -> std::io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (tell, stopping) = watch::channel(false);
        while !stop.load(Ordering::Relaxed) {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = sleep(LOOK) => continue,
            };
            match accepted {
                Ok((stream, _)) => self.receive(stream, &stopping),
                // The client went away before it was received; or this machine has no more files, which passes.
                Err(_) => sleep(Duration::from_millis(5)).await,
            }
        }
        drop(listener);
        let _ = tell.send(true);
        let until = Instant::now() + GRACE;
        while self.counts.open.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    fn receive(&self, stream: TcpStream, stopping: &watch::Receiver<bool>) {
        let counts = &self.counts;
        if counts.open.load(Ordering::Relaxed) >= self.most {
            let answer = Answer::says(503, &format!("{} connections are open already", self.most));
            let mut bytes = Vec::new();
            answer.write(&mut Now::default(), Ending::Closes, false, &mut bytes);
            let _ = stream.try_write(&bytes);
            Counts::one(&counts.refused);
            return;
        }
        let open = Open::new(counts);
        let conversation = Conversation {
            stream,
            office: Arc::clone(&self.office),
            counts: Arc::clone(counts),
            stopping: stopping.clone(),
        };
        tokio::spawn(async move {
            conversation.run().await;
            drop(open);
        });
    }
}

/// Raises this process's limit of open files as far as it may, and says how many connections that leaves.
fn most_connections(seats: u64) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(hard), maximum: limit.maximum });
    let files = if raised.is_ok() { hard } else { limit.current.unwrap_or(hard) };
    files.saturating_sub(OWN_FILES + FILES_A_SEAT * seats).clamp(1, 1 << 20) as usize
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
