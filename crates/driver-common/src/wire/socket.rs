//! A TCP or Unix socket whose exchanges have a deadline, and that another thread can shut down.

use super::deadline::{Deadline, Way};
use super::{Place, resolve};
use crate::cancel;
use rustix::buffer::spare_capacity;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Size from which a send may block until the server receives, in bytes.
const MUCH: usize = 64 * 1024;

/// A connected socket.
#[derive(Debug)]
pub struct Socket {
    /// A Unix socket too: what is used of this type works on both.
    stream: Arc<TcpStream>,
    is_unix: bool,
    deadline: Deadline,
    _listed: cancel::Listed,
}

impl Socket {
    /// Connects. `allowed` applies to connecting, until [`Socket::ready`], and then to each exchange.
    pub fn connect(place: &Place, allowed: Duration) -> io::Result<Self> {
        cancel::check()?;
        let deadline = Deadline::connecting(allowed);
        let stream = match place {
            Place::Unix(path) => unix(path, deadline.allowed())?,
            Place::Tcp { host, port } => {
                let stream = tcp(host, *port, &deadline)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(deadline.allowed()))?;
                stream.set_write_timeout(Some(deadline.allowed()))?;
                stream
            }
        };
        let stream = Arc::new(stream);
        let listed = cancel::list(&stream)?;
        Ok(Self { stream, is_unix: matches!(place, Place::Unix(_)), deadline, _listed: listed })
    }

    /// Whether it is a Unix socket.
    pub fn is_unix(&self) -> bool {
        self.is_unix
    }

    /// The local TCP port; `None` on a Unix socket.
    pub fn port(&self) -> Option<u16> {
        self.stream.local_addr().ok().map(|address| address.port())
    }

    /// Ends connecting: from now on each exchange has its own deadline.
    pub fn ready(&mut self) {
        self.deadline.ready();
    }

    /// Starts an exchange.
    #[inline]
    pub fn begin(&mut self) -> io::Result<()> {
        match self.deadline.begin() {
            None => Ok(()),
            Some(all) => {
                self.set_timeout(Way::Receive, all)?;
                self.set_timeout(Way::Send, all)
            }
        }
    }

    fn set_timeout(&self, way: Way, timeout: Duration) -> io::Result<()> {
        match way {
            Way::Receive => self.stream.set_read_timeout(Some(timeout)),
            Way::Send => self.stream.set_write_timeout(Some(timeout)),
        }
    }

    #[inline]
    fn before(&mut self, way: Way) -> io::Result<()> {
        match self.deadline.before(way)? {
            None => Ok(()),
            Some(left) => self.set_timeout(way, left),
        }
    }

    /// Receives once into the spare capacity of `out`, without zeroing it first.
    pub fn receive(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        self.before(Way::Receive)?;
        Ok(rustix::io::read(&self.stream, spare_capacity(out))?)
    }

    #[inline]
    fn sent(&mut self, asked: usize, sent: usize) {
        if sent < asked || sent > MUCH {
            self.deadline.sent_much();
        }
    }

    /// Whether data arrived or the peer closed the connection, as far as this host knows. Consumes nothing.
    pub fn stirred(&self) -> bool {
        use rustix::net::{RecvFlags, recv};
        let peeked = recv(&self.stream, &mut [0u8], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(peeked, Err(rustix::io::Errno::AGAIN))
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.before(Way::Receive)?;
        (&*self.stream).read(buffer)
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.before(Way::Send)?;
        let sent = (&*self.stream).write(bytes)?;
        self.sent(bytes.len(), sent);
        Ok(sent)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.before(Way::Send)?;
        let sent = (&*self.stream).write_vectored(slices)?;
        self.sent(slices.iter().map(|slice| slice.len()).sum(), sent);
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to any of a host's addresses within the remaining time, of which each gets an equal share.
fn tcp(host: &str, port: u16, deadline: &Deadline) -> io::Result<TcpStream> {
    let addresses = resolve::addresses(host, port, deadline.allowed())?;
    let connected = any_of(&addresses, deadline);
    if connected.is_err() {
        resolve::forget(host, port);
    }
    connected
}

fn any_of(addresses: &[SocketAddr], deadline: &Deadline) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for (tried, address) in addresses.iter().enumerate() {
        let share = deadline.left()? / (addresses.len() - tried) as u32;
        match TcpStream::connect_timeout(address, share.max(Duration::from_millis(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects to a Unix socket. If the server's queue is full, it waits up to the send timeout.
fn unix(path: &Path, allowed: Duration) -> io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(allowed))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(allowed))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{bind, listen};
    use std::time::Instant;

    const ALLOWED: Duration = Duration::from_millis(200);

    #[test]
    fn connecting_to_a_full_unix_queue_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("full.sock");
        let server =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&server, 0).unwrap();
        let place = Place::Unix(path);
        let (began, mut met) = (Instant::now(), Vec::new());
        let error = loop {
            match Socket::connect(&place, ALLOWED) {
                Ok(socket) => met.push(socket),
                Err(error) => break error,
            }
        };
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
        assert!(met.len() < 10 && began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    #[test]
    fn all_addresses_of_a_host_share_the_time_allowed() {
        // These addresses do not answer (RFC 5737) or are unreachable; either way all attempts end in time.
        let nowhere: Vec<SocketAddr> = (1..=20).map(|n| SocketAddr::from(([192, 0, 2, n], 9))).collect();
        let began = Instant::now();
        assert!(any_of(&nowhere, &Deadline::connecting(ALLOWED)).is_err());
        assert!(began.elapsed() < ALLOWED * 15, "{:?}", began.elapsed());
    }
}
