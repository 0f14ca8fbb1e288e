//! The relay of `kurabe wire`: the accounts of its connections.
//!
//! A piece is entered into the account before it is forwarded. So an answer is entered after its request, and the next
//! request after the answer.

use crate::account::{Account, Connection, End, Traffic};
use crate::registry::Protocol;
use kurabe_core::{Error, ErrorKind};
pub use kurabe_relay::{At, Clients, Listen, Refused, Server};
use kurabe_relay::{Ends, Hook, Socket, Way, lock};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The maximum number of connections whose accounts are kept.
const KEPT: usize = 10_000;
/// The time that open connections have to end when the relay does.
const GRACE: Duration = Duration::from_secs(1);

/// What a relay is told.
#[derive(Clone, Debug)]
pub struct Options {
    pub listen: Listen,
    pub server: Server,
    /// Its protocol; `None` if bytes and round trips are enough.
    pub protocol: Option<&'static Protocol>,
    /// Whether TLS is refused where it is a choice, so that statements can be read. Else no byte is changed.
    pub refuse_tls: bool,
    /// A part of the first own statement. Without it that is the first that does not set up the connection.
    pub until: Option<String>,
}

/// What a relay has seen of all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    pub connections: u64,
    /// Those that have not ended.
    pub open: u64,
    pub traffic: Traffic,
}

/// A relay, which listens until it is dropped.
pub struct Relay {
    relay: kurabe_relay::Relay,
    accounts: Arc<Accounts>,
}

#[derive(Default)]
struct Accounts {
    kept: Mutex<Vec<Arc<Live>>>,
    /// The number of connections whose accounts are not kept.
    not_kept: AtomicU64,
}

struct Live {
    account: Mutex<Account>,
    has_ended: AtomicBool,
}

/// The error of an address at which a relay cannot listen.
pub fn cannot_listen(at: &At, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::Unsupported => {
            "--allow-other-users lets clients of every account of this machine connect"
        }
        _ if matches!(at, At::Unix(_)) => {
            "name a file that does not exist, in a folder that only you may write"
        }
        _ => "name an address of this host and a free port",
    };
    Error::new(ErrorKind::Environment, format!("cannot listen at {at}: {error}")).hint(hint)
}

/// Whether a server takes connections. The connection is closed at once.
pub fn check(server: &Server) -> io::Result<()> {
    Socket::connect(server).map(drop)
}

impl Relay {
    pub fn start(options: Options) -> io::Result<Self> {
        let accounts = Arc::<Accounts>::default();
        let (opened, listen, server) =
            (Arc::clone(&accounts), options.listen.clone(), options.server.clone());
        let relay = kurabe_relay::Relay::on_shared_threads(listen, server, move |number| {
            opened.open(number, &options)
        })?;
        Ok(Self { relay, accounts })
    }

    pub fn at(&self) -> &At {
        self.relay.at()
    }

    pub fn address(&self) -> SocketAddr {
        self.relay.address()
    }

    /// The connections that were refused so far.
    pub fn refused(&self) -> &Refused {
        self.relay.refused()
    }

    /// All connections so far whose accounts are kept, in the order of opening.
    pub fn connections(&self) -> Vec<Connection> {
        lock(&self.accounts.kept).iter().map(|live| lock(&live.account).connection().clone()).collect()
    }

    /// The connections from this place on that have ended before any that has not; for showing them in order.
    pub fn ended_from(&self, place: usize) -> Vec<Connection> {
        let connections = lock(&self.accounts.kept);
        let ended = connections.iter().skip(place).take_while(|live| live.has_ended.load(Ordering::SeqCst));
        ended.map(|live| lock(&live.account).connection().clone()).collect()
    }

    /// What it has seen of all connections.
    pub fn total(&self) -> Total {
        let connections = lock(&self.accounts.kept);
        let open = connections.iter().filter(|live| !live.has_ended.load(Ordering::SeqCst)).count() as u64;
        let traffic = connections.iter().map(|live| lock(&live.account).connection().traffic);
        Total {
            connections: connections.len() as u64 + self.not_kept(),
            open,
            traffic: traffic.fold(Traffic::default(), Traffic::plus),
        }
    }

    /// The number of connections whose accounts are not kept, because there were too many.
    pub fn not_kept(&self) -> u64 {
        self.accounts.not_kept.load(Ordering::SeqCst)
    }

    /// Takes no further connections, waits a second for open ones to end, and shuts down the others.
    pub fn stop(&mut self) {
        self.relay.stop(GRACE);
    }
}

impl Accounts {
    /// The account of a new connection.
    fn open(&self, number: usize, options: &Options) -> Arc<dyn Hook> {
        let Options { protocol, refuse_tls, until, .. } = options;
        let refusal = protocol.and_then(|protocol| protocol.refusal).filter(|_| *refuse_tls);
        let account = Account::new(number as u64 + 1, *protocol, refusal.map(|make| make()), until.clone());
        let live = Arc::new(Live { account: Mutex::new(account), has_ended: AtomicBool::new(false) });
        let mut kept = lock(&self.kept);
        if kept.len() < KEPT {
            kept.push(Arc::clone(&live));
        } else {
            self.not_kept.fetch_add(1, Ordering::SeqCst);
        }
        live
    }
}

impl Hook for Live {
    fn piece(&self, way: Way, piece: &mut [u8], ends: &mut Ends) -> io::Result<()> {
        if way == Way::ToClient {
            lock(&self.account).received(piece);
            return ends.to.write_all(piece);
        }
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        lock(&self.account).sent(piece, &mut to_server, &mut to_client);
        ends.from.write_all(&to_client)?;
        ends.to.write_all(&to_server)
    }

    fn ended(&self, _: Way, end: End) {
        let mut account = lock(&self.account);
        // Half of a connection may go on: what is left is listed when it is closed.
        if end == End::Relay {
            account.close();
        }
        account.end(end);
    }

    fn closed(&self) {
        lock(&self.account).close();
        self.has_ended.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use proptest::prelude::*;
    use std::io::Read;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;
    use std::time::Instant;

    /// The pause between two looks at a connection.
    const POLL: Duration = Duration::from_millis(5);

    fn relay(port: u16, scheme: Option<&str>) -> Relay {
        Relay::start(Options {
            listen: kurabe_relay::LOOPBACK.into(),
            server: Server::local(port),
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
        assert_eq!(relay.total(), Total { connections: 1, open: 0, traffic: connection.traffic });
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
        while relay.total().traffic.sent_bytes < 6 {
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
