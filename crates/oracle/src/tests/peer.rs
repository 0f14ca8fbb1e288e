//! A peer that speaks as much of the protocol (TTC, as of 19c) as it takes to let a client in and to answer changes.
//! It checks no password and keeps no rows: it records what is asked, and answers what a test tells it to.

use super::listener::{ACCEPT, DATA, Listener, packet, receive_connect};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// What a client asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A statement, by its text, in full.
    Execute(String),
    /// A statement that was executed before, by its cursor.
    Again(u16),
    Commit,
    Rollback,
    Ping,
    Logoff,
    Other(u8),
}

/// What is answered to a statement.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// So many rows changed.
    Rows(u64),
    /// ORA-number, with its text.
    Error(u32, &'static str),
    /// Errors of a batch, which nobody asked for: the crate has `todo!()` there.
    BatchErrors,
    /// Bytes that are no answer.
    Nonsense,
    /// Nothing, and the connection stays open.
    Silence,
    /// The connection ends.
    End,
}

type Script = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// The peer, and what was asked of it by all clients, in order.
pub(super) struct Peer {
    listener: Listener,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Peer {
    pub(super) fn start(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::new(Arc::new(script), None)
    }

    /// Lets nobody in.
    pub(super) fn denying(number: u32, text: &'static str) -> Self {
        Self::new(Arc::new(|_| Answer::End), Some((number, text)))
    }

    fn new(script: Script, denied: Option<(u32, &'static str)>) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        let listener = Listener::start(move |stream| {
            // `None`: the client ended the connection.
            let _ = Connection { stream, next_cursor: 1 }.serve(&*script, denied, &record);
        });
        Self { listener, asked }
    }

    pub(super) fn url(&self, rest: &str) -> String {
        self.listener.url(rest)
    }

    /// What was asked since the last time, goodbyes left out.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.retain(|what| *what != Asked::Logoff);
        asked
    }
}

struct Connection {
    stream: TcpStream,
    next_cursor: u16,
}

impl Connection {
    fn serve(
        &mut self,
        script: &(dyn Fn(&Asked) -> Answer + Send + Sync),
        denied: Option<(u32, &str)>,
        record: &Mutex<Vec<Asked>>,
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
            let asked = understand(&message)?;
            record.lock().unwrap().push(asked.clone());
            let cursor = match asked {
                Asked::Execute(_) => {
                    self.next_cursor += 1;
                    self.next_cursor
                }
                Asked::Again(cursor) => cursor,
                Asked::Logoff => {
                    self.send(&[9, 0, 0])?;
                    return None;
                }
                Asked::Commit | Asked::Rollback | Asked::Ping | Asked::Other(_) => {
                    self.send(&[9, 0, 0])?;
                    continue;
                }
            };
            match script(&asked) {
                Answer::Rows(rows) => self.send(&end(cursor, rows, false, None))?,
                Answer::Error(number, text) => self.send(&end(cursor, 0, false, Some((number, text))))?,
                Answer::BatchErrors => self.send(&end(cursor, 0, true, None))?,
                Answer::Nonsense => self.send(&[99, 98, 97])?,
                Answer::Silence => {}
                Answer::End => return None,
            }
        }
    }

    /// The next message, from as many packets as it takes: all but the last are full.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 10];
            self.stream.read_exact(&mut head).ok()?;
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let mut body = vec![0; length.checked_sub(10)?];
            self.stream.read_exact(&mut body).ok()?;
            if head[4] != DATA {
                // An interrupt, which this peer does not heed.
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

/// A number as the protocol writes it: its length, then its bytes without the zeros in front.
fn number(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    out.push((8 - zeros) as u8);
    out.extend(&bytes[zeros..]);
}

/// Text, after its length twice.
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

/// Names and values, and the end of the answer.
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

/// The end of an answer to a statement: its cursor, how many rows it changed, or its error.
fn end(cursor: u16, rows: u64, batch_errors: bool, error: Option<(u32, &str)>) -> Vec<u8> {
    let mut out = vec![4];
    for value in [0, 0, 0, 0, 0, 0, u64::from(cursor), 0] {
        number(&mut out, value);
    }
    out.extend([0; 6]);
    // The row's address, with a plain byte in it.
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

/// What a message asks, its piggybacks left out.
fn understand(message: &[u8]) -> Option<Asked> {
    let mut rest = message;
    while let [17, 105, _, _, after @ ..] = rest {
        // Cursors to close: how many, and each.
        let (count, mut after) = take_number(after)?;
        for _ in 0..count {
            after = take_number(after)?.1;
        }
        rest = after;
    }
    let [3, function, _, body @ ..] = rest else { return Some(Asked::Other(0)) };
    Some(match function {
        94 => {
            let (_, body) = take_number(body)?;
            let (cursor, _) = take_number(body)?;
            match sql_in(message) {
                Some(sql) => Asked::Execute(sql),
                None => Asked::Again(cursor as u16),
            }
        }
        4 | 78 => Asked::Again(take_number(body)?.0 as u16),
        14 => Asked::Commit,
        15 => Asked::Rollback,
        147 => Asked::Ping,
        9 => Asked::Logoff,
        other => Asked::Other(*other),
    })
}

fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (digits, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((digits.iter().fold(0, |value, digit| value << 8 | u64::from(*digit)), rest))
}

/// The statement in a message: the longest run of printable signs that begins with one of its words.
fn sql_in(message: &[u8]) -> Option<String> {
    let words = [
        "INSERT INTO",
        "UPDATE ",
        "DELETE FROM",
        "MERGE INTO",
        "ALTER SESSION",
        "SAVEPOINT ",
        "ROLLBACK TO",
        "SELECT ",
    ];
    let found = words
        .iter()
        .filter_map(|word| message.windows(word.len()).position(|at| at == word.as_bytes()))
        .min()?;
    let length = usize::from(*message.get(found.checked_sub(1)?)?);
    String::from_utf8(message.get(found..found + length)?.to_vec()).ok()
}
