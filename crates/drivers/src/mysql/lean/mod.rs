//! The lean MySQL and MariaDB client: one write and one read per operation, nothing allocated for it.
//!
//! Packet layouts: MySQL Source Code Documentation, "Client/Server Protocol"; MariaDB Knowledge Base,
//! "Client/Server Protocol" for what MariaDB adds.

mod answer;
mod authentication;
mod execute;
mod handshake;
mod key;
mod packets;
#[cfg(test)]
mod tests;

use crate::prelude::*;
use crate::slots::check_parameters;
use crate::wire::link::{Link, Query};
use crate::wire::{Outbox, Peer, Stream, malformed};
pub(super) use answer::several_sets;
use answer::{Agreed, Kind};
pub(super) use authentication::cleartext_refused;
use packets::{MOST, Packets, push_header};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// For the facts.
pub(crate) const CLIENT: &str = "Kurabe's lean client";

/// Requests up to this are sent without asking how much the server takes: no version takes less by default.
const SURELY_TAKEN: usize = 1_000_000;

/// A connection that is ready for commands.
pub(crate) struct Lean<S> {
    packets: Packets<S>,
    agreed: Agreed,
    /// The request being made; kept for its memory.
    out: Vec<u8>,
    /// The empty fields of a row; kept for its memory.
    bitmap: Vec<u8>,
    /// Statements that the server is to forget, sent along with the next request; there is no answer to it.
    forgotten: Vec<u8>,
    /// `max_allowed_packet`, shared by the driver's connections; 0 until one of them had to know.
    allowed: Arc<AtomicUsize>,
    /// Whether an answer was lost or not understood: what comes next cannot be told from it any more.
    broken: bool,
    /// How long the parts of connecting took.
    times: Option<ConnectTimes>,
}

/// A statement as text (`COM_QUERY`).
const COM_QUERY: u8 = 3;

/// A statement that the server keeps.
pub(crate) struct Statement {
    number: u32,
    /// The types of its parameters as they were last announced; 6, NULL, before.
    takes: Vec<u8>,
    announced: bool,
    gives: Vec<Kind>,
}

/// What went on between client and server: the outer error means that the connection is of no more use, the inner
/// one that it is.
type Outcome<T> = Result<Result<T>>;

impl<S: Peer> Lean<S> {
    fn over(packets: Packets<S>, agreed: Agreed, allowed: Arc<AtomicUsize>) -> Self {
        let (out, bitmap, forgotten) = (Vec::new(), Vec::new(), Vec::new());
        Self { packets, agreed, out, bitmap, forgotten, allowed, broken: false, times: None }
    }

    fn converse<T>(&mut self, talk: impl FnOnce(&mut Self) -> Outcome<T>) -> Result<T> {
        if self.broken {
            return Err(Error::new(ErrorKind::ConnectionLost, "the connection failed before"));
        }
        // Until the answer has been read to its end, even if this unwinds.
        self.broken = true;
        let result = talk(self)?;
        self.broken = false;
        result
    }

    /// Sends a command without parameters.
    fn command(&mut self, command: u8, text: &[u8]) -> Result<()> {
        let length = text.len() + 1;
        self.out.clear();
        if length < MOST {
            self.out.append(&mut self.forgotten);
            push_header(&mut self.out, length, 0);
            self.out.push(command);
            self.out.extend_from_slice(text);
            self.packets.expect_answer(1);
            return self.packets.wire.send(&self.out).map_err(|e| self.last_words(e));
        }
        self.send_forgotten()?;
        self.out.push(command);
        self.out.extend_from_slice(text);
        self.send_long()
    }

    /// Queues the closing of a statement (`COM_STMT_CLOSE`), which has no answer.
    fn close_with_next_request(&mut self, statement: u32) {
        push_header(&mut self.forgotten, 5, 0);
        self.forgotten.push(0x19);
        self.forgotten.extend_from_slice(&statement.to_le_bytes());
    }

    /// Before a request of several packets, which begins with its own.
    fn send_forgotten(&mut self) -> Result<()> {
        if !self.forgotten.is_empty() {
            self.packets.wire.send(&self.forgotten)?;
            self.forgotten.clear();
        }
        Ok(())
    }

    /// Sends what stands in `out` as one command of several packets.
    fn send_long(&mut self) -> Result<()> {
        self.packets.wire.begin()?;
        let mut header = Vec::with_capacity(4);
        let mut sent = 0;
        // A last piece that fills its packet is followed by an empty one.
        for at in (0..=self.out.len()).step_by(MOST) {
            let piece = &self.out[at..self.out.len().min(at + MOST)];
            header.clear();
            push_header(&mut header, piece.len(), sent as u8);
            sent += 1;
            let result = self.packets.wire.push_parts([&header, piece, &[]]);
            if let Err(error) = result {
                self.packets.expect_answer(sent);
                return Err(self.last_words(error));
            }
        }
        self.packets.expect_answer(sent);
        // Such a request is rare, and its memory is better used elsewhere.
        self.out = Vec::new();
        Ok(())
    }

    /// The server may have said why before it closed the connection that could not be written to.
    fn last_words(&mut self, error: Error) -> Error {
        if error.kind() == ErrorKind::ConnectionLost
            && self.packets.next().is_ok()
            && self.packets.first() == Ok(0xff)
            && let Ok(said) = answer::error(&mut self.packets)
        {
            return said;
        }
        error
    }

    /// Refuses a request that the server would answer by closing the connection, often before the reason arrives.
    fn check_length(&mut self, length: usize) -> Outcome<()> {
        if length <= SURELY_TAKEN {
            return Ok(Ok(()));
        }
        let mut allowed = self.allowed.load(Ordering::Relaxed);
        if allowed == 0 {
            let mut reply = Reply::new();
            self.command(3, b"SELECT @@max_allowed_packet")?;
            if let Err(error) = answer::text(&mut self.packets, self.agreed, &mut reply)? {
                return Ok(Err(error));
            }
            let text = reply.field_bytes(0, 0).and_then(|text| std::str::from_utf8(text).ok());
            allowed = text.and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
            self.allowed.store(allowed, Ordering::Relaxed);
        }
        Ok(if length < allowed {
            Ok(())
        } else {
            let message = format!("a request of {length} bytes is more than max_allowed_packet ({allowed})");
            Err(Error::new(ErrorKind::Limit, message)
                .hint("raise max_allowed_packet, or use a smaller payload"))
        })
    }

    fn simple(&mut self, command: u8, text: &[u8], out: &mut Reply) -> Result<()> {
        self.converse(|this| {
            if let Err(error) = this.check_length(text.len() + 1)? {
                return Ok(Err(error));
            }
            this.command(command, text)?;
            answer::text(&mut this.packets, this.agreed, out)
        })
    }

    fn send_execute(&mut self, statement: &mut Statement, parameters: &[Value<'_>]) -> Outcome<()> {
        let with_types = execute::retype(&mut statement.takes, parameters) || !statement.announced;
        let length = match execute::length(parameters, with_types) {
            Ok(length) => length,
            Err(error) => {
                statement.announced = false;
                return Ok(Err(error));
            }
        };
        if let Err(error) = self.check_length(length)? {
            statement.announced = false;
            return Ok(Err(error));
        }
        let fits = length < MOST;
        self.out.clear();
        if !fits {
            self.send_forgotten()?;
        }
        if fits {
            self.out.append(&mut self.forgotten);
            push_header(&mut self.out, length, 0);
        }
        execute::head(&mut self.out, statement.number, &statement.takes, parameters, with_types);
        statement.announced = true;
        if fits {
            let mut outbox = Outbox::new(&mut self.packets.wire, &mut self.out);
            let sent = execute::values(&mut outbox, parameters).and_then(|()| outbox.flush());
            self.packets.expect_answer(1);
            return sent.map(Ok).map_err(|e| self.last_words(e));
        }
        execute::values(&mut self.out, parameters)?;
        self.send_long().map(Ok)
    }
}

/// How a connection reaches its server.
pub(crate) trait Transport {
    fn way(&self) -> String;
}

impl Transport for Lean<Stream> {
    fn way(&self) -> String {
        self.packets.wire.stream().transport()
    }
}

impl<S: Peer + Send> Query for Lean<S>
where
    Self: Transport,
{
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        self.simple(COM_QUERY, sql.as_bytes(), out)
    }

    fn quit(&mut self) -> Result<()> {
        if self.broken {
            return Ok(());
        }
        let said = self.command(1, b"");
        self.broken = true;
        said
    }

    /// A server that ended the connection before may have said why.
    fn quit_checked(&mut self) -> Result<()> {
        if self.broken {
            return Ok(());
        }
        let _ = self.quit();
        let wire = &mut self.packets.wire;
        if wire.has_ended()? {
            return Ok(());
        }
        match wire.peek(5) {
            Ok([_, _, _, 0, 0xff]) => Ok(()),
            _ => Err(wire.surplus()),
        }
    }

    fn transport(&self) -> String {
        self.way()
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.times
    }
}

impl<S: Peer + Send> Link for Lean<S>
where
    Self: Transport,
{
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        self.simple(14, b"", &mut Reply::new())
    }

    /// `COM_STMT_PREPARE_OK`: 0, statement (4), columns (2), parameters (2), filler (1), warnings (2).
    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.converse(|this| {
            this.command(0x16, sql.as_bytes())?;
            this.packets.next()?;
            match this.packets.first()? {
                0 => {}
                0xff => return answer::error(&mut this.packets).map(Err),
                other => return Err(malformed(format!("a statement that starts with {other:#04x}"))),
            }
            let body = this.packets.rest()?;
            let Some(&[_, a, b, c, d, columns_low, columns_high, low, high]) = body.first_chunk::<9>() else {
                return Err(malformed("a statement that is too short"));
            };
            let number = u32::from_le_bytes([a, b, c, d]);
            let columns = usize::from(u16::from_le_bytes([columns_low, columns_high]));
            let parameters = usize::from(u16::from_le_bytes([low, high]));
            answer::read_columns(&mut this.packets, this.agreed, parameters, None)?;
            let mut gives = Vec::with_capacity(columns);
            answer::read_columns(&mut this.packets, this.agreed, columns, Some(&mut gives))?;
            this.packets.skip_rest()?;
            if gives.contains(&Kind::Foreign) {
                this.close_with_next_request(number);
                return Ok(Err(Error::unsupported(
                    "the statement gives a value of a type that is not supported",
                )));
            }
            Ok(Ok(Statement { number, takes: vec![6; parameters], announced: false, gives }))
        })
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        check_parameters("the statement", statement.takes.len(), parameters.len())?;
        self.converse(|this| {
            if let Err(error) = this.send_execute(statement, parameters)? {
                return Ok(Err(error));
            }
            answer::binary(&mut this.packets, this.agreed, &mut statement.gives, &mut this.bitmap, out)
        })
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        self.close_with_next_request(statement.number);
        Ok(())
    }
}
