//! Where the body of a message of HTTP/1.1 ends (RFC 9112, sections 6 and 7).

use crate::input::Input;

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
                    let Some(line) = input.line().map_err(|_| "a line is too long for HTTP")? else {
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
