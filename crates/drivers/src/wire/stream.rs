//! The three ways to a server: TCP, a Unix socket, TLS over TCP.

use super::{Peer, Place, lost, tls};
use kurabe_core::{Error, ErrorKind, Result};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected socket, encrypted or not.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects, and lets no later read or write take longer than `timeout`.
    pub(crate) fn connect(place: &Place, timeout: Duration) -> Result<Self> {
        let failed = |error: &io::Error| place.unreachable(error);
        // A timeout of zero would mean none.
        let timeout = timeout.max(Duration::from_millis(1));
        match place {
            Place::Unix(path) => {
                let stream = UnixStream::connect(path).map_err(|e| failed(&e))?;
                stream.set_read_timeout(Some(timeout)).map_err(|e| failed(&e))?;
                stream.set_write_timeout(Some(timeout)).map_err(|e| failed(&e))?;
                Ok(Self::Unix(stream))
            }
            Place::Tcp { host, port } => {
                let stream = connect_any(host, *port, timeout).map_err(|e| failed(&e))?;
                stream.set_nodelay(true).map_err(|e| failed(&e))?;
                stream.set_read_timeout(Some(timeout)).map_err(|e| failed(&e))?;
                stream.set_write_timeout(Some(timeout)).map_err(|e| failed(&e))?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// Puts TLS around a TCP connection and completes the handshake.
    pub(crate) fn encrypt(self, mode: &tls::Mode, host: &str) -> Result<Self> {
        let Self::Tcp(mut tcp) = self else {
            return Err(Error::new(ErrorKind::Internal, "TLS is for TCP connections"));
        };
        let mut session = mode.session(host)?;
        while session.is_handshaking() {
            session.complete_io(&mut tcp).map_err(|e| lost(&e))?;
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(session, tcp))))
    }

    /// How the server is reached, for [`kurabe_core::facts::ServerFacts`].
    pub(crate) fn transport(&self) -> String {
        match self {
            Self::Tcp(_) => "TCP".to_owned(),
            Self::Unix(_) => "Unix socket".to_owned(),
            Self::Tls(stream) => match stream.conn.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => "TCP with TLS 1.3".to_owned(),
                Some(rustls::ProtocolVersion::TLSv1_2) => "TCP with TLS 1.2".to_owned(),
                _ => "TCP with TLS".to_owned(),
            },
        }
    }

    /// Whether the peer has closed the connection, as far as is known here. Reads nothing.
    pub(crate) fn was_closed(&self) -> bool {
        let Self::Tcp(stream) = self else { return false };
        if stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = stream.peek(&mut [0]);
        let waits = matches!(&peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        // What is there already was not asked for.
        stream.set_nonblocking(false).is_err() || !waits
    }

    /// The local port, where this is TCP.
    pub(crate) fn port(&self) -> Option<u16> {
        let stream = match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => &stream.sock,
            Self::Unix(_) => return None,
        };
        stream.local_addr().ok().map(|address| address.port())
    }

    /// Whether nobody on the way can read what is sent: a password may go over it as it is.
    pub(crate) fn is_private(&self) -> bool {
        !matches!(self, Self::Tcp(_))
    }
}

fn connect_any(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Peer for Stream {
    // Straight from the sockets of std, which read into memory that was not set to zero first.
    fn receive(&mut self, n: u64, out: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.take(n).read_to_end(out),
            Self::Unix(stream) => stream.take(n).read_to_end(out),
            Self::Tls(stream) => stream.take(n).read_to_end(out),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write_vectored(slices),
            Self::Unix(stream) => stream.write_vectored(slices),
            Self::Tls(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
