//! HTTP/1.1 (RFC 9112): a client with one write for a request and usually one read for its answer, and connections that
//! are kept alive and opened again after the server has closed them.

use crate::prelude::*;
use crate::wire::{LONG, Peer, Place, Stream, Wire, malformed, tls};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Size limit of an answer's header section, in bytes.
const HEAD: usize = 16 * 1024;
/// Maximum number of header fields.
const FIELDS: usize = 64;
/// Size limit of a body, in bytes.
const BODY: u64 = 1 << 30;
/// What every answer begins with.
const BEGINNING: &[u8] = b"HTTP/";
/// Idle time after which the server may have closed the connection, which is not an error.
const RESTED: Duration = Duration::from_secs(1);

/// The status of an answer, and whether the connection persists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the connection can be reused.
    pub(crate) stays: bool,
}

/// How an answer's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    /// It ends with the connection.
    Close,
}

/// Where requests are sent.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) tls: tls::Mode,
}

impl Server {
    pub(crate) fn transport(&self) -> &'static str {
        self.tls.transport(&self.place)
    }
}

/// A connection that is kept alive. It is opened by the first request, with which it shares a deadline, or by
/// [`Connection::open`].
pub(crate) struct Connection {
    server: Arc<Server>,
    options: ConnectOptions,
    client: Option<Client<Stream>>,
    used: Instant,
}

impl Connection {
    pub(crate) fn new(server: &Arc<Server>, options: &ConnectOptions) -> Self {
        Self { server: Arc::clone(server), options: *options, client: None, used: Instant::now() }
    }

    /// Opens the connection before the first request.
    pub(crate) fn open(&mut self) -> Result<()> {
        let mut client = connect(&self.server, &self.options)?;
        client.wire.ready();
        (self.client, self.used) = (Some(client), Instant::now());
        Ok(())
    }

    /// Sends a request, whose header section is `head` with its empty line, and replaces the contents of `out` by the body
    /// of the answer.
    pub(crate) fn request(&mut self, head: &mut Vec<u8>, body: &[u8], out: &mut Vec<u8>) -> Result<Answer> {
        self.exchange(|client| client.request(head, body, out).map(|answer| (answer, answer.stays)))
    }

    /// Sends a request as it is, and passes on what arrives until `receive` says that the answer is complete.
    #[cfg(feature = "couchdb")]
    pub(crate) fn exchange_raw(&mut self, request: &[u8], receive: &mut Receive<'_>) -> Result<()> {
        self.exchange(|client| {
            // The header section, as far as it has arrived, says whether the connection persists.
            let mut head = Vec::new();
            client.wire.exchange_raw(request, &mut |piece, more| {
                head.extend(piece.iter().take(HEAD - head.len()));
                receive(piece, more)
            })?;
            let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(0, |at| at + 4);
            Ok(((), parse(&head[..end]).is_ok_and(|(answer, _)| answer.status >= 200 && answer.stays)))
        })
    }

    /// Uses the connection, opened again if the server has closed it, for a request. `ask` also says whether it persists.
    fn exchange<T>(&mut self, ask: impl FnOnce(&mut Client<Stream>) -> Result<(T, bool)>) -> Result<T> {
        let now = Instant::now();
        if now.duration_since(self.used) > RESTED && self.client.as_mut().is_some_and(Client::is_stirred) {
            self.client = None;
        }
        let client = match &mut self.client {
            Some(client) => client,
            None => self.client.insert(connect(&self.server, &self.options)?),
        };
        let answered = ask(client);
        client.wire.ready();
        self.used = now;
        // After an error the state of the connection is unknown.
        if !answered.as_ref().is_ok_and(|(_, stays)| *stays) {
            self.client = None;
        }
        answered.map(|(answer, _)| answer)
    }

    /// Closes the connection after the last answer, and opens another one for the next request.
    pub(crate) fn end(&mut self) {
        self.client = None;
    }

    /// Returns an error if the server sent unrequested data: HTTP has no message that ends a connection.
    pub(crate) fn check_rest(&mut self) -> Result<()> {
        self.client.as_mut().map_or(Ok(()), Client::check_rest)
    }
}

fn connect(server: &Server, options: &ConnectOptions) -> Result<Client<Stream>> {
    let mut stream = Stream::connect(&server.place, options)?;
    if let (false, Place::Tcp { host, .. }) = (server.tls.is_off(), &server.place) {
        stream = stream.encrypt(&server.tls, host)?;
    }
    Ok(Client::new(stream))
}

/// A client on one connection.
struct Client<S> {
    wire: Wire<S>,
}

impl Client<Stream> {
    /// Whether the server has closed the connection or sent unrequested data.
    fn is_stirred(&mut self) -> bool {
        !self.wire.buffered().is_empty() || self.wire.stream_mut().stirred()
    }

    /// Returns an error if the server sent unrequested data.
    fn check_rest(&mut self) -> Result<()> {
        let quiet = !self.is_stirred();
        if quiet || self.wire.has_ended()? { Ok(()) } else { Err(self.wire.surplus()) }
    }
}

impl<S: Peer> Client<S> {
    fn new(stream: S) -> Self {
        Self { wire: Wire::new(stream) }
    }

    /// Sends a request, and replaces the contents of `out` by the body of the answer.
    fn request(&mut self, head: &mut Vec<u8>, body: &[u8], out: &mut Vec<u8>) -> Result<Answer> {
        if !self.wire.buffered().is_empty() {
            return Err(self.wire.surplus());
        }
        self.wire.begin()?;
        if body.len() < LONG {
            head.extend_from_slice(body);
            self.wire.push(head)?;
        } else {
            self.wire.push_parts([head, body, b""])?;
        }
        out.clear();
        let (mut answer, framing) = loop {
            self.check_beginning()?;
            let end = self.until(b"\r\n\r\n")?;
            let head = parse(&self.wire.buffered()[..end])?;
            self.wire.consume(end);
            // An interim answer has no body, and another answer follows.
            if head.0.status >= 200 {
                break head;
            }
        };
        match framing {
            Framing::Length(length) => self.wire.take_into(length as usize, out)?,
            Framing::Chunked => self.chunks(out)?,
            Framing::Close => {
                self.until_close(out)?;
                answer.stays = false;
            }
        }
        Ok(answer)
    }

    /// Returns an error as soon as an answer cannot be HTTP: another protocol's may not end.
    fn check_beginning(&mut self) -> Result<()> {
        let mut seen = 0;
        while seen < BEGINNING.len() {
            self.wire.peek(seen + 1)?;
            seen = self.wire.buffered().len().min(BEGINNING.len());
            if self.wire.buffered()[..seen] != BEGINNING[..seen] {
                return Err(malformed("the server's answer is not HTTP"));
            }
        }
        Ok(())
    }

    /// Receives until `mark`, and returns the number of bytes up to and including it.
    fn until(&mut self, mark: &[u8]) -> Result<usize> {
        let mut seen = 0;
        loop {
            let buffered = self.wire.buffered();
            if let Some(at) = buffered[seen..].windows(mark.len()).position(|bytes| bytes == mark) {
                return Ok(seen + at + mark.len());
            }
            let length = buffered.len();
            if length >= HEAD {
                return Err(malformed(format!("the server's answer has no end within {HEAD} bytes")));
            }
            // The mark may begin in the received bytes.
            seen = (length + 1).saturating_sub(mark.len());
            self.wire.peek(length + 1)?;
        }
    }

    fn chunks(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let wrong = || malformed("the server's answer has an invalid chunk size");
        loop {
            let end = self.until(b"\r\n")?;
            let line = &self.wire.buffered()[..end];
            let Ok(httparse::Status::Complete((_, size))) = httparse::parse_chunk_size(line) else {
                return Err(wrong());
            };
            self.wire.consume(end);
            if size == 0 {
                break;
            }
            if size > BODY || out.len() as u64 + size > BODY {
                return Err(too_long());
            }
            self.wire.take_into(size as usize, out)?;
            if self.until(b"\r\n")? != 2 {
                return Err(wrong());
            }
            self.wire.consume(2);
        }
        // Trailer fields may follow, then an empty line.
        loop {
            let end = self.until(b"\r\n")?;
            self.wire.consume(end);
            if end == 2 {
                return Ok(());
            }
        }
    }

    fn until_close(&mut self, out: &mut Vec<u8>) -> Result<()> {
        loop {
            match self.wire.peek(1) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionLost => return Ok(()),
                Err(error) => return Err(error),
            }
            let length = self.wire.buffered().len();
            if (out.len() + length) as u64 > BODY {
                return Err(too_long());
            }
            self.wire.take_into(length, out)?;
        }
    }
}

fn too_long() -> Error {
    malformed(format!("the server's answer is longer than {BODY} bytes"))
}

/// Reads a header section.
fn parse(bytes: &[u8]) -> Result<(Answer, Framing)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    match response.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => {
            return Err(malformed("the server's answer has an incomplete header section"));
        }
        Err(error) => return Err(malformed(format!("the server's answer is not HTTP: {error}"))),
    }
    let status = response.code.unwrap_or_default();
    let old = response.version == Some(0);
    let mut stays = !old;
    let bodiless = status < 200 || matches!(status, 204 | 304);
    let mut framing = if bodiless { Framing::Length(0) } else { Framing::Close };
    for field in response.headers.iter() {
        let value = field.value.trim_ascii();
        if field.name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            let length: u64 = length.ok_or_else(|| malformed("the server's answer has no valid length"))?;
            match framing {
                _ if length > BODY => return Err(too_long()),
                Framing::Length(other) if !bodiless && other != length => {
                    return Err(malformed("the server's answer has two different lengths"));
                }
                Framing::Close => framing = Framing::Length(length),
                _ => {}
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(malformed("the server's answer has an unsupported transfer encoding"));
            }
            framing = Framing::Chunked;
        } else if field.name.eq_ignore_ascii_case("connection") {
            for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if word.eq_ignore_ascii_case(b"close") {
                    stays = false;
                } else if word.eq_ignore_ascii_case(b"keep-alive") && old {
                    stays = true;
                }
            }
        }
    }
    Ok((Answer { status, stays }, framing))
}

#[cfg(test)]
mod tests;
