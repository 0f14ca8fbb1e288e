//! Connection and server events of the crate: which connections belong to a session, and why no server was found.

use mongodb::error::Error;
use mongodb::error::ErrorKind::{InvalidResponse, InvalidTlsConfig, Io};
use mongodb::event::cmap::CmapEvent;
use mongodb::event::sdam::SdamEvent;
use mongodb::options::ServerAddress;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Identifies a connection: the crate has one pool for each server, which numbers its connections.
pub(super) type Id = (ServerAddress, u32);

thread_local! {
    /// The connection that this thread's request checked out. The crate emits the event while this thread polls the
    /// request's future.
    static GOT: RefCell<Option<Id>> = const { RefCell::new(None) };
}

/// Takes the connection that this thread's request checked out since the last call.
pub(super) fn got() -> Option<Id> {
    GOT.take()
}

/// The crate's pools, one for each server. Sessions are counted against the pool of the server that receives pings and
/// writes (`home`); reads may use another server (`readPreference`).
#[derive(Debug, Default)]
struct Pools {
    home: Option<ServerAddress>,
    of_servers: HashMap<ServerAddress, Pool>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    /// Open connections.
    open: i64,
    /// Connections in use by a request or a ping.
    busy: i64,
}

impl Pools {
    fn of(&mut self, server: &ServerAddress) -> &mut Pool {
        self.of_servers.entry(server.clone()).or_default()
    }

    fn at_home(&self) -> Pool {
        self.home.as_ref().and_then(|home| self.of_servers.get(home)).copied().unwrap_or_default()
    }
}

/// State of the pools, updated by the crate's events and shared by all sessions of a driver.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Connections that belong to an open session.
    claimed: Mutex<HashSet<Id>>,
    pools: Mutex<Pools>,
    /// Number of open sessions.
    sessions: AtomicUsize,
    /// Whether the server has ever answered.
    answered: AtomicBool,
    /// The failure of the last heartbeat.
    failure: Mutex<Option<Error>>,
}

impl Ledger {
    pub(super) fn connection_event(&self, event: CmapEvent) {
        match event {
            CmapEvent::ConnectionCheckedOut(event) => {
                lock(&self.pools).of(&event.address).busy += 1;
                GOT.replace(Some((event.address, event.connection_id)));
            }
            CmapEvent::ConnectionCheckedIn(event) => lock(&self.pools).of(&event.address).busy -= 1,
            CmapEvent::ConnectionCreated(event) => lock(&self.pools).of(&event.address).open += 1,
            CmapEvent::ConnectionClosed(event) => {
                lock(&self.pools).of(&event.address).open -= 1;
                lock(&self.claimed).remove(&(event.address, event.connection_id));
            }
            _ => {}
        }
    }

    pub(super) fn server_event(&self, event: SdamEvent) {
        match event {
            SdamEvent::ServerHeartbeatSucceeded(_) => {
                self.answered.store(true, Ordering::Relaxed);
                *lock(&self.failure) = None;
            }
            SdamEvent::ServerHeartbeatFailed(event) => *lock(&self.failure) = Some(event.failure),
            _ => {}
        }
    }

    /// Registers a connection for a session; `false` if another session has it already.
    pub(super) fn claim(&self, id: Id) -> bool {
        lock(&self.pools).home = Some(id.0.clone());
        lock(&self.claimed).insert(id)
    }

    pub(super) fn session_begins(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn session_ends(&self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether there are more connections than sessions.
    pub(super) fn has_spare(&self) -> bool {
        lock(&self.pools).at_home().open > self.sessions.load(Ordering::Relaxed) as i64
    }

    /// The number of idle connections.
    pub(super) fn idle(&self) -> usize {
        let pool = lock(&self.pools).at_home();
        (pool.open - pool.busy).max(0) as usize
    }

    /// Why the server does not answer.
    pub(super) fn failure(&self) -> Option<Error> {
        lock(&self.failure).clone()
    }

    /// A failure that waiting does not resolve, if the server has never answered.
    pub(super) fn refusal(&self) -> Option<Error> {
        if self.answered.load(Ordering::Relaxed) {
            return None;
        }
        let is_final =
            |error: &Error| matches!(&*error.kind, Io(_) | InvalidResponse { .. } | InvalidTlsConfig { .. });
        self.failure().filter(is_final)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_used_only_for_reads_are_not_spare() {
        let ledger = Ledger::default();
        let [primary, secondary] = ["a:1", "b:1"].map(|address| ServerAddress::parse(address).unwrap());
        assert!(!ledger.has_spare());
        ledger.session_begins();
        for server in [&primary, &secondary, &secondary] {
            lock(&ledger.pools).of(server).open += 1;
        }
        assert!(ledger.claim((primary.clone(), 1)));
        assert_eq!((ledger.has_spare(), ledger.idle()), (false, 1));
        lock(&ledger.pools).of(&primary).busy += 1;
        assert_eq!(ledger.idle(), 0);
        ledger.session_ends();
        assert!(ledger.has_spare());
    }
}
