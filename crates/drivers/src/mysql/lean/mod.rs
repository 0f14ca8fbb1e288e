//! The lean MySQL and MariaDB client: one write and one read per operation, without allocation.
//!
//! Packet layouts: MySQL Source Code Documentation, "Client/Server Protocol"; for MariaDB's additions, MariaDB
//! Knowledge Base, "Client/Server Protocol".

mod answer;
mod authentication;
mod compressed;
mod ed25519;
mod execute;
mod handshake;
mod key;
mod load;
mod packets;
mod read_only;
mod rsa;
mod scramble;
mod stream;
#[cfg(test)]
mod tests;

use super::errors::located;
use super::estimate::PlanFormat;
use crate::prelude::*;
use crate::sql::RowsText;
use crate::wire::link::{Link, Outcome, Query};
use crate::wire::{Exchanges, Outbox, Peer, Stream, malformed};
use answer::{Kind, Rows};
use compressed::Framed;
use kurabe_core::driver::Access;
use kurabe_driver_common::usable;
use kurabe_protocol::mysql::capability;
use kurabe_protocol::mysql::frame::{MAX, Packet};
use kurabe_protocol::mysql::message::{PrepareOk, answer as first, command};
use packets::{Agreed, Packets};
use read_only::LastPacket;
pub(super) use read_only::ask;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const CLIENT: &str = "Kurabe's lean client";

/// Maximum request that is sent without reading `max_allowed_packet`: every version's default is larger.
const SURELY_TAKEN: usize = 1_000_000;

/// The stream of a connection to a server.
pub(crate) type Connection = Framed<Stream>;

/// A connection that is ready for commands.
pub(crate) struct Lean<S> {
    packets: Packets<S>,
    /// Buffer of the request, reused.
    out: Vec<u8>,
    /// Buffer of a row's NULL bitmap, reused.
    bitmap: Vec<u8>,
    /// Commands that close statements, sent with the next request; they have no reply.
    closes: Vec<u8>,
    /// `max_allowed_packet`, shared by the driver's connections; 0 until one of them reads it.
    allowed: Arc<AtomicUsize>,
    exchanges: Exchanges,
    times: Option<ConnectTimes>,
    plans: PlanFormat,
    /// The server's number of this connection.
    number: u32,
    /// Whether a read-only session is made so again before each request, and whether the answer to that is due.
    arms: bool,
    is_arming: bool,
}

/// Bytes of a command that closes a statement.
const CLOSE: usize = 9;

pub(crate) struct Statement {
    number: u32,
    /// Parameter types last sent; 6 (NULL) before the first execution.
    parameter_types: Vec<u8>,
    types_sent: bool,
    column_kinds: Vec<Kind>,
}

impl<S: Peer> Lean<S> {
    fn over(mut packets: Packets<S>, agreed: Agreed, allowed: Arc<AtomicUsize>) -> Self {
        packets.agreed = agreed;
        let (out, bitmap, closes) = (Vec::new(), Vec::new(), Vec::new());
        let plans = PlanFormat::default();
        Self {
            packets,
            out,
            bitmap,
            closes,
            allowed,
            exchanges: Exchanges::default(),
            times: None,
            plans,
            number: 0,
            arms: false,
            is_arming: false,
        }
    }

    /// Makes a session that only reads so again before each of its requests.
    pub(crate) fn arm_always(&mut self) {
        self.arms = true;
    }

    /// Sends what makes the transactions of a read-only session read-only, before a request outside of one.
    fn arm(&mut self) -> Result<()> {
        if !self.arms || self.packets.state.in_transaction {
            return Ok(());
        }
        let text = read_only::READ_ONLY.as_bytes();
        let header = Packet { length: text.len() + 1, sequence: 0 }.bytes();
        self.packets.wire.stream_mut().begin_command();
        self.packets.wire.send(&[&header[..], &[command::QUERY], text].concat())?;
        self.is_arming = true;
        Ok(())
    }

    /// Prepares for the answer to a request of `sent` packets, after that to what was sent before it.
    fn expect_answer(&mut self, sent: usize) -> Result<()> {
        if std::mem::take(&mut self.is_arming) {
            self.packets.expect_answer(1);
            self.packets.next()?;
            if self.packets.first()? != first::OK {
                return Err(malformed("a read-only session cannot be made so again"));
            }
            self.packets.skip_rest()?;
        }
        self.packets.expect_answer(sent);
        Ok(())
    }

    fn exchange<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Result<T> {
        self.exchanges.begin()?;
        match work(self) {
            Ok(result) => self.exchanges.end(result),
            Err(error) => Err(self.exchanges.leave(error).1),
        }
    }

    /// Starts a command of this length; returns whether it fits into one packet. Queued commands are sent with it, or
    /// before a request of several packets.
    fn start(&mut self, length: usize) -> Result<bool> {
        self.out.clear();
        self.arm()?;
        if self.packets.agreed.compressed {
            // Each command has frames of its own.
            for close in self.closes.chunks(CLOSE) {
                self.packets.wire.stream_mut().begin_command();
                self.packets.wire.send(close)?;
            }
            self.closes.clear();
        }
        self.packets.wire.stream_mut().begin_command();
        let fits = length < MAX;
        if fits {
            self.out.append(&mut self.closes);
            self.out.extend_from_slice(&Packet { length, sequence: 0 }.bytes());
        } else if !self.closes.is_empty() {
            self.packets.wire.send(&self.closes)?;
            self.closes.clear();
        }
        Ok(fits)
    }

    /// Sends a command without parameters.
    fn command(&mut self, command: u8, text: &[u8]) -> Result<()> {
        let fits = self.start(text.len() + 1)?;
        self.out.push(command);
        self.out.extend_from_slice(text);
        if !fits {
            return self.send_long();
        }
        self.packets.expect_answer(1);
        self.packets.wire.send(&self.out).map_err(|e| self.server_reason(e))?;
        self.expect_answer(1)
    }

    /// Queues the closing of a statement (`COM_STMT_CLOSE`), which has no reply.
    fn close_with_next_request(&mut self, statement: u32) {
        self.closes.extend_from_slice(&Packet { length: 5, sequence: 0 }.bytes());
        self.closes.push(command::STMT_CLOSE);
        self.closes.extend_from_slice(&statement.to_le_bytes());
    }

    /// Sends the content of `out` as one command of several packets.
    fn send_long(&mut self) -> Result<()> {
        self.packets.wire.begin()?;
        let mut sent = 0;
        // An empty packet follows a last piece that fills its packet.
        for at in (0..=self.out.len()).step_by(MAX) {
            let piece = &self.out[at..self.out.len().min(at + MAX)];
            let result = self.packets.push(piece, sent as u8);
            sent += 1;
            if let Err(error) = result {
                self.packets.expect_answer(sent);
                return Err(self.server_reason(error));
            }
        }
        self.expect_answer(sent)?;
        // Such requests are rare: free the buffer.
        self.out = Vec::new();
        Ok(())
    }

    /// Replaces a write error by the reason that the server may have sent before it closed the connection.
    fn server_reason(&mut self, error: Error) -> Error {
        if error.kind() == ErrorKind::ConnectionLost
            && self.packets.next().is_ok()
            && self.packets.first() == Ok(first::ERR)
            && let Ok(reason) = self.packets.error()
        {
            return reason;
        }
        error
    }

    /// Rejects a request longer than `max_allowed_packet`: the server would close the connection, often before the
    /// reason arrives.
    fn check_length(&mut self, length: usize) -> Outcome<()> {
        if length <= SURELY_TAKEN {
            return Ok(Ok(()));
        }
        let mut allowed = self.allowed.load(Ordering::Relaxed);
        if allowed == 0 {
            let mut reply = Reply::new();
            self.command(command::QUERY, b"SELECT @@max_allowed_packet")?;
            usable!(self.packets.read(&mut Rows::Text, &mut reply)?);
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
        self.exchange(|this| {
            usable!(this.check_length(text.len() + 1)?);
            this.command(command, text)?;
            this.packets.read(&mut Rows::Text, out)
        })
        .map_err(|error| located(error, text))
    }

    fn send_execute(&mut self, statement: &mut Statement, parameters: &[Value<'_>]) -> Outcome<()> {
        let with_types = execute::retype(&mut statement.parameter_types, parameters) || !statement.types_sent;
        statement.types_sent = false;
        let length = usable!(execute::length(parameters, with_types));
        usable!(self.check_length(length)?);
        let fits = self.start(length)?;
        execute::head(&mut self.out, statement.number, &statement.parameter_types, parameters, with_types);
        statement.types_sent = true;
        if fits {
            let mut outbox = Outbox::new(&mut self.packets.wire, &mut self.out);
            let sent = execute::values(&mut outbox, parameters).and_then(|()| outbox.flush());
            self.packets.expect_answer(1);
            sent.map_err(|e| self.server_reason(e))?;
            return self.expect_answer(1).map(Ok);
        }
        execute::values(&mut Outbox::<S>::copying(&mut self.out), parameters)?;
        self.send_long().map(Ok)
    }
}

impl<S: Peer + Send> Query for Lean<S> {
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        self.simple(command::QUERY, sql.as_bytes(), out)
    }

    fn quit(&mut self) -> Result<()> {
        if self.exchanges.close() { self.command(command::QUIT, b"") } else { Ok(()) }
    }

    /// Accepts an ERR packet as the last data: the server may have closed the connection with a reason.
    fn quit_checked(&mut self) -> Result<()> {
        if self.exchanges.is_broken() {
            return Ok(());
        }
        let _ = self.quit();
        let wire = &mut self.packets.wire;
        if wire.has_ended()? {
            return Ok(());
        }
        match wire.peek(5) {
            Ok([_, _, _, 0, first::ERR]) => Ok(()),
            _ => Err(wire.surplus()),
        }
    }

    fn estimate(&mut self, sql: &str) -> Result<RowEstimate> {
        let format = self.plans;
        let (estimate, format) = super::estimate::read(self, format, sql)?;
        self.plans = format;
        Ok(estimate)
    }

    fn transport(&self) -> String {
        self.packets.wire.stream().transport()
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.times
    }
}

impl<S: Peer + Send> Link for Lean<S> {
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        self.simple(command::PING, b"", &mut Reply::new())
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.exchange(|this| {
            this.command(command::STMT_PREPARE, sql.as_bytes())?;
            this.packets.next()?;
            match this.packets.first()? {
                first::OK => {}
                first::ERR => return this.packets.error().map(Err),
                other => {
                    return Err(malformed(format!(
                        "a reply to a prepared statement that starts with {other:#04x}"
                    )));
                }
            }
            let prepared = PrepareOk::read(this.packets.rest()?)
                .ok_or_else(|| malformed("a truncated reply to a prepared statement"))?;
            let (number, columns) = (prepared.statement, usize::from(prepared.columns));
            let parameters = usize::from(prepared.parameters);
            this.packets.read_columns(parameters, None)?;
            let mut column_kinds = Vec::with_capacity(columns);
            this.packets.read_columns(columns, Some(&mut column_kinds))?;
            this.packets.skip_rest()?;
            if column_kinds.contains(&Kind::Foreign) {
                this.close_with_next_request(number);
                return Ok(Err(Error::unsupported("the statement returns a value of an unsupported type")));
            }
            Ok(Ok(Statement {
                number,
                parameter_types: vec![6; parameters],
                types_sent: false,
                column_kinds,
            }))
        })
        .map_err(|error| located(error, sql.as_bytes()))
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        check_parameters("the statement", statement.parameter_types.len(), parameters.len())?;
        self.exchange(|this| {
            usable!(this.send_execute(statement, parameters)?);
            let mut rows = Rows::Binary(&mut statement.column_kinds, &mut this.bitmap);
            this.packets.read(&mut rows, out)
        })
    }

    fn run_in_pages(
        &mut self,
        statement: &mut Statement,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        check_parameters("the statement", statement.parameter_types.len(), parameters.len())?;
        self.exchange(|this| {
            this.packets.wire.widen();
            usable!(this.send_execute(statement, parameters)?);
            let mut page = Reply::new();
            let mut rows = Rows::Paged(&mut statement.column_kinds, &mut this.bitmap, pages.by_ref());
            let ended = this.packets.read(&mut rows, &mut page)?;
            Ok(ended.and(pages.end(&mut page)))
        })
    }

    fn read_rows(&mut self, text: &RowsText, fetch: Fetch, row: &mut RowSink<'_>) -> Result<Moved> {
        self.stream(text, fetch, row)
    }

    fn write_rows(&mut self, text: &RowsText, rows: &mut dyn RowSource) -> Result<Moved> {
        self.load_data(text, rows)
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        Ok(self)
    }

    fn in_transaction(&self) -> Option<bool> {
        Some(self.packets.state.in_transaction)
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        self.close_with_next_request(statement.number);
        Ok(())
    }
}

impl<S: Peer> RawMessages for Lean<S> {
    /// A read-only session that may write any more is ended before the next request.
    fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()> {
        self.exchange(|this| {
            this.arm()?;
            this.packets.wire.stream_mut().begin_command();
            this.packets.wire.send(messages)?;
            if this.packets.state.access == Access::ReadWrite {
                return this.packets.wire.pass_on(receive).map(Ok);
            }
            this.expect_answer(1)?;
            let mut last = LastPacket::default();
            this.packets.wire.pass_on(&mut |piece, more| {
                last.take(piece);
                receive(piece, more)
            })?;
            last.end(&mut this.packets.state);
            Ok(this.packets.state.checked())
        })
    }

    fn flags(&mut self) -> u32 {
        capability::FOUND_ROWS | if self.packets.agreed.no_eof { capability::DEPRECATE_EOF } else { 0 }
    }

    fn database(&mut self) -> Option<&str> {
        None
    }
}
