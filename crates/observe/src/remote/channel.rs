//! Messages between a run and an agent: framed and authenticated.

use super::VERSION;
use hmac::{Hmac, KeyInit, Mac};
use kurabe_core::text::printable_json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The maximum message length before and after authentication. Longer messages are rejected before they are read.
const MAX_UNAUTHENTICATED_BYTES: usize = 1_024;
const MAX_BYTES: usize = 4 << 20;
/// Bytes of an authentication code and of a nonce, and the minimum length of a token.
const CODE: usize = 32;
const NONCE: usize = 32;
const MIN_TOKEN: usize = 16;
/// The reply to a peer that does not know the token, and the reason given for it.
const OTHER_TOKEN: &str = "it has another token";
/// The reply to a peer when too many connections are unauthenticated.
pub(super) const TOO_MANY_UNAUTHENTICATED: &str = "too many unauthenticated connections";

/// The shared secret. Its `Debug` output does not contain it.
#[derive(Clone)]
pub struct Token(Hmac<Sha256>);

impl Token {
    /// The token in this text, without surrounding white space.
    ///
    /// # Errors
    /// Why the text is not a token, as a clause.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < MIN_TOKEN {
            return Err(format!(
                "a token has at least {MIN_TOKEN} characters: openssl rand -hex 32 makes one"
            ));
        }
        keyed(text.as_bytes()).map(Self)
    }

    fn code(&self, label: &str, nonces: &[&[u8]]) -> Hmac<Sha256> {
        let mut code = self.0.clone();
        code.update(b"kurabe observe 1 ");
        code.update(label.as_bytes());
        for nonce in nonces {
            code.update(nonce);
        }
        code
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// HMAC accepts keys of any length (RFC 2104).
fn keyed(key: &[u8]) -> Result<Hmac<Sha256>, String> {
    Hmac::new_from_slice(key).map_err(|_| "it is not a key".to_owned())
}

/// The agent's first message.
#[derive(Serialize, Deserialize)]
struct Greeting {
    kurabe_observe: u32,
    nonce: String,
}

/// The authentication of a side, or the reason why it ends the connection.
#[derive(Serialize, Deserialize)]
struct Proof {
    #[serde(default)]
    nonce: String,
    #[serde(default)]
    code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// A connection between two authenticated sides.
pub(super) struct Channel {
    stream: TcpStream,
    /// With the key of this connection.
    code: Hmac<Sha256>,
    ours: u8,
    theirs: u8,
    sent: u64,
    received: u64,
}

impl Channel {
    /// The agent's side. An error is a clause about the other side.
    pub(super) fn accept(mut stream: TcpStream, token: &Token) -> Result<Self, String> {
        let own = nonce()?;
        let greeting = Greeting { kurabe_observe: VERSION, nonce: hex(&own) };
        send_plain(&mut stream, &greeting).map_err(|e| lost(&e))?;
        let proof: Proof = receive_plain(&mut stream)?;
        let (Some(theirs), Some(code)) = (unhex(&proof.nonce), unhex(&proof.code)) else {
            return Err("it does not follow the protocol".to_owned());
        };
        if token.code("run", &[&own, &theirs]).verify_slice(&code).is_err() {
            let refused = Some(OTHER_TOKEN.to_owned());
            let _ = send_plain(&mut stream, &Proof { nonce: String::new(), code: String::new(), refused });
            return Err(OTHER_TOKEN.to_owned());
        }
        let code = hex(&token.code("observer", &[&own, &theirs]).finalize().into_bytes());
        send_plain(&mut stream, &Proof { nonce: String::new(), code, refused: None })
            .map_err(|e| lost(&e))?;
        Self::between(stream, token, &own, &theirs, (b'o', b'r'))
    }

    /// The run's side.
    pub(super) fn open(mut stream: TcpStream, token: &Token) -> Result<Self, String> {
        let greeting: Greeting = receive_plain(&mut stream)?;
        if greeting.kurabe_observe != VERSION {
            return Err(format!(
                "it uses version {} of the protocol, this program version {VERSION}",
                greeting.kurabe_observe
            ));
        }
        let theirs = unhex(&greeting.nonce).ok_or("it does not follow the protocol")?;
        let own = nonce()?;
        let code = hex(&token.code("run", &[&theirs, &own]).finalize().into_bytes());
        send_plain(&mut stream, &Proof { nonce: hex(&own), code, refused: None }).map_err(|e| lost(&e))?;
        let proof: Proof = receive_plain(&mut stream)?;
        // Messages of an unauthenticated peer are not repeated.
        if let Some(why) = proof.refused {
            let known = [OTHER_TOKEN, TOO_MANY_UNAUTHENTICATED].contains(&why.as_str());
            return Err(if known { why } else { "it refused".to_owned() });
        }
        let code = unhex(&proof.code).unwrap_or_default();
        if token.code("observer", &[&theirs, &own]).verify_slice(&code).is_err() {
            return Err("it failed to authenticate with the token".to_owned());
        }
        Self::between(stream, token, &theirs, &own, (b'r', b'o'))
    }

    fn between(
        stream: TcpStream,
        token: &Token,
        observer: &[u8],
        run: &[u8],
        (ours, theirs): (u8, u8),
    ) -> Result<Self, String> {
        let code = keyed(&token.code("messages", &[observer, run]).finalize().into_bytes())?;
        Ok(Self { stream, code, ours, theirs, sent: 0, received: 0 })
    }

    /// The authentication code of a message, which depends on the side and the message's sequence number.
    fn code(&self, side: u8, number: u64, body: &[u8]) -> Hmac<Sha256> {
        let mut code = self.code.clone();
        code.update(&[side]);
        code.update(&number.to_be_bytes());
        code.update(body);
        code
    }

    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<(), String> {
        let body = serde_json::to_vec(message).map_err(|e| e.to_string())?;
        let mut whole = self.code(self.ours, self.sent, &body).finalize().into_bytes().to_vec();
        whole.extend_from_slice(&body);
        self.sent += 1;
        send_frame(&mut self.stream, &whole).map_err(|e| lost(&e))
    }

    /// The next message; `None` if the other side closed the connection between two messages.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let Some(whole) = receive_frame(&mut self.stream, MAX_BYTES)? else { return Ok(None) };
        let Some((code, body)) = whole.split_at_checked(CODE) else {
            return Err("it does not follow the protocol".to_owned());
        };
        if self.code(self.theirs, self.received, body).verify_slice(code).is_err() {
            return Err("a message was modified in transit".to_owned());
        }
        self.received += 1;
        let text = std::str::from_utf8(body).map(printable_json);
        let message = text.ok().and_then(|text| serde_json::from_str(&text).ok());
        message.map(Some).ok_or_else(|| "it does not follow the protocol".to_owned())
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

/// Sends an unauthenticated peer the reason why it is rejected. A run repeats only known reasons.
pub(super) fn refuse(mut stream: TcpStream, why: &str) {
    let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
    let greeting = Greeting { kurabe_observe: VERSION, nonce: hex(&[0; NONCE]) };
    let refused = Proof { nonce: String::new(), code: String::new(), refused: Some(why.to_owned()) };
    let _ = send_plain(&mut stream, &greeting).and_then(|()| send_plain(&mut stream, &refused));
}

/// Runs `work` on a connection, which is shut down after a time limit, even if the peer sends a byte from time to
/// time.
pub(super) fn within<T>(stream: TcpStream, time: Duration, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = channel();
    let timer = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
        if waiting.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
    let made = work();
    drop::<Sender<()>>(done);
    if let Ok(timer) = timer {
        let _ = timer.join();
    }
    made
}

fn nonce() -> Result<[u8; NONCE], String> {
    let mut bytes = [0; NONCE];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("this machine provides no random numbers: {error}"))?;
    Ok(bytes)
}

fn send_plain(stream: &mut TcpStream, message: &impl Serialize) -> io::Result<()> {
    send_frame(stream, &serde_json::to_vec(message)?)
}

fn receive_plain<T: DeserializeOwned>(stream: &mut TcpStream) -> Result<T, String> {
    let body = receive_frame(stream, MAX_UNAUTHENTICATED_BYTES)?.ok_or("it closed the connection")?;
    serde_json::from_slice(&body).map_err(|_| "it does not follow the protocol".to_owned())
}

/// In one piece, so that it is one segment.
fn send_frame(stream: &mut TcpStream, body: &[u8]) -> io::Result<()> {
    let mut whole = (body.len() as u32).to_be_bytes().to_vec();
    whole.extend_from_slice(body);
    stream.write_all(&whole)
}

fn receive_frame(stream: &mut TcpStream, most: usize) -> Result<Option<Vec<u8>>, String> {
    let mut length = [0; 4];
    match stream.read(&mut length[..1]).map_err(|e| lost(&e))? {
        0 => return Ok(None),
        _ => stream.read_exact(&mut length[1..]).map_err(|e| lost(&e))?,
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Err("it does not follow the protocol".to_owned());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).map_err(|e| lost(&e))?;
    Ok(Some(body))
}

fn lost(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it did not answer in time".to_owned(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "it closed the connection".to_owned()
        }
        _ => error.to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

/// As many bytes as an authentication code or a nonce has.
fn unhex(text: &str) -> Option<[u8; CODE]> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if digits.len() == 2 * CODE { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn token(text: &str) -> Token {
        Token::new(text).unwrap()
    }

    /// Both ends of a connection.
    fn ends() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn meet(run: &str, observer: &str) -> (Result<Channel, String>, Result<Channel, String>) {
        let (client, server) = ends();
        let observer = token(observer);
        let accepted = thread::spawn(move || Channel::accept(server, &observer));
        let opened = Channel::open(client, &token(run));
        (opened, accepted.join().unwrap())
    }

    #[test]
    fn peers_with_same_token_communicate() {
        let (opened, accepted) = meet("a token of some length\n", " a token of some length");
        let (mut run, mut observer) = (opened.unwrap(), accepted.unwrap());
        for n in 0..3_u64 {
            run.send(&n).unwrap();
            assert_eq!(observer.receive::<u64>().unwrap(), Some(n));
            observer.send(&(n + 1)).unwrap();
            assert_eq!(run.receive::<u64>().unwrap(), Some(n + 1));
        }
        drop(run);
        assert_eq!(observer.receive::<u64>().unwrap(), None);
    }

    #[test]
    fn peers_with_different_tokens_reject_each_other() {
        let (opened, accepted) = meet("a token of some length", "another one of a length");
        assert_eq!(opened.err().as_deref(), Some("it has another token"));
        assert_eq!(accepted.err().as_deref(), Some("it has another token"));
        // A listener without the token returns what it received.
        let (client, mut server) = ends();
        let echo = thread::spawn(move || {
            let greeting = Greeting { kurabe_observe: VERSION, nonce: hex(&[7; NONCE]) };
            send_plain(&mut server, &greeting).unwrap();
            let proof: Proof = receive_plain(&mut server).unwrap();
            send_plain(&mut server, &proof).unwrap();
        });
        let opened = Channel::open(client, &token("a token of some length"));
        assert!(opened.err().unwrap().contains("failed to authenticate"));
        echo.join().unwrap();
    }

    #[test]
    fn modified_replayed_or_reflected_message_is_rejected() {
        let (opened, accepted) = meet("a token of some length", "a token of some length");
        let (mut run, mut observer) = (opened.unwrap(), accepted.unwrap());
        let body = b"5";
        let mut whole = run.code(b'r', 0, body).finalize().into_bytes().to_vec();
        whole.extend_from_slice(body);
        for (flip, refused) in [(CODE, true), (3, true), (usize::MAX, false), (usize::MAX, true)] {
            let mut changed = whole.clone();
            if let Some(byte) = changed.get_mut(flip) {
                *byte ^= 1;
            }
            send_frame(&mut run.stream, &changed).unwrap();
            assert_eq!(observer.receive::<u64>().is_err(), refused, "{flip}");
        }
        observer.send(&1_u64).unwrap();
        let back = receive_frame(&mut run.stream, MAX_BYTES).unwrap().unwrap();
        send_frame(&mut run.stream, &back).unwrap();
        assert!(observer.receive::<u64>().is_err());
    }

    #[test]
    fn unauthenticated_peer_cannot_cause_allocation_or_panic() {
        for said in [&[255; 8][..], &[0, 0, 0, 2, b'{', b'}'], b"GET / HTTP/1.1\r\n\r\n", &[0, 0, 0, 9, 1]] {
            let (mut client, server) = ends();
            client.write_all(said).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(Channel::accept(server, &token("a token of some length")).is_err());
        }
        assert!(Token::new("short\n").unwrap_err().contains("at least 16"));
        assert!(!format!("{:?}", token("a token of some length")).contains("length"));
        assert_eq!(unhex(&hex(&[0xa5; CODE])), Some([0xa5; CODE]));
        assert_eq!(unhex("a5"), None);
    }
}
