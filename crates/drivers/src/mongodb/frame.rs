//! Messages: a document as `OP_MSG`, or that as `OP_COMPRESSED`.

use crate::compression::{Compressor, Method};
use crate::prelude::*;
use flate2::{Decompress, FlushDecompress, Status};
use kurabe_protocol::Header as _;
use kurabe_protocol::bytes::word;
use kurabe_protocol::mongodb::frame::{LONGEST, Message, Msg, OP_COMPRESSED, OP_MSG};
use std::ops::Range;

/// The length of a message's header.
pub(super) const HEADER: usize = Message::LENGTH;

/// The bytes before the document of a command: the header, flags, and the kind of the only section.
pub(super) const HEAD: usize = HEADER + 5;

/// Writes the head of a message, which has room for it.
#[inline]
pub(super) fn seal(message: &mut [u8], number: i32) {
    Message::write(message, number as u32, OP_MSG);
    message[HEADER..HEAD].fill(0);
}

/// Where the document of an `OP_MSG` is, in what follows the header.
#[inline]
pub(super) fn document(rest: &[u8]) -> Result<Range<usize>> {
    let message = Msg::read(rest, false).filter(|message| message.is_known(0));
    let message =
        message.ok_or_else(|| malformed("the server's message has unknown flags, or is cut off"))?;
    match message.document() {
        Some(document) => Ok(5..5 + document.len()),
        // A document alone: others follow in requests only.
        None => Err(malformed("the server's message has a section of an unknown kind")),
    }
}

/// The number of a method in messages.
fn number(method: Method) -> u8 {
    match method {
        Method::Zlib(_) => 2,
        Method::Zstd => 3,
    }
}

/// Makes an `OP_COMPRESSED` of a sealed message.
pub(super) fn compress(compressor: &mut Compressor, message: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (header, rest) = message.split_at(HEADER);
    out.clear();
    out.extend_from_slice(header);
    out.extend_from_slice(&OP_MSG.to_le_bytes());
    out.extend_from_slice(&(rest.len() as i32).to_le_bytes());
    out.push(number(compressor.method()));
    compressor.append(rest, out).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("a request cannot be compressed: {error}"))
    })?;
    Message::write(out, word(header, 4), OP_COMPRESSED);
    Ok(())
}

/// The length of a compressed message's content, from what follows its header.
pub(super) fn content_length(rest: &[u8]) -> Result<usize> {
    match (word(rest, 0), word(rest, 4) as usize) {
        (OP_MSG, length @ 5..=LONGEST) => Ok(length),
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
    use kurabe_protocol::Found;

    /// The answer of FerretDB 1.24 to a `ping`, captured, behind its header.
    const ANSWER: &[u8] = b"\0\0\0\0\0\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0?\0";

    #[test]
    fn invalid_messages_are_refused() {
        let changed = |at: usize, value: u8| {
            let mut bytes = ANSWER.to_vec();
            bytes[at] = value;
            bytes
        };
        for (at, value) in [(0, 2), (1, 1), (4, 1), (4, 2)] {
            assert!(document(&changed(at, value)).is_err(), "{at}");
        }
        // More bytes may come: an unknown flag that is not required.
        assert_eq!(document(&changed(2, 1)).unwrap(), 5..ANSWER.len());
        assert!(document(b"\x01\0\0\0\0\0\0").is_err() && document(b"").is_err());
    }

    #[test]
    fn compressed_messages_are_decompressed_and_lies_about_them_refused() {
        for method in [Method::Zlib(6), Method::Zlib(0), Method::Zstd] {
            let mut message = [&[0; HEAD][..], &vec![7; 100_000], b"end"].concat();
            seal(&mut message, 5);
            let (mut packed, mut out) = (Vec::new(), Vec::new());
            compress(&mut Compressor::new(method).unwrap(), &message, &mut packed).unwrap();
            let header =
                Message { rest: packed.len() - HEADER, number: 5, answers: 0, opcode: OP_COMPRESSED };
            assert_eq!(Message::find(&packed), Found::Header(header), "{method:?}");
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
