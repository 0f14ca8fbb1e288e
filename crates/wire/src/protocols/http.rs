//! Requests of HTTP/1.1 (RFC 9112): `CouchDB`, and applications.

use crate::decoder::{Decoder, Request, Seen, Step};
use crate::input::{Input, begins_with_tls};

/// Paths by which clients of `CouchDB` ask about the server.
const SETUP: [&str; 4] = ["/", "/_session", "/_up", "/_all_dbs"];

/// The decoder.
#[derive(Default)]
pub(crate) struct Http {
    /// Whether some paths are questions about the server, as `CouchDB`'s are.
    is_couchdb: bool,
    client: Input,
    part: Part,
    named: bool,
}

#[derive(Default)]
enum Part {
    /// The request's line.
    #[default]
    Start,
    Fields(Fields),
    /// The line with a chunk's size.
    Chunk,
    /// The line after a chunk.
    ChunkEnd,
    /// Fields after the last chunk.
    Trailers,
}

#[derive(Default)]
struct Fields {
    at: u64,
    text: String,
    is_setup: bool,
    length: u64,
    chunked: bool,
    upgrade: bool,
}

impl Http {
    /// For a `CouchDB`.
    pub(crate) fn couchdb() -> Self {
        Self { is_couchdb: true, ..Self::default() }
    }
}

impl Decoder for Http {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        self.client.push(bytes);
        while self.next(seen).is_some() {}
    }
}

impl Http {
    /// Reads the next line; `None` if it is not complete.
    fn next(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        if self.client.position() == 0 && begins_with_tls(self.client.waiting())? {
            seen.push(Seen::Encrypted);
            self.client.close();
            return None;
        }
        let Ok(line) = self.client.line() else { return self.give_up("a line is too long for HTTP", seen) };
        let line = line?;
        let text = line.text();
        match std::mem::take(&mut self.part) {
            Part::Start if text.is_empty() => {}
            Part::Start => return self.start(line.at, &text, seen),
            Part::Fields(fields) if text.is_empty() => return self.body(fields, seen),
            Part::Fields(mut fields) => {
                if let Some((name, value)) = text.split_once(':') {
                    self.field(&mut fields, name.trim(), value.trim(), seen)?;
                }
                self.part = Part::Fields(fields);
            }
            Part::Chunk => {
                let size = text.split(';').next().unwrap_or_default().trim();
                let Ok(size) = u64::from_str_radix(size, 16) else {
                    return self.give_up("a chunk has no size", seen);
                };
                self.client.pass(size);
                self.part = if size == 0 { Part::Trailers } else { Part::ChunkEnd };
            }
            Part::ChunkEnd => self.part = Part::Chunk,
            Part::Trailers => self.part = if text.is_empty() { Part::Start } else { Part::Trailers },
        }
        Some(())
    }

    fn start(&mut self, at: u64, line: &str, seen: &mut Vec<Seen>) -> Option<()> {
        if line == "PRI * HTTP/2.0" {
            return self.give_up("HTTP/2 is not decoded", seen);
        }
        let words: Vec<&str> = line.split(' ').collect();
        let &[method, target, version] = words.as_slice() else {
            return self.give_up("the client does not speak HTTP", seen);
        };
        let is_token = method.bytes().all(|byte| byte.is_ascii_alphabetic()) && !method.is_empty();
        if !version.starts_with("HTTP/1.") || !is_token {
            return self.give_up("the client does not speak HTTP/1.1", seen);
        }
        let path = path(target);
        let is_setup = self.is_couchdb && SETUP.contains(&path.as_str());
        let upgrade = method == "CONNECT";
        self.part = Part::Fields(Fields {
            at,
            text: format!("{method} {path}"),
            is_setup,
            upgrade,
            ..Fields::default()
        });
        Some(())
    }

    fn field(&mut self, fields: &mut Fields, name: &str, value: &str, seen: &mut Vec<Seen>) -> Option<()> {
        if name.eq_ignore_ascii_case("content-length") {
            match value.parse() {
                Ok(length) => fields.length = length,
                Err(_) => return self.give_up("a body has no length", seen),
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            fields.chunked = value.to_ascii_lowercase().contains("chunked");
        } else if name.eq_ignore_ascii_case("upgrade") {
            fields.upgrade = true;
        } else if name.eq_ignore_ascii_case("user-agent") && !std::mem::replace(&mut self.named, true) {
            seen.push(Seen::Client(value.to_owned()));
        }
        Some(())
    }

    /// Ends the request's head, and passes over its body.
    fn body(&mut self, fields: Fields, seen: &mut Vec<Seen>) -> Option<()> {
        let Fields { at, text, is_setup, length, chunked, upgrade } = fields;
        seen.push(Seen::Request(Request { at, text, step: Step::Text, is_setup }));
        if upgrade {
            return self.give_up("the connection may change its protocol after an upgrade", seen);
        }
        if chunked {
            self.part = Part::Chunk;
        } else {
            self.client.pass(length);
        }
        Some(())
    }

    fn give_up(&mut self, why: &'static str, seen: &mut Vec<Seen>) -> Option<()> {
        seen.push(Seen::Unreadable(why));
        self.client.close();
        None
    }
}

/// The path of a request, without the query and the authority, which may contain passwords.
fn path(target: &str) -> String {
    let (path, query) = target.split_once('?').map_or((target, ""), |(path, _)| (path, "?…"));
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"),
        None if path.starts_with('/') || path == "*" => path,
        None => "…",
    };
    format!("{path}{query}")
}
