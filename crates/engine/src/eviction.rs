//! Protects the values of other users in a server with limited memory, such as a cache.
//!
//! Before anything is loaded, [`check`] compares what the run stores with what is free. During the run [`Watch`] reads
//! the memory, and stops the run before the server evicts anything, or at once if it has evicted something.

use crate::plan::{Plan, RunCell};
use crate::target::Target;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::memory::{LimitedServer, MemoryProbe, StoreMemory};
use kurabe_core::observation::Endpoint;
use kurabe_core::planned::PlannedCell;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::collections::HashSet;
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
/// Time limit of each answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a server's memory for one connection.
const CONNECTION: u64 = 64 << 10;

/// What the run stores on one target.
#[derive(Default)]
struct Stored {
    values: u64,
    bytes: u64,
    /// The largest mean size of a value.
    value_bytes: u64,
    /// Memory for connections and their requests.
    connections: u64,
}

impl Stored {
    /// What all cells on the servers of one target store. Cells that share data count once.
    fn of(plan: &Plan, targets: &[usize]) -> Self {
        let (mut all, mut counted) = (Self::default(), HashSet::new());
        let here = plan.cells.iter().filter(|cell| targets.contains(&cell.record.target));
        for run_cell in here.filter(|cell| !cell.record.second_instance) {
            let Some(cell) = run_cell.available() else { continue };
            let each = cell.stored_bytes.unwrap_or(cell.demand.value_bytes).max(1);
            all.value_bytes = all.value_bytes.max(each);
            let connections =
                cell.connections().saturating_mul(CONNECTION.saturating_add(cell.demand.request_bytes));
            all.connections = all.connections.max(connections);
            if counted.insert((run_cell.slot, &cell.dataset)) {
                all.add(cell.demand.loaded_bytes, each);
            }
            all.add(added(plan, run_cell, cell).saturating_mul(each), each);
        }
        all
    }

    fn add(&mut self, bytes: u64, each: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.values = self.values.saturating_add(bytes.div_ceil(each));
    }

    fn needed(&self, memory: &StoreMemory) -> u64 {
        memory.needed(self.values, self.bytes).saturating_add(self.connections)
    }
}

/// Values that a trial of a cell may add, where the number of its requests is known. [`Watch`] stops others.
fn added(plan: &Plan, run_cell: &RunCell, cell: &PlannedCell) -> u64 {
    let is_measured = |name: &str| !run_cell.record.unavailable_operations.contains_key(name);
    let writes = plan.operations.iter().filter(|operation| operation.writes && is_measured(operation.name));
    // A capacity says that records are changed in place.
    let requests = writes.filter(|_| cell.policy.capacity.is_none()).filter_map(|operation| {
        let stop = plan.stop(operation);
        stop.requests.filter(|_| stop.duration.is_none())
    });
    requests.max().unwrap_or(0)
}

/// The memory that stays free besides what the run needs: the time until [`Watch`] notices what is written.
fn reserve(memory: &StoreMemory) -> u64 {
    (memory.limit / 10).min(64 << 20)
}

/// The servers of a target that others may use.
fn servers(target: &Target) -> Result<Vec<LimitedServer>> {
    if target.skip_reason.is_some() {
        return Ok(Vec::new());
    }
    let mut servers = target.driver.limited_servers(&ConnectOptions::within(TIMEOUT))?;
    // A throwaway server has no other users.
    servers.retain(|server| !server.role.is_empty() || target.restart.is_none());
    Ok(servers)
}

/// Opens the probe of a server again, after its connection was lost.
fn reopen(target: &Target, role: &str) -> Result<Box<dyn MemoryProbe>> {
    let found = servers(target)?.into_iter().find(|server| server.role == role);
    found.map(|server| server.probe).ok_or_else(|| Error::new(ErrorKind::NotFound, "the server is gone"))
}

/// A target's name, with the role of one of its servers.
fn name(target: &Target, server: &LimitedServer) -> String {
    let role = server.role;
    if role.is_empty() { target.name.clone() } else { format!("{}: {role}", target.name) }
}

/// Checks that what the run loads fits into the free memory of each server that evicts values or refuses the writes of
/// others when it is full. Call it when the targets hold nothing of earlier runs.
///
/// # Errors
/// [`Limit`](ErrorKind::Limit) with the figures; or the server's error.
pub fn check(plan: &Plan, targets: &[Target]) -> Result<()> {
    if plan.spec.allow_eviction {
        return Ok(());
    }
    let mut seen: Vec<Endpoint> = Vec::new();
    for target in targets {
        let endpoint = target.driver.endpoint();
        if seen.contains(&endpoint) {
            continue;
        }
        let same = targets.iter().enumerate().filter(|(_, other)| other.driver.endpoint() == endpoint);
        let stored = Stored::of(plan, &same.map(|(at, _)| at).collect::<Vec<_>>());
        seen.push(endpoint);
        for mut server in servers(target).map_err(|error| error.context(&target.name))? {
            let name = name(target, &server);
            let read = server.probe.read(stored.value_bytes).map_err(|error| error.context(&name))?;
            if let Some(memory) = read {
                fits(&name, &memory, &stored)?;
            }
        }
    }
    Ok(())
}

fn fits(name: &str, memory: &StoreMemory, stored: &Stored) -> Result<()> {
    let others = memory.foreign_keys();
    let needed = stored.needed(memory).saturating_add(if others > 0 { reserve(memory) } else { 0 });
    if needed <= memory.free {
        return Ok(());
    }
    let keys = match others {
        0 => "no keys of others".to_owned(),
        1 => "1 key of others".to_owned(),
        many => format!("{} keys of others", units::count(many)),
    };
    let [needed, free, limit] = [needed, memory.free, memory.limit].map(units::size);
    let (set_by, when_full) = (&memory.set_by, &memory.when_full);
    let why = format!(
        "{name}: the run needs about {needed} of memory, and the server has {free} free of {limit} ({set_by}), with \
         {keys}; when its memory is full, it {when_full}"
    );
    Err(Error::new(ErrorKind::Limit, why).hint(
        "use fewer --records or a smaller --payload, or another server; --allow-eviction runs all the same, and the \
         server may lose the values of others",
    ))
}

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
    ///
    /// # Errors
    /// The server's error.
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
            let value_bytes = Stored::of(plan, &[at]).value_bytes;
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
                let thread = thread.map_err(|error| {
                    Error::new(ErrorKind::Limit, format!("no thread can be started: {error}"))
                })?;
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

/// Reads a server's memory until `wait` returns `false`, and once more then. Returns an error when the run must stop.
fn watch_one(
    name: &str,
    first: StoreMemory,
    mut read: impl FnMut() -> Result<Option<StoreMemory>>,
    mut wait: impl FnMut(Duration) -> bool,
) -> Option<Error> {
    let mut last = first;
    let mut pause = PAUSE;
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
        pause = PAUSE.max(began.elapsed() * PAUSE_FACTOR);
        last = now;
    }
    None
}

/// Whether the run must stop, from two successive readings.
fn judge(name: &str, last: &StoreMemory, now: &StoreMemory) -> Option<Error> {
    let hint = "use fewer --records or --requests, a smaller --payload, or another server; --allow-eviction runs all \
                the same";
    let stop = |what: String| {
        let why = format!("{name}: {what}, so the run was stopped ({})", now.set_by);
        Some(Error::new(ErrorKind::Limit, why).hint(hint))
    };
    let evicted = now.evicted.saturating_sub(last.evicted);
    if evicted > 0 {
        let evicted = units::count(evicted);
        return stop(format!(
            "the server evicted {evicted} values during the run, which may be those of others"
        ));
    }
    // As much again as in the last pause is written before the clients stop.
    let growth = last.free.saturating_sub(now.free);
    if now.free < (reserve(now) / 2).max(3 * growth) {
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
    use std::collections::VecDeque;

    fn memory(free: u64, evicted: u64) -> StoreMemory {
        StoreMemory {
            limit: 60_000_000,
            set_by: "maxmemory = 62914560".to_owned(),
            free,
            keys: 1_001,
            own_keys: 1,
            evicted,
            when_full: "evicts keys (maxmemory-policy = allkeys-lru)".to_owned(),
            value_overhead: 100,
        }
    }

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
    fn load_that_does_not_fit_is_refused_with_figures() {
        let stored = Stored { values: 1_000, bytes: 10_000_000, value_bytes: 10_000, connections: 0 };
        assert_eq!(fits("cache", &memory(30_000_000, 0), &stored), Ok(()));
        let error = fits("cache", &memory(13_000_000, 0), &stored).unwrap_err().to_string();
        for part in
            ["cache: ", "13 MB free of 60 MB", "1,000 keys of others", "allkeys-lru", "--allow-eviction"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        // Without keys of others no reserve is needed.
        let alone = StoreMemory { keys: 1, ..memory(13_000_000, 0) };
        assert_eq!(fits("cache", &alone, &stored), Ok(()));
        assert!(fits("cache", &StoreMemory { free: 11_000_000, ..alone }, &stored).is_err());
    }

    #[test]
    fn run_stops_before_the_memory_is_full_and_at_an_eviction() {
        let mb = |free: u64| memory(free * 1_000_000, 0);
        assert_eq!(watched(&[mb(30), mb(29), mb(28), mb(28)]), None);
        let full = watched(&[mb(10), mb(9), mb(8), mb(2)]).unwrap();
        assert!(full.contains("only 2 MB of 60 MB"), "{full}");
        // The next pause would fill it.
        assert!(watched(&[mb(30), mb(24)]).is_none());
        assert!(watched(&[mb(30), mb(24), mb(17)]).is_some());
        let evicted = watched(&[mb(30), memory(30_000_000, 7)]).unwrap();
        assert!(evicted.contains("evicted 7 values"), "{evicted}");
    }
}
