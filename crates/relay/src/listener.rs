//! A thread that accepts connections.

use crate::LOOPBACK;
use crate::admission::{Admission, Clients, Refused};
use crate::own_socket::OwnSocket;
use crate::socket::Socket;
use crate::stream::Stream;
use rustix::net::{self, Shutdown};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The pause between two looks at connections.
pub(crate) const POLL: Duration = Duration::from_millis(5);

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// Port 0 chooses a free one.
    Tcp(SocketAddr),
    /// The file of a Unix socket, which is made with mode 0600, and removed at the end.
    Unix(PathBuf),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl From<SocketAddr> for At {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// Where to listen, and for whom. An address alone is for this process's own account.
#[derive(Clone, Debug)]
pub struct Listen {
    pub at: At,
    pub clients: Clients,
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self { at: At::Tcp(address), clients: Clients::Own }
    }
}

/// What listens.
enum Bound {
    Tcp(TcpListener),
    Unix(OwnSocket),
}

impl Bound {
    /// The next connection, if its client may connect.
    fn accept(&self, admission: &mut Admission) -> io::Result<Option<Socket>> {
        let (client, is_admitted) = match self {
            Self::Tcp(listener) => {
                let (client, from) = listener.accept()?;
                let is_admitted = admission.admits(&client, from);
                (Stream::tcp(client)?, is_admitted)
            }
            Self::Unix(socket) => {
                let client = socket.accept()?;
                let is_admitted = admission.admits_peer(&client);
                (client.into(), is_admitted)
            }
        };
        Ok(is_admitted.then_some(Socket::Plain(client)))
    }
}

impl AsFd for Bound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Accepts connections until it is dropped.
pub struct Listener {
    at: At,
    bound: Arc<Bound>,
    refused: Arc<Refused>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Calls `accept` with each connection of a client that may connect. Others are closed.
    ///
    /// # Errors
    /// If the address cannot be used, or there is no thread. [`Unsupported`](io::ErrorKind::Unsupported) if the system does not
    /// say which account a connection is of.
    pub fn start(listen: impl Into<Listen>, accept: impl Fn(Socket) + Send + 'static) -> io::Result<Self> {
        let Listen { at, clients } = listen.into();
        let (bound, at) = match at {
            At::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                let at = At::Tcp(listener.local_addr()?);
                (Bound::Tcp(listener), at)
            }
            At::Unix(path) => (Bound::Unix(OwnSocket::listen(&path, clients)?), At::Unix(path)),
        };
        let (bound, stop) = (Arc::new(bound), Arc::new(AtomicBool::new(false)));
        let mut admission = Admission::new(clients, &at)?;
        let refused = admission.refused();
        let (listening, stopped) = (Arc::clone(&bound), Arc::clone(&stop));
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || {
            loop {
                let client = listening.accept(&mut admission);
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                match client {
                    Ok(Some(client)) => accept(client),
                    Ok(None) => {}
                    // Out of file descriptors: others may end.
                    Err(_) => thread::sleep(POLL),
                }
            }
        })?;
        Ok(Self { at, bound, refused, stop, thread: Some(thread) })
    }

    /// The connections that were refused so far.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Where it listens.
    pub fn at(&self) -> &At {
        &self.at
    }

    /// Its address of TCP, or [`LOOPBACK`] if it listens at a Unix socket.
    pub fn address(&self) -> SocketAddr {
        if let At::Tcp(address) = self.at { address } else { LOOPBACK }
    }

    /// Accepts no further connections.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let Some(thread) = self.thread.take() else { return };
        // Wakes the thread, whose call fails.
        let _ = net::shutdown(&*self.bound, Shutdown::Both);
        let _ = thread.join();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}
