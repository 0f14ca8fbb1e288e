//! A gate at which clients wait until all of them are ready.
//!
//! With a barrier, a client that ends early would block the others. Here each client reports, ready or not, and the
//! coordinator opens the gate or abandons the trial.

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
    /// For the coordinator. A report must not wake the clients that wait already.
    reported: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new((0, State::Closed)), changed: Condvar::new(), reported: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, (usize, State)> {
        // The state contains plain numbers only, so it is valid even after a client's panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that a client is ready or has failed.
    pub(crate) fn report(&self) {
        self.lock().0 += 1;
        self.reported.notify_one();
    }

    /// Waits until that many clients have reported.
    pub(crate) fn wait_for_reports(&self, clients: usize) {
        let mut state = self.lock();
        while state.0 < clients {
            state = self.reported.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Opens the gate. Clients start together, `lead` from now, so that all of them are awake when a schedule begins.
    pub(crate) fn open(&self, lead: Duration) {
        let start = Instant::now() + lead;
        self.lock().1 = State::Open(start);
        self.changed.notify_all();
    }

    /// Abandons the trial: all waiting clients end.
    pub(crate) fn abandon(&self) {
        self.lock().1 = State::Abandoned;
        self.changed.notify_all();
    }

    /// Waits for the gate. Returns the common start time, or `None` if the trial was abandoned.
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
