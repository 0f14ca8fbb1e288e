//! Time limits for crates that have none for a whole answer, or for connecting.

use crate::cancel;
use crate::contain::contain;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_reactor::{Condition, Lock};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use std::net::TcpStream;
use std::os::fd::IntoRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of the watchdog's checks.
const EVERY: Duration = Duration::from_millis(50);

/// What became of work in another thread.
enum Work<T> {
    Running,
    Done(Result<T>),
    /// Nobody waits for it any more.
    Abandoned,
}

/// Runs work that may block forever in a separate thread, and waits at most `limit`: as a task of a reactor, it lets
/// others run meanwhile. `None` if it did not finish in time; a late result is passed to `late`. A panic becomes an
/// error.
pub fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
    late: impl FnOnce(T) + Send + 'static,
) -> Result<Option<T>> {
    let shared = Arc::new((Lock::new(Work::Running), Condition::new()));
    let theirs = Arc::clone(&shared);
    let spawned = thread::Builder::new().name("kurabe-within".to_owned()).spawn(move || {
        let done = contain("the client library", "connecting", work);
        let mut state = theirs.0.lock();
        if let Work::Abandoned = *state {
            drop(state);
            let _ = done.map(late);
        } else {
            *state = Work::Done(done);
            drop(state);
            theirs.1.notify_all();
        }
    });
    if let Err(error) = spawned {
        return Err(Error::new(ErrorKind::Limit, format!("no more threads: {error}"))
            .hint("raise the limit of processes (ulimit -u), or use fewer clients"));
    }
    let until = Instant::now() + limit;
    let mut state = shared.0.lock();
    loop {
        match std::mem::replace(&mut *state, Work::Running) {
            Work::Done(done) => return done.map(Some),
            Work::Running | Work::Abandoned => {}
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            *state = Work::Abandoned;
            return Ok(None);
        }
        state = shared.1.wait_for(state, left).0;
    }
}

/// A copy of this process's socket with this local address, for crates that hide their socket. `None` if there is none,
/// or the kernel makes no copy.
///
/// Files are not copied: closing a copy releases all locks that this process has on the file (`fcntl_locking(2)`), on
/// which SQLite relies.
pub fn own_socket(address: &str) -> Option<TcpStream> {
    let process = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    std::fs::read_dir("/proc/self/fd").ok()?.flatten().find_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        std::fs::read_link(entry.path()).ok()?.to_str()?.strip_prefix("socket:")?;
        let socket = TcpStream::from(pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?);
        match socket.local_addr() {
            Ok(found) => (found.to_string() == address).then_some(socket),
            Err(error) => {
                if error.raw_os_error() == Some(Errno::NOTSOCK.raw_os_error()) {
                    // It became a file meanwhile. The copy stays open.
                    let _ = socket.into_raw_fd();
                }
                None
            }
        }
    })
}

/// Ends a connection from another thread.
type End = Box<dyn Fn() + Send + Sync>;

/// A connection whose exchanges are watched. One exchange costs two stores and one read of the coarse clock.
pub struct Watched(Arc<State>);

struct State {
    allowed: Duration,
    /// Start of the current exchange, in milliseconds of the coarse clock; 0 without one.
    began: AtomicU64,
    overdue: AtomicBool,
    end: End,
}

/// All watched connections, and whether the watchdog runs.
static ALL: Mutex<(Vec<Weak<State>>, bool)> = Mutex::new((Vec::new(), false));

fn all() -> MutexGuard<'static, (Vec<Weak<State>>, bool)> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    /// Watches a connection, which `end` closes.
    ///
    /// # Errors
    /// If the watchdog's thread cannot be started.
    pub fn new(allowed: Duration, end: impl Fn() + Send + Sync + 'static) -> Result<Self> {
        let state = Arc::new(State {
            allowed,
            began: AtomicU64::new(0),
            overdue: AtomicBool::new(false),
            end: Box::new(end),
        });
        let mut all = all();
        all.0.push(Arc::downgrade(&state));
        if !all.1 {
            thread::Builder::new()
                .name("kurabe-watchdog".to_owned())
                .spawn(watch)
                .map_err(|error| Error::new(ErrorKind::Limit, format!("no more threads: {error}")))?;
            all.1 = true;
        }
        Ok(Self(state))
    }

    /// Runs one exchange. If it times out, its connection is closed and a timeout error returned.
    pub fn exchange<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.0.began.store(now(), Ordering::Relaxed);
        let done = work();
        self.0.began.store(0, Ordering::Relaxed);
        done.map_err(|error| self.reason(error))
    }

    fn reason(&self, error: Error) -> Error {
        if self.0.overdue.load(Ordering::SeqCst) {
            Error::new(ErrorKind::Timeout, "the server did not send its whole answer within the time allowed")
                .hint("--timeout allows more")
        } else if cancel::is_cut() {
            cancel::error()
        } else {
            error
        }
    }
}

/// Checks all watched connections until there are none left.
fn watch() {
    loop {
        thread::sleep(EVERY);
        let mut all = all();
        all.0.retain(|state| state.strong_count() > 0);
        if all.0.is_empty() {
            all.1 = false;
            return;
        }
        let now = now();
        for state in all.0.iter().filter_map(Weak::upgrade) {
            let began = state.began.load(Ordering::Relaxed);
            let overdue = began > 0 && now.saturating_sub(began) > state.allowed.as_millis() as u64;
            if overdue && !state.overdue.swap(true, Ordering::SeqCst) || began > 0 && cancel::is_cut() {
                (state.end)();
            }
        }
    }
}

/// The coarse monotonic clock in milliseconds, never 0.
fn now() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec.unsigned_abs() * 1_000 + now.tv_nsec.unsigned_abs() / 1_000_000 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;
    use std::sync::mpsc;

    #[test]
    fn waiting_for_blocked_work_ends_at_the_limit() {
        let began = Instant::now();
        let late =
            within(Duration::from_millis(50), || thread::sleep(Duration::from_secs(20)), drop).unwrap();
        assert!(late.is_none() && began.elapsed() < Duration::from_secs(10));
        assert_eq!(within(Duration::from_secs(20), || 7, drop).unwrap(), Some(7));
        let error = within(Duration::from_secs(20), || -> u8 { panic!("a bad answer") }, drop).unwrap_err();
        assert!(error.to_string().contains("a bad answer"), "{error}");
    }

    #[test]
    fn socket_is_found_by_its_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let copy = own_socket(&client.local_addr().unwrap().to_string()).unwrap();
        assert_eq!(copy.peer_addr().unwrap(), listener.local_addr().unwrap());
        assert!(own_socket("127.0.0.1:1").is_none());
    }

    #[test]
    fn search_of_a_socket_keeps_locks_of_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert!(own_socket("127.0.0.1:1").is_none());
        // "1: POSIX  ADVISORY  WRITE 700 08:01:131 0 EOF", with the process and the file's number (proc_locks(5)).
        let (process, file) = (std::process::id().to_string(), file.as_file().metadata().unwrap().ino());
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let is_ours = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(4) == Some(&process.as_str())
                && fields.get(5).is_some_and(|place| place.ends_with(&format!(":{file}")))
        };
        assert!(locks.lines().any(is_ours), "{locks}");
    }

    #[test]
    fn exchange_that_is_overdue_is_ended() {
        let (end, ended) = mpsc::channel();
        let watched = Watched::new(Duration::from_millis(100), move || {
            let _ = end.send(());
        })
        .unwrap();
        assert_eq!(watched.exchange(|| Ok(7)).unwrap(), 7);
        let error = watched.exchange(|| -> Result<()> {
            ended.recv_timeout(Duration::from_secs(20)).unwrap();
            Err(Error::new(ErrorKind::ConnectionLost, "ended"))
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Timeout);
    }
}
