//! Watches the memory of servers while a run goes on.

use super::{HINT, Stored, name, reserve, servers};
use crate::plan::Plan;
use crate::prepare::target::Target;
use kurabe_core::memory::{MemoryProbe, StoreMemory};
use kurabe_core::observation::Endpoint;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The least pause between two readings.
const PAUSE: Duration = Duration::from_millis(10);
/// A pause is at least this multiple of the time of a reading, so that readings use little of the server.
const PAUSE_FACTOR: u32 = 50;
/// The pause after an error.
const RETRY: Duration = Duration::from_millis(200);

/// Threads that read the memory of servers with values of others while a run goes on.
pub(crate) struct Watch<'scope> {
    /// Dropped to stop the threads.
    stop: Vec<Sender<()>>,
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
}

/// Why a run was stopped.
#[derive(Default)]
pub(crate) struct Stopped(Mutex<Option<Error>>);

impl Stopped {
    fn set(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<'scope> Watch<'scope> {
    /// Starts a thread for each server with limited memory that has keys of others. It sets `cancel` and `stopped` when the
    /// server is about to evict something.
    pub(crate) fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        plan: &'env Plan,
        targets: &'env [Target],
        cancel: &'env AtomicBool,
        stopped: &'env Stopped,
    ) -> Result<Self> {
        let mut watch = Self { stop: Vec::new(), threads: Vec::new() };
        if plan.spec.allow_eviction {
            return Ok(watch);
        }
        let mut seen: Vec<Endpoint> = Vec::new();
        for (at, target) in targets.iter().enumerate() {
            let endpoint = target.driver.endpoint();
            if seen.contains(&endpoint) {
                continue;
            }
            seen.push(endpoint);
            let value_bytes = Stored::new(plan, &[at]).value_bytes;
            for mut server in servers(target).map_err(|error| error.context(&target.name))? {
                let name = name(target, &server);
                let first = server.probe.read(value_bytes).map_err(|error| error.context(&name))?;
                let Some(first) = first.filter(|memory| memory.foreign_keys() > 0) else { continue };
                let (stop, ended) = channel();
                let work = move || {
                    let role = server.role;
                    let mut probe = Some(server.probe);
                    let read = || {
                        let mut open = match probe.take() {
                            Some(open) => open,
                            None => reopen(target, role)?,
                        };
                        let memory = open.read(value_bytes)?;
                        probe = Some(open);
                        Ok(memory)
                    };
                    if let Some(error) = watch_one(&name, first, read, |pause| {
                        ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
                    }) {
                        stopped.set(error);
                        cancel.store(true, Ordering::Relaxed);
                    }
                };
                let thread = thread::Builder::new().name("memory".to_owned()).spawn_scoped(scope, work);
                let thread = thread.map_err(|why| Error::no_thread("the memory's readings", why))?;
                watch.stop.push(stop);
                watch.threads.push(thread);
            }
        }
        Ok(watch)
    }

    /// Stops the threads and waits for them.
    pub(crate) fn end(self) {
        drop(self.stop);
        for thread in self.threads {
            // A thread that panicked has nothing to report.
            let _ = thread.join();
        }
    }
}

/// Opens the probe of a server again, after its connection was lost.
fn reopen(target: &Target, role: &str) -> Result<Box<dyn MemoryProbe>> {
    let found = servers(target)?.into_iter().find(|server| server.role == role);
    found.map(|server| server.probe).ok_or_else(|| Error::new(ErrorKind::NotFound, "the server is gone"))
}

/// Reads a server's memory until `wait` returns `false`, and once more then. Returns an error when the run must stop.
fn watch_one(
    name: &str,
    first: StoreMemory,
    mut read: impl FnMut() -> Result<Option<StoreMemory>>,
    mut wait: impl FnMut(Duration) -> bool,
) -> Option<Error> {
    let (mut last, mut pause, mut fastest) = (first, PAUSE, Duration::MAX);
    let mut goes_on = true;
    while goes_on {
        // What happened in the last pause counts too.
        goes_on = wait(pause);
        let began = Instant::now();
        let now = match read() {
            Ok(Some(now)) => now,
            // The limit was removed.
            Ok(None) => return None,
            // A server that does not answer evicts nothing, and its trials fail. Its counter tells later what happened.
            Err(_) => {
                pause = RETRY;
                continue;
            }
        };
        if let Some(error) = judge(name, &last, &now) {
            return Some(error);
        }
        // A busy machine may delay the others.
        fastest = fastest.min(began.elapsed());
        pause = PAUSE.max(fastest * PAUSE_FACTOR);
        last = now;
    }
    None
}

/// Whether the run must stop, from two successive readings.
fn judge(name: &str, last: &StoreMemory, now: &StoreMemory) -> Option<Error> {
    let stop = |what: String| {
        let why = format!("{name}: {what}, so the run was stopped ({})", now.set_by);
        Some(Error::new(ErrorKind::Limit, why).hint(HINT))
    };
    let evicted = now.evicted.saturating_sub(last.evicted);
    if evicted > 0 {
        let evicted = units::count(evicted);
        return stop(format!(
            "the server evicted {evicted} values during the run, which may be those of others"
        ));
    }
    // The run itself leaves the whole reserve: the estimate was wrong, or others write too.
    if now.free < reserve(now) / 2 {
        let [free, limit] = [now.free, now.limit].map(units::size);
        return stop(format!(
            "the server has only {free} of {limit} of memory left, and then {}",
            now.when_full
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::eviction::tests::memory;
    use std::collections::VecDeque;

    fn watched(readings: &[StoreMemory]) -> Option<String> {
        let mut left: VecDeque<StoreMemory> = readings.iter().skip(1).cloned().collect();
        let count = left.len();
        let mut waits = 0;
        let read = || Ok(left.pop_front());
        let wait = |_| {
            waits += 1;
            waits <= count
        };
        watch_one("cache", readings[0].clone(), read, wait).map(|error| error.to_string())
    }

    #[test]
    fn run_stops_before_the_memory_is_full_and_at_an_eviction() {
        let mb = |free: u64| memory(free * 1_000_000, 0);
        assert_eq!(watched(&[mb(30), mb(29), mb(28), mb(28)]), None);
        let full = watched(&[mb(10), mb(9), mb(8), mb(2)]).unwrap();
        assert!(full.contains("only 2 MB of 60 MB"), "{full}");
        let evicted = watched(&[mb(30), memory(30_000_000, 7)]).unwrap();
        assert!(evicted.contains("evicted 7 values"), "{evicted}");
    }
}
