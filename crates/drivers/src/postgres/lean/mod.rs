//! The lean PostgreSQL client: one write and one read per operation, nothing allocated for it.
//!
//! Message layouts: PostgreSQL manual, "Frontend/Backend Protocol", "Message Formats"; their order: "Message Flow".

mod answer;
mod authentication;
mod request;
mod startup;
#[cfg(test)]
mod tests;

use super::values::Form;
use crate::prelude::*;
use crate::slots::check_parameters;
use crate::wire::link::{Link, Query};
use crate::wire::{Outbox, Peer, Stream, Wire};
use answer::{Announced, Rows};

/// For the facts.
pub(crate) const CLIENT: &str = "Kurabe's lean client";

/// The most bytes of parameters that are sent before an answer is read: no more than sockets hold.
const MOST_PIPELINED: usize = 1 << 20;

/// A connection that is ready for queries.
pub(crate) struct Lean<S> {
    wire: Wire<S>,
    /// The request being made; kept for its memory.
    out: Vec<u8>,
    /// Names prepared statements.
    prepared: u64,
    /// What the server is to forget with the next request: a round trip of its own would be a second one.
    forgotten: Vec<u8>,
    /// Whether an answer was lost or not understood: what comes next cannot be told from it any more.
    broken: bool,
    /// How long the parts of connecting took.
    times: Option<ConnectTimes>,
}

/// A statement that the server keeps.
pub(crate) struct Statement {
    name: String,
    /// Bind up to its parameters' count.
    head: Vec<u8>,
    /// What follows the parameters, with Execute and Sync.
    tail: Vec<u8>,
    takes: Vec<Form>,
    gives: Vec<Form>,
}

impl Statement {
    fn new(name: String, takes: Vec<Form>, gives: Vec<Form>) -> Self {
        let (head, tail) = (request::bind_head(&name, &takes), request::bind_tail(&gives));
        Self { name, head, tail, takes, gives }
    }
}

/// What went on between client and server: the outer error means that the connection is of no more use, the inner
/// one that it is.
type Outcome<T> = Result<Result<T>>;

impl<S: Peer> Lean<S> {
    fn over(wire: Wire<S>) -> Self {
        Self { wire, out: Vec::new(), prepared: 0, forgotten: Vec::new(), broken: false, times: None }
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

    /// Starts a request with what the server is to forget, which stays queued until the request is sent.
    fn begin(&mut self) {
        self.out.clear();
        self.out.extend_from_slice(&self.forgotten);
    }

    /// Sends the request.
    fn send(&mut self) -> Result<()> {
        self.forgotten.clear();
        self.wire.send(&self.out)
    }

    /// Has the server prepare and describe a statement.
    fn describe(&mut self, sql: &str) -> Result<(String, Announced)> {
        self.prepared += 1;
        let name = format!("k{}", self.prepared);
        self.converse(|this| {
            this.begin();
            if let Err(error) = request::prepare(&mut this.out, &name, sql) {
                return Ok(Err(error));
            }
            this.send()?;
            let mut announced = Announced::default();
            let ended = answer::read(&mut this.wire, &mut Rows::Announced(&mut announced), 1)?;
            Ok(ended.map(|()| (name, announced)))
        })
    }

    fn simple(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        self.converse(|this| {
            this.begin();
            // A simple query does not end a row of messages, as Sync does.
            let syncs = if this.out.is_empty() { 1 } else { 2 };
            if syncs == 2 {
                request::sync(&mut this.out);
            }
            if let Err(error) = request::query(&mut this.out, sql) {
                return Ok(Err(error));
            }
            this.send()?;
            answer::read(&mut this.wire, &mut Rows::Text(out), syncs)
        })
    }
}

impl<S: Peer + Send> Query for Lean<S>
where
    Self: Transport,
{
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        self.simple(sql, out)
    }

    fn quit(&mut self) -> Result<()> {
        if self.broken {
            return Ok(());
        }
        self.broken = true;
        self.out.clear();
        request::terminate(&mut self.out);
        self.wire.send(&self.out)
    }

    fn quit_checked(&mut self) -> Result<()> {
        if self.broken {
            return Ok(());
        }
        let _ = self.quit();
        answer::until_end(&mut self.wire)
    }

    fn transport(&self) -> String {
        self.way()
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.times
    }

    /// A session tells what it counted at most once a second, an idle one after ten.
    fn settling(&self) -> Option<&'static str> {
        Some("SELECT pg_catalog.pg_stat_force_next_flush()")
    }
}

/// How a connection reaches its server.
pub(crate) trait Transport {
    fn way(&self) -> String;
}

impl Transport for Lean<Stream> {
    fn way(&self) -> String {
        self.wire.stream().transport()
    }
}

impl<S: Peer + Send> Link for Lean<S>
where
    Self: Transport,
{
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        self.simple("", &mut Reply::new())
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let (name, Announced { takes, gives }) = self.describe(sql)?;
        Ok(Statement::new(name, takes, gives))
    }

    fn prepare_raw(&mut self, sql: &str) -> Result<Statement> {
        // What a user's own statement takes and gives, in the text format: it knows no types of values.
        let (name, Announced { takes, gives }) = self.describe(sql)?;
        let takes = vec![Form::Text; takes.len()];
        Ok(Statement::new(name, takes, gives.into_iter().map(Form::as_text).collect()))
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        check_parameters("the statement", statement.takes.len(), parameters.len())?;
        self.converse(|this| {
            // All of them once before anything is sent: a value that does not fit must not leave half a message.
            let length = match request::parameters_length(&statement.takes, parameters) {
                Ok(length) => length,
                Err(error) => return Ok(Err(error)),
            };
            this.begin();
            if let Err(error) = request::bind(&mut this.out, &statement.head, length, &statement.tail) {
                return Ok(Err(error));
            }
            this.forgotten.clear();
            let mut outbox = Outbox::new(&mut this.wire, &mut this.out);
            request::parameters(&mut outbox, &statement.takes, parameters)?;
            outbox.text.extend_from_slice(&statement.tail);
            outbox.flush()?;
            answer::read(&mut this.wire, &mut Rows::Typed(&statement.gives, out), 1)
        })
    }

    /// Each request ends with a Sync of its own, so that each is a transaction of its own and an error takes back no
    /// other ("Pipelining" in the manual's "Message Flow").
    fn pipeline(
        &mut self,
        statement: &mut Statement,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        let each = statement.takes.len();
        check_parameters("the statement", each * out.len(), parameters.len())?;
        self.converse(|this| {
            this.begin();
            let mut lengths = 0;
            for n in 0..out.len() {
                match request::parameters_length(&statement.takes, &parameters[n * each..(n + 1) * each]) {
                    Ok(length) => lengths += length,
                    Err(error) => return Ok(Err(error)),
                }
            }
            if lengths > MOST_PIPELINED {
                // A server that cannot send stops to receive: both sides would wait for ever.
                let why =
                    format!("{} requests of {lengths} bytes are too many to be sent at once", out.len());
                return Ok(Err(Error::new(ErrorKind::Limit, why).hint("use a smaller pipeline")));
            }
            for n in 0..out.len() {
                let values = &parameters[n * each..(n + 1) * each];
                let length = match request::parameters_length(&statement.takes, values) {
                    Ok(length) => length,
                    Err(error) => return Ok(Err(error)),
                };
                if let Err(error) = request::bind(&mut this.out, &statement.head, length, &statement.tail) {
                    return Ok(Err(error));
                }
                request::copied(&mut this.out, &statement.takes, values)?;
                this.out.extend_from_slice(&statement.tail);
            }
            this.send()?;
            let mut ended = Ok(());
            for reply in out {
                let answer = answer::read(&mut this.wire, &mut Rows::Typed(&statement.gives, reply), 1)?;
                if answer.is_err() {
                    reply.clear();
                }
                ended = ended.and(answer);
            }
            Ok(ended)
        })
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        request::close(&mut self.forgotten, &statement.name);
        Ok(())
    }
}
