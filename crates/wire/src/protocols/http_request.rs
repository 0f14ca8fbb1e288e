//! Messages of HTTP/1.1 (RFC 9112): requests, the fields of an answer, and where the body of a message ends (sections 6 and 7).

use super::http_body::Body;
use crate::input::{Input, Message};
use crate::view::Parameter;
use flate2::write::MultiGzDecoder;
use kurabe_protocol::http::field_kind;
use std::io::Write as _;

/// The maximum size of all fields of a request that are kept, in bytes.
const KEPT_FIELDS: usize = 16 << 10;

#[derive(Default)]
pub(super) struct Head {
    pub(super) at: u64,
    pub(super) method: String,
    /// Path and query, without the authority, which may contain a password.
    pub(super) target: String,
    /// Fields that are kept.
    pub(super) fields: Vec<Parameter>,
    pub(super) agent: Option<String>,
    /// How its body ends; `None` if it has none.
    pub(super) length: Option<Framing>,
    /// Whether the client waits before it sends the body.
    pub(super) waits: bool,
    /// Whether something of it was not kept.
    pub(super) is_cut: bool,
}

pub(super) fn start(line: &Message) -> Result<Head, &'static str> {
    let text = line.text();
    if text == "PRI * HTTP/2.0" {
        return Err("HTTP/2 is not decoded");
    }
    let words: Vec<&str> = text.split(' ').collect();
    let &[method, target, version] = words.as_slice() else {
        return Err("the client does not speak HTTP");
    };
    let is_token = method.bytes().all(|byte| byte.is_ascii_alphabetic()) && !method.is_empty();
    if !version.starts_with("HTTP/1.") || !is_token || target.contains(|c: char| c.is_control()) {
        return Err("the client does not speak HTTP/1.1");
    }
    Ok(Head {
        at: line.at,
        method: method.to_owned(),
        target: without_authority(target),
        // Bytes that are not UTF-8 were replaced.
        is_cut: text.contains(char::REPLACEMENT_CHARACTER),
        ..Head::default()
    })
}

pub(super) fn field(head: &mut Head, line: &str) -> Result<(), &'static str> {
    if line.starts_with([' ', '\t']) {
        return Err("a field of HTTP goes on in another line");
    }
    let Some((name, value)) = line.split_once(':') else { return Ok(()) };
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    match name.as_str() {
        "content-length" => {
            let length = value.parse().map(Framing::Length).map_err(|_| "a body has no length")?;
            let known = *head.length.get_or_insert(length);
            if known != Framing::Chunk && known != length {
                return Err("a body has two lengths");
            }
        }
        "transfer-encoding" => {
            let (before, last) = value.rsplit_once(',').unwrap_or(("", value));
            if !last.trim().eq_ignore_ascii_case("chunked") {
                return Err("a body has no length");
            }
            // It is stronger than a number of bytes. What is compressed besides is not kept.
            head.length = Some(Framing::Chunk);
            head.is_cut |= !before.is_empty();
        }
        "expect" => head.waits = true,
        "user-agent" => head.agent = Some(value.to_owned()),
        name => {
            let Some(kind) = field_kind(name) else {
                return Ok(());
            };
            let size: usize = head.fields.iter().map(|one| one.text().len() + 32).sum();
            if size + value.len() > KEPT_FIELDS || value.contains(char::REPLACEMENT_CHARACTER) {
                head.is_cut = true;
            } else {
                head.fields.push(Parameter::new(kind, false, value.as_bytes()));
            }
        }
    }
    Ok(())
}

/// Path and query of a request.
fn without_authority(target: &str) -> String {
    let (path, query) = target.find('?').map_or((target, ""), |at| target.split_at(at));
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"),
        None if path.starts_with('/') || path == "*" => path,
        None => "…",
    };
    format!("{path}{query}")
}

/// The largest body, or chunk, in bytes.
pub(super) const LARGEST: u64 = 1 << 50;

/// What follows of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// This number of bytes, which end the body.
    Length(u64),
    /// The line with a chunk's size.
    Chunk,
    /// This number of bytes of a chunk.
    Data(u64),
    /// The line after a chunk.
    ChunkEnd,
    /// Fields after the last chunk.
    Trailers,
    /// A body that ends with the connection.
    Rest,
}

pub(super) enum Part<'a> {
    Bytes(&'a [u8]),
    End,
}

impl Framing {
    /// Reads on; `None` if more has to arrive.
    pub(super) fn next<'a>(&mut self, input: &'a mut Input) -> Result<Option<Part<'a>>, &'static str> {
        loop {
            match self {
                Self::Length(0) => return Ok(Some(Part::End)),
                Self::Data(0) => *self = Self::ChunkEnd,
                Self::Length(left) | Self::Data(left) => return Ok(input.part(left).map(Part::Bytes)),
                Self::Rest => return Ok(input.part(&mut u64::MAX.clone()).map(Part::Bytes)),
                Self::Chunk | Self::ChunkEnd | Self::Trailers => {
                    let Some(line) = input.line(LONG_LINE)? else {
                        return Ok(None);
                    };
                    *self = match (*self, line.bytes.is_empty()) {
                        (Self::Chunk, _) => match chunk_size(&line.text()).ok_or("a chunk has no size")? {
                            0 => Self::Trailers,
                            size => Self::Data(size),
                        },
                        (Self::ChunkEnd, true) => Self::Chunk,
                        (Self::ChunkEnd, false) => return Err("a chunk has another size than it says"),
                        (_, true) => return Ok(Some(Part::End)),
                        (_, false) => Self::Trailers,
                    };
                }
            }
        }
    }
}

/// The size of a chunk, by its line.
fn chunk_size(line: &str) -> Option<u64> {
    let digits = line.split(';').next().unwrap_or_default().trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|size| is_number && *size <= LARGEST)
}

/// Why a line is not read.
pub(super) const LONG_LINE: &str = "a line is too long for HTTP";
pub(super) const NOT_HTTP: &str = "the server does not speak HTTP/1.1";

#[derive(Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) length: Option<u64>,
    pub(super) is_chunked: bool,
    /// Whether its transfer has another encoding, so that it ends with the connection.
    pub(super) is_coded: bool,
    /// Whether the same body may have other bytes: it is compressed otherwise than by gzip, or has parts with a boundary.
    pub(super) is_packed: bool,
    pub(super) gzip: Gzip,
    pub(super) body: Option<Body>,
}

/// Whether the body is compressed by gzip.
#[derive(Default)]
pub(super) enum Gzip {
    #[default]
    No,
    /// A field says so.
    Announced,
    /// Unpacks what goes into the body.
    Unpacks(Box<MultiGzDecoder<Body>>),
}

impl Answer {
    pub(super) fn field(&mut self, line: &str) -> Result<(), &'static str> {
        if line.starts_with([' ', '\t']) {
            return Err("a field of HTTP goes on in another line");
        }
        let Some((name, value)) = line.split_once(':') else { return Err(NOT_HTTP) };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_ascii_lowercase());
        match name.as_str() {
            "content-length" => {
                let length = value.parse().ok().filter(|length| *length <= LARGEST);
                let length = length.filter(|length| self.length.is_none_or(|known| known == *length));
                self.length = Some(length.ok_or(NOT_HTTP)?);
            }
            "transfer-encoding" => {
                self.is_chunked = value.rsplit(',').next().is_some_and(|last| last.trim() == "chunked");
                self.is_coded = !self.is_chunked;
                self.is_packed |= value != "chunked";
            }
            "content-encoding"
                if ["gzip", "x-gzip"].contains(&value.as_str()) && matches!(self.gzip, Gzip::No) =>
            {
                self.gzip = Gzip::Announced;
            }
            "content-encoding" => self.is_packed |= value != "identity",
            "content-type" => self.is_packed |= value.starts_with("multipart/"),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if matches!(self.gzip, Gzip::Announced)
            && let Some(body) = self.body.take()
        {
            self.gzip = Gzip::Unpacks(Box::new(MultiGzDecoder::new(body)));
        }
        match (&mut self.gzip, &mut self.body) {
            (Gzip::Unpacks(gzip), _) => {
                let written = gzip.write_all(bytes);
                if written.is_err() {
                    self.gzip = Gzip::Announced;
                }
            }
            (Gzip::No, Some(body)) => body.push(bytes),
            _ => {}
        }
    }

    /// The body, once it is complete; `None` if there is none, or it cannot be unpacked.
    pub(super) fn end(&mut self) -> Option<Body> {
        match std::mem::take(&mut self.gzip) {
            Gzip::Unpacks(gzip) => gzip.finish().ok(),
            _ => self.body.take(),
        }
    }
}
