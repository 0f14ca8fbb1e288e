//! A session with an application, which reconnects after the application has closed the connection properly.

use crate::http::{Connection, Server};
use crate::prelude::*;
use std::sync::Arc;

/// Maximum length of an error's text, in characters.
const SHOWN: usize = 300;

/// Options of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) writes: bool,
    /// The last request of the connection.
    pub(super) last: bool,
}

/// Where an application is reached.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) server: Arc<Server>,
    /// The value of the `Host` header.
    pub(super) host: String,
    /// Prefix of the paths of all pages: empty, or `/shop`.
    pub(super) prefix: String,
    /// The header field with user and password, with the end of its line; empty without a user.
    pub(super) authorization: Secret,
}

pub(super) struct ApplicationSession {
    address: Arc<Address>,
    connection: Connection,
    /// The last request.
    head: Vec<u8>,
    /// The body of the last answer.
    body: Vec<u8>,
}

impl ApplicationSession {
    pub(super) fn open(address: &Arc<Address>, options: &ConnectOptions) -> Result<Self> {
        let mut connection = Connection::new(&address.server, options);
        connection.open()?;
        Ok(Self { address: Arc::clone(address), connection, head: Vec::new(), body: Vec::new() })
    }

    /// Requests a page and returns its body.
    pub(super) fn request(&mut self, page: &str, how: Request) -> Result<&[u8]> {
        self.address.write(page, how, &mut self.head);
        let answer = self.connection.request(&mut self.head, b"", &mut self.body)?;
        if how.last {
            self.connection.end();
        }
        match answer.status {
            200 => Ok(&self.body),
            status => Err(refusal(status, &self.body)),
        }
    }
}

impl Address {
    /// Replaces the contents of `out` by a request for a page.
    fn write(&self, page: &str, how: Request, out: &mut Vec<u8>) {
        let Request { writes, last } = how;
        let (method, length) = if writes { ("POST ", "Content-Length: 0\r\n") } else { ("GET ", "") };
        let end = if last { "Connection: close\r\n\r\n" } else { "\r\n" };
        out.clear();
        let host = [" HTTP/1.1\r\nHost: ", &self.host, "\r\nUser-Agent: kurabe\r\n"];
        let rest = [self.authorization.expose(), length, end];
        for part in [method, &self.prefix, page].into_iter().chain(host).chain(rest) {
            out.extend_from_slice(part.as_bytes());
        }
    }
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

    fn close_checked(mut self: Box<Self>) -> Result<()> {
        self.connection.check_rest()
    }

    without!(bulk, planner, cache, raw_messages, transactions);
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
    use crate::wire::{Place, tls};

    #[test]
    fn request_names_its_host_and_says_whether_it_is_the_last() {
        let place = Place::Tcp { host: "a".to_owned(), port: 1 };
        let server = Arc::new(Server { place, tls: tls::Mode::Off });
        let authorization = Secret::new("Authorization: Basic YTpi\r\n".to_owned());
        let (host, prefix) = ("a:1".to_owned(), "/shop".to_owned());
        let address = Address { server, host, prefix, authorization };
        let mut out = b"before".to_vec();
        for (how, expected) in [
            (
                Request { writes: false, last: true },
                "GET /shop/kv HTTP/1.1\r\nHost: a:1\r\nUser-Agent: kurabe\r\nAuthorization: Basic YTpi\r\nConnection: close\r\n\r\n",
            ),
            (
                Request { writes: true, last: false },
                "POST /shop/kv HTTP/1.1\r\nHost: a:1\r\nUser-Agent: kurabe\r\nAuthorization: Basic YTpi\r\nContent-Length: 0\r\n\r\n",
            ),
        ] {
            address.write("/kv", how, &mut out);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), expected);
        }
    }

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
