//! A gate at which clients wait until all of them are ready.
//!
//! With a barrier, a client that ends early would block the others. Here each client reports, ready or not, and the
//! coordinator opens the gate or abandons the trial.

use kurabe_reactor::{Condition, Lock};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq)]
enum GateState {
    Closed,
    Open(Instant),
    Abandoned,
}

pub(crate) struct Gate {
    state: Lock<(usize, GateState)>,
    /// For the clients.
    changed: Condition,
    /// For the coordinator. A report must not wake the clients that wait already.
    reported: Condition,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            state: Lock::new((0, GateState::Closed)),
            changed: Condition::new(),
            reported: Condition::new(),
        }
    }

    /// Reports that a client is ready or has failed.
    pub(crate) fn report(&self) {
        self.state.lock().0 += 1;
        self.reported.notify_one();
    }

    /// Waits until that many clients have reported.
    pub(crate) fn wait_for_reports(&self, clients: usize) {
        let mut state = self.state.lock();
        while state.0 < clients {
            state = self.reported.wait(state);
        }
    }

    /// Opens the gate. Clients start together, `lead` from now, so that all of them are awake when a schedule begins.
    pub(crate) fn open(&self, lead: Duration) {
        let start = Instant::now() + lead;
        self.state.lock().1 = GateState::Open(start);
        self.changed.notify_all();
    }

    /// Abandons the trial: all waiting clients end.
    pub(crate) fn abandon(&self) {
        self.state.lock().1 = GateState::Abandoned;
        self.changed.notify_all();
    }

    /// Waits for the gate. Returns the common start time, or `None` if the trial was abandoned.
    pub(crate) fn pass(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        loop {
            match state.1 {
                GateState::Closed => state = self.changed.wait(state),
                GateState::Open(start) => return Some(start),
                GateState::Abandoned => return None,
            }
        }
    }
}
