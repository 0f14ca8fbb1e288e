//! Records what passes a relay: both directions of a connection are entered into the file as they pass. If it cannot be written
//! any more, the relay goes on: the application must not notice.

use crate::Totals;
use crate::file::About;
use crate::secrets::{Catalogue, Tables};
use crate::tape::{Shared, Tape, Taped};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_relay::{At, End, Ends, Hook, Listen, Refused, Relay, Server, Socket, Way, forward_both, lock};
use kurabe_wire::registry::Protocol;
use kurabe_wire::relay::cannot_listen;
use kurabe_wire::terminate::{Begun, Failure, Terminator};
use kurabe_wire::tls::{TlsRefusal, TlsStart};
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time that open connections have to end when the recorder does.
const GRACE: Duration = Duration::from_secs(1);

/// What is told of a client that closes right after the handshake.
const LEFT: &str =
    "a client ended right after the handshake of TLS; it may not accept the certificate of this capture";

/// What is done about TLS, where it is not refused: it ends at the relay.
pub struct Ending {
    pub terminator: Terminator,
    /// Is told of each different failure of a connection, once.
    pub tell: Box<dyn Fn(&Failure) + Send + Sync>,
}

impl std::fmt::Debug for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.terminator.fmt(f)
    }
}

/// A recorder, which relays and records until it is finished.
pub struct Recorder {
    relay: Relay,
    tape: Tape,
}

impl Recorder {
    /// Listens, and begins the file. TLS is refused, unless it has an `ending`. `catalogue`: the server's tables, or why they are not
    /// known; `None` if nobody asked.
    ///
    /// # Errors
    /// If the file exists, or the address is in use.
    pub fn start(
        listen: &Listen,
        server: Server,
        protocol: &'static Protocol,
        path: &Path,
        about: &About,
        ending: Option<Ending>,
        catalogue: Option<std::result::Result<Catalogue, String>>,
    ) -> Result<Self> {
        let tape = Tape::begin(protocol, path, about, Tables::new(catalogue))?;
        let shared = Arc::clone(&tape.shared);
        let refusal = protocol.refusal.filter(|_| ending.is_none());
        let ended =
            ending.map(|ending| Arc::new(Ended { ending, start: protocol.start, told: Mutex::default() }));
        let start = if ended.is_some() { Relay::start } else { Relay::on_shared_threads };
        let relay = start(listen.clone(), server, move |_| {
            let taped = shared.connection();
            let live = Live { taped, refusal: refusal.map(|make| make()), has_asked: false, is_over: false };
            let (shared, ended) = (Arc::clone(&shared), ended.clone());
            let connection: Arc<dyn Hook> = Arc::new(Connection { shared, live: Mutex::new(live), ended });
            connection
        });
        let relay = relay.map_err(|error| {
            // Nothing was recorded into the file, which did not exist before.
            let _ = std::fs::remove_file(path);
            cannot_listen(&listen.at, &error)
        })?;
        Ok(Self { relay, tape })
    }

    pub fn at(&self) -> &At {
        self.relay.at()
    }

    /// The connections that were refused so far.
    pub fn refused(&self) -> &Refused {
        self.relay.refused()
    }

    /// Whether the file cannot be written any more.
    pub fn has_failed(&self) -> bool {
        self.tape.has_failed()
    }

    /// Takes no further connections, waits a second for open ones to end, and completes the file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn finish(mut self, path: &Path) -> Result<Totals> {
        self.relay.stop(GRACE);
        self.tape.finish(path)
    }
}

/// TLS that ends at the relay, of all connections.
struct Ended {
    ending: Ending,
    start: fn() -> Box<dyn TlsStart>,
    told: Mutex<HashSet<String>>,
}

impl Ended {
    fn tell(&self, failure: &Failure) {
        let text = match failure {
            Failure::Server(error) | Failure::Client(error) => error.to_string(),
            // It is lost as any other connection may be.
            Failure::Lost(_) => return,
        };
        if lock(&self.told).insert(text) {
            (self.ending.tell)(failure);
        }
    }
}

struct Connection {
    shared: Arc<Shared>,
    live: Mutex<Live>,
    /// `None` if TLS is refused.
    ended: Option<Arc<Ended>>,
}

struct Live {
    taped: Taped,
    refusal: Option<Box<dyn TlsRefusal>>,
    /// Whether the client has sent anything that is recorded.
    has_asked: bool,
    /// Whether the recorder has finished.
    is_over: bool,
}

impl Hook for Connection {
    fn piece(&self, way: Way, piece: &mut [u8], ends: &mut Ends) -> std::io::Result<()> {
        let now = Instant::now();
        let mut live = lock(&self.live);
        let Live { taped, refusal, has_asked, .. } = &mut *live;
        // On a shared thread the other direction waits for this one: what is forwarded first waits for no decoder.
        let is_shared = self.ended.is_none();
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        let piece = match (way, refusal) {
            (Way::ToServer, Some(refusal)) => {
                refusal.sent(piece, &mut to_server, &mut to_client);
                ends.from.write_all(&to_client)?;
                &*to_server
            }
            (Way::ToClient, Some(refusal)) => {
                refusal.received(piece);
                piece
            }
            (_, None) => piece,
        };
        let forwarded = if is_shared { ends.to.write_all(piece) } else { Ok(()) };
        if way == Way::ToServer {
            *has_asked = true;
            taped.sent(piece, now);
        } else {
            taped.received(piece, now);
        }
        drop(live);
        if is_shared { forwarded } else { ends.to.write_all(piece) }
    }

    fn serve(&self, client: Socket, server: Socket) {
        let Some(ended) = &self.ended else { return forward_both(self, client, server) };
        match ended.ending.terminator.begin((ended.start)(), self, client, server) {
            Ok(Begun { client, server, is_encrypted }) => {
                forward_both(self, client, server);
                let live = lock(&self.live);
                // Some clients look at the certificate after the handshake only.
                if is_encrypted && !live.has_asked && !live.is_over {
                    ended.tell(&Failure::Client(Error::new(ErrorKind::ConnectionLost, LEFT)));
                }
            }
            Err(failure) => {
                let mut live = lock(&self.live);
                live.taped.forget();
                if !live.is_over {
                    ended.tell(&failure);
                }
            }
        }
    }

    fn ended(&self, _: Way, end: End) {
        let mut live = lock(&self.live);
        // Half of a connection may go on: what is left is entered when it is closed.
        if let End::Unreachable(why) = end {
            self.shared.unreachable(why);
            live.taped.forget();
        } else if end == End::Server {
            live.taped.closed(Instant::now());
        } else if end == End::Relay {
            live.is_over = true;
            live.taped.end(Instant::now());
        }
    }

    fn closed(&self) {
        lock(&self.live).taped.end(Instant::now());
    }
}
