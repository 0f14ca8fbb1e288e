//! Connecting within a deadline, on a thread or as a task of a reactor.

use super::deadline::Deadline;
use super::{Place, resolve};
use kurabe_reactor::{Interest, Source};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a task waits before it tries a Unix socket again whose queue is full. The kernel reports no space in it.
const AGAIN: Duration = Duration::from_millis(1);

/// A connected socket, and how its exchanges wait.
#[derive(Debug)]
pub(super) enum Transport {
    /// The kernel blocks the thread, up to the socket's timeouts. It may be a Unix socket too: what is used of this type
    /// works on both.
    Blocking(Arc<TcpStream>),
    /// A non-blocking socket: a task of this reactor is suspended.
    Reactor(Source<Arc<TcpStream>>),
}

impl Transport {
    /// Connects: as a task if the running code is one.
    pub(super) fn connect(place: &Place, deadline: &Deadline) -> io::Result<Self> {
        let is_task = kurabe_reactor::current() != 0;
        match place {
            Place::Unix(path) if is_task => unix_of_task(path, deadline),
            Place::Unix(path) => unix(path, deadline.allowed()),
            Place::Tcp { host, port } => {
                let addresses = resolve::addresses(host, *port, deadline.allowed())?;
                let connected = any_of(&addresses, deadline, if is_task { tcp_of_task } else { tcp });
                if connected.is_err() {
                    resolve::forget(host, *port);
                }
                let transport = connected?;
                transport.socket().set_nodelay(true)?;
                if !is_task {
                    transport.socket().set_read_timeout(Some(deadline.allowed()))?;
                    transport.socket().set_write_timeout(Some(deadline.allowed()))?;
                }
                Ok(transport)
            }
        }
    }

    #[inline]
    pub(super) fn socket(&self) -> &Arc<TcpStream> {
        match self {
            Self::Blocking(socket) => socket,
            Self::Reactor(source) => source.socket(),
        }
    }

    /// The number of the reactor that it is registered with; 0 if it blocks.
    #[inline]
    pub(super) fn reactor(&self) -> u64 {
        match self {
            Self::Blocking(_) => 0,
            Self::Reactor(source) => source.reactor(),
        }
    }

    /// Registers a non-blocking socket with the running task's reactor.
    fn of_task(socket: Arc<TcpStream>) -> io::Result<Source<Arc<TcpStream>>> {
        let no_task = || io::Error::other("the thread does not run a task any more");
        Source::new(socket)?.ok_or_else(no_task)
    }

    /// The same socket for the thread or the reactor of the running code.
    pub(super) fn moved(&self) -> io::Result<Self> {
        let socket = Arc::clone(self.socket());
        if kurabe_reactor::current() == 0 {
            socket.set_nonblocking(false)?;
            return Ok(Self::Blocking(socket));
        }
        socket.set_nonblocking(true)?;
        Self::of_task(socket).map(Self::Reactor)
    }
}

/// Connects to any of a host's addresses within the remaining time, of which each gets an equal share.
fn any_of(
    addresses: &[SocketAddr],
    deadline: &Deadline,
    connect: fn(&SocketAddr, Duration) -> io::Result<Transport>,
) -> io::Result<Transport> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for (tried, address) in addresses.iter().enumerate() {
        let share = deadline.left()? / (addresses.len() - tried) as u32;
        match connect(address, share.max(Duration::from_millis(1))) {
            Ok(transport) => return Ok(transport),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn tcp(address: &SocketAddr, share: Duration) -> io::Result<Transport> {
    Ok(Transport::Blocking(Arc::new(TcpStream::connect_timeout(address, share)?)))
}

fn tcp_of_task(address: &SocketAddr, share: Duration) -> io::Result<Transport> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = non_blocking(family)?;
    let begun = connect(&socket, address);
    if !matches!(begun, Ok(()) | Err(Errno::INPROGRESS)) {
        begun?;
    }
    let source = Transport::of_task(socket)?;
    if begun.is_err() {
        source.wait(Interest::Send, share)?;
        if let Some(error) = source.socket().take_error()? {
            return Err(error);
        }
        // Still connecting if the kernel reported it for no reason.
        source.socket().peer_addr()?;
    }
    Ok(Transport::Reactor(source))
}

/// Connects to a Unix socket. If the server's queue is full, it waits up to the send timeout.
fn unix(path: &Path, allowed: Duration) -> io::Result<Transport> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(allowed))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(allowed))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(Transport::Blocking(Arc::new(socket.into())))
}

fn unix_of_task(path: &Path, deadline: &Deadline) -> io::Result<Transport> {
    let socket = non_blocking(AddressFamily::UNIX)?;
    let address = SocketAddrUnix::new(path)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => return Transport::of_task(socket).map(Transport::Reactor),
            Err(Errno::AGAIN) => {
                deadline.left()?;
                kurabe_reactor::sleep(AGAIN);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn non_blocking(family: AddressFamily) -> io::Result<Arc<TcpStream>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(Arc::new(socket_with(family, SocketType::STREAM, flags, None)?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn all_addresses_of_a_host_share_the_time_allowed() {
        const ALLOWED: Duration = Duration::from_millis(200);
        // These addresses do not answer (RFC 5737) or are unreachable; either way all attempts end in time.
        let nowhere: Vec<SocketAddr> = (1..=20).map(|n| SocketAddr::from(([192, 0, 2, n], 9))).collect();
        let attempt = |connect: fn(&SocketAddr, Duration) -> io::Result<Transport>| {
            let began = Instant::now();
            assert!(any_of(&nowhere, &Deadline::connecting(ALLOWED), connect).is_err());
            assert!(began.elapsed() < ALLOWED * 15, "{:?}", began.elapsed());
        };
        attempt(tcp);
        let reactor = kurabe_reactor::Reactor::new(vec![|| attempt(tcp_of_task)], 128 * 1024).unwrap();
        reactor.run().remove(0).unwrap();
    }
}
