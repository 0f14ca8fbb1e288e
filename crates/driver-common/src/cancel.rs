//! Cancellation of the native clients' connections, when the user stops the run while a server does not answer.

use kurabe_core::{Error, ErrorKind};
use kurabe_reactor::{Guard, Lock};
use slab::Slab;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Set once connections were shut down: no new one is opened.
static CUT: AtomicBool = AtomicBool::new(false);
/// The open sockets.
static OPEN: Lock<Slab<Weak<TcpStream>>> = Lock::new(Slab::new());

fn open() -> Guard<'static, Slab<Weak<TcpStream>>> {
    OPEN.lock()
}

/// Shuts down all connections of the native clients, and prevents new ones. Blocked calls return an error of the kind
/// [`Interrupted`](ErrorKind::Interrupted). For a program that is about to exit.
pub fn cut_connections() {
    CUT.store(true, Ordering::SeqCst);
    // Sockets that were connected meanwhile are in the list already, or find the flag set.
    for socket in open().iter().filter_map(|(_, socket)| socket.upgrade()) {
        // An error means that it is closed already.
        let _ = socket.shutdown(Shutdown::Both);
    }
}

/// Whether connections were shut down.
pub fn is_cut() -> bool {
    CUT.load(Ordering::SeqCst)
}

/// The error of an interrupted operation.
pub fn error() -> Error {
    Error::new(ErrorKind::Interrupted, "stopped by the user")
}

/// Returns an error once connections were shut down.
pub fn check() -> io::Result<()> {
    if is_cut() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
}

/// A socket's slot in the list, freed on drop.
#[derive(Debug)]
pub struct Listed(usize);

/// Adds a socket to the list.
pub fn list(socket: &Arc<TcpStream>) -> io::Result<Listed> {
    let listed = Listed(open().insert(Arc::downgrade(socket)));
    check().map(|()| listed)
}

impl Drop for Listed {
    fn drop(&mut self) {
        open().try_remove(self.0);
    }
}
