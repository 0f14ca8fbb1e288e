//! Messages: a tag, the length (4 bytes, which count themselves) and a body (manual, "Messages Overview"). The client's
//! first message has no tag.

use crate::bytes::word_be;
use crate::{Found, Header};

/// Tags of the client's messages.
pub mod frontend {
    pub const BIND: u8 = b'B';
    pub const CLOSE: u8 = b'C';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_FAIL: u8 = b'f';
    pub const DESCRIBE: u8 = b'D';
    pub const EXECUTE: u8 = b'E';
    pub const FLUSH: u8 = b'H';
    pub const FUNCTION_CALL: u8 = b'F';
    pub const PARSE: u8 = b'P';
    /// A password, or an answer of SASL.
    pub const PASSWORD: u8 = b'p';
    pub const QUERY: u8 = b'Q';
    pub const SYNC: u8 = b'S';
    pub const TERMINATE: u8 = b'X';
}

/// Tags of the server's messages.
pub mod backend {
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY_DATA: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_BOTH_RESPONSE: u8 = b'W';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN_RESPONSE: u8 = b'G';
    pub const COPY_OUT_RESPONSE: u8 = b'H';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY_RESPONSE: u8 = b'I';
    pub const ERROR_RESPONSE: u8 = b'E';
    pub const FUNCTION_CALL_RESPONSE: u8 = b'V';
    pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE_RESPONSE: u8 = b'N';
    pub const NOTIFICATION_RESPONSE: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const READY_FOR_QUERY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// What the first message begins with: version 3.0, or a request in place of the version.
pub const VERSION: u32 = 3 << 16;
pub const CANCEL_REQUEST: u32 = 80_877_102;
pub const SSL_REQUEST: u32 = 80_877_103;
pub const GSS_REQUEST: u32 = 80_877_104;

/// The longest message before the server knows the client, in bytes (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST_START: u32 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagged {
    pub tag: u8,
    pub length: usize,
}

impl Header for Tagged {
    const LENGTH: usize = 5;

    #[inline]
    fn find(bytes: &[u8]) -> Found<Self> {
        let Some(&[tag, a, b, c, d]) = bytes.first_chunk() else { return Found::Need(Self::LENGTH) };
        let length = u32::from_be_bytes([a, b, c, d]);
        match length.checked_sub(4) {
            Some(length) if i32::try_from(length).is_ok() => {
                Found::Header(Self { tag, length: length as usize })
            }
            _ => Found::Invalid(length.into()),
        }
    }

    #[inline]
    fn body(self) -> u64 {
        self.length as u64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The version, or the code of a request.
    pub code: u32,
    length: u32,
}

impl Header for Start {
    const LENGTH: usize = 8;

    fn find(bytes: &[u8]) -> Found<Self> {
        if bytes.len() < 4 {
            return Found::Need(4);
        }
        let length = word_be(bytes, 0);
        if !(Self::LENGTH as u32..=LONGEST_START).contains(&length) {
            return Found::Invalid(length.into());
        }
        if bytes.len() < Self::LENGTH {
            return Found::Need(Self::LENGTH);
        }
        Found::Header(Self { code: word_be(bytes, 4), length: length - Self::LENGTH as u32 })
    }

    #[inline]
    fn body(self) -> u64 {
        self.length.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ReadyForQuery` of PostgreSQL 15, captured.
    const READY: &[u8] = b"Z\0\0\0\x05I";

    #[test]
    fn header_is_found_when_it_is_complete_and_its_length_can_be() {
        for end in 0..5 {
            assert_eq!(Tagged::find(&READY[..end]), Found::Need(5));
        }
        assert_eq!(Tagged::find(READY), Found::Header(Tagged { tag: backend::READY_FOR_QUERY, length: 1 }));
        for length in [0, 3, u32::MAX, 1 << 31 | 4] {
            let message = [&b"D"[..], &length.to_be_bytes()].concat();
            assert_eq!(Tagged::find(&message), Found::Invalid(length.into()));
        }
    }

    #[test]
    fn first_message_is_refused_by_its_length_alone() {
        assert_eq!(Start::find(b"\0\0\0"), Found::Need(4));
        assert_eq!(Start::find(b"\0\0\0\x08"), Found::Need(8));
        let request = Found::Header(Start { code: SSL_REQUEST, length: 0 });
        assert_eq!(Start::find(&[0, 0, 0, 8, 4, 210, 22, 47]), request);
        assert_eq!(Start::find(b"GET "), Found::Invalid(0x4745_5420));
        assert_eq!(Start::find(b"\0\0\0\x07"), Found::Invalid(7));
    }
}
