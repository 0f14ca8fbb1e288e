//! A TCP or Unix socket whose exchanges have a deadline, and that another thread can shut down.
//!
//! On a thread its calls block, up to the kernel's timeouts. In a task of a reactor the socket is non-blocking, and the
//! task is suspended. A socket follows its user: each exchange begins with a comparison of the reactor's number.
//!
//! A task usually receives without asking in vain: once all is received, it waits for the next report before it
//! receives again.

use super::Place;
use super::connect::Transport;
use super::deadline::{Deadline, Way};
use crate::cancel;
use kurabe_reactor::{Interest, wait_blocking};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Size from which a send may block until the server receives, in bytes.
const MUCH: usize = 64 * 1024;

/// A connected socket.
#[derive(Debug)]
pub struct Socket {
    transport: Transport,
    is_unix: bool,
    /// Whether the last receive of a task got all that had arrived.
    is_drained: bool,
    deadline: Deadline,
    /// How often it received something after it had connected or sent.
    round_trips: u64,
    /// Whether it connected or sent since it last received.
    is_awaiting: bool,
    _listed: cancel::Listed,
}

impl Socket {
    /// Connects. `allowed` applies to connecting, until [`Socket::ready`], and then to each exchange.
    pub fn connect(place: &Place, allowed: Duration) -> io::Result<Self> {
        cancel::check()?;
        let deadline = Deadline::connecting(allowed);
        let transport = Transport::connect(place, &deadline)?;
        let listed = cancel::list(transport.socket())?;
        let is_unix = matches!(place, Place::Unix(_));
        Ok(Self {
            transport,
            is_unix,
            is_drained: true,
            deadline,
            round_trips: 0,
            is_awaiting: true,
            _listed: listed,
        })
    }

    fn stream(&self) -> &TcpStream {
        self.transport.socket()
    }

    /// Whether it is a Unix socket.
    pub fn is_unix(&self) -> bool {
        self.is_unix
    }

    /// How often what was received had to wait for the peer: for its greeting, or for its answer to what was sent.
    pub fn round_trips(&self) -> u64 {
        self.round_trips
    }

    #[inline]
    fn received(&mut self) {
        self.round_trips += u64::from(std::mem::take(&mut self.is_awaiting));
    }

    /// The local TCP port; `None` on a Unix socket.
    pub fn port(&self) -> Option<u16> {
        self.stream().local_addr().ok().map(|address| address.port())
    }

    /// Sets the time allowed for each exchange after connecting. Where it is longer than that of connecting, the kernel
    /// finds a host that is gone.
    pub fn allow(&mut self, allowed: Duration) -> io::Result<()> {
        if allowed > self.deadline.allowed() && !self.is_unix {
            let stream = self.stream();
            sockopt::set_socket_keepalive(stream, true)?;
            sockopt::set_tcp_keepidle(stream, Duration::from_secs(30))?;
            sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10))?;
            sockopt::set_tcp_keepcnt(stream, 6)?;
        }
        self.deadline.allow(allowed);
        Ok(())
    }

    /// Ends connecting: from now on each exchange has its own deadline.
    pub fn ready(&mut self) {
        self.deadline.ready();
    }

    /// Starts an exchange.
    #[inline]
    pub fn begin(&mut self) -> io::Result<()> {
        if self.transport.reactor() != kurabe_reactor::current() {
            self.change_thread()?;
        }
        match self.deadline.begin() {
            None => Ok(()),
            Some(all) => {
                self.set_timeout(Way::Receive, all)?;
                self.set_timeout(Way::Send, all)
            }
        }
    }

    /// Prepares the socket for the thread or the reactor of the running code.
    #[cold]
    fn change_thread(&mut self) -> io::Result<()> {
        self.transport = self.transport.moved()?;
        // What arrived before is reported again.
        self.is_drained = true;
        self.deadline.reset();
        if let Transport::Blocking(_) = self.transport {
            let all = self.deadline.allowed();
            self.set_timeout(Way::Receive, all)?;
            self.set_timeout(Way::Send, all)?;
        }
        Ok(())
    }

    fn set_timeout(&self, way: Way, timeout: Duration) -> io::Result<()> {
        match way {
            Way::Receive => self.stream().set_read_timeout(Some(timeout)),
            Way::Send => self.stream().set_write_timeout(Some(timeout)),
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
        self.received();
        if let Transport::Blocking(_) = self.transport {
            self.before(Way::Receive)?;
            return Ok(rustix::io::read(self.stream(), spare_capacity(out))?);
        }
        let room = out.capacity() - out.len();
        self.receive_in_task(room, |stream| Ok(rustix::io::read(stream, spare_capacity(out))?))
    }

    /// Receives once, by `receive`, which has room for that many bytes.
    fn receive_in_task(
        &mut self,
        room: usize,
        mut receive: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let Transport::Reactor(source) = &self.transport else {
            return receive(self.stream());
        };
        if self.is_drained && !source.may_receive() {
            source.wait(Interest::Receive, self.deadline.left()?)?;
        }
        loop {
            match receive(source.socket()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_drained = true;
                    source.wait(Interest::Receive, self.deadline.left()?)?;
                }
                Ok(got) => {
                    // A short receive got all (epoll(7)). Another report follows what arrives later.
                    self.is_drained = got < room;
                    return Ok(got);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends once, by `send`.
    fn send_in_task(&mut self, mut send: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        let Transport::Reactor(source) = &self.transport else {
            return send(self.stream());
        };
        loop {
            match send(source.socket()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    source.wait(Interest::Send, self.deadline.left()?)?;
                }
                done => return done,
            }
        }
    }

    /// Sends some of `out` or, if there is no space for it, receives into `inbox`, whichever is possible first. Returns
    /// the numbers of bytes; both are 0 at the end of the connection.
    pub fn exchange(&mut self, out: &[u8], inbox: &mut [u8]) -> io::Result<(usize, usize)> {
        let waits = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        loop {
            match self.send_at_once(out) {
                Err(error) if waits(&error) => {}
                sent => return Ok((sent?, 0)),
            }
            match self.receive_at_once(inbox) {
                Err(error) if waits(&error) => self.wait_for_either()?,
                got => return Ok((0, got?)),
            }
        }
    }

    /// Sends what there is space for.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none.
    pub fn send_at_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_awaiting = true;
        // It counts as much that was sent: the next receive has the remaining time.
        self.deadline.sent_much();
        Ok(retry_on_intr(|| send(self.stream(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))?)
    }

    /// Receives what has arrived.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is nothing.
    pub fn receive_at_once(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (got, _) = retry_on_intr(|| recv(self.stream(), &mut *buffer, RecvFlags::DONTWAIT))?;
        self.received();
        Ok(got)
    }

    /// Waits until something can be sent or received.
    pub fn wait_for_either(&mut self) -> io::Result<()> {
        let left = self.deadline.left()?;
        // The report of what has arrived is used up, and it is not received yet.
        self.is_drained = false;
        match &self.transport {
            Transport::Blocking(socket) => wait_blocking(socket, Interest::Either, left),
            Transport::Reactor(source) => source.wait(Interest::Either, left),
        }
    }

    #[inline]
    fn sent(&mut self, asked: usize, sent: usize) {
        if sent < asked || sent > MUCH {
            self.deadline.sent_much();
        }
    }

    /// Whether data arrived or the peer closed the connection, as far as this host knows. Consumes nothing.
    pub fn stirred(&self) -> bool {
        let peeked = recv(self.stream(), &mut [0u8], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(peeked, Err(Errno::AGAIN))
    }
}

/// Receives once. The standard library calls libc, whose cancellation points took 4 % of a client's samples on Redis.
#[inline]
fn receive_once(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let (got, _) = recv(stream, buffer, RecvFlags::empty())?;
    Ok(got)
}

/// Sends once, as [`receive_once`] receives.
#[inline]
fn send_once(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(stream, bytes, SendFlags::NOSIGNAL)?)
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.received();
        if let Transport::Blocking(_) = self.transport {
            self.before(Way::Receive)?;
            return receive_once(self.stream(), buffer);
        }
        self.receive_in_task(buffer.len(), |stream| receive_once(stream, buffer))
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_awaiting = true;
        if let Transport::Reactor(_) = self.transport {
            return self.send_in_task(|stream| send_once(stream, bytes));
        }
        self.before(Way::Send)?;
        let sent = send_once(self.stream(), bytes)?;
        self.sent(bytes.len(), sent);
        Ok(sent)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.is_awaiting = true;
        if let Transport::Reactor(_) = self.transport {
            return self.send_in_task(|mut stream| stream.write_vectored(slices));
        }
        self.before(Way::Send)?;
        let sent = self.stream().write_vectored(slices)?;
        self.sent(slices.iter().map(|slice| slice.len()).sum(), sent);
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
