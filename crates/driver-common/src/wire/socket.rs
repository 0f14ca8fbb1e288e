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

impl Read for Socket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.received();
        if let Transport::Blocking(_) = self.transport {
            self.before(Way::Receive)?;
            return self.stream().read(buffer);
        }
        self.receive_in_task(buffer.len(), |mut stream| stream.read(buffer))
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_awaiting = true;
        if let Transport::Reactor(_) = self.transport {
            return self.send_in_task(|mut stream| stream.write(bytes));
        }
        self.before(Way::Send)?;
        let sent = self.stream().write(bytes)?;
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
mod tests {
    use super::*;
    use crate::wire::{Stream, Wire};
    use kurabe_core::driver::ConnectOptions;
    use kurabe_reactor::Reactor;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
    use std::net::TcpListener;
    use std::thread;
    use std::time::Instant;

    const ALLOWED: Duration = Duration::from_millis(200);
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Runs one task.
    fn in_task<T>(task: impl FnOnce() -> T) -> T {
        in_tasks(vec![task]).remove(0)
    }

    fn in_tasks<T>(tasks: Vec<impl FnOnce() -> T>) -> Vec<T> {
        let ended = Reactor::new(tasks, 256 * 1024).unwrap().run();
        ended
            .into_iter()
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    }

    fn server() -> (TcpListener, Place) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, Place::Tcp { host: "127.0.0.1".to_owned(), port })
    }

    fn connected(place: &Place, allowed: Duration) -> Socket {
        let mut socket = Socket::connect(place, allowed).unwrap();
        socket.ready();
        socket
    }

    /// One exchange of a few bytes with a server that sends them back.
    fn exchange(socket: &mut Socket) {
        socket.begin().unwrap();
        socket.write_all(b"ping").unwrap();
        let mut answer = [0; 4];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"ping");
    }

    fn echo(listener: TcpListener) {
        thread::spawn(move || {
            while let Ok((mut client, _)) = listener.accept() {
                thread::spawn(move || {
                    let mut reader = client.try_clone().unwrap();
                    let _ = io::copy(&mut reader, &mut client);
                });
            }
        });
    }

    #[test]
    fn connecting_to_a_full_unix_queue_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("full.sock");
        let server =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&server, 0).unwrap();
        let place = Place::Unix(path);
        let attempt = || {
            let (began, mut met) = (Instant::now(), Vec::new());
            let error = loop {
                match Socket::connect(&place, ALLOWED) {
                    Ok(socket) => met.push(socket),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
            assert!(met.len() < 10 && began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        };
        attempt();
        in_task(attempt);
    }

    #[test]
    fn task_is_refused_as_a_thread_is() {
        let (listener, place) = server();
        drop(listener);
        let kind = || Socket::connect(&place, PATIENCE).unwrap_err().kind();
        assert_eq!(
            (kind(), in_task(kind)),
            (io::ErrorKind::ConnectionRefused, io::ErrorKind::ConnectionRefused)
        );
    }

    #[test]
    fn socket_follows_its_user_from_a_thread_to_tasks_and_back() {
        let (listener, place) = server();
        echo(listener);
        let mut socket = connected(&place, PATIENCE);
        for _ in 0..3 {
            exchange(&mut socket);
            in_task(|| exchange(&mut socket));
            in_task(|| exchange(&mut socket));
        }
        let mut of_task = in_task(|| connected(&place, ALLOWED));
        exchange(&mut of_task);
        // A socket of a task has no timeouts in the kernel, until it blocks.
        of_task.begin().unwrap();
        let error = of_task.read(&mut [0]).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
    }

    #[test]
    fn exchange_of_a_task_times_out_while_others_go_on() {
        let (listener, silent) = server();
        let (echoing, place) = server();
        echo(echoing);
        let waits = || -> usize {
            let mut socket = connected(&silent, ALLOWED);
            socket.begin().unwrap();
            socket.write_all(b"ping").unwrap();
            let error = socket.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            0
        };
        let goes_on = || {
            let (mut socket, began, mut exchanges) = (connected(&place, PATIENCE), Instant::now(), 0);
            while began.elapsed() < ALLOWED * 2 {
                exchange(&mut socket);
                exchanges += 1;
            }
            exchanges
        };
        let exchanges =
            in_tasks::<usize>(vec![Box::new(waits) as Box<dyn FnOnce() -> usize>, Box::new(goes_on)]);
        assert!(exchanges[1] > 10, "{exchanges:?}");
        drop(listener);
    }

    #[test]
    fn pieces_of_an_answer_share_the_deadline_of_a_task() {
        let (listener, place) = server();
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            // Each piece comes in time, the whole answer does not.
            while client.write_all(b"x").is_ok() {
                thread::sleep(ALLOWED / 8);
            }
        });
        in_task(|| {
            let mut socket = connected(&place, ALLOWED);
            socket.begin().unwrap();
            let began = Instant::now();
            let error = loop {
                if let Err(error) = socket.read(&mut [0; 16]) {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(began.elapsed() < Duration::from_secs(20));
        });
        server.join().unwrap();
    }

    #[test]
    fn end_that_arrives_with_the_last_bytes_is_received() {
        for pause in [0, 5] {
            let (listener, place) = server();
            in_task(|| {
                let mut socket = connected(&place, PATIENCE);
                let (mut client, _) = listener.accept().unwrap();
                socket.begin().unwrap();
                client.write_all(b"last words").unwrap();
                kurabe_reactor::sleep(Duration::from_millis(pause));
                drop(client);
                kurabe_reactor::sleep(Duration::from_millis(pause));
                let mut all = Vec::new();
                socket.read_to_end(&mut all).unwrap();
                assert_eq!(all, b"last words");
                // Once more, since nothing is reported again.
                assert_eq!(socket.read(&mut [0]).unwrap(), 0);
            });
        }
    }

    #[test]
    fn task_receives_all_of_what_fills_its_buffer() {
        let (listener, place) = server();
        in_task(|| {
            let mut socket = connected(&place, PATIENCE);
            let (mut client, _) = listener.accept().unwrap();
            for round in 0..3 {
                socket.begin().unwrap();
                client.write_all(&[round; 100]).unwrap();
                let mut all = Vec::new();
                while all.len() < 100 {
                    let mut piece = [0; 10];
                    let got = socket.read(&mut piece).unwrap();
                    all.extend_from_slice(&piece[..got]);
                }
                assert_eq!(all, [round; 100]);
            }
        });
    }

    #[test]
    fn long_values_pass_in_both_directions_while_both_sides_wait() {
        const LENGTH: usize = 8 << 20;
        let (listener, place) = server();
        echo(listener);
        in_task(|| {
            let mut socket = connected(&place, PATIENCE);
            let sent: Vec<u8> = (0..LENGTH).map(|i| (i % 251) as u8).collect();
            let (mut at, mut received) = (0, Vec::new());
            socket.begin().unwrap();
            // The echo stops reading while nobody takes its answer, so that sends have to wait.
            while at < LENGTH {
                let end = (at + (1 << 18)).min(LENGTH);
                socket.write_all(&sent[at..end]).unwrap();
                at = end;
                while received.len() < at {
                    received.reserve(1 << 17);
                    socket.receive(&mut received).unwrap();
                }
            }
            assert!(received == sent);
        });
    }

    #[test]
    fn socket_that_another_thread_shuts_down_wakes_its_task() {
        let (listener, place) = server();
        in_task(|| {
            let mut socket = connected(&place, PATIENCE);
            let _client = listener.accept().unwrap();
            let again = socket.stream().try_clone().unwrap();
            let other = thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                again.shutdown(std::net::Shutdown::Both).unwrap();
            });
            socket.begin().unwrap();
            assert_eq!(socket.read(&mut [0]).unwrap(), 0);
            other.join().unwrap();
        });
    }

    #[test]
    fn pipeline_longer_than_all_buffers_is_sent_while_its_answers_are_received() {
        const LENGTH: usize = 8 << 20;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("echo.sock");
        let server = std::os::unix::net::UnixListener::bind(&path).unwrap();
        thread::spawn(move || {
            // It does not receive while it sends, and each of its answers is longer than the request.
            while let Ok((mut client, _)) = server.accept() {
                thread::spawn(move || {
                    let mut piece = vec![0; 1 << 16];
                    while let Ok(got @ 1..) = client.read(&mut piece) {
                        let answer = [&piece[..got], &piece[..got]].concat();
                        if client.write_all(&answer).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let exchange = || {
            let options = ConnectOptions { timeout: PATIENCE, ..ConnectOptions::default() };
            let mut wire = Wire::new(Stream::connect(&Place::Unix(path.clone()), &options).unwrap());
            wire.ready();
            for _ in 0..2 {
                wire.send_pipeline(&mut vec![7; LENGTH]).unwrap();
                for _ in 0..2 {
                    wire.next_answer();
                    let mut received = Vec::new();
                    wire.take_into(LENGTH, &mut received).unwrap();
                    assert!(received.len() == LENGTH && received.iter().all(|byte| *byte == 7));
                }
            }
        };
        exchange();
        in_task(exchange);
    }
}
