//! A relay that counts its traffic.

use kurabe_relay::{LOOPBACK, Way, on_piece};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::contest::Server;

/// The traffic.
#[derive(Clone, Copy)]
pub struct Count {
    /// Bytes of clients, and of the server.
    pub sent: u64,
    pub received: u64,
    /// How often a client sent something after an answer: a round trip each time.
    pub turns: u64,
}

impl Count {
    pub fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            received: self.received - before.received,
            turns: self.turns - before.turns,
        }
    }
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
    turns: AtomicU64,
}

pub struct Relay {
    /// The server, through the relay.
    pub server: Server,
    counters: Arc<Counters>,
    _listens: kurabe_relay::Relay,
}

impl Relay {
    pub fn start(server: &Server) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("a relay: {error}");
        let port = server.port.parse().map_err(|error| failed(&error))?;
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        let to = kurabe_relay::Server::Tcp(server.host.clone(), port);
        let relay = kurabe_relay::Relay::start(LOOPBACK, to, move |_| {
            // A request follows the previous answer, so that the order of the two threads' counts is that of the traffic.
            let (answered, counted) = (AtomicBool::new(true), Arc::clone(&shared));
            on_piece(move |way, piece, ends| {
                let bytes = piece.len() as u64;
                if way == Way::ToServer {
                    counted.sent.fetch_add(bytes, Ordering::SeqCst);
                    counted
                        .turns
                        .fetch_add(u64::from(answered.swap(false, Ordering::SeqCst)), Ordering::SeqCst);
                } else {
                    counted.received.fetch_add(bytes, Ordering::SeqCst);
                    answered.store(true, Ordering::SeqCst);
                }
                ends.to.write_all(piece)
            })
        });
        let relay = relay.map_err(|error| failed(&error))?;
        let port = relay.address().port().to_string();
        let url = server.url.replacen(&format!(":{}", server.port), &format!(":{port}"), 1);
        let server = Server { url, host: "127.0.0.1".to_owned(), port };
        Ok(Self { server, counters, _listens: relay })
    }

    pub fn count(&self) -> Count {
        let of = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        Count {
            sent: of(&self.counters.sent),
            received: of(&self.counters.received),
            turns: of(&self.counters.turns),
        }
    }
}
