//! The application at work: it listens, serves and stops.

use crate::metrics::process_cpu;
use crate::slot::{PageSummary, Shared, Slot};
use crate::{Application, Outcome, connection, response};
use hyper::StatusCode;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::account::{Accounts, Peer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::time::{interval, sleep, timeout};

/// Files that the process has open besides connections.
const OWN_FILES: u64 = 64;
/// Files that one connection to a database may need: SQLite opens a database, its log and its index.
const FILES_PER_SLOT: u64 = 4;
/// Connections that the system may complete before they are accepted.
const BACKLOG: u32 = 4_096;
/// How often the application checks whether to stop, and retries to accept where the process has no more files.
const CHECK: Duration = Duration::from_millis(20);
/// How long requests in progress may take once the application stops: longer than the time limit of the database.
const GRACE: Duration = Duration::from_secs(15);
/// The stack of a session thread: drivers that parse certificates need most of it.
const STACK: usize = 512 * 1024;

/// An application that listens and does not respond yet.
pub struct Listening {
    shared: Arc<Shared>,
    runtime: Runtime,
    listener: TcpListener,
    slots: Vec<JoinHandle<Vec<PageSummary>>>,
    address: SocketAddr,
    most: usize,
    /// Tells whose a connection is; `None`: everybody is served.
    accounts: Option<Accounts>,
}

impl Application {
    /// Listens at an address; port 0 chooses a free one.
    ///
    /// # Errors
    /// If the address is not available ([`InUse`](ErrorKind::InUse), [`NotPermitted`](ErrorKind::NotPermitted),
    /// [`Usage`](ErrorKind::Usage)), or there are too few threads ([`Limit`](ErrorKind::Limit)).
    pub fn listen(self, address: SocketAddr) -> Result<Listening> {
        let own_files = OWN_FILES + FILES_PER_SLOT * self.options.session_slots() as u64;
        let most = most_connections(own_files);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
            Error::new(ErrorKind::Environment, format!("cannot wait for clients: {error}"))
        })?;
        let listener = {
            let _context = runtime.enter();
            listen(address).map_err(|error| refused(address, &error))?
        };
        let address = listener.local_addr().map_err(|error| refused(address, &error))?;
        // Accounts of other hosts are not known.
        let is_checked = address.ip().is_loopback() && !self.options.serves_other_users;
        let accounts = is_checked.then(Accounts::new).transpose().map_err(|error| {
            let what = format!("this system does not say which account a connection is of: {error}");
            Error::new(ErrorKind::Environment, what).hint("--allow-other-users serves all accounts")
        })?;
        let shared = Arc::new(Shared::new(self));
        let slots = start(&shared)?;
        Ok(Listening { shared, runtime, listener, slots, address, most, accounts })
    }
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many clients can be connected at once: as many as the process may open files, without those that it needs
    /// itself.
    pub fn most_connections(&self) -> usize {
        self.most
    }

    /// Serves until `stop` is set, then finishes the requests in progress.
    pub fn serve(self, stop: &AtomicBool) -> Outcome {
        let Self { shared, runtime, listener, slots, most, accounts, .. } = self;
        let cpu = process_cpu();
        runtime.block_on(accept(&shared, listener, accounts, most, stop));
        // What has not finished by now is not waited for.
        runtime.shutdown_background();
        shared.queue.close();
        // A slot catches the panics of drivers and has none of its own.
        let pages = slots.into_iter().filter_map(|slot| slot.join().ok()).flatten().collect();
        let metrics = &shared.metrics;
        Outcome {
            answered: metrics.answered.get(),
            refused: metrics.refused.get(),
            failed: metrics.failed.get(),
            malformed: metrics.malformed.get(),
            processed: metrics.processed.get(),
            queue_wait: Duration::from_nanos(metrics.queue_wait_ns.get()),
            longest_wait: Duration::from_nanos(metrics.longest_wait_ns.get()),
            cpu_ns: process_cpu().saturating_sub(cpu).as_nanos() as u64,
            database_cpu_ns: metrics.database_cpu_ns(),
            pages,
        }
    }
}

/// Checks that it is possible to listen at an address now.
pub fn check_address(address: SocketAddr) -> Result<()> {
    std::net::TcpListener::bind(address).map(drop).map_err(|error| refused(address, &error))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Responses are small, and each is written at once. Linux applies this to every accepted connection.
    socket.set_nodelay(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn refused(address: SocketAddr, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::AddrInUse => ErrorKind::InUse,
        io::ErrorKind::PermissionDenied => ErrorKind::NotPermitted,
        io::ErrorKind::AddrNotAvailable => ErrorKind::Usage,
        _ => ErrorKind::Environment,
    };
    Error::new(kind, format!("cannot listen at {address}: {error}"))
        .hint("choose another address with --listen; port 0 is any free one")
}

/// Starts the session threads.
fn start(shared: &Arc<Shared>) -> Result<Vec<JoinHandle<Vec<PageSummary>>>> {
    let count = shared.application.options.session_slots();
    let start = |index| {
        let shared = Arc::clone(shared);
        thread::Builder::new()
            .name(format!("session-{index}"))
            .stack_size(STACK)
            .spawn(move || Slot::new(&shared, index).work())
    };
    (0..count).map(start).collect::<io::Result<_>>().map_err(|error| {
        shared.queue.close();
        Error::new(ErrorKind::Limit, format!("this machine has too few threads for {count} workers: {error}"))
            .hint("ask for fewer --workers")
    })
}

/// Accepts clients until `stop` is set, then waits until their requests are finished.
async fn accept(
    shared: &Arc<Shared>,
    listener: TcpListener,
    mut accounts: Option<Accounts>,
    most: usize,
    stop: &AtomicBool,
) {
    let http = Arc::new(connection::protocol());
    let places = Arc::new(Semaphore::new(most));
    let (stopping, stopped) = watch::channel(false);
    let mut check = interval(CHECK);
    while !stop.load(Ordering::Relaxed) {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = check.tick() => continue,
        };
        // A connection of another account, or of one that cannot be found, is closed without an answer.
        if let (Some(accounts), Ok((tcp, from))) = (&mut accounts, &accepted)
            && !tcp
                .local_addr()
                .and_then(|local| accounts.peer(local, *from))
                .is_ok_and(|peer| peer == Peer::Own)
        {
            continue;
        }
        match (accepted, Arc::clone(&places).try_acquire_owned()) {
            (Ok((tcp, _)), Ok(place)) => {
                let (shared, http, stopped) = (Arc::clone(shared), Arc::clone(&http), stopped.clone());
                tokio::spawn(async move {
                    connection::serve(shared, &http, tcp, stopped).await;
                    drop(place);
                });
            }
            (Ok((tcp, _)), Err(_)) => {
                let text = format!("{most} connections are open already");
                // What does not fit into an empty buffer is not sent.
                let _ = tcp.try_write(&response::raw(StatusCode::SERVICE_UNAVAILABLE, &text));
                shared.metrics.refused.one();
            }
            // The client left before it was accepted.
            (Err(error), _) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // The process has no more files for now.
            (Err(_), _) => sleep(CHECK).await,
        }
    }
    drop(listener);
    let _ = stopping.send(true);
    let _ = timeout(GRACE, places.acquire_many(most as u32)).await;
}

/// Raises the process's limit of open files as far as possible. Returns how many connections that leaves.
fn most_connections(own_files: u64) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(hard), maximum: limit.maximum });
    let files = if raised.is_ok() { hard } else { limit.current.unwrap_or(hard) };
    files.saturating_sub(own_files).clamp(1, 1 << 20) as usize
}
