//! Cancellation of the native clients' connections, when the user stops the run while a server does not answer.

use kurabe_core::{Error, ErrorKind};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Set once connections were shut down: no new one is opened.
static CUT: AtomicBool = AtomicBool::new(false);
static OPEN: Mutex<Open> = Mutex::new(Open { sockets: Vec::new(), free: Vec::new() });

/// The open sockets; slots of closed ones are reused.
struct Open {
    sockets: Vec<Weak<TcpStream>>,
    free: Vec<usize>,
}

fn open() -> MutexGuard<'static, Open> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shuts down all connections of the native clients, and prevents new ones. Blocked calls return an error of the kind
/// [`Interrupted`](ErrorKind::Interrupted). For a program that is about to exit.
pub fn cut_connections() {
    CUT.store(true, Ordering::SeqCst);
    // Sockets that were connected meanwhile are in the list already, or find the flag set.
    for socket in open().sockets.iter().filter_map(Weak::upgrade) {
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
