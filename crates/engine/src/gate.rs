//! Where clients wait until all of them are ready.
//!
//! A barrier would hang the others when one client dies on its way; here each client reports, ready or not, and the
//! coordinator opens the gate, or turns everybody away.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open(Instant),
    Abandoned,
}

pub(crate) struct Gate {
    state: Mutex<(usize, State)>,
    /// For the clients.
    changed: Condvar,
    /// For the coordinator: a client that reports must not wake all those that wait already.
    reported: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new((0, State::Closed)), changed: Condvar::new(), reported: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, (usize, State)> {
        // A client that panicked elsewhere left plain numbers behind: they are still right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has come as far as it will: ready, or dead.
    pub(crate) fn report(&self) {
        self.lock().0 += 1;
        self.reported.notify_one();
    }

    /// Waits until so many clients have reported.
    pub(crate) fn wait_for_reports(&self, clients: usize) {
        let mut state = self.lock();
        while state.0 < clients {
            state = self.reported.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets all clients go. They start together, `lead` from now, so that a schedule finds all of them awake.
    pub(crate) fn open(&self, lead: Duration) {
        let start = Instant::now() + lead;
        self.lock().1 = State::Open(start);
        self.changed.notify_all();
    }

    /// Sends all clients home.
    pub(crate) fn abandon(&self) {
        self.lock().1 = State::Abandoned;
        self.changed.notify_all();
    }

    /// Waits for the gate; the common start, or `None` where the trial was abandoned.
    pub(crate) fn pass(&self) -> Option<Instant> {
        let mut state = self.lock();
        loop {
            match state.1 {
                State::Closed => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                State::Open(start) => return Some(start),
                State::Abandoned => return None,
            }
        }
    }
}
