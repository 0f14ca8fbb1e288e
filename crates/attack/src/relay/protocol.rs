//! The relay's view of a protocol: the ends of requests and answers, and the kinds of requests.

use super::peer::Peer;
use std::io;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads the workload's data.
    Read,
    /// Changes the workload's data.
    Write,
    /// Anything else: settings, statistics, the ownership table.
    Other,
}

/// A whole request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    pub bytes: Vec<u8>,
    /// The statement's text or the command's name, which similar requests share.
    pub class: String,
    /// What it does.
    pub kind: Kind,
    /// Whether the server answers it.
    pub answered: bool,
}

/// A protocol, for one connection.
pub trait Protocol: Send {
    /// Relays the handshake before the first request.
    ///
    /// # Errors
    /// A connection failed.
    fn handshake(&mut self, _client: &mut Peer, _server: &mut Peer) -> io::Result<()> {
        Ok(())
    }

    /// Reads the next request, whose first byte has arrived; `None` if the client closed the connection.
    ///
    /// # Errors
    /// The connection failed.
    fn request(&mut self, client: &mut Peer) -> io::Result<Option<Request>>;

    /// Reads the answer to a request that was sent to the server. Forwards the client's messages within the exchange.
    ///
    /// # Errors
    /// A connection failed.
    fn answer(&mut self, request: &Request, client: &mut Peer, server: &mut Peer) -> io::Result<Vec<u8>>;

    /// Converts the answer to one request into an answer to another.
    fn readdress(&self, answer: &[u8], _from: &Request, _to: &Request) -> Vec<u8> {
        answer.to_vec()
    }

    /// The part that equal messages have in common, without numbers that only pair answers with requests.
    fn essence<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        message
    }

    /// The bytes of a message in which a flipped bit changes a value, not the framing: a long text that is not a name.
    fn value(&self, message: &[u8]) -> std::ops::Range<usize> {
        longest_text(message, 0)
    }
}

/// The longest run of printable ASCII from `start` on, if it is too long for a name.
pub fn longest_text(message: &[u8], start: usize) -> std::ops::Range<usize> {
    let found = longest(message, start, |byte| (b' '..=b'~').contains(&byte));
    let named = message[found.clone()].windows(7).any(|seven| seven == b"kurabe_");
    if found.len() < 40 || named { start..start } else { found }
}

/// The longest run of such bytes from `start` on.
pub fn longest(message: &[u8], start: usize, of: impl Fn(u8) -> bool) -> std::ops::Range<usize> {
    let mut best = start..start;
    let mut begin = start;
    for at in start..=message.len() {
        if message.get(at).is_none_or(|byte| !of(*byte)) {
            if at - begin > best.len() {
                best = begin..at;
            }
            begin = at + 1;
        }
    }
    best
}

/// A text without digits, which differ between requests of one class.
pub fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if !character.is_ascii_digit() {
            out.push(character);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

/// The number of four bytes, the lowest first; 0 if the message is shorter.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Whether a statement reads or writes data of a workload, by its first word.
pub fn of_sql(text: &str) -> Kind {
    // The ownership table and the lease do not belong to the workload.
    let others = ["kurabe_marker", "kurabe_claim", "information_schema", "pg_catalog", "_probe"];
    if !text.contains("kurabe_") || others.iter().any(|other| text.contains(other)) {
        return Kind::Other;
    }
    let first: String = text.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    match first.to_ascii_uppercase().as_str() {
        "SELECT" => Kind::Read,
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" => Kind::Write,
        _ => Kind::Other,
    }
}
