//! A relay on loopback between a driver and its server. It counts the messages of any client until its first reply.

use kurabe_core::{Error, ErrorKind, Result};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How much of the client's first connection is kept, in bytes.
const KEPT: usize = 256 * 1024;

/// The traffic so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Connections opened.
    pub(crate) connections: u64,
    /// Connections that the client has closed.
    pub(crate) ended: u64,
    /// Bytes that the client sent.
    pub(crate) sent: u64,
    /// Bytes that the server sent.
    pub(crate) received: u64,
    /// How often the client waited for the server.
    pub(crate) waits: u64,
    /// The first bytes that the client sent on its first connection.
    pub(crate) first_bytes: Vec<u8>,
    /// Whether the server sent last.
    server_spoke: bool,
}

/// A relay that runs until it is dropped.
pub(crate) struct Relay {
    port: u16,
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    listens: Option<JoinHandle<()>>,
}

impl Relay {
    /// Listens on a free loopback port for clients of this server.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if no port or thread is available.
    pub(crate) fn open(host: &str, port: u16) -> Result<Self> {
        let failed =
            |e: std::io::Error| Error::new(ErrorKind::Environment, format!("the relay could not start: {e}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let here = listener.local_addr().map_err(failed)?.port();
        let (seen, stop) = (Arc::<Mutex<Seen>>::default(), Arc::<AtomicBool>::default());
        let (to, watch, ends) = (host.to_owned(), Arc::clone(&seen), Arc::clone(&stop));
        let listens = thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || {
                for client in listener.incoming() {
                    if ends.load(Ordering::SeqCst) {
                        return;
                    }
                    // If the server is unreachable, the client sees a connection that ends at once.
                    if let (Ok(client), Ok(server)) = (client, TcpStream::connect((to.as_str(), port))) {
                        let _ = join(&client, &server, &watch);
                    }
                }
            })
            .map_err(failed)?;
        Ok(Self { port: here, seen, stop, listens: Some(listens) })
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The traffic after the client's closing messages have passed, so that they do not count later. Waits at most a
    /// second, for clients that keep a connection.
    pub(crate) fn after_goodbyes(&self) -> Seen {
        self.seen_once(|seen| seen.ended == seen.connections)
    }

    /// The traffic after more than that many connections were opened. Waits at most a second, for clients that open
    /// none.
    pub(crate) fn met(&self, connections: u64) -> Seen {
        self.seen_once(|seen| seen.connections > connections)
    }

    /// The traffic once a condition is met. Waits at most a second.
    fn seen_once(&self, met: impl Fn(&Seen) -> bool) -> Seen {
        for _ in 0..100 {
            let seen = self.seen();
            if met(&seen) {
                return seen;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.seen()
    }

    /// The traffic so far.
    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listening thread.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(listens) = self.listens.take() {
            let _ = listens.join();
        }
    }
}

/// Connects a client and the server with a thread for each direction. The threads end with their connections.
fn join(client: &TcpStream, server: &TcpStream, seen: &Arc<Mutex<Seen>>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let first = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.connections += 1;
        seen.connections == 1
    };
    for by_client in [true, false] {
        let (from, to) = if by_client { (client, server) } else { (server, client) };
        let (mut from, mut to, seen) = (from.try_clone()?, to.try_clone()?, Arc::clone(seen));
        thread::Builder::new().name("relay".to_owned()).spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(n) = from.read(&mut buffer)
                && n > 0
            {
                note(&seen, by_client, first, &buffer[..n]);
                if to.write_all(&buffer[..n]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
            if by_client {
                seen.lock().unwrap_or_else(PoisonError::into_inner).ended += 1;
            }
        })?;
    }
    Ok(())
}

fn note(seen: &Mutex<Seen>, by_client: bool, first: bool, bytes: &[u8]) {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    if by_client {
        seen.sent += bytes.len() as u64;
        let room = KEPT.saturating_sub(seen.first_bytes.len());
        if first {
            seen.first_bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    } else {
        seen.received += bytes.len() as u64;
        // Several packets of one reply count as one wait.
        seen.waits += u64::from(!seen.server_spoke);
    }
    seen.server_spoke = !by_client;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_forwards_and_counts_bytes() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let echo = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            stream.write_all(b"welcome").unwrap();
            for _ in 0..3 {
                let mut request = [0; 4];
                stream.read_exact(&mut request).unwrap();
                stream.write_all(&request).unwrap();
                stream.write_all(b"!").unwrap();
            }
        });
        let relay = Relay::open("127.0.0.1", port).unwrap();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).unwrap();
        let mut welcome = [0; 7];
        client.read_exact(&mut welcome).unwrap();
        for _ in 0..3 {
            client.write_all(b"ping").unwrap();
            let mut answer = [0; 5];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"ping!");
        }
        let seen = relay.seen();
        assert_eq!((seen.connections, seen.sent, seen.received, seen.waits), (1, 12, 22, 4));
        assert_eq!(seen.first_bytes, b"pingpingping");
        echo.join().unwrap();
        drop(relay);
    }
}
