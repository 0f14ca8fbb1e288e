//! Forwards many connections on few threads, none of which ever waits for one of them.
//!
//! A thread for each direction of a connection costs two changes of threads a round trip. Where many connections are
//! busy, a thread that has them all finds the next piece without waiting.

use crate::hook::{End, Ends, Hook, PIECE, contained, forward_piece};
use crate::lock::lock;
use crate::socket::{Socket, Way};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The most threads: a relay shares its host with the server.
const THREADS: usize = 4;
/// The most sockets that are looked at between two questions to the kernel.
const BATCH: usize = 64;
/// Stands for the descriptor that wakes the thread.
const WAKE: u64 = u64::MAX;

/// The threads. They end after [`Pump::stop`], once their connections have.
pub(crate) struct Pump {
    threads: Vec<Arc<Inbox>>,
    next: AtomicUsize,
}

/// What a thread has in common with those that give it connections.
struct Inbox {
    epoll: OwnedFd,
    wake: OwnedFd,
    /// `None` once the thread has ended.
    new: Mutex<Option<Vec<Passing>>>,
    stopped: AtomicBool,
}

/// A connection.
pub(crate) struct Passing {
    number: usize,
    hook: Arc<dyn Hook>,
    ends: Ends,
    /// Whether more may come from the client, and from the server.
    open: [bool; 2],
    /// What the kernel was last asked for, of the client and of the server; empty if it is not asked.
    asked: [EventFlags; 2],
}

impl Pump {
    /// Starts the threads, which call `closed` with the number of each connection that has ended.
    pub(crate) fn start(closed: impl Fn(usize, &dyn Hook) + Send + Sync + 'static) -> io::Result<Self> {
        let (closed, wanted) = (Arc::new(closed), thread::available_parallelism().map_or(1, usize::from));
        let start = |_| {
            let inbox = Arc::new(Inbox {
                epoll: epoll::create(CreateFlags::CLOEXEC)?,
                wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
                new: Mutex::new(Some(Vec::new())),
                stopped: AtomicBool::new(false),
            });
            epoll::add(&inbox.epoll, &inbox.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
            let (of_thread, closed) = (Arc::clone(&inbox), Arc::clone(&closed));
            let run = move || of_thread.run(&*closed);
            thread::Builder::new().name("relay".to_owned()).spawn(run)?;
            Ok(inbox)
        };
        let threads = (0..wanted.min(THREADS)).map(start).collect::<io::Result<_>>()?;
        Ok(Self { threads, next: AtomicUsize::new(0) })
    }

    /// Has a connection forwarded; `false` if the threads have ended.
    pub(crate) fn add(&self, passing: Passing) -> bool {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len().max(1);
        let Some(inbox) = self.threads.get(number) else { return false };
        let is_added = lock(&inbox.new).as_mut().map(|new| new.push(passing)).is_some();
        inbox.wake();
        is_added
    }

    /// Has the threads end once they have no connection.
    pub(crate) fn stop(&self) {
        for inbox in &self.threads {
            inbox.stopped.store(true, Ordering::SeqCst);
            inbox.wake();
        }
    }
}

impl Inbox {
    fn wake(&self) {
        // It fails only if the thread is to be woken already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn run(&self, closed: &dyn Fn(usize, &dyn Hook)) {
        let mut piece = vec![0; PIECE];
        let mut events = Vec::with_capacity(BATCH);
        let mut connections: HashMap<u64, Passing> = HashMap::new();
        let mut next = 0;
        loop {
            // An interrupted wait has no events.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), None);
            for event in events.drain(..) {
                let (data, flags) = (event.data.u64(), event.flags);
                if data == WAKE {
                    let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                    let new = lock(&self.new).as_mut().map(std::mem::take).unwrap_or_default();
                    for mut passing in new {
                        passing.ask(&self.epoll, next);
                        connections.insert(next, passing);
                        next += 1;
                    }
                    continue;
                }
                let Some(passing) = connections.get_mut(&(data / 2)) else { continue };
                let way = if data % 2 == 0 { Way::ToServer } else { Way::ToClient };
                passing.ready(way, flags, &mut piece);
                passing.ask(&self.epoll, data / 2);
                if passing.is_over()
                    && let Some(passing) = connections.remove(&(data / 2))
                {
                    contained(|| closed(passing.number, &*passing.hook));
                }
            }
            if connections.is_empty() && self.stopped.load(Ordering::SeqCst) {
                let mut new = lock(&self.new);
                if new.as_ref().is_none_or(Vec::is_empty) {
                    *new = None;
                    return;
                }
            }
        }
    }
}

impl Passing {
    /// # Errors
    /// If the sockets cannot be used without waiting.
    pub(crate) fn new(
        number: usize,
        hook: Arc<dyn Hook>,
        client: Socket,
        server: Socket,
    ) -> io::Result<Self> {
        let ends = Ends { from: client.queued()?, to: server.queued()? };
        Ok(Self { number, hook, ends, open: [true; 2], asked: [EventFlags::empty(); 2] })
    }

    /// Both ends as the direction sees them that begins at the first one.
    fn with_ends<T>(&mut self, way: Way, what: impl FnOnce(&dyn Hook, &mut Ends) -> T) -> T {
        if way == Way::ToServer {
            return what(&*self.hook, &mut self.ends);
        }
        self.ends.turn();
        let result = what(&*self.hook, &mut self.ends);
        self.ends.turn();
        result
    }

    /// Does what the socket is ready for at which this direction begins.
    fn ready(&mut self, way: Way, flags: EventFlags, piece: &mut [u8]) {
        let back = if way == Way::ToServer { Way::ToClient } else { Way::ToServer };
        if flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR)
            && self.with_ends(way, |_, ends| ends.from.send_queued()).is_err()
        {
            self.end(back, back.ends().2);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR)
            && self.open[way as usize]
            && let Some(end) = self.with_ends(way, |hook, ends| forward_piece(hook, way, ends, piece))
        {
            self.end(way, end);
        }
    }

    /// The end of a direction.
    fn end(&mut self, way: Way, end: End) {
        if !std::mem::take(&mut self.open[way as usize]) {
            return;
        }
        self.with_ends(way, |hook, ends| {
            if contained(|| ends.finish(hook, way, end)).is_none() {
                ends.give_up();
            }
        });
    }

    fn is_over(&self) -> bool {
        let unsent = self.ends.from.unsent() + self.ends.to.unsent();
        self.open == [false; 2] && unsent == 0
    }

    /// Tells the kernel what is waited for: nothing is received that cannot be sent on.
    fn ask(&mut self, epoll: &OwnedFd, number: u64) {
        let unsent = [self.ends.from.unsent(), self.ends.to.unsent()];
        for (at, socket) in [&self.ends.from, &self.ends.to].into_iter().enumerate() {
            let mut wanted = EventFlags::empty();
            wanted.set(EventFlags::IN, self.open[at] && unsent[1 - at] == 0);
            wanted.set(EventFlags::OUT, unsent[at] > 0);
            // Whatever is asked for, an end that died is told. It is received from, so that it is told no more.
            wanted.set(EventFlags::PRI, self.open[at] && unsent[1 - at] > 0);
            let asked = std::mem::replace(&mut self.asked[at], wanted);
            if asked == wanted {
                continue;
            }
            let data = EventData::new_u64(2 * number + at as u64);
            // It fails only if there is no memory: the connection then waits until the relay ends.
            let _ = match (asked.is_empty(), wanted.is_empty()) {
                (true, _) => epoll::add(epoll, socket, data, wanted),
                (false, true) => epoll::delete(epoll, socket),
                (false, false) => epoll::modify(epoll, socket, data, wanted),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{LOOPBACK, Relay, Through, Way, lock, on_piece};
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    fn through(listener: &TcpListener) -> Relay {
        let server = listener.local_addr().unwrap().into();
        Relay::on_shared_threads(LOOPBACK, server, |_| Arc::new(Through)).unwrap()
    }

    #[test]
    fn all_ends_send_much_before_they_read_and_the_end_of_one_direction_leaves_the_other() {
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let relay = through(&listener);
        let much = |seed: u8| (0..4_000_000_u32).map(|at| at.to_le_bytes()[1] ^ seed).collect::<Vec<u8>>();
        let exchange = |mut stream: TcpStream, sent: u8, expected: u8| {
            let mut writer = stream.try_clone().unwrap();
            std::thread::spawn(move || {
                writer.write_all(&much(sent)).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            // What is sent fills all buffers before anything is read.
            std::thread::sleep(Duration::from_millis(20));
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert!(received == much(expected));
        };
        std::thread::scope(|scope| {
            for number in 0..6 {
                // One after the other, so that each end knows its other one.
                let client = TcpStream::connect(relay.address()).unwrap();
                let far = listener.accept().unwrap().0;
                scope.spawn(move || exchange(client, number, number + 100));
                scope.spawn(move || exchange(far, number + 100, number));
            }
        });
    }

    #[test]
    fn server_waits_for_a_client_that_does_not_read() {
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let relay = through(&listener);
        let mut client = TcpStream::connect(relay.address()).unwrap();
        let mut far = listener.accept().unwrap().0;
        far.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut sent = 0;
        let error = loop {
            match far.write(&[7; 10_000]) {
                Ok(more) => sent += more,
                Err(error) => break error,
            }
            assert!(sent < 500_000_000, "the relay keeps what nobody reads");
        };
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        drop(far);
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), sent);
    }

    #[test]
    fn hook_that_panics_and_an_end_that_dies_end_their_connection_alone() {
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let ends: Arc<Mutex<Vec<Way>>> = Arc::default();
        let seen = Arc::clone(&ends);
        let server = listener.local_addr().unwrap().into();
        let relay = Relay::on_shared_threads(LOOPBACK, server, move |_| {
            let seen = Arc::clone(&seen);
            on_piece(move |way, piece, ends| {
                assert!(piece != b"panic", "a fault of a hook");
                lock(&seen).push(way);
                ends.to.write_all(piece)
            })
        })
        .unwrap();
        let mut connections = Vec::new();
        for _ in 0..3 {
            let client = TcpStream::connect(relay.address()).unwrap();
            connections.push((client, listener.accept().unwrap().0));
        }
        let mut byte = [0];
        connections[0].0.write_all(b"panic").unwrap();
        assert_eq!(connections[0].0.read(&mut byte).unwrap_or(0), 0);
        assert_eq!(connections[0].1.read(&mut byte).unwrap_or(0), 0);
        // A server that closes without reading all resets the connection.
        connections[1].0.write_all(b"unread").unwrap();
        while lock(&ends).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (mut left, far) = connections.remove(1);
        drop(far);
        assert_eq!(left.read(&mut byte).unwrap_or(0), 0);
        let (client, far) = &mut connections[1];
        client.write_all(b"x").unwrap();
        far.read_exact(&mut byte).unwrap();
        far.write_all(&byte).unwrap();
        client.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"x");
    }
}
