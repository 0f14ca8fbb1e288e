//! A connected socket as the system has it: TCP or Unix.

use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{self, RecvFlags, SendFlags};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time limit for connecting to a server.
const CONNECTING: Duration = Duration::from_secs(10);

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A host and its port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Server {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address.ip().to_string(), address.port())
    }
}

impl Server {
    /// The server at a port of loopback.
    pub fn local(port: u16) -> Self {
        Self::Tcp("127.0.0.1".to_owned(), port)
    }
}

/// A connected socket of the system, with one descriptor for all of its handles.
#[derive(Clone, Debug)]
pub struct Stream(Arc<OwnedFd>);

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self(Arc::new(stream.into()))
    }
}

impl Stream {
    /// Connects to a server.
    pub(crate) fn connect(server: &Server) -> io::Result<Self> {
        match server {
            Server::Unix(path) => UnixStream::connect(path).map(Self::from),
            Server::Tcp(host, port) => {
                let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECTING) {
                        Ok(stream) => return Self::tcp(stream),
                        Err(error) => failed = error,
                    }
                }
                Err(failed)
            }
        }
    }

    /// A TCP connection that sends small messages at once, as clients of databases do.
    pub(crate) fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(Arc::new(stream.into())))
    }

    /// Has its reads and writes never wait.
    pub(crate) fn never_wait(&self) -> io::Result<()> {
        Ok(ioctl_fionbio(self, true)?)
    }

    /// Closes one direction or both.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        let how = match how {
            Shutdown::Read => net::Shutdown::Read,
            Shutdown::Write => net::Shutdown::Write,
            Shutdown::Both => net::Shutdown::Both,
        };
        // It may be closed already.
        let _ = net::shutdown(self, how);
    }

    /// Limits how long one read waits.
    pub(crate) fn limit(&self, wait: Option<Duration>) -> io::Result<()> {
        Ok(set_socket_timeout(self, Timeout::Recv, wait)?)
    }

    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(net::recv(self, buffer, RecvFlags::empty())?.1)
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(self, bytes, SendFlags::NOSIGNAL)?)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
