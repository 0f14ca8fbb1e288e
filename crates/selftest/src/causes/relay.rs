//! A relay that delays each request, as a longer network path would.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Listens on loopback and forwards connections until it is dropped.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Relay {
    /// Begins to relay to `server`, with each piece of a request delayed by `delay`.
    pub(super) fn start(server: SocketAddr, delay: Duration) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        thread::Builder::new().name("relay".to_owned()).spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(client) = client else { continue };
                // If the server has ended, the client's connection is closed, as without the relay.
                let _ = connect(client, server, delay);
            }
        })?;
        Ok(Self { address, over })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn connect(client: TcpStream, server: SocketAddr, delay: Duration) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (back_from, back_to) = (server.try_clone()?, client.try_clone()?);
    thread::Builder::new().name("relay".to_owned()).spawn(move || carry(client, server, delay))?;
    thread::Builder::new()
        .name("relay".to_owned())
        .spawn(move || carry(back_from, back_to, Duration::ZERO))?;
    Ok(())
}

fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if !delay.is_zero() {
            thread::sleep(delay);
        }
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn requests_are_delayed_and_answers_are_not() {
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let relay = Relay::start(server.local_addr().unwrap(), Duration::from_millis(60)).unwrap();
        let mut client = TcpStream::connect(relay.address).unwrap();
        let (mut far, _) = server.accept().unwrap();
        let began = Instant::now();
        client.write_all(b"request").unwrap();
        far.read_exact(&mut [0; 7]).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(60));
        far.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
        // Closing one end closes the other.
        drop(far);
        assert_eq!(client.read(&mut answer).unwrap(), 0);
    }
}
