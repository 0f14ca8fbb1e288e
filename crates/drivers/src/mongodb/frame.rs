//! Messages: a head of 16 bytes, and a document as `OP_MSG`, or that as `OP_COMPRESSED`.
//! Source: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>.

use crate::prelude::*;
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use std::ops::Range;

/// The length of all, the number of the message, the number of the request that it answers, and the operation's code.
pub(super) const HEADER: usize = 16;

/// The bytes before the document of a command: the header, flags, and the kind of the only section.
pub(super) const HEAD: usize = HEADER + 5;

const OP_COMPRESSED: i32 = 2012;
const OP_MSG: i32 = 2013;

/// Flags of `OP_MSG`. Those below 16 must be known.
const CHECKSUM_PRESENT: u32 = 1;
const REQUIRED: u32 = 0xffff;
/// The length of a checksum.
const CHECKSUM: usize = 4;

/// The longest message of any server: `MaxMessageSizeBytes` in MongoDB's source.
const LONGEST: usize = 48_000_000;

/// Writes the head of a message, which has room for it.
#[inline]
pub(super) fn seal(message: &mut [u8], number: i32) {
    let length = message.len() as i32;
    for (at, value) in [length, number, 0, OP_MSG, 0].into_iter().enumerate() {
        message[at * 4..at * 4 + 4].copy_from_slice(&value.to_le_bytes());
    }
    message[HEAD - 1] = 0;
}

/// What the header of an answer says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The length of what follows it.
    pub(super) rest: usize,
    /// The number of the request.
    pub(super) answers: i32,
    pub(super) is_compressed: bool,
}

impl Header {
    #[inline]
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let word = |at: usize| {
            let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |word| i32::from_le_bytes(*word))
        };
        let (length, code) = (word(0), word(12));
        let rest = usize::try_from(length).ok().and_then(|length| length.checked_sub(HEADER));
        match (rest, code) {
            (Some(rest @ 5..=LONGEST), OP_MSG | OP_COMPRESSED) => {
                Ok(Self { rest, answers: word(8), is_compressed: code == OP_COMPRESSED })
            }
            _ => Err(malformed("the server sent a message that is not MongoDB's protocol")),
        }
    }
}

/// Where the document of an `OP_MSG` is, in what follows the header.
#[inline]
pub(super) fn document(rest: &[u8]) -> Result<Range<usize>> {
    let flags = rest.first_chunk().map_or(u32::MAX, |flags| u32::from_le_bytes(*flags));
    if flags & REQUIRED & !CHECKSUM_PRESENT != 0 {
        return Err(malformed(format!("the server's message has unknown flags, {flags:#x}")));
    }
    let checksum = if flags & CHECKSUM_PRESENT == 0 { 0 } else { CHECKSUM };
    let end = rest.len().checked_sub(checksum).filter(|end| *end >= 5);
    match (rest.get(4), end) {
        // A document alone: others follow in requests only.
        (Some(0), Some(end)) => Ok(5..end),
        _ => Err(malformed("the server's message has a section of an unknown kind")),
    }
}

/// A method of compression that both ends know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Zlib(u32),
    Zstd,
}

/// zlib's default level.
pub(super) const ZLIB_LEVEL: u32 = 6;
/// zstd's default level.
const ZSTD_LEVEL: i32 = 3;

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Zlib(_) => "zlib",
            Self::Zstd => "zstd",
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Zlib(_) => 2,
            Self::Zstd => 3,
        }
    }
}

/// Compresses requests.
pub(super) struct Compressor {
    method: Method,
    coder: Coder,
}

enum Coder {
    Zlib(Compress),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub(super) fn new(method: Method) -> Result<Self> {
        let coder = match method {
            Method::Zlib(level) => Coder::Zlib(Compress::new(flate2::Compression::new(level), true)),
            Method::Zstd => Coder::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(|error| {
                Error::new(ErrorKind::Environment, format!("zstd cannot be set up: {error}"))
            })?),
        };
        Ok(Self { method, coder })
    }

    pub(super) fn method(&self) -> Method {
        self.method
    }

    /// Makes an `OP_COMPRESSED` of a sealed message.
    pub(super) fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (header, rest) = message.split_at(HEADER);
        out.clear();
        out.extend_from_slice(header);
        out.extend_from_slice(&OP_MSG.to_le_bytes());
        out.extend_from_slice(&(rest.len() as i32).to_le_bytes());
        out.push(self.method.number());
        match &mut self.coder {
            Coder::Zlib(compress) => {
                compress.reset();
                loop {
                    let (read, before) = (compress.total_in() as usize, out.len());
                    out.reserve(rest.len() / 2 + 64);
                    match compress.compress_vec(&rest[read..], out, FlushCompress::Finish) {
                        Ok(Status::StreamEnd) => break,
                        Ok(_) if out.len() > before => {}
                        _ => return Err(Error::new(ErrorKind::Internal, "zlib compresses no request")),
                    }
                }
            }
            Coder::Zstd(compressor) => {
                let packed = compressor.compress(rest).map_err(|error| {
                    Error::new(ErrorKind::Internal, format!("zstd compresses no request: {error}"))
                })?;
                out.extend_from_slice(&packed);
            }
        }
        let length = (out.len() as i32).to_le_bytes();
        out[..4].copy_from_slice(&length);
        out[12..HEADER].copy_from_slice(&OP_COMPRESSED.to_le_bytes());
        Ok(())
    }
}

/// The length of a compressed message's content, from what follows its header.
pub(super) fn content_length(rest: &[u8]) -> Result<usize> {
    let word = |at: usize| rest.get(at..).and_then(<[u8]>::first_chunk).map(|word| i32::from_le_bytes(*word));
    match (word(0), word(4).map(usize::try_from)) {
        (Some(OP_MSG), Some(Ok(length @ 5..=LONGEST))) => Ok(length),
        _ => Err(malformed("the server's compressed message is not MongoDB's protocol")),
    }
}

/// Decompresses the content of a message of this length, from what follows its header.
pub(super) fn decompress(rest: &[u8], length: usize, out: &mut Vec<u8>) -> Result<()> {
    let wrong = || malformed("the server's compressed message has another content than it says");
    let (number, packed) = rest.get(8..).and_then(<[u8]>::split_first).ok_or_else(wrong)?;
    out.clear();
    // One more byte shows that there is too much.
    out.reserve(length + 1);
    match number {
        0 => out.extend_from_slice(packed),
        2 => {
            let mut decompress = Decompress::new(true);
            let done = decompress.decompress_vec(packed, out, FlushDecompress::Finish);
            if !matches!(done, Ok(Status::StreamEnd)) {
                return Err(wrong());
            }
        }
        3 => {
            let decoded = zstd::bulk::decompress(packed, length + 1).map_err(|_| wrong())?;
            *out = decoded;
        }
        other => return Err(malformed(format!("the server compresses by an unknown method, {other}"))),
    }
    if out.len() == length { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of FerretDB 1.24 to a `ping`, captured.
    const ANSWER: &[u8] =
        b"\x26\0\0\0\x04\0\0\0\x01\0\0\0\xdd\x07\0\0\0\0\0\0\0\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0?\0";

    #[test]
    fn captured_answer_is_read() {
        let header = Header::read(ANSWER).unwrap();
        assert_eq!(header, Header { rest: ANSWER.len() - HEADER, answers: 1, is_compressed: false });
        let rest = &ANSWER[HEADER..];
        assert_eq!(rest[document(rest).unwrap()], ANSWER[HEAD..]);
    }

    #[test]
    fn checksum_is_no_part_of_the_document() {
        let mut rest = ANSWER[HEADER..].to_vec();
        rest[0] = 1;
        rest.extend_from_slice(&[1, 2, 3, 4]);
        assert_eq!(rest[document(&rest).unwrap()], ANSWER[HEAD..]);
    }

    #[test]
    fn invalid_messages_are_refused() {
        let changed = |at: usize, value: u8| {
            let mut bytes = ANSWER.to_vec();
            bytes[at] = value;
            bytes
        };
        for (at, value) in [(0, 20), (3, 0x7f), (3, 0xff), (12, 1), (13, 0)] {
            assert!(Header::read(&changed(at, value)).is_err(), "{at}");
        }
        for (at, value) in [(HEADER, 2), (HEADER + 1, 1), (HEAD - 1, 1), (HEAD - 1, 2)] {
            assert!(document(&changed(at, value)[HEADER..]).is_err(), "{at}");
        }
        // More bytes may come: an unknown flag that is not required.
        assert!(document(&changed(HEADER + 2, 1)[HEADER..]).is_ok());
        assert!(document(b"\x01\0\0\0\0\0\0").is_err() && document(b"").is_err());
    }

    #[test]
    fn compressed_messages_are_decompressed_and_lies_about_them_refused() {
        for method in [Method::Zlib(6), Method::Zlib(0), Method::Zstd] {
            let mut message = [&[0; HEAD][..], &vec![7; 100_000], b"end"].concat();
            seal(&mut message, 5);
            let (mut packed, mut out) = (Vec::new(), Vec::new());
            Compressor::new(method).unwrap().compress(&message, &mut packed).unwrap();
            let header = Header::read(&packed).unwrap();
            assert!(header.is_compressed && header.rest == packed.len() - HEADER, "{method:?}");
            let rest = &packed[HEADER..];
            let length = content_length(rest).unwrap();
            decompress(rest, length, &mut out).unwrap();
            assert_eq!(out, message[HEADER..]);
            for length in [length - 1, length + 1] {
                let error = decompress(rest, length, &mut out).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Protocol);
            }
            assert!(decompress(&rest[..rest.len() - 9], length, &mut out).is_err(), "{method:?}");
        }
        assert!(content_length(b"").is_err() && decompress(&[0; 8], 1, &mut Vec::new()).is_err());
        assert!(decompress(&[&[0; 8][..], &[1, 9]].concat(), 1, &mut Vec::new()).is_err());
    }
}
