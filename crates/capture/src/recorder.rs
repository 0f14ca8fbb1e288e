//! Records what passes a relay: both directions of a connection are entered into the file as they pass. If it cannot be written
//! any more, the relay goes on: the application must not notice.

use crate::Totals;
use crate::file::About;
use crate::tape::{Shared, Tape, Taped};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_relay::{End, Ends, Hook, Relay, Server, Way, lock};
use kurabe_wire::decoder::TlsRefusal;
use kurabe_wire::registry::Protocol;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time that open connections have to end when the recorder does.
const GRACE: Duration = Duration::from_secs(1);

/// A recorder, which relays and records until it is finished.
pub struct Recorder {
    relay: Relay,
    tape: Tape,
}

impl Recorder {
    /// Listens, and begins the file.
    ///
    /// # Errors
    /// If the protocol cannot be recorded, the file exists, or the address is in use.
    pub fn start(
        listen: SocketAddr,
        server: Server,
        protocol: &'static Protocol,
        path: &Path,
        about: &About,
    ) -> Result<Self> {
        let tape = Tape::begin(protocol, path, about)?;
        let (refusal, shared) = (protocol.refusal, Arc::clone(&tape.shared));
        let relay = Relay::start(listen, server, move |number| {
            let live = Live { taped: shared.connection(number as u64), refusal: refusal.map(|make| make()) };
            Arc::new(Connection { shared: Arc::clone(&shared), live: Mutex::new(live) })
        });
        let relay = relay.map_err(|error| {
            // Nothing was recorded into the file, which did not exist before.
            let _ = std::fs::remove_file(path);
            Error::new(ErrorKind::Environment, format!("cannot listen at {listen}: {error}"))
                .hint("name an address of this host and a free port")
        })?;
        Ok(Self { relay, tape })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.relay.address()
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

/// A connection that is recorded.
struct Connection {
    shared: Arc<Shared>,
    live: Mutex<Live>,
}

struct Live {
    taped: Taped,
    refusal: Option<Box<dyn TlsRefusal>>,
}

impl Hook for Connection {
    fn piece(&self, way: Way, piece: &mut [u8], ends: &mut Ends) -> std::io::Result<()> {
        let now = Instant::now();
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        {
            let mut live = lock(&self.live);
            let Live { taped, refusal } = &mut *live;
            if way == Way::ToClient {
                if let Some(refusal) = refusal {
                    refusal.received(piece);
                }
                taped.received(piece, now);
            } else {
                match refusal {
                    Some(refusal) => refusal.sent(piece, &mut to_server, &mut to_client),
                    None => to_server.extend_from_slice(piece),
                }
                taped.sent(&to_server, now);
            }
        }
        if way == Way::ToClient {
            return ends.to.write_all(piece);
        }
        ends.from.write_all(&to_client)?;
        ends.to.write_all(&to_server)
    }

    fn ended(&self, _: Way, end: End) {
        let mut live = lock(&self.live);
        // Half of a connection may go on: what is left is entered when it is closed.
        if let End::Unreachable(why) = end {
            self.shared.unreachable(why);
            live.taped.forget();
        } else if end == End::Relay {
            live.taped.end(Instant::now());
        }
    }

    fn closed(&self) {
        lock(&self.live).taped.end(Instant::now());
    }
}
