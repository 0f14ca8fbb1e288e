//! The fields of an answer of HTTP, which say how its body ends and what it is.

use super::http_body::Body;

/// Why a connection cannot be read.
pub(super) const NOT_HTTP: &str = "the server does not speak HTTP/1.1";
/// The largest body of an answer, in bytes.
pub(super) const LARGEST: u64 = 1 << 50;

/// An answer that is being read.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) length: Option<u64>,
    pub(super) is_chunked: bool,
    /// Whether its transfer has another encoding, so that it ends with the connection.
    pub(super) is_coded: bool,
    /// Whether the same body may have other bytes: it is compressed, or has parts with a boundary.
    pub(super) is_packed: bool,
    pub(super) body: Option<Body>,
}

impl Answer {
    /// Reads a field, by its line.
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
            "content-encoding" => self.is_packed |= value != "identity",
            "content-type" => self.is_packed |= value.starts_with("multipart/"),
            _ => {}
        }
        Ok(())
    }
}
