//! An HTTP/1.1 client (RFC 9112) for pages: one write for a request and usually one read for its answer.

use crate::wire::{Peer, Stream, Wire, malformed};
use kurabe_core::{ErrorKind, Result};

/// Size limit of an answer's header section, in bytes.
const HEAD: usize = 16 * 1024;
/// Maximum number of header fields.
const FIELDS: usize = 64;
/// Size limit of a body, in bytes.
const BODY: u64 = 1 << 30;

/// Options of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) writes: bool,
    /// The last request of the connection.
    pub(super) last: bool,
}

/// The status of an answer, and whether the connection persists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Whether the connection can be reused.
    pub(super) stays: bool,
}

/// How an answer's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    /// It ends with the connection.
    Close,
}

pub(super) struct Client<S> {
    wire: Wire<S>,
    /// Prefix of the path of every page.
    prefix: String,
    /// The request after the path: HTTP version and constant header fields.
    rest: String,
    request: Vec<u8>,
}

impl Client<Stream> {
    /// Whether the application has closed the connection or sent unrequested data.
    pub(super) fn is_stirred(&mut self) -> bool {
        !self.wire.buffered().is_empty() || self.wire.stream_mut().stirred()
    }

    /// Returns an error if the application sent unrequested data.
    pub(super) fn check_rest(&mut self) -> Result<()> {
        let quiet = !self.is_stirred();
        if quiet || self.wire.has_ended()? { Ok(()) } else { Err(self.wire.surplus()) }
    }
}

impl<S: Peer> Client<S> {
    pub(super) fn new(stream: S, host: &str, prefix: &str) -> Self {
        let rest = format!(" HTTP/1.1\r\nHost: {host}\r\nUser-Agent: kurabe\r\n");
        Self { wire: Wire::new(stream), prefix: prefix.to_owned(), rest, request: Vec::new() }
    }

    /// Requests a page, and replaces the contents of `out` by the body of the answer.
    pub(super) fn request(&mut self, page: &str, how: Request, out: &mut Vec<u8>) -> Result<Answer> {
        self.request.clear();
        let Request { writes, last } = how;
        let (method, length) = if writes { ("POST ", "Content-Length: 0\r\n") } else { ("GET ", "") };
        let end = if last { "Connection: close\r\n\r\n" } else { "\r\n" };
        for part in [method, &self.prefix, page, &self.rest, length, end] {
            self.request.extend_from_slice(part.as_bytes());
        }
        self.wire.send(&self.request)?;
        out.clear();
        let (mut answer, framing) = loop {
            let end = self.until(b"\r\n\r\n")?;
            let head = head(&self.wire.buffered()[..end])?;
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
        answer.stays &= !last;
        Ok(answer)
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
                return Err(malformed(format!("the application's answer has no end within {HEAD} bytes")));
            }
            // The mark may begin in the received bytes.
            seen = (length + 1).saturating_sub(mark.len());
            self.wire.peek(length + 1)?;
        }
    }

    fn chunks(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let wrong = || malformed("the application's answer has an invalid chunk size");
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

fn too_long() -> kurabe_core::Error {
    malformed(format!("the application's answer is longer than {BODY} bytes"))
}

fn head(bytes: &[u8]) -> Result<(Answer, Framing)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    match response.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => {
            return Err(malformed("the application's answer has an incomplete header section"));
        }
        Err(error) => return Err(malformed(format!("the application's answer is not HTTP: {error}"))),
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
            let length: u64 =
                length.ok_or_else(|| malformed("the application's answer has no valid length"))?;
            match framing {
                _ if length > BODY => return Err(too_long()),
                Framing::Length(other) if !bodiless && other != length => {
                    return Err(malformed("the application's answer has two different lengths"));
                }
                Framing::Close => framing = Framing::Length(length),
                _ => {}
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(malformed("the application's answer has an unsupported transfer encoding"));
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
mod tests {
    use super::*;
    use crate::wire::script::{Parts, Script};
    use proptest::prelude::*;

    fn ask(answers: &[u8], piece: usize) -> Result<(Answer, Vec<u8>)> {
        let mut client = Client::new(Script::in_pieces(answers.to_vec(), piece), "a:1", "");
        let mut out = b"before".to_vec();
        let answer = client.request("/kv", Request::default(), &mut out)?;
        Ok((answer, out))
    }

    /// Complete answers with each of the three framings.
    const WHOLE: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: z\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: close\r\n\r\nhello",
    ];

    #[test]
    fn request_is_one_write_and_names_its_host() {
        let mut client = Client::new(Script::new(WHOLE[0].to_vec()), "a:1", "/shop");
        let last = Request { writes: false, last: true };
        client.request("/kv/read?key=1", last, &mut Vec::new()).unwrap();
        let sent = String::from_utf8(client.wire.stream().sent.clone()).unwrap();
        assert_eq!(
            sent,
            "GET /shop/kv/read?key=1 HTTP/1.1\r\nHost: a:1\r\nUser-Agent: kurabe\r\nConnection: close\r\n\r\n"
        );
        let mut client = Client::new(Script::new(WHOLE[0].to_vec()), "a:1", "");
        client.request("/kv/write", Request { writes: true, last: false }, &mut Vec::new()).unwrap();
        let sent = String::from_utf8(client.wire.stream().sent.clone()).unwrap();
        assert_eq!(
            sent,
            "POST /kv/write HTTP/1.1\r\nHost: a:1\r\nUser-Agent: kurabe\r\nContent-Length: 0\r\n\r\n"
        );
    }

    #[test]
    fn every_framing_is_parsed_in_pieces_of_any_size() {
        for (answer, stays) in WHOLE.into_iter().zip([true, true, false, false]) {
            for piece in 1..=answer.len() {
                let (head, body) = ask(answer, piece).unwrap();
                assert_eq!((head, body.as_slice()), (Answer { status: 200, stays }, &b"hello"[..]));
            }
        }
    }

    #[test]
    fn several_answers_on_one_connection_are_separated() {
        let both = [WHOLE[1], WHOLE[0], WHOLE[1]].concat();
        let mut client = Client::new(Script::new(both), "a:1", "");
        for _ in 0..3 {
            let mut out = Vec::new();
            assert!(client.request("/kv", Request::default(), &mut out).unwrap().stays);
            assert_eq!(out, b"hello");
        }
    }

    #[test]
    fn malformed_answers_are_protocol_errors() {
        for bytes in [
            &b"SSH-2.0-OpenSSH_9\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
        ] {
            let error = ask(bytes, 1_000).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        }
        let endless =
            b"HTTP/1.1 200 OK\r\n".iter().copied().chain(b"a: b\r\n".iter().copied().cycle().take(40_000));
        assert_eq!(ask(&endless.collect::<Vec<u8>>(), 1_000).unwrap_err().kind(), ErrorKind::Protocol);
    }

    mod fuzz {
        use super::*;

        const WORDS: &[&str] = &[
            "\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.0 200 OK\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 204 \r\n",
            "Content-Length: ",
            "Transfer-Encoding: ",
            "chunked\r\n",
            "gzip, ",
            "Connection: ",
            "close\r\n",
            "keep-alive\r\n",
            "18446744073709551615\r\n",
            "0\r\n\r\n",
            "5\r\nhello\r\n",
            "3;x=y\r\n",
            "Trailer: z\r\n",
        ];

        /// The answers, to two requests, are the input itself, or text with words of HTTP.
        #[test]
        fn any_answers_are_answers_or_an_error() {
            bolero::check!(name = "application-answers").for_each(|input: &[u8]| {
                let mut parts = Parts::new(input);
                let (piece, with_words) = parts.head();
                let bytes = if with_words { parts.words(WORDS) } else { parts.rest().to_vec() };
                let mut client = Client::new(Script::in_pieces(bytes, piece), "a:1", "");
                for _ in 0..2 {
                    let _ = client.request("/kv", Request::default(), &mut Vec::new());
                }
            });
        }
    }

    proptest! {
        #[test]
        fn truncated_answer_is_an_error(which in prop::sample::select(vec![0usize, 1, 3]), cut: prop::sample::Index) {
            let whole = WHOLE[which];
            let cut = cut.index(whole.len());
            prop_assert!(ask(&whole[..cut], 7).is_err());
        }
    }
}
