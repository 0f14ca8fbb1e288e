//! A fake server with the part of the protocol (TTC, as of 19c) for logins and changes. It checks no password and
//! stores no rows: it records requests and sends a test's replies.

use super::listener::{ACCEPT, DATA, Listener, packet, receive_connect};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A statement, by its text.
    Execute(String),
    /// A repeated statement, by its cursor.
    Again(u16),
    Commit,
    Rollback,
    Ping,
    Logoff,
    Other(u8),
}

/// A reply to a statement.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The number of changed rows.
    Rows(u64),
    /// An ORA number and its text.
    Error(u32, &'static str),
    /// Unsolicited batch errors, at which the crate panics.
    BatchErrors,
    /// Invalid bytes.
    Nonsense,
    /// Nothing, and the connection stays open.
    Silence,
    /// The connection ends.
    End,
}

type Script = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

/// The fake server, and the requests of all clients, in order.
pub(super) struct Peer {
    listener: Listener,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Peer {
    pub(super) fn start(script: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::new(Arc::new(script), None)
    }

    /// Rejects all logins with this error.
    pub(super) fn denying(number: u32, text: &'static str) -> Self {
        Self::new(Arc::new(|_| Answer::End), Some((number, text)))
    }

    fn new(script: Script, denied: Option<(u32, &'static str)>) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&requests);
        let listener = Listener::start(move |stream| {
            // `None`: the client ended the connection.
            let _ = Connection { stream, next_cursor: 1 }.serve(&*script, denied, &record);
        });
        Self { listener, requests }
    }

    pub(super) fn url(&self, rest: &str) -> String {
        self.listener.url(rest)
    }

    /// The requests since the last call, without logoffs.
    pub(super) fn requests(&self) -> Vec<Request> {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.retain(|what| *what != Request::Logoff);
        requests
    }
}

struct Connection {
    stream: TcpStream,
    next_cursor: u16,
}

impl Connection {
    fn serve(
        &mut self,
        script: &(dyn Fn(&Request) -> Answer + Send + Sync),
        denied: Option<(u32, &str)>,
        record: &Mutex<Vec<Request>>,
    ) -> Option<()> {
        receive_connect(&mut self.stream)?;
        // Version 318, no options; the packet size.
        let mut accept = 318u16.to_be_bytes().to_vec();
        accept.extend([0; 12 + 1 + 9]);
        accept.extend(8_192u32.to_be_bytes());
        accept.extend([0; 5 + 4]);
        self.stream.write_all(&packet(ACCEPT, 0, &accept)).ok()?;
        assert_eq!(self.receive()?.first(), Some(&1), "the protocol message");
        self.send(&protocol())?;
        assert_eq!(self.receive()?.first(), Some(&2), "the data types");
        self.send(&[2, 0, 0])?;
        assert_eq!(self.receive()?.get(1), Some(&118), "the first message of authentication");
        if let Some((number, text)) = denied {
            self.send(&end(0, 0, false, Some((number, text))))?;
            return None;
        }
        let hex = "00112233445566778899AABBCCDDEEFF";
        self.send(&parameters(&[
            ("AUTH_PBKDF2_VGEN_COUNT", "4096"),
            ("AUTH_PBKDF2_SDER_COUNT", "3"),
            ("AUTH_PBKDF2_CSK_SALT", hex),
            ("AUTH_VFR_DATA", hex),
            ("AUTH_SESSKEY", &hex.repeat(2)),
        ]))?;
        assert_eq!(self.receive()?.get(1), Some(&115), "the second message of authentication");
        self.send(&parameters(&[
            ("AUTH_SESSION_ID", "17"),
            ("AUTH_SERIAL_NUM", "4711"),
            ("AUTH_VERSION_NO", "318767104"),
            ("AUTH_MAX_OPEN_CURSORS", "300"),
        ]))?;
        loop {
            let message = self.receive()?;
            let request = parse(&message)?;
            record.lock().unwrap().push(request.clone());
            let cursor = match request {
                Request::Execute(_) => {
                    self.next_cursor += 1;
                    self.next_cursor
                }
                Request::Again(cursor) => cursor,
                Request::Logoff => {
                    self.send(&[9, 0, 0])?;
                    return None;
                }
                Request::Commit | Request::Rollback | Request::Ping | Request::Other(_) => {
                    self.send(&[9, 0, 0])?;
                    continue;
                }
            };
            match script(&request) {
                Answer::Rows(rows) => self.send(&end(cursor, rows, false, None))?,
                Answer::Error(number, text) => self.send(&end(cursor, 0, false, Some((number, text))))?,
                Answer::BatchErrors => self.send(&end(cursor, 0, true, None))?,
                Answer::Nonsense => self.send(&[99, 98, 97])?,
                Answer::Silence => {}
                Answer::End => return None,
            }
        }
    }

    /// Reads the next message from its packets, of which all but the last are full.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 10];
            self.stream.read_exact(&mut head).ok()?;
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let mut body = vec![0; length.checked_sub(10)?];
            self.stream.read_exact(&mut body).ok()?;
            if head[4] != DATA {
                // An interrupt, which is ignored.
                continue;
            }
            message.extend(body);
            if length < 8_192 {
                return Some(message);
            }
        }
    }

    fn send(&mut self, message: &[u8]) -> Option<()> {
        let mut bytes = u32::try_from(message.len() + 10).unwrap().to_be_bytes().to_vec();
        bytes.extend([DATA, 0, 0, 0, 0, 0]);
        bytes.extend(message);
        self.stream.write_all(&bytes).ok()
    }
}

/// Encodes a number: its length, then its bytes without leading zeros.
fn number(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    out.push((8 - zeros) as u8);
    out.extend(&bytes[zeros..]);
}

/// Encodes a text, after its length twice.
fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.push(u8::try_from(text.len()).unwrap());
    out.extend(text.as_bytes());
}

/// The server's side of the protocol message: AL32UTF8, AL16UTF16, the capabilities of 19c.
fn protocol() -> Vec<u8> {
    let mut out = vec![1, 6, 0];
    out.extend(b"a peer of a test\0");
    out.extend(873u16.to_le_bytes());
    out.extend([0, 0, 0]);
    out.extend(11u16.to_be_bytes());
    out.extend([0; 5 + 2 + 2]);
    out.extend(2_000u16.to_be_bytes());
    let mut compile = [0; 45];
    compile[7] = 12;
    out.push(compile.len() as u8);
    out.extend(compile);
    out.push(11);
    out.extend([0; 11]);
    out
}

/// Encodes names and values, and the end of the reply.
fn parameters(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = vec![8];
    number(&mut out, pairs.len() as u64);
    for (name, value) in pairs {
        text(&mut out, name);
        text(&mut out, value);
        number(&mut out, 0);
    }
    out.extend([9, 0, 0]);
    out
}

/// Encodes the end of a reply to a statement: its cursor, the number of changed rows, or its error.
fn end(cursor: u16, rows: u64, batch_errors: bool, error: Option<(u32, &str)>) -> Vec<u8> {
    let mut out = vec![4];
    for value in [0, 0, 0, 0, 0, 0, u64::from(cursor), 0] {
        number(&mut out, value);
    }
    out.extend([0; 6]);
    // The ROWID, with a plain byte in it.
    number(&mut out, 0);
    number(&mut out, 0);
    out.push(0);
    number(&mut out, 0);
    number(&mut out, 0);
    number(&mut out, 0);
    out.extend([0, 0]);
    for value in [0, 0, 0, u64::from(batch_errors), 0, 0] {
        number(&mut out, value);
    }
    number(&mut out, u64::from(error.map_or(0, |(number, _)| number)));
    number(&mut out, rows);
    if let Some((_, message)) = error {
        out.push(u8::try_from(message.len()).unwrap());
        out.extend(message.as_bytes());
    }
    out
}

/// Parses a request, without its piggybacks.
fn parse(message: &[u8]) -> Option<Request> {
    let mut rest = message;
    while let [17, 105, _, _, after @ ..] = rest {
        // Cursors to close: their number, and each cursor.
        let (count, mut after) = take_number(after)?;
        for _ in 0..count {
            after = take_number(after)?.1;
        }
        rest = after;
    }
    let [3, function, _, body @ ..] = rest else { return Some(Request::Other(0)) };
    Some(match function {
        94 => {
            let (_, body) = take_number(body)?;
            let (cursor, _) = take_number(body)?;
            match sql_in(message) {
                Some(sql) => Request::Execute(sql),
                None => Request::Again(cursor as u16),
            }
        }
        4 | 78 => Request::Again(take_number(body)?.0 as u16),
        14 => Request::Commit,
        15 => Request::Rollback,
        147 => Request::Ping,
        9 => Request::Logoff,
        other => Request::Other(*other),
    })
}

fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (digits, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((digits.iter().fold(0, |value, digit| value << 8 | u64::from(*digit)), rest))
}

/// Finds the statement in a message by its first words; the byte before it is its length.
fn sql_in(message: &[u8]) -> Option<String> {
    let words = [
        "INSERT INTO", "UPDATE ", "DELETE FROM", "MERGE INTO", "ALTER SESSION", "SAVEPOINT ", "ROLLBACK TO",
        "SELECT ",
    ];
    let found = words
        .iter()
        .filter_map(|word| message.windows(word.len()).position(|at| at == word.as_bytes()))
        .min()?;
    let length = usize::from(*message.get(found.checked_sub(1)?)?);
    String::from_utf8(message.get(found..found + length)?.to_vec()).ok()
}
