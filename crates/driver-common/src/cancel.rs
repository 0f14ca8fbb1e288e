//! Ending what the native clients wait for, once the user has stopped the run and a server does not answer.

use crate::wire::End;
use kurabe_core::{Error, ErrorKind};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Set once connections were cut: no new one is made.
static CUT: AtomicBool = AtomicBool::new(false);
static OPEN: Mutex<Open> = Mutex::new(Open { sockets: Vec::new(), free: Vec::new() });

/// The open sockets; places of closed ones are used again.
struct Open {
    sockets: Vec<Weak<End>>,
    free: Vec<usize>,
}

fn open() -> MutexGuard<'static, Open> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shuts all connections of the native clients down, and lets none be made from now on: whoever waits for a server
/// goes on with an error of the kind [`Interrupted`](ErrorKind::Interrupted). For a program that is about to end.
pub fn cut_connections() {
    CUT.store(true, Ordering::SeqCst);
    // Sockets that were connected meanwhile are in the list already, or find the flag set.
    for socket in open().sockets.iter().filter_map(Weak::upgrade) {
        socket.shut_down();
    }
}

/// Whether connections were cut.
pub fn is_cut() -> bool {
    CUT.load(Ordering::SeqCst)
}

/// The error of whoever waited.
pub fn error() -> Error {
    Error::new(ErrorKind::Interrupted, "stopped by the user")
}

/// Fails once connections were cut.
pub fn check() -> io::Result<()> {
    if is_cut() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
}

/// A socket's place in the list, which it leaves when this is dropped.
#[derive(Debug)]
pub struct Listed(usize);

/// Enters a socket.
pub fn list(socket: &Arc<End>) -> io::Result<Listed> {
    let mut open = open();
    let place = open.free.pop().unwrap_or_else(|| {
        open.sockets.push(Weak::new());
        open.sockets.len() - 1
    });
    open.sockets[place] = Arc::downgrade(socket);
    drop(open);
    let listed = Listed(place);
    check().map(|()| listed)
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut open = open();
        open.sockets[self.0] = Weak::new();
        open.free.push(self.0);
    }
}
