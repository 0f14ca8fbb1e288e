//! The address of a listener, and one connection to it.

use crate::cancel;
use crate::prelude::*;
use crate::wire::lost;
use kurabe_tcp::protocol::{Greeting, send};
use kurabe_tcp::socket;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// The address of a listener, as the user gave it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Place {
    /// Its first address that accepts a connection, and the connection.
    pub(super) fn connect<T>(
        &self,
        timeout: Duration,
        open: impl Fn(SocketAddr, Duration) -> io::Result<T>,
    ) -> Result<(SocketAddr, T)> {
        let addresses: Vec<SocketAddr> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| self.unreachable(&error))?
            .collect();
        let share = timeout / addresses.len().max(1) as u32;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in addresses {
            match open(address, share.max(Duration::from_millis(1))) {
                Ok(opened) => return Ok((address, opened)),
                Err(error) => last = error,
            }
        }
        Err(self.unreachable(&last))
    }

    fn unreachable(&self, error: &io::Error) -> Error {
        if cancel::is_cut() {
            return cancel::error();
        }
        let kind = match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ErrorKind::Timeout,
            _ => ErrorKind::Unreachable,
        };
        Error::new(kind, format!("no listener answers at {}, port {}: {error}", self.host, self.port))
            .hint("start one there: kurabe up tcp ADDRESS:PORT --allow-remote")
    }
}

/// A connection, which the user's request to stop shuts down.
pub(super) struct Channel {
    stream: Arc<TcpStream>,
    _listed: cancel::Listed,
    /// Set once sending or receiving failed: the state of the connection is unknown.
    failed: bool,
}

impl Channel {
    /// Connects with socket buffers of this size (0: the kernel's own choice), and greets the listener.
    pub(super) fn open(
        address: SocketAddr,
        buffers: u64,
        timeout: Duration,
        greeting: Greeting,
    ) -> io::Result<Self> {
        cancel::check()?;
        let stream = Arc::new(socket::connect(address, buffers, timeout)?);
        let listed = cancel::list(&stream)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        send(&greeting, &mut &*stream)?;
        Ok(Self { stream, _listed: listed, failed: false })
    }

    /// Disables Nagle's algorithm: a small message is sent at once.
    pub(super) fn without_delay(&self) -> Result<()> {
        self.stream.set_nodelay(true).map_err(|error| lost(&error))
    }

    /// The socket.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends or receives by `work`. After an error the connection is not used again.
    pub(super) fn with<T>(&mut self, work: impl FnOnce(&mut &TcpStream) -> io::Result<T>) -> Result<T> {
        if self.failed {
            let message = "the connection failed in an earlier operation and is not used again";
            return Err(if cancel::is_cut() {
                cancel::error()
            } else {
                Error::new(ErrorKind::ConnectionLost, message)
            });
        }
        work(&mut &*self.stream).map_err(|error| {
            self.failed = true;
            match error.kind() {
                io::ErrorKind::InvalidData => Error::new(ErrorKind::Protocol, error.to_string()),
                _ => lost(&error),
            }
        })
    }

    /// Sends all of `bytes`.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.with(|stream| stream.write_all(bytes))
    }

    /// Receives exactly as many bytes as `bytes` has.
    pub(super) fn receive(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.with(|stream| stream.read_exact(bytes))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // What was sent arrives before the end of the connection. An error means that it has ended already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
