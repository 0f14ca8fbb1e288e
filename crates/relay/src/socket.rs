//! A connected socket: TCP or Unix, with or without TLS.

use crate::Way;
use crate::queue::Queue;
use crate::tls::Tls;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, recv};
use rustls::Connection;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
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

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// Either of them, encrypted.
    Tls(Arc<Tls>),
    /// One whose writes never wait.
    Queue(Box<Queue>),
}

impl Socket {
    /// Connects to a server.
    ///
    /// # Errors
    /// If it does not listen.
    pub fn connect(server: &Server) -> io::Result<Self> {
        match server {
            Server::Unix(path) => UnixStream::connect(path).map(Self::Unix),
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
        Ok(Self::Tcp(stream))
    }

    /// Another handle of the same socket.
    ///
    /// # Errors
    /// If there is no file descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Tls(tls) => Ok(Self::Tls(Arc::clone(tls))),
            Self::Queue(queue) => queue.socket().try_clone(),
        }
    }

    /// One whose writes never wait: neither do its reads then.
    pub(crate) fn queued(self) -> io::Result<Self> {
        match &self {
            Self::Tcp(stream) => stream.set_nonblocking(true)?,
            Self::Unix(stream) => stream.set_nonblocking(true)?,
            Self::Tls(_) => return Err(io::ErrorKind::Unsupported.into()),
            Self::Queue(_) => return Ok(self),
        }
        Ok(Self::Queue(Box::new(Queue::new(self))))
    }

    /// How many bytes were written and not sent.
    pub(crate) fn unsent(&self) -> usize {
        if let Self::Queue(queue) = self { queue.unsent() } else { 0 }
    }

    /// Sends what was written and not sent, as far as the other end takes it.
    pub(crate) fn send_queued(&mut self) -> io::Result<()> {
        if let Self::Queue(queue) = self { queue.send_queued() } else { Ok(()) }
    }

    /// Closes the direction to the other end, after all that was written.
    pub(crate) fn finish(&mut self) {
        if let Self::Queue(queue) = self { queue.finish() } else { self.shutdown(Shutdown::Write) }
    }

    /// Encrypts it: makes the handshake of TLS, of which the other end has sent `received` already.
    ///
    /// # Errors
    /// If the handshake fails. An error of TLS itself is a `rustls::Error` inside.
    pub fn encrypt(self, connection: impl Into<Connection>, received: Vec<u8>) -> io::Result<Self> {
        Tls::shake_hands(self, connection.into(), received).map(|tls| Self::Tls(Arc::new(tls)))
    }

    /// Waits until a client or its server has sent something or has ended: the way of what is read next.
    ///
    /// # Errors
    /// If the system does not let it wait.
    pub fn wait(client: &Self, server: &Self) -> io::Result<Way> {
        let mut both = [server, client].map(|end| PollFd::new(end, PollFlags::IN));
        while let Err(error) = poll(&mut both, None) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        Ok(if both[0].revents().is_empty() { Way::ToServer } else { Way::ToClient })
    }

    /// Whether the other end has closed, and all that it sent was received. With TLS, the message that says so counts as
    /// something that was not.
    pub fn has_closed(&self) -> bool {
        let peeked = recv(self, &mut [0u8], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        peeked.is_ok_and(|(_, got)| got == 0)
    }

    /// Closes one direction or both.
    pub fn shutdown(&self, how: Shutdown) {
        // It may be closed already.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tls(tls) => {
                tls.shutdown(how);
                Ok(())
            }
            Self::Queue(queue) => {
                queue.socket().shutdown(how);
                Ok(())
            }
        };
    }

    /// Closes both directions, whatever was not sent.
    pub(crate) fn give_up(&mut self) {
        if let Self::Queue(queue) = self {
            queue.clear();
        }
        self.shutdown(Shutdown::Both);
    }

    /// Limits how long one read waits. Encrypted sockets are not limited.
    pub(crate) fn limit(&self, wait: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(wait),
            Self::Unix(stream) => stream.set_read_timeout(wait),
            Self::Tls(_) | Self::Queue(_) => Ok(()),
        }
    }

    /// As [`Read::read`], of a socket that several threads have.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&*stream).read(buffer),
            Self::Unix(stream) => (&*stream).read(buffer),
            Self::Tls(tls) => tls.read(buffer),
            Self::Queue(queue) => queue.socket().receive(buffer),
        }
    }

    /// As [`Write::write`], of a socket that several threads have.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&*stream).write(bytes),
            Self::Unix(stream) => (&*stream).write(bytes),
            Self::Tls(tls) => tls.write(bytes),
            Self::Queue(queue) => queue.socket().send(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(tls) => tls.as_fd(),
            Self::Queue(queue) => queue.socket().as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Self::Queue(queue) = self { queue.write(bytes) } else { self.send(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_has_closed_once_everything_before_was_received() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut here = Socket::Unix(here);
        assert!(!here.has_closed());
        there.write_all(b"bye").unwrap();
        drop(there);
        assert!(!here.has_closed());
        here.read_exact(&mut [0; 3]).unwrap();
        assert!(here.has_closed());
    }
}
