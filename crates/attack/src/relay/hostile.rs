//! A relay of bytes that becomes hostile at one piece of the server's data on one connection.
//!
//! It is independent of the protocol: a piece is the data of one `recv`, which mostly begins with an answer.

use super::listener::Listener;
use crate::random::Random;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// The piece of it.
    pub piece: usize,
    /// What it does.
    pub how: How,
}

/// A relay that listens until it is dropped.
pub struct Hostile {
    shared: Arc<Shared>,
    listener: Listener,
}

struct Shared {
    plan: Plan,
    stop: Arc<AtomicBool>,
    fired: AtomicUsize,
    /// The number of pieces that the server sent on each connection.
    pieces: Mutex<Vec<usize>>,
}

impl Hostile {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn start(plan: Plan) -> io::Result<Self> {
        let (stop, fired, pieces) = (Arc::default(), AtomicUsize::new(0), Mutex::default());
        let shared = Arc::new(Shared { plan, stop, fired, pieces });
        let accepted = Arc::clone(&shared);
        let listener = Listener::start(&shared.stop, move |client| {
            if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, accepted.plan.port)) {
                let _ = join(&accepted, &client, &server);
            }
        })?;
        Ok(Self { shared, listener })
    }

    /// The port on which it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// Whether it became hostile.
    pub fn fired(&self) -> bool {
        self.shared.fired.load(Ordering::SeqCst) > 0
    }

    /// The number of pieces that the server sent on each connection.
    pub fn pieces(&self) -> Vec<usize> {
        self.shared.pieces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn join(shared: &Arc<Shared>, client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let connection = {
        let mut pieces = shared.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.push(0);
        pieces.len() - 1
    };
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            if to.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to, shared) = (server.try_clone()?, client.try_clone()?, Arc::clone(shared));
    thread::spawn(move || {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            if shared.pass(connection, &piece[..read], &mut from, &mut to).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    Ok(())
}

impl Shared {
    /// Forwards one piece of the server's data, or replaces it.
    fn pass(
        &self,
        connection: usize,
        piece: &[u8],
        from: &mut TcpStream,
        to: &mut TcpStream,
    ) -> io::Result<()> {
        let at = {
            let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
            pieces[connection] += 1;
            pieces[connection] - 1
        };
        if let How::Replaced(old, new) = &self.plan.how {
            let (replaced, count) = replaced(piece, old, new);
            self.fired.fetch_add(count, Ordering::SeqCst);
            return to.write_all(&replaced);
        }
        if connection != self.plan.connection || at != self.plan.piece || matches!(self.plan.how, How::Honest)
        {
            return to.write_all(piece);
        }
        self.fired.fetch_add(1, Ordering::SeqCst);
        match &self.plan.how {
            How::Silent => self.wait(to),
            How::Half => {
                to.write_all(&piece[..piece.len() / 2])?;
                self.wait(to)
            }
            How::Drip(pause) => {
                let mut piece = piece.to_vec();
                loop {
                    for byte in &piece {
                        to.write_all(&[*byte])?;
                        self.pause(*pause)?;
                    }
                    piece.resize(4096, 0);
                    let read = from.read(&mut piece)?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    piece.truncate(read);
                }
            }
            How::Endless(first, pattern) => {
                to.write_all(first)?;
                let block = pattern.repeat((64 * 1024 / pattern.len().max(1)).max(1));
                loop {
                    to.write_all(&block)?;
                    // 32 MB a second, so that other processes can run.
                    self.pause(Duration::from_millis(2))?;
                }
            }
            How::Last(bytes) => {
                to.write_all(bytes)?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            How::Mutated(seed) => to.write_all(&mutated(piece, *seed)),
            How::Honest | How::Replaced(..) => Ok(()),
        }
    }

    /// Keeps the connection open until the client closes it or the relay is dropped.
    fn wait(&self, to: &TcpStream) -> io::Result<()> {
        loop {
            self.pause(Duration::from_millis(50))?;
            if let Some(error) = to.take_error()? {
                return Err(error);
            }
        }
    }

    fn pause(&self, time: Duration) -> io::Result<()> {
        thread::sleep(time);
        if self.stop.load(Ordering::SeqCst) { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
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
