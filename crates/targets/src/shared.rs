//! The throwaway servers of a run, and those that several runs use, one run after the other.

use crate::reporter::Reporter;
use crate::throwaway::{not_started, start, with_server_affinity};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_engine::prepare::target::Restrict;
use kurabe_testbed::{Server, StartOptions, TestbedError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The note in the facts of a target whose server has served an earlier run.
pub(crate) const REUSED: &str = "the throwaway server was started for an earlier run of the suite, and kept";

/// Throwaway servers that outlive a run. The next run that needs an equal one uses it again. They run until
/// [`SharedServers::stop`], or until this is dropped.
#[derive(Debug)]
pub struct SharedServers {
    connections: u64,
    kept: Mutex<Vec<Kept>>,
}

/// What a server must have been started for, to be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Purpose {
    url: TargetUrl,
    durability: Option<String>,
    cpu_partition: Option<CpuPartition>,
}

impl Purpose {
    fn new(url: &TargetUrl, options: &StartOptions, cpu_partition: Option<&CpuPartition>) -> Self {
        let (durability, cpu_partition) = (options.durability.clone(), cpu_partition.cloned());
        Self { url: url.clone(), durability, cpu_partition }
    }
}

#[derive(Debug)]
struct Kept {
    purpose: Purpose,
    started: Started,
}

/// A throwaway server of a run.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) server: Arc<Server>,
    /// Whether a run restricted it to other processors.
    pub(crate) restricted: Arc<AtomicBool>,
    /// Whether it has served an earlier run.
    pub(crate) reused: bool,
}

impl Started {
    /// A server that no earlier run has used.
    pub(crate) fn new(server: Server) -> Self {
        Self { server: Arc::new(server), restricted: Arc::default(), reused: false }
    }
}

impl SharedServers {
    /// No servers yet. Each will allow this number of connections at least: the largest that any of the runs needs.
    pub fn new(connections: u64) -> Self {
        Self { connections, kept: Mutex::default() }
    }

    /// Whether a kept server can be used again for this.
    pub(crate) fn has_free(
        &self,
        url: &TargetUrl,
        options: &StartOptions,
        cpu_partition: Option<&CpuPartition>,
    ) -> bool {
        self.free(&Purpose::new(url, options, cpu_partition)).is_some()
    }

    /// A server that no run uses at present: a kept one, or a new one. A kept server that was restricted to processors is
    /// restarted, which ends the restriction.
    ///
    /// # Errors
    /// If it does not start.
    pub(crate) fn take(
        &self,
        url: &TargetUrl,
        options: &StartOptions,
        cpu_partition: Option<&CpuPartition>,
    ) -> Result<Started> {
        let purpose = Purpose::new(url, options, cpu_partition);
        if let Some(started) = self.free(&purpose) {
            if started.restricted.swap(false, Ordering::Relaxed) {
                with_server_affinity(cpu_partition, || started.server.restart())
                    .map_err(|error| not_started(&error))?;
            }
            return Ok(started);
        }
        let mut options = options.clone();
        options.connections = options.connections.max(self.connections);
        let started = Started::new(with_server_affinity(cpu_partition, || start(url, &options))?);
        let kept = Started { reused: true, ..started.clone() };
        self.lock().push(Kept { purpose, started: kept });
        Ok(started)
    }

    /// A kept server for this purpose that still runs, and that no run holds. Those that ended are removed.
    fn free(&self, purpose: &Purpose) -> Option<Started> {
        let mut kept = self.lock();
        let is_held = |kept: &Kept| Arc::strong_count(&kept.started.server) > 1;
        kept.retain(|kept| is_held(kept) || kept.started.server.died().is_none());
        let found = kept.iter().find(|kept| kept.purpose == *purpose && !is_held(kept));
        found.map(|kept| kept.started.clone())
    }

    /// Stops all servers at the same time and removes their data.
    pub fn stop(&self, reporter: &dyn Reporter) {
        let kept = std::mem::take(&mut *self.lock());
        let servers: Vec<Server> =
            kept.into_iter().filter_map(|kept| Arc::into_inner(kept.started.server)).collect();
        let errors: Vec<_> = thread::scope(|scope| {
            let stops: Vec<_> =
                servers.into_iter().map(|server| scope.spawn(move || server.stop())).collect();
            // A panic has dropped the server, which stops it.
            stops.into_iter().filter_map(|stop| stop.join().ok()?.err()).collect()
        });
        for error in errors {
            reporter.warning(&error.to_string());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a server, and a second instance at the same time if needed; or takes them from the shared ones.
pub(crate) fn start_twice(
    url: &TargetUrl,
    options: &StartOptions,
    twice: bool,
    shared: Option<&SharedServers>,
    cpu_partition: Option<&CpuPartition>,
) -> Result<(Started, Option<Started>)> {
    let start = || match shared {
        Some(shared) => shared.take(url, options, cpu_partition),
        None => with_server_affinity(cpu_partition, || start(url, options)).map(Started::new),
    };
    if !twice {
        return Ok((start()?, None));
    }
    thread::scope(|scope| {
        let other =
            thread::Builder::new().name("start".to_owned()).spawn_scoped(scope, start).map_err(|e| {
                Error::new(ErrorKind::Limit, format!("no thread could be started for the server: {e}"))
            })?;
        let server = start();
        let other = other
            .join()
            .map_err(|_| Error::new(ErrorKind::Internal, "the thread that starts a server panicked"))?
            .map_err(|error| error.context("the second instance"));
        Ok((server?, Some(other?)))
    })
}

/// A function that restricts a throwaway server to processors.
pub(crate) fn restricting(started: &Started) -> Restrict {
    let Started { server, restricted, .. } = started.clone();
    Box::new(move |cpus, pinned| {
        restricted.store(true, Ordering::Relaxed);
        let failed = |error: TestbedError| Error::new(ErrorKind::Environment, error.to_string());
        server.restrict(cpus, pinned).map_err(failed)
    })
}
