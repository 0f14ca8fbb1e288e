//! A relay of bytes that becomes hostile at one piece of the server's data on one connection.
//!
//! It is independent of the protocol: a piece is the data of one `recv`, which mostly begins with an answer.

use crate::random::Random;
use kurabe_relay::{Ends, Hook, LOOPBACK, Relay, Server, Way, lock};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The data that replaces the piece.
#[derive(Clone, Debug)]
pub enum How {
    /// The server's data, unchanged: a control.
    Honest,
    /// No more data.
    Silent,
    /// The first half of the piece, then nothing.
    Half,
    /// The piece and all later data, one byte per interval.
    Drip(Duration),
    /// These bytes, then the second ones repeated endlessly.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, and the end of the connection.
    Last(Vec<u8>),
    /// The piece with its bytes changed; the seed.
    Mutated(u64),
    /// In every piece of every connection, the first bytes replaced by the second, of the same length.
    Replaced(Vec<u8>, Vec<u8>),
}

/// When and how it becomes hostile.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server's port on loopback.
    pub port: u16,
    /// The connection, in the order of opening.
    pub connection: usize,
    pub piece: usize,
    /// What it does.
    pub how: How,
}

/// A relay that listens until it is dropped.
pub struct Hostile {
    shared: Arc<Shared>,
    relay: Relay,
}

struct Shared {
    plan: Plan,
    fired: AtomicUsize,
    /// The number of pieces that the server sent on each connection.
    pieces: Mutex<Vec<usize>>,
}

/// A connection, by its number.
struct Connection(usize, Arc<Shared>);

impl Hostile {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn start(plan: Plan) -> io::Result<Self> {
        let shared = Arc::new(Shared { plan, fired: AtomicUsize::new(0), pieces: Mutex::default() });
        let opened = Arc::clone(&shared);
        let relay = Relay::start(LOOPBACK, Server::local(shared.plan.port), move |number| {
            lock(&opened.pieces).push(0);
            Arc::new(Connection(number, Arc::clone(&opened)))
        })?;
        Ok(Self { shared, relay })
    }

    /// The port on which it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.relay.address().port()
    }

    /// Whether it became hostile.
    pub fn fired(&self) -> bool {
        self.shared.fired.load(Ordering::SeqCst) > 0
    }

    /// The number of pieces that the server sent on each connection.
    pub fn pieces(&self) -> Vec<usize> {
        lock(&self.shared.pieces).clone()
    }
}

impl Hook for Connection {
    /// Forwards one piece of the server's data, or replaces it.
    fn piece(&self, way: Way, piece: &mut [u8], ends: &mut Ends) -> io::Result<()> {
        let (connection, Shared { plan, fired, pieces }) = (self.0, &*self.1);
        if way == Way::ToServer {
            return ends.to.write_all(piece);
        }
        let at = {
            let count = &mut lock(pieces)[connection];
            *count += 1;
            *count - 1
        };
        if let How::Replaced(old, new) = &plan.how {
            let (replaced, count) = replaced(piece, old, new);
            fired.fetch_add(count, Ordering::SeqCst);
            return ends.to.write_all(&replaced);
        }
        if connection != plan.connection || at != plan.piece || matches!(plan.how, How::Honest) {
            return ends.to.write_all(piece);
        }
        fired.fetch_add(1, Ordering::SeqCst);
        match &plan.how {
            How::Silent => wait(ends),
            How::Half => {
                ends.to.write_all(&piece[..piece.len() / 2])?;
                wait(ends)
            }
            How::Drip(pause) => {
                let mut piece = piece.to_vec();
                loop {
                    for byte in &piece {
                        ends.to.write_all(&[*byte])?;
                        thread::sleep(*pause);
                    }
                    piece.resize(4096, 0);
                    let read = ends.from.read(&mut piece)?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    piece.truncate(read);
                }
            }
            How::Endless(first, pattern) => {
                ends.to.write_all(first)?;
                let block = pattern.repeat((64 * 1024 / pattern.len().max(1)).max(1));
                loop {
                    ends.to.write_all(&block)?;
                    // 32 MB a second, so that other processes can run.
                    thread::sleep(Duration::from_millis(2));
                }
            }
            How::Last(bytes) => {
                ends.to.write_all(bytes)?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            How::Mutated(seed) => ends.to.write_all(&mutated(piece, *seed)),
            How::Honest | How::Replaced(..) => Ok(()),
        }
    }
}

/// Keeps the connection open until the client closes it or the relay is dropped.
fn wait(ends: &Ends) -> io::Result<()> {
    while !ends.to.has_closed() {
        thread::sleep(Duration::from_millis(50));
    }
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// A piece with some bytes flipped, truncated, duplicated, swapped or inserted.
fn mutated(piece: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = piece.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len().max(1));
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let again = bytes[at.min(bytes.len())..].to_vec();
                bytes.extend(again);
            }
            2 => {
                let half = bytes.len() / 2;
                bytes.rotate_left(half);
            }
            3 => bytes.insert(at.min(bytes.len()), random.number() as u8),
            4 if !bytes.is_empty() => {
                // A length field does the most harm with its maximum value.
                let end = (at + 4).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
            _ if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
    bytes
}

/// A piece with all occurrences of `old` replaced by `new`, of the same length, and their number.
pub(super) fn replaced(piece: &[u8], old: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
    let (mut out, mut at, mut count) = (piece.to_vec(), 0, 0);
    while let Some(found) = out[at..].windows(old.len().max(1)).position(|window| window == old) {
        out[at + found..at + found + old.len()].copy_from_slice(new);
        at += found + old.len();
        count += 1;
    }
    (out, count)
}
