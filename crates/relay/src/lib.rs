//! A relay of connections to a server. A [`Hook`] decides what becomes of each piece of data: it forwards it, replaces it,
//! delays it ([`Late`]), answers it itself, or ends the connection.

mod late;
mod listener;
mod pump;
mod queue;
mod socket;
mod tls;

pub use late::Late;
pub use listener::Listener;
use pump::{Passing, Pump};
pub use queue::Queue;
pub use socket::{Server, Socket};
pub use tls::Tls;

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Any free port of loopback.
pub const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The size of a piece, in bytes.
const PIECE: usize = 64 * 1024;
/// The pause between two looks at connections.
const POLL: Duration = Duration::from_millis(5);

/// The direction of a piece of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

/// How a connection ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum End {
    /// It has not.
    #[default]
    Open,
    /// The client closed it.
    Client,
    /// The client died, or closed it without reading all.
    ClientReset,
    /// The server closed it.
    Server,
    /// The server died, or closed it without reading all.
    ServerReset,
    /// The relay closed it, because it ended.
    Relay,
    /// The server could not be reached, and why.
    Unreachable(String),
}

/// Both ends of a connection, as one direction sees them.
pub struct Ends {
    /// The end that sent the piece.
    pub from: Socket,
    /// The other end.
    pub to: Socket,
}

impl Way {
    /// How this direction ends: its sender closes or dies, or the other end dies.
    fn ends(self) -> (End, End, End) {
        match self {
            Self::ToServer => (End::Client, End::ClientReset, End::ServerReset),
            Self::ToClient => (End::Server, End::ServerReset, End::ClientReset),
        }
    }
}

impl Ends {
    /// Ends a direction.
    fn finish<H: Hook + ?Sized>(&mut self, hook: &H, way: Way, end: End) {
        let is_orderly = matches!(end, End::Client | End::Server);
        hook.ended(way, end);
        // An end that closed may still receive; of one that died, nothing is left to forward.
        if is_orderly {
            self.to.finish();
        } else {
            self.give_up();
        }
    }

    /// Closes both ends at once.
    fn give_up(&mut self) {
        self.from.give_up();
        self.to.give_up();
    }

    /// Both ends as the other direction sees them.
    fn turn(&mut self) {
        std::mem::swap(&mut self.from, &mut self.to);
    }
}

/// What is done with one connection. Both directions call it, each on a thread of its own, or both on a shared one.
pub trait Hook: Send + Sync + 'static {
    /// Takes a piece that `ends.from` sent. An error ends the connection.
    ///
    /// # Errors
    /// If nothing can be forwarded any more.
    fn piece(&self, _way: Way, piece: &mut [u8], ends: &mut Ends) -> io::Result<()> {
        ends.to.write_all(piece)
    }

    /// Called when a direction has ended, before the other end can notice. The first call has the cause.
    fn ended(&self, _way: Way, _end: End) {}

    /// Called when nothing is relayed any more.
    fn closed(&self) {}

    /// Relays the connection to its end. A hook that reads whole messages of both ends implements it in place of [`Hook::piece`]. A
    /// hook that negotiates with both ends first calls [`forward_both`] afterwards.
    fn serve(&self, client: Socket, server: Socket) {
        forward_both(self, client, server);
    }
}

/// Forwards both directions of a connection, through [`Hook::piece`], until both have ended.
pub fn forward_both<H: Hook + ?Sized>(hook: &H, client: Socket, server: Socket) {
    let (Ok(to_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else {
        return hook.ended(Way::ToServer, End::Unreachable(NO_DESCRIPTORS.to_owned()));
    };
    thread::scope(|scope| {
        let answers = Ends { from: from_server, to: to_client };
        let back = move || forward(hook, Way::ToClient, answers);
        match thread::Builder::new().name("relay".to_owned()).spawn_scoped(scope, back) {
            Ok(_) => forward(hook, Way::ToServer, Ends { from: client, to: server }),
            Err(_) => hook.ended(Way::ToServer, End::Unreachable(NO_THREAD.to_owned())),
        }
    });
}

/// Forwards everything.
pub struct Through;

impl Hook for Through {}

const NO_DESCRIPTORS: &str = "the relay has no file descriptors left";
const NO_THREAD: &str = "the relay has no thread for it";

struct OnPiece<F>(F);

impl<F> Hook for OnPiece<F>
where
    F: Fn(Way, &mut [u8], &mut Ends) -> io::Result<()> + Send + Sync + 'static,
{
    fn piece(&self, way: Way, piece: &mut [u8], ends: &mut Ends) -> io::Result<()> {
        (self.0)(way, piece, ends)
    }
}

/// A hook that is one function: [`Hook::piece`].
pub fn on_piece(
    piece: impl Fn(Way, &mut [u8], &mut Ends) -> io::Result<()> + Send + Sync + 'static,
) -> Arc<dyn Hook> {
    Arc::new(OnPiece(piece))
}

/// A relay, which listens until it is dropped.
pub struct Relay {
    listener: Listener,
    shared: Arc<Shared>,
}

struct Shared {
    server: Server,
    open: Arc<Mutex<HashMap<usize, Open>>>,
    /// The shared threads, if connections have none of their own.
    pump: Option<Pump>,
}

/// A connection while it is open; it has no sockets until the server is reached.
struct Open {
    hook: Arc<dyn Hook>,
    sockets: Vec<Socket>,
}

/// Locks, whatever happened to another thread.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    /// Listens, and makes a hook for each connection, which are numbered from 0. Each connection has threads of its own.
    ///
    /// # Errors
    /// If the address cannot be used, or there is no thread.
    pub fn start(
        listen: SocketAddr,
        server: Server,
        make: impl Fn(usize) -> Arc<dyn Hook> + Send + 'static,
    ) -> io::Result<Self> {
        Self::listen(listen, server, make, false)
    }

    /// As [`Relay::start`], with a few threads for all connections. [`Hook::piece`] must not wait, and [`Hook::serve`] is
    /// not called.
    ///
    /// # Errors
    /// As [`Relay::start`].
    pub fn on_shared_threads(
        listen: SocketAddr,
        server: Server,
        make: impl Fn(usize) -> Arc<dyn Hook> + Send + 'static,
    ) -> io::Result<Self> {
        Self::listen(listen, server, make, true)
    }

    fn listen(
        listen: SocketAddr,
        server: Server,
        make: impl Fn(usize) -> Arc<dyn Hook> + Send + 'static,
        is_shared: bool,
    ) -> io::Result<Self> {
        let open = Arc::default();
        let of_pump = Arc::clone(&open);
        let pump =
            is_shared.then(|| Pump::start(move |number, hook| close(&of_pump, number, hook))).transpose()?;
        let shared = Arc::new(Shared { server, open, pump });
        let (accepting, next) = (Arc::clone(&shared), AtomicUsize::new(0));
        let listener = Listener::start(listen, move |client| {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let hook = make(number);
            lock(&accepting.open).insert(number, Open { hook: Arc::clone(&hook), sockets: Vec::new() });
            let (shared, opened) = (Arc::clone(&accepting), Arc::clone(&hook));
            // Connecting to the server may take long, and must not delay other clients.
            let run = move || shared.run(number, client, &opened);
            if thread::Builder::new().name("relay".to_owned()).spawn(run).is_err() {
                hook.ended(Way::ToServer, End::Unreachable(NO_THREAD.to_owned()));
                close(&accepting.open, number, &*hook);
            }
        })?;
        Ok(Self { listener, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Takes no further connections, waits up to this time for open ones to end, and shuts down the others.
    pub fn stop(&mut self, grace: Duration) {
        self.listener.stop();
        let until = Instant::now() + grace;
        while !lock(&self.shared.open).is_empty() && Instant::now() < until {
            thread::sleep(POLL);
        }
        for (_, open) in std::mem::take(&mut *lock(&self.shared.open)) {
            open.hook.ended(Way::ToServer, End::Relay);
            open.sockets.iter().for_each(|socket| socket.shutdown(Shutdown::Both));
        }
        if let Some(pump) = &self.shared.pump {
            pump.stop();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

impl Shared {
    fn run(&self, number: usize, client: TcpStream, hook: &Arc<dyn Hook>) {
        let connected = Socket::connect(&self.server).and_then(|server| Ok((Socket::tcp(client)?, server)));
        let cloned = |(client, server): (Socket, Socket)| {
            let kept = vec![client.try_clone()?, server.try_clone()?];
            Ok::<_, io::Error>((kept, client, server))
        };
        let served = connected.and_then(cloned).and_then(|(kept, client, server)| {
            // It is no longer there if the relay has stopped.
            let open = lock(&self.open).get_mut(&number).map(|open| open.sockets = kept);
            match &self.pump {
                _ if open.is_none() => Ok(false),
                Some(pump) => Ok(pump.add(Passing::new(number, Arc::clone(hook), client, server)?)),
                None => {
                    hook.serve(client, server);
                    Ok(false)
                }
            }
        });
        match served {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => hook.ended(Way::ToServer, End::Unreachable(error.to_string())),
        }
        close(&self.open, number, &**hook);
    }
}

fn close(open: &Mutex<HashMap<usize, Open>>, number: usize, hook: &dyn Hook) {
    hook.closed();
    lock(open).remove(&number);
}

/// Forwards one direction until it ends.
fn forward<H: Hook + ?Sized>(hook: &H, way: Way, mut ends: Ends) {
    let mut piece = vec![0; PIECE];
    let end = loop {
        if let Some(end) = forward_piece(hook, way, &mut ends, &mut piece) {
            break end;
        }
    };
    ends.finish(hook, way, end);
}

/// Receives one piece, and has the hook forward it. Returns how the direction has ended, if it has.
fn forward_piece<H: Hook + ?Sized>(hook: &H, way: Way, ends: &mut Ends, piece: &mut [u8]) -> Option<End> {
    let (closes, dies, other_dies) = way.ends();
    let bytes = match ends.from.read(piece) {
        // A client that takes leave closes at once, and the server then: its end may be read first.
        Ok(0) if way == Way::ToClient && ends.to.has_closed() => return Some(End::Client),
        Ok(0) => return Some(closes),
        Ok(read) => piece.get_mut(..read)?,
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => return None,
        Err(_) => return Some(dies),
    };
    let forwarded = contained(|| hook.piece(way, bytes, ends));
    if matches!(forwarded, Some(Ok(()))) { None } else { Some(other_dies) }
}

/// The result of a hook, unless it panics: that ends its connection, and no other.
fn contained<T>(hook: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(hook)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A relay before a listener of the test, a client that is connected through it, and the server's end.
    fn relayed(make: impl Fn(usize) -> Arc<dyn Hook> + Send + 'static) -> (Relay, TcpStream, TcpStream) {
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let relay = Relay::start(LOOPBACK, listener.local_addr().unwrap().into(), make).unwrap();
        let client = TcpStream::connect(relay.address()).unwrap();
        (relay, client, listener.accept().unwrap().0)
    }

    #[test]
    fn late_requests_keep_their_distances_and_answers_are_not_delayed() {
        let delay = Duration::from_millis(60);
        let late = move |_| Arc::new(Late::new(delay, Duration::ZERO, &Arc::default())) as Arc<dyn Hook>;
        let (_relay, mut client, mut far) = relayed(late);
        let began = Instant::now();
        for _ in 0..3 {
            client.write_all(b"request").unwrap();
        }
        client.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        far.read_to_end(&mut received).unwrap();
        assert!(began.elapsed() >= delay);
        assert_eq!(received, b"request".repeat(3), "an end does not overtake data");
        far.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
        // Closing one end closes the other.
        drop(far);
        assert_eq!(client.read(&mut answer).unwrap(), 0);
    }

    #[test]
    fn hook_replaces_answers_itself_and_cuts() {
        let (_relay, mut client, mut far) = relayed(|_| {
            on_piece(|way, piece, ends| match (way, &*piece) {
                (Way::ToServer, b"ping") => ends.from.write_all(b"pong"),
                (Way::ToServer, _) => ends.to.write_all(b"other"),
                (Way::ToClient, _) => Err(ErrorKind::ConnectionAborted.into()),
            })
        });
        let mut five = [0; 5];
        client.write_all(b"ping").unwrap();
        client.read_exact(&mut five[..4]).unwrap();
        assert_eq!(&five[..4], b"pong");
        client.write_all(b"this").unwrap();
        far.read_exact(&mut five).unwrap();
        assert_eq!(&five, b"other");
        far.write_all(b"answer").unwrap();
        assert_eq!(client.read(&mut five).unwrap_or(0), 0);
    }
}
