//! A relay that counts its traffic.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

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

/// It ends with this process.
pub struct Relay {
    /// The server, through the relay.
    pub server: Server,
    counters: Arc<Counters>,
}

impl Relay {
    pub fn start(server: &Server) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("a relay: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let counters = Arc::new(Counters::default());
        let (shared, address) = (Arc::clone(&counters), format!("{}:{}", server.host, server.port));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&address) else { continue };
                // Two small writes must not wait for each other's acknowledgement.
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                connect(client, server, &shared);
            }
        });
        let url = server.url.replacen(&format!(":{}", server.port), &format!(":{port}"), 1);
        let server = Server { url, host: "127.0.0.1".to_owned(), port: port.to_string() };
        Ok(Self { server, counters })
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

fn connect(client: TcpStream, server: TcpStream, counters: &Arc<Counters>) {
    let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else { return };
    // A request follows the previous answer, so that the order of the two threads' counts is that of the traffic.
    let answered = Arc::new(AtomicBool::new(true));
    let (noted, counted) = (Arc::clone(&answered), Arc::clone(counters));
    thread::spawn(move || {
        pump(from, to, |bytes| {
            counted.sent.fetch_add(bytes, Ordering::SeqCst);
            counted.turns.fetch_add(u64::from(noted.swap(false, Ordering::SeqCst)), Ordering::SeqCst);
        });
    });
    let counted = Arc::clone(counters);
    thread::spawn(move || {
        pump(server, client, |bytes| {
            counted.received.fetch_add(bytes, Ordering::SeqCst);
            answered.store(true, Ordering::SeqCst);
        });
    });
}

fn pump(mut from: TcpStream, mut to: TcpStream, note: impl Fn(u64)) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        note(read as u64);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
