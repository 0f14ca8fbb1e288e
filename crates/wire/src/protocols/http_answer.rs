//! The fields of an answer of HTTP, which say how its body ends and what it is.

use super::http_body::Body;
use super::http_framing::LARGEST;
use flate2::write::MultiGzDecoder;
use std::io::Write as _;

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
