//! A TNS listener for tests: packet framing (two bytes of length before a connection is accepted, four after) and a
//! test's replies.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) const ACCEPT: u8 = 2;
pub(super) const REFUSE: u8 = 4;
pub(super) const DATA: u8 = 6;
pub(super) const RESEND: u8 = 11;

/// Listens on a free loopback port until it is dropped; serves each connection in a thread.
pub(super) struct Listener {
    port: u16,
    stop: Arc<AtomicBool>,
}

impl Listener {
    pub(super) fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, serve) = (Arc::clone(&stop), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in socket.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { port, stop }
    }

    /// `oracle://scott@127.0.0.1:PORT` followed by `rest`.
    pub(super) fn url(&self, rest: &str) -> String {
        format!("oracle://scott@127.0.0.1:{}{rest}", self.port)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Encodes a packet before the connection is accepted.
pub(super) fn packet(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(body.len() + 8).unwrap().to_be_bytes().to_vec();
    bytes.extend([0, 0, kind, flags, 0, 0]);
    bytes.extend(body);
    bytes
}

/// Reads the body of the next packet before the connection is accepted.
pub(super) fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 8];
    stream.read_exact(&mut head).ok()?;
    let mut body = vec![0; usize::from(u16::from_be_bytes([head[0], head[1]])).checked_sub(8)?];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// Reads the descriptor of the client's connect request; a long one is in a separate packet.
pub(super) fn receive_connect(stream: &mut TcpStream) -> Option<String> {
    let body = receive(stream)?;
    let length = usize::from(u16::from_be_bytes([*body.get(16)?, *body.get(17)?]));
    let text = if length > 230 { receive(stream)?.split_off(2) } else { body.get(66..)?.to_vec() };
    String::from_utf8(text).ok()
}

/// Refuses the connection with this text.
pub(super) fn refuse(stream: &mut TcpStream, text: &str) {
    let mut body = vec![34, 0];
    body.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    body.extend(text.as_bytes());
    let _ = stream.write_all(&packet(REFUSE, 0, &body));
}

/// Waits until the client ends the connection.
pub(super) fn wait_for_end(stream: &mut TcpStream) {
    let _ = std::io::copy(stream, &mut std::io::sink());
}
