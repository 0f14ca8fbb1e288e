//! The relay: it listens for clients, and connects each of them to the server.
//!
//! Two threads forward the bytes of a connection, one in each direction. Each enters a piece into the account before it
//! forwards it. So an answer is entered after its request, and the next request after the answer.

use crate::account::{Account, Connection, End, Traffic};
use crate::registry::Protocol;
pub use crate::socket::Server;
use crate::socket::Socket;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The maximum number of connections whose accounts are kept.
const KEPT: usize = 10_000;
/// The size of a piece, in bytes.
const PIECE: usize = 64 * 1024;
/// The time that open connections have to end when the relay does.
const GRACE: Duration = Duration::from_secs(1);
/// The pause between two looks at connections.
const POLL: Duration = Duration::from_millis(5);

/// What a relay is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 chooses a free one.
    pub listen: SocketAddr,
    /// The server.
    pub server: Server,
    /// Its protocol; `None` if bytes and round trips are enough.
    pub protocol: Option<&'static Protocol>,
    /// Whether TLS is refused where it is a choice, so that statements can be read. Else no byte is changed.
    pub refuse_tls: bool,
    /// A part of the first own statement. Without it that is the first that does not set up the connection.
    pub until: Option<String>,
}

/// A relay, which listens until it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    listens: Option<JoinHandle<()>>,
}

struct Shared {
    options: Options,
    stop: AtomicBool,
    connections: Mutex<Vec<Arc<Live>>>,
    /// Connections whose accounts are not kept.
    not_kept: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.options)
    }
}

/// A connection while it is open, and its account afterwards.
struct Live {
    account: Mutex<Account>,
    /// Both sockets while it is open, to shut them down.
    sockets: Mutex<Vec<Socket>>,
    /// Directions that still forward.
    directions: AtomicU64,
}

/// Locks, whatever happened to another thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a server takes connections. The connection is closed at once.
///
/// # Errors
/// If it does not.
pub fn check(server: &Server) -> io::Result<()> {
    Socket::connect(server).map(drop)
}

impl Relay {
    /// Listens.
    ///
    /// # Errors
    /// If the address cannot be used, or there is no thread.
    pub fn start(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            options,
            stop: AtomicBool::new(false),
            connections: Mutex::default(),
            not_kept: AtomicU64::new(0),
        });
        let accepting = Arc::clone(&shared);
        let listens =
            thread::Builder::new().name("relay".to_owned()).spawn(move || accepting.accept(&listener))?;
        Ok(Self { address, shared, listens: Some(listens) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All connections so far whose accounts are kept, in the order of opening.
    pub fn connections(&self) -> Vec<Connection> {
        let connections = lock(&self.shared.connections);
        connections.iter().map(|live| lock(&live.account).connection().clone()).collect()
    }

    /// The connections from this place on that have ended before any that has not; for showing them in order.
    pub fn ended_from(&self, place: usize) -> Vec<Connection> {
        let connections = lock(&self.shared.connections);
        let ended = connections.iter().skip(place).take_while(|live| live.has_ended());
        ended.map(|live| lock(&live.account).connection().clone()).collect()
    }

    /// The number of connections so far, the number of those that are open, and all traffic.
    pub fn total(&self) -> (u64, u64, Traffic) {
        let connections = lock(&self.shared.connections);
        let open = connections.iter().filter(|live| !live.has_ended()).count() as u64;
        let traffic = connections.iter().map(|live| lock(&live.account).connection().traffic);
        (connections.len() as u64 + self.not_kept(), open, traffic.fold(Traffic::default(), Traffic::plus))
    }

    /// The number of connections whose accounts are not kept, because there were too many.
    pub fn not_kept(&self) -> u64 {
        self.shared.not_kept.load(Ordering::SeqCst)
    }

    /// Takes no further connections, waits a second for open ones to end, and shuts down the others.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(listens) = self.listens.take() {
            // Wakes the listening thread; an address of all interfaces is reached by that of loopback.
            let mut wake = self.address;
            if wake.ip().is_unspecified() {
                wake.set_ip(if wake.is_ipv6() {
                    [0, 0, 0, 0, 0, 0, 0, 1].into()
                } else {
                    [127, 0, 0, 1].into()
                });
            }
            drop(TcpStream::connect(wake));
            let _ = listens.join();
        }
        self.wait(GRACE);
        for live in lock(&self.shared.connections).iter().filter(|live| !live.has_ended()) {
            lock(&live.account).end(End::Relay);
            for socket in lock(&live.sockets).iter() {
                socket.shutdown(Shutdown::Both);
            }
        }
        self.wait(GRACE);
    }

    /// Waits until no connection is open, up to this time.
    fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        while lock(&self.shared.connections).iter().any(|live| !live.has_ended()) && Instant::now() < until {
            thread::sleep(POLL);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if self.listens.is_some() {
            self.stop();
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            let Ok(client) = client.and_then(Socket::tcp) else {
                // Out of file descriptors: others may end.
                thread::sleep(POLL);
                continue;
            };
            let live = self.live();
            let (shared, opened) = (Arc::clone(self), Arc::clone(&live));
            // Connecting to the server may take long, and must not delay other clients.
            let run = move || shared.run(client, &opened);
            if thread::Builder::new().name("relay".to_owned()).spawn(run).is_err() {
                live.fail("the relay has no thread for it");
            }
        }
    }

    /// The account of a new connection.
    fn live(&self) -> Arc<Live> {
        let mut connections = lock(&self.connections);
        let number = connections.len() as u64 + self.not_kept.load(Ordering::SeqCst) + 1;
        let Options { protocol, refuse_tls, until, .. } = &self.options;
        let refusal = protocol.and_then(|protocol| protocol.refusal).filter(|_| *refuse_tls);
        let decoder = protocol.map_or_else(|| Box::new(Nothing) as _, |protocol| (protocol.decoder)());
        let account = Account::new(number, decoder, refusal.map(|make| make()), until.clone());
        let live = Arc::new(Live {
            account: Mutex::new(account),
            sockets: Mutex::default(),
            directions: AtomicU64::new(1),
        });
        if connections.len() < KEPT {
            connections.push(Arc::clone(&live));
        } else {
            self.not_kept.fetch_add(1, Ordering::SeqCst);
        }
        live
    }

    fn run(self: &Arc<Self>, client: Socket, live: &Arc<Live>) {
        let server = match Socket::connect(&self.options.server) {
            Ok(server) => server,
            Err(error) => {
                live.fail(&format!("{error}"));
                return;
            }
        };
        let cloned = || Ok::<_, io::Error>([client.try_clone()?, server.try_clone()?]);
        let (Ok(kept), Ok([from, to])) = (cloned(), cloned()) else {
            live.fail("the relay has no file descriptors left");
            return;
        };
        *lock(&live.sockets) = kept.into();
        live.directions.store(2, Ordering::SeqCst);
        let back = Arc::clone(live);
        let answers = move || back.forward(to, from, false);
        if thread::Builder::new().name("relay".to_owned()).spawn(answers).is_err() {
            live.fail("the relay has no thread for it");
            return;
        }
        live.forward(client, server, true);
    }
}

impl Live {
    fn has_ended(&self) -> bool {
        self.directions.load(Ordering::SeqCst) == 0
    }

    /// Ends a connection that never reached the server.
    fn fail(&self, why: &str) {
        lock(&self.account).end(End::Unreachable(why.to_owned()));
        lock(&self.sockets).clear();
        self.directions.store(0, Ordering::SeqCst);
    }

    /// Forwards one direction until it ends.
    fn forward(&self, mut from: Socket, mut to: Socket, is_client: bool) {
        let mut piece = vec![0; PIECE];
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        let (closes, dies, other_dies) = if is_client {
            (End::Client, End::ClientReset, End::ServerReset)
        } else {
            (End::Server, End::ServerReset, End::ClientReset)
        };
        let end = loop {
            let read = match from.read(&mut piece) {
                // A client that takes leave closes at once, and the server then: its end may be read first.
                Ok(0) if !is_client && to.has_closed() => break End::Client,
                Ok(0) => break closes,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break dies,
            };
            let Some(bytes) = piece.get_mut(..read) else { break dies };
            let sent = if is_client {
                to_server.clear();
                to_client.clear();
                lock(&self.account).sent(bytes, &mut to_server, &mut to_client);
                from.write_all(&to_client).and_then(|()| to.write_all(&to_server))
            } else {
                lock(&self.account).received(bytes);
                to.write_all(bytes)
            };
            if sent.is_err() {
                break other_dies;
            }
        };
        // Before the other end can notice and close too.
        let is_orderly = matches!(end, End::Client | End::Server);
        lock(&self.account).end(end);
        // An end that closed may still receive; of one that died, nothing is left to forward.
        if is_orderly {
            to.shutdown(Shutdown::Write);
        } else {
            from.shutdown(Shutdown::Both);
            to.shutdown(Shutdown::Both);
        }
        if self.directions.fetch_sub(1, Ordering::SeqCst) == 1 {
            lock(&self.sockets).clear();
        }
    }
}

/// The decoder of a protocol that is not decoded.
struct Nothing;

impl crate::decoder::Decoder for Nothing {
    fn sent(&mut self, _: &[u8], _: &mut Vec<crate::decoder::Seen>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use proptest::prelude::*;

    fn relay(port: u16, scheme: Option<&str>) -> Relay {
        Relay::start(Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            server: Server::Tcp("127.0.0.1".to_owned(), port),
            protocol: scheme.and_then(registry::of_scheme),
            refuse_tls: true,
            until: None,
        })
        .unwrap()
    }

    /// A server that hands each connection to `serve`.
    fn server(serve: impl Fn(TcpStream) + Send + 'static) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || listener.incoming().flatten().for_each(serve));
        port
    }

    /// The only connection, once it has ended.
    fn ended(relay: &Relay) -> Connection {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(connection) = relay.ended_from(0).into_iter().next() {
                return connection;
            }
            assert!(Instant::now() < until, "the connection did not end");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn bytes_and_round_trips_are_counted() {
        let port = server(|mut stream| {
            stream.write_all(b"welcome").unwrap();
            for _ in 0..3 {
                let mut request = [0; 4];
                stream.read_exact(&mut request).unwrap();
                stream.write_all(&request).unwrap();
                stream.write_all(b"!").unwrap();
            }
        });
        let relay = relay(port, None);
        let mut client = TcpStream::connect(relay.address()).unwrap();
        client.read_exact(&mut [0; 7]).unwrap();
        for _ in 0..3 {
            client.write_all(b"ping").unwrap();
            let mut answer = [0; 5];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"ping!");
        }
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop(client);
        let connection = ended(&relay);
        assert_eq!(connection.traffic, Traffic { round_trips: 4, sent_bytes: 12, received_bytes: 22 });
        assert_eq!(connection.end, End::Server);
        assert_eq!(relay.total(), (1, 0, connection.traffic));
    }

    #[test]
    fn server_that_is_down_ends_the_connection_with_the_reason() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let relay = relay(port, Some("mysql"));
        let mut client = TcpStream::connect(relay.address()).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
        let end = ended(&relay).end;
        assert!(matches!(&end, End::Unreachable(why) if why.contains("refused")), "{end:?}");
    }

    #[test]
    fn relay_that_stops_ends_open_connections_and_listens_no_more() {
        let port = server(|mut stream| while stream.read(&mut [0; 64]).is_ok_and(|read| read > 0) {});
        let mut relay = relay(port, Some("redis"));
        let mut client = TcpStream::connect(relay.address()).unwrap();
        client.write_all(b"PING\r\n").unwrap();
        while relay.total().2.sent_bytes < 6 {
            thread::sleep(POLL);
        }
        relay.stop();
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
        assert_eq!(relay.connections()[0].end, End::Relay);
        assert!(TcpStream::connect(relay.address()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Bytes that no decoder understands, and more than fits into a socket's buffers.
        #[test]
        fn every_byte_passes_unchanged(seed in prop::collection::vec(any::<u8>(), 1..200), times in 1_usize..20_000) {
            for protocol in registry::PROTOCOLS {
                let port = server(|mut stream| {
                    let mut bytes = Vec::new();
                    stream.read_to_end(&mut bytes).unwrap();
                    stream.write_all(&bytes).unwrap();
                });
                let relay = relay(port, protocol.schemes.first().copied());
                let mut client = TcpStream::connect(relay.address()).unwrap();
                let sent = seed.repeat(times);
                client.write_all(&sent).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                let mut received = Vec::new();
                client.read_to_end(&mut received).unwrap();
                let changed = sent.iter().zip(&received).filter(|(a, b)| a != b).count();
                // What looks like a greeting of MySQL's may lose the bit by which it offers TLS.
                let allowed = usize::from(protocol.schemes.contains(&"mysql"));
                prop_assert!(received.len() == sent.len() && changed <= allowed, "{protocol:?}");
            }
        }
    }
}
