//! Requests of HTTP/1.1 (RFC 9112): `CouchDB`, and applications.

use super::http_framing::{self, Framing};
use crate::input::{Input, Message};
use crate::view::{KEPT, Stop};
use kurabe_protocol::http::field_place;

/// The maximum size of all fields of a request that are kept, in bytes.
const KEPT_FIELDS: usize = 16 << 10;

/// Reads requests from what a client sends.
#[derive(Default)]
pub(super) struct Requests {
    client: Input,
    part: Part,
    /// Bytes of the body being read that were kept, and whether others were not.
    kept: usize,
    is_cut: bool,
}

/// What follows in the stream.
pub(super) enum Next {
    Head(Box<Head>),
    /// The next part of its body.
    Body(Vec<u8>),
    /// The request is complete. Whether parts of its body were not kept.
    End {
        is_cut: bool,
    },
}

#[derive(Default)]
enum Part {
    #[default]
    Start,
    Fields(Box<Head>),
    Body(Framing),
}

#[derive(Default)]
pub(super) struct Head {
    pub(super) at: u64,
    pub(super) method: String,
    /// Path and query, without the authority, which may contain a password.
    pub(super) target: String,
    /// Fields that are kept: the place of each, and its value.
    pub(super) fields: Vec<(usize, String)>,
    pub(super) agent: Option<String>,
    /// How its body ends; `None` if it has none.
    length: Option<Framing>,
    /// Whether the client waits before it sends the body.
    pub(super) waits: bool,
    /// Whether something of it was not kept.
    pub(super) is_cut: bool,
}

impl Requests {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.client.push(bytes);
    }

    /// Whether a part of a body has arrived.
    pub(super) fn has_body(&self) -> bool {
        self.kept > 0 || self.is_cut || !self.client.waiting().is_empty()
    }

    /// What follows; `None` if it has not arrived.
    pub(super) fn next(&mut self) -> Result<Option<Next>, Stop> {
        let mut found = None;
        while found.is_none() && self.read(&mut found)? {}
        Ok(found)
    }

    /// Reads the next line or part of a body. Returns whether it was complete.
    fn read(&mut self, found: &mut Option<Next>) -> Result<bool, Stop> {
        if let Part::Body(framing) = &mut self.part {
            match framing.next(&mut self.client)? {
                None => return Ok(false),
                Some(http_framing::Part::Bytes(bytes)) => {
                    let kept = bytes.get(..KEPT - self.kept).unwrap_or(bytes);
                    self.is_cut |= kept.len() < bytes.len();
                    self.kept += kept.len();
                    *found = (!kept.is_empty()).then(|| Next::Body(kept.to_vec()));
                }
                Some(http_framing::Part::End) => {
                    self.part = Part::Start;
                    *found = Some(Next::End { is_cut: self.is_cut });
                }
            }
            return Ok(true);
        }
        let line = self.client.line().map_err(|_| "a line is too long for HTTP")?;
        let Some(line) = line else { return Ok(false) };
        let text = line.text();
        match std::mem::take(&mut self.part) {
            Part::Start if text.is_empty() => {}
            Part::Start => self.part = Part::Fields(Box::new(start(&line)?)),
            Part::Fields(head) if text.is_empty() => {
                self.part = Part::Body(head.length.unwrap_or(Framing::Length(0)));
                (self.kept, self.is_cut) = (0, head.is_cut);
                *found = Some(Next::Head(head));
            }
            Part::Fields(mut head) => {
                field(&mut head, &text)?;
                self.part = Part::Fields(head);
            }
            // Read before.
            Part::Body(_) => {}
        }
        Ok(true)
    }
}

fn start(line: &Message) -> Result<Head, &'static str> {
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

fn field(head: &mut Head, line: &str) -> Result<(), &'static str> {
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
            let Some(place) = field_place(name) else {
                return Ok(());
            };
            let size: usize = head.fields.iter().map(|(_, value)| value.len() + 32).sum();
            if size + value.len() > KEPT_FIELDS || value.contains(char::REPLACEMENT_CHARACTER) {
                head.is_cut = true;
            } else {
                head.fields.push((place, value.to_owned()));
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
