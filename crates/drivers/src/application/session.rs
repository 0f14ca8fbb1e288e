//! A session with an application, which reconnects after the application has closed the connection properly.

use super::Address;
use super::client::{Client, Request};
use crate::prelude::*;
use crate::wire::{Peer as _, Place, Stream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Idle time after which the application may have closed the connection, which is not an error.
const RESTED: Duration = Duration::from_secs(1);
/// Maximum length of an error's text, in characters.
const SHOWN: usize = 300;

pub(super) struct ApplicationSession {
    address: Arc<Address>,
    options: ConnectOptions,
    client: Option<Client<Stream>>,
    used: Instant,
    /// The body of the last answer.
    body: Vec<u8>,
}

impl ApplicationSession {
    pub(super) fn open(address: &Arc<Address>, options: &ConnectOptions) -> Result<Self> {
        let client = Some(connect(address, options)?);
        let (address, used, body) = (Arc::clone(address), Instant::now(), Vec::new());
        Ok(Self { address, options: *options, client, used, body })
    }

    /// Requests a page and returns its body.
    pub(super) fn request(&mut self, page: &str, how: Request) -> Result<&[u8]> {
        let now = Instant::now();
        if now.duration_since(self.used) > RESTED && self.client.as_mut().is_some_and(Client::is_stirred) {
            self.client = None;
        }
        let client = match &mut self.client {
            Some(client) => client,
            None => self.client.insert(connect(&self.address, &self.options)?),
        };
        let answered = client.request(page, how, &mut self.body);
        self.used = now;
        // After an error the state of the connection is unknown.
        if !answered.as_ref().is_ok_and(|answer| answer.stays) {
            self.client = None;
        }
        match answered?.status {
            200 => Ok(&self.body),
            status => Err(refusal(status, &self.body)),
        }
    }
}

fn connect(address: &Address, options: &ConnectOptions) -> Result<Client<Stream>> {
    let mut stream = Stream::connect(&address.place, options)?;
    if let (false, Place::Tcp { host, .. }) = (address.tls.is_off(), &address.place) {
        stream = stream.encrypt(&address.tls, host)?;
    }
    stream.ready();
    Ok(Client::new(stream, &address.host, &address.prefix))
}

impl Session for ApplicationSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        match operation {
            Operation::Page { writes, last } => Ok(Prepared(usize::from(*writes) << 1 | usize::from(*last))),
            other => Err(Error::unsupported(format!("an application has only pages, no {}", other.name()))),
        }
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let [Value::Text(page)] = parameters else {
            return Err(Error::new(ErrorKind::Internal, "a page has one parameter, its path"));
        };
        out.clear();
        let how = Request { writes: prepared.0 & 2 != 0, last: prepared.0 & 1 != 0 };
        out.push_bytes(self.request(page, how)?);
        out.end_row();
        Ok(())
    }

    fn release(&mut self, _prepared: Prepared) -> Result<()> {
        Ok(())
    }

    /// Checks for unrequested data: HTTP has no message that ends a connection.
    fn close_checked(mut self: Box<Self>) -> Result<()> {
        self.client.as_mut().map_or(Ok(()), Client::check_rest)
    }
}

/// The error of an unsuccessful answer.
fn refusal(status: u16, body: &[u8]) -> Error {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().next().unwrap_or_default().trim();
    let line: String = line.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    let because = if line.is_empty() { "without a reason".to_owned() } else { line };
    let kind = match status {
        404 => ErrorKind::NotFound,
        501 => ErrorKind::Unsupported,
        _ => ErrorKind::Server,
    };
    Error::new(kind, format!("the application answered {status}: {because}")).code(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_has_only_the_first_line_of_the_body() {
        let error = refusal(503, b"3 requests are waiting already\n<html>\n");
        assert_eq!(error.to_string(), "the application answered 503: 3 requests are waiting already [503]");
        assert_eq!(error.kind(), ErrorKind::Server);
        assert_eq!(refusal(404, b"").kind(), ErrorKind::NotFound);
        assert!(refusal(500, &[b'x'; 5_000]).to_string().len() < 400);
        assert!(!refusal(500, b"\x1b[31mred").to_string().contains('\x1b'));
    }
}
