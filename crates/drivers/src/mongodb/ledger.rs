//! What the crate says of its connections: which of them belong to a session, and why no server was found.

use mongodb::error::Error;
use mongodb::error::ErrorKind::{InvalidResponse, InvalidTlsConfig, Io};
use mongodb::event::cmap::CmapEvent;
use mongodb::event::sdam::SdamEvent;
use mongodb::options::ServerAddress;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection of the crate's pool: pools are one a server, and number their connections.
pub(super) type Id = (ServerAddress, u32);

thread_local! {
    /// The connection that the request which this thread drives has got. The crate tells of it from within the poll of
    /// the request's own future, thus in the thread whose request it is.
    static GOT: RefCell<Option<Id>> = const { RefCell::new(None) };
}

/// The connection that this thread's request got since the last call.
pub(super) fn got() -> Option<Id> {
    GOT.take()
}

/// Shared by the crate, which writes it, and all sessions of a driver.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Connections that were made for a session that is still open.
    claimed: Mutex<HashSet<Id>>,
    /// Connections that there are.
    open: AtomicUsize,
    /// Connections that a request or a ping has.
    busy: AtomicUsize,
    /// Sessions that there are.
    sessions: AtomicUsize,
    /// Whether the server has ever answered.
    answered: AtomicBool,
    /// Why it last did not.
    failure: Mutex<Option<Error>>,
}

impl Ledger {
    pub(super) fn connection_event(&self, event: CmapEvent) {
        match event {
            CmapEvent::ConnectionCheckedOut(event) => {
                self.busy.fetch_add(1, Ordering::Relaxed);
                GOT.replace(Some((event.address, event.connection_id)));
            }
            CmapEvent::ConnectionCheckedIn(_) => {
                self.busy.fetch_sub(1, Ordering::Relaxed);
            }
            CmapEvent::ConnectionCreated(_) => {
                self.open.fetch_add(1, Ordering::Relaxed);
            }
            CmapEvent::ConnectionClosed(event) => {
                self.open.fetch_sub(1, Ordering::Relaxed);
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

    /// Enters a connection as a session's own; `false` where it is one already.
    pub(super) fn claim(&self, id: Id) -> bool {
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
        self.open.load(Ordering::Relaxed) > self.sessions.load(Ordering::Relaxed)
    }

    /// How many connections nobody uses just now.
    pub(super) fn idle(&self) -> usize {
        self.open.load(Ordering::Relaxed).saturating_sub(self.busy.load(Ordering::Relaxed))
    }

    /// Why the server does not answer.
    pub(super) fn failure(&self) -> Option<Error> {
        lock(&self.failure).clone()
    }

    /// Why it never will: it has not answered yet, and the first attempt failed in a way that waiting does not change.
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
