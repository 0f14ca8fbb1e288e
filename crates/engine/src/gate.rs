//! Where clients wait until all of them are ready, and until all of them have ended.
//!
//! A barrier would hang the others when one client dies on its way; here each client reports, ready or not, and the
//! coordinator opens the gate, or turns everybody away. At the end too: a connection that is closed, and a server's process
//! that ends with it, must not slow down those that are still being measured.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open(Instant),
    Abandoned,
    /// All have ended: they may close what they hold.
    Dismissed,
}

struct Book {
    /// Clients that have come as far as they will.
    ready: usize,
    /// Clients that have nothing more to measure.
    ended: usize,
    state: State,
}

pub(crate) struct Gate {
    book: Mutex<Book>,
    /// What clients wait for: the state.
    changed: Condvar,
    /// What the coordinator waits for: the counts. Apart from the other, or each of a thousand reports would wake a
    /// thousand clients.
    counted: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let book = Book { ready: 0, ended: 0, state: State::Closed };
        Self { book: Mutex::new(book), changed: Condvar::new(), counted: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // A client that panicked elsewhere left plain numbers behind: they are still right.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has come as far as it will: ready, or dead.
    pub(crate) fn report(&self) {
        self.lock().ready += 1;
        self.counted.notify_all();
    }

    /// A client has nothing more to measure, or never had.
    pub(crate) fn end(&self) {
        self.lock().ended += 1;
        self.counted.notify_all();
    }

    /// Waits until so many clients have reported.
    pub(crate) fn wait_for_reports(&self, clients: usize) {
        self.wait_for(|book| book.ready >= clients);
    }

    /// Waits until so many clients have ended.
    pub(crate) fn wait_for_ends(&self, clients: usize) {
        self.wait_for(|book| book.ended >= clients);
    }

    fn wait_for(&self, reached: impl Fn(&Book) -> bool) {
        let mut book = self.lock();
        while !reached(&book) {
            book = self.counted.wait(book).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets all clients go. They start together, `lead` from now, so that a schedule finds all of them awake.
    pub(crate) fn open(&self, lead: Duration) {
        self.turn(State::Open(Instant::now() + lead));
    }

    /// Sends all clients home.
    pub(crate) fn abandon(&self) {
        self.turn(State::Abandoned);
    }

    /// Lets all clients close what they hold.
    pub(crate) fn dismiss(&self) {
        self.turn(State::Dismissed);
    }

    fn turn(&self, state: State) {
        self.lock().state = state;
        self.changed.notify_all();
    }

    /// Waits for the gate; the common start, or `None` where the trial was abandoned.
    pub(crate) fn pass(&self) -> Option<Instant> {
        let mut book = self.lock();
        loop {
            match book.state {
                State::Closed => book = self.changed.wait(book).unwrap_or_else(PoisonError::into_inner),
                State::Open(start) => return Some(start),
                State::Abandoned | State::Dismissed => return None,
            }
        }
    }

    /// Waits until all have ended.
    pub(crate) fn wait_for_dismissal(&self) {
        let mut book = self.lock();
        while book.state != State::Dismissed {
            book = self.changed.wait(book).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
