//! An end of a connection: with or without TLS, or one whose writes never wait.

use crate::queue::Queue;
use crate::stream::{Server, Stream};
use crate::tls::Tls;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, recv};
use rustls::Connection;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The direction of a piece of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    Plain(Stream),
    /// An encrypted one.
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
        Stream::connect(server).map(Self::Plain)
    }

    /// Another handle of the same socket.
    #[must_use]
    pub fn handle(&self) -> Self {
        match self {
            Self::Plain(stream) => Self::Plain(stream.clone()),
            Self::Tls(tls) => Self::Tls(Arc::clone(tls)),
            Self::Queue(queue) => Self::Plain(queue.stream().clone()),
        }
    }

    /// One whose writes never wait: neither do its reads then.
    pub(crate) fn queued(self) -> io::Result<Self> {
        match self {
            Self::Plain(stream) => Ok(Self::Queue(Box::new(Queue::new(stream)?))),
            Self::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Queue(_) => Ok(self),
        }
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
    /// If the handshake fails, or it is not plain. An error of TLS itself is a `rustls::Error` inside.
    pub fn encrypt(self, connection: impl Into<Connection>, received: Vec<u8>) -> io::Result<Self> {
        let Self::Plain(stream) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        Tls::shake_hands(stream, connection.into(), received).map(|tls| Self::Tls(Arc::new(tls)))
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
        match self {
            Self::Plain(stream) => stream.shutdown(how),
            Self::Tls(tls) => tls.shutdown(how),
            Self::Queue(queue) => queue.stream().shutdown(how),
        }
    }

    /// Closes both directions, whatever was not sent.
    pub(crate) fn give_up(&mut self) {
        if let Self::Queue(queue) = self {
            queue.clear();
        }
        self.shutdown(Shutdown::Both);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(stream) => stream.as_fd(),
            Self::Tls(tls) => tls.as_fd(),
            Self::Queue(queue) => queue.stream().as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.receive(buffer),
            Self::Tls(tls) => tls.read(buffer),
            Self::Queue(queue) => queue.stream().receive(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.send(bytes),
            Self::Tls(tls) => tls.write(bytes),
            Self::Queue(queue) => queue.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn handles_of_a_socket_share_one_descriptor() {
        let (here, _there) = UnixStream::pair().unwrap();
        let socket = Socket::Plain(here.into());
        let descriptor = socket.as_fd().as_raw_fd();
        assert_eq!(socket.handle().as_fd().as_raw_fd(), descriptor);
        let socket = socket.queued().unwrap();
        assert_eq!(
            (socket.as_fd().as_raw_fd(), socket.handle().as_fd().as_raw_fd()),
            (descriptor, descriptor)
        );
    }

    #[test]
    fn end_has_closed_once_everything_before_was_received() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut here = Socket::Plain(here.into());
        assert!(!here.has_closed());
        there.write_all(b"bye").unwrap();
        drop(there);
        assert!(!here.has_closed());
        here.read_exact(&mut [0; 3]).unwrap();
        assert!(here.has_closed());
    }
}
