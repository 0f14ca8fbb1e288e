//! A reader of one connection, which ends where the stream cannot be read any further.

use std::borrow::Cow;

/// Why the rest of a connection is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// TLS begins.
    Encrypted,
    Unreadable(&'static str),
}

impl From<&'static str> for Stop {
    fn from(why: &'static str) -> Self {
        Self::Unreadable(why)
    }
}

/// A reader, until it stops. Streams that begin with TLS are none of its.
pub(crate) struct UntilStop<R> {
    /// `None` once nothing is read any more.
    reader: Option<R>,
    /// The client's first bytes, until it is known whether TLS begins with them.
    start: Option<Vec<u8>>,
}

impl<R> UntilStop<R> {
    /// Of a protocol whose client speaks first.
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: Some(reader), start: Some(Vec::new()) }
    }

    /// Of a protocol whose server speaks first, before any TLS.
    pub(crate) fn after_greeting(reader: R) -> Self {
        Self { reader: Some(reader), start: None }
    }

    /// What follows does not begin with TLS.
    pub(crate) fn begin(&mut self) {
        self.start = None;
    }

    /// Whether it is not known yet whether TLS begins.
    pub(crate) fn is_pending(&self) -> bool {
        self.start.is_some()
    }

    /// What the reader gets of what the client sent.
    pub(crate) fn checked<'a>(&mut self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, Stop> {
        let Some(start) = &mut self.start else { return Ok(Cow::Borrowed(bytes)) };
        start.extend_from_slice(bytes);
        let Some(is_tls) = begins_with_tls(start) else { return Ok(Cow::Borrowed(&[])) };
        let start = self.start.take().unwrap_or_default();
        if is_tls { Err(Stop::Encrypted) } else { Ok(Cow::Owned(start)) }
    }

    pub(crate) fn reader(&mut self) -> Option<&mut R> {
        self.reader.as_mut()
    }

    /// Reads nothing any more, and gives the reader.
    pub(crate) fn stop(&mut self) -> Option<R> {
        self.reader.take()
    }
}

/// Whether a stream begins with a `ClientHello` of TLS (RFC 8446, sections 4 and 5.1); `None` if that is not known yet.
pub(crate) fn begins_with_tls(bytes: &[u8]) -> Option<bool> {
    let expected = |at: usize, byte: u8| match at {
        0 => byte == 22,
        1 => byte == 3,
        2 => byte <= 4,
        5 => byte == 1,
        _ => true,
    };
    let fits = bytes.iter().take(6).enumerate().all(|(at, byte)| expected(at, *byte));
    if !fits {
        Some(false)
    } else if bytes.len() < 6 {
        None
    } else {
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_hello_is_recognised_when_six_bytes_are_there() {
        let hello = b"\x16\x03\x01\x02\x00\x01\xff";
        assert_eq!(begins_with_tls(&hello[..5]), None);
        assert_eq!(begins_with_tls(hello), Some(true));
        assert_eq!(begins_with_tls(b"GET"), Some(false));
        assert_eq!(begins_with_tls(b"\x16\x03\x01\x00\x00\x00"), Some(false));
    }
}
