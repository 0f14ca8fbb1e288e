//! Requests and answers (manual, "Message Formats"). What was cut off is read as far as it is there.

use super::frame::frontend;
use crate::bytes::{chunk, until_zero, word_be};

/// A message of the client.
#[derive(Debug)]
pub enum Request<'a> {
    Query(&'a [u8]),
    Parse {
        name: &'a [u8],
        text: &'a [u8],
        types: Types<'a>,
    },
    Bind(Bind<'a>),
    Describe(Target<'a>),
    Execute {
        portal: &'a [u8],
        /// The maximum number of rows; 0: all.
        limit: u32,
    },
    Close(Target<'a>),
    FunctionCall,
    Sync,
    /// The end of COPY's data, or that there is no more.
    CopyEnd,
    /// COPY's data, passwords, Flush, Terminate.
    Other,
}

/// What is described or closed, by its name.
#[derive(Debug)]
pub enum Target<'a> {
    Statement(&'a [u8]),
    Portal(&'a [u8]),
}

impl<'a> Target<'a> {
    fn read(body: &'a [u8]) -> Self {
        let (name, _) = until_zero(body, 1);
        if body.first() == Some(&b'S') { Self::Statement(name) } else { Self::Portal(name) }
    }
}

impl<'a> Request<'a> {
    /// Reads a message; `None` if no client has one with this tag.
    pub fn read(tag: u8, body: &'a [u8]) -> Option<Self> {
        Some(match tag {
            frontend::QUERY => Self::Query(until_zero(body, 0).0),
            frontend::PARSE => {
                let (name, next) = until_zero(body, 0);
                let (text, next) = until_zero(body, next);
                Self::Parse { name, text, types: Types::after_count(body.get(next..).unwrap_or_default()) }
            }
            frontend::BIND => {
                let (portal, next) = until_zero(body, 0);
                let (statement, next) = until_zero(body, next);
                Self::Bind(Bind { portal, statement, rest: body.get(next..).unwrap_or_default() })
            }
            frontend::DESCRIBE => Self::Describe(Target::read(body)),
            frontend::EXECUTE => {
                let (portal, next) = until_zero(body, 0);
                Self::Execute { portal, limit: word_be(body, next) }
            }
            frontend::CLOSE => Self::Close(Target::read(body)),
            frontend::FUNCTION_CALL => Self::FunctionCall,
            frontend::SYNC => Self::Sync,
            frontend::COPY_DONE | frontend::COPY_FAIL => Self::CopyEnd,
            frontend::COPY_DATA | frontend::PASSWORD | frontend::FLUSH | frontend::TERMINATE => Self::Other,
            _ => return None,
        })
    }
}

/// Numbers of types (OIDs).
#[derive(Clone, Copy, Debug)]
pub struct Types<'a> {
    count: usize,
    types: &'a [u8],
}

impl<'a> Types<'a> {
    /// A count of two bytes, and the numbers: the end of Parse, and the body of `ParameterDescription`.
    pub fn after_count(bytes: &'a [u8]) -> Self {
        let count = short_be(bytes, 0).map_or(0, usize::from);
        Self { count, types: bytes.get(2..).unwrap_or_default() }
    }

    /// Whether there are as many as the count says, and nothing else.
    pub fn is_whole(self) -> bool {
        self.types.len() == 4 * self.count
    }

    /// The numbers that are there.
    pub fn numbers(self) -> impl Iterator<Item = u32> + use<'a> {
        self.types.as_chunks().0.iter().map(|number| u32::from_be_bytes(*number))
    }
}

/// Bind: parameters for a statement.
#[derive(Clone, Copy, Debug)]
pub struct Bind<'a> {
    pub portal: &'a [u8],
    pub statement: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Bind<'a> {
    /// Gives each parameter: whether it is in binary format, and its bytes, `None` for NULL. Returns the formats that the
    /// columns of the answer shall have, as two bytes each; `None` if the message is cut off.
    pub fn parameters(self, mut each: impl FnMut(bool, Option<&'a [u8]>)) -> Option<&'a [[u8; 2]]> {
        let formats = usize::from(short_be(self.rest, 0)?);
        let mut at = 2 + 2 * formats;
        let count = usize::from(short_be(self.rest, at)?);
        at += 2;
        for n in 0..count {
            let length = i32::from_be_bytes(chunk(self.rest, at)?);
            at += 4;
            let value = match usize::try_from(length) {
                Ok(length) => Some(self.rest.get(at..at.checked_add(length)?)?),
                Err(_) => None,
            };
            at += value.map_or(0, <[u8]>::len);
            // No format means text, one is that of all.
            let format = match formats {
                0 => 0,
                1 => short_be(self.rest, 2)?,
                _ => short_be(self.rest, 2 + 2 * n)?,
            };
            each(format == 1, value);
        }
        let columns = usize::from(short_be(self.rest, at)?);
        Some(self.rest.get(at + 2..)?.get(..2 * columns)?.as_chunks().0)
    }
}

/// The names and values of the first message, behind its version.
pub fn settings(body: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (name, next) = until_zero(body, at);
        let (value, next) = until_zero(body, next);
        at = next;
        (!name.is_empty()).then_some((name, value))
    })
}

/// The names of the columns of `RowDescription`: a count of two bytes, and 18 bytes behind each name.
pub fn columns(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 2;
    std::iter::from_fn(move || {
        let (name, next) = until_zero(body, at);
        at = next + 18;
        (at <= body.len()).then_some(name)
    })
}

/// A field of `ErrorResponse` or `NoticeResponse`, by its letter ("Error and Notice Message Fields").
pub fn error_field(body: &[u8], letter: u8) -> Option<&[u8]> {
    let mut fields = body.split(|byte| *byte == 0).filter_map(<[u8]>::split_first);
    fields.find(|(found, _)| **found == letter).map(|(_, text)| text)
}

/// The command of `CommandComplete`, and its number of rows: `INSERT 0 3`, `COPY 3`.
#[inline]
pub fn command_complete(body: &[u8]) -> (&[u8], Option<u64>) {
    let (tag, _) = until_zero(body, 0);
    let mut words = tag.split(|byte| *byte == b' ');
    let command = words.next().unwrap_or_default();
    let count = words.next_back().and_then(|count| std::str::from_utf8(count).ok()?.parse().ok());
    (command, count)
}

/// Two bytes as a number, the highest first.
fn short_be(bytes: &[u8], at: usize) -> Option<u16> {
    chunk(bytes, at).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: [u8; 2] = [0, 1];

    #[test]
    fn parameters_have_the_formats_that_were_given_for_all_or_each() {
        let read = |formats: &[u8]| {
            let values = b"\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\x01";
            let body = [&b"p\0s\0"[..], formats, values].concat().leak();
            let Some(Request::Bind(bind)) = Request::read(frontend::BIND, body) else { panic!("no Bind") };
            assert_eq!((bind.portal, bind.statement), (&b"p"[..], &b"s"[..]));
            let mut found = Vec::new();
            let columns = bind.parameters(|binary, value| found.push((binary, value.map(<[u8]>::to_vec))));
            (found, columns)
        };
        let x = Some(b"x".to_vec());
        assert_eq!(read(b"\0\0"), (vec![(false, x.clone()), (false, None)], Some(&[BINARY][..])));
        assert_eq!(read(b"\0\x01\0\x01"), (vec![(true, x.clone()), (true, None)], Some(&[BINARY][..])));
        assert_eq!(read(b"\0\x02\0\0\0\x01").0, [(false, x), (true, None)]);
        assert_eq!(read(b"\xff\xff"), (Vec::new(), None));
    }

    #[test]
    fn rows_of_a_command_are_its_last_word() {
        assert_eq!(command_complete(b"INSERT 0 3\0"), (&b"INSERT"[..], Some(3)));
        assert_eq!(command_complete(b"SELECT 12\0"), (&b"SELECT"[..], Some(12)));
        assert_eq!(command_complete(b"BEGIN\0"), (&b"BEGIN"[..], None));
    }

    #[test]
    fn fields_of_an_error_are_found_by_letter() {
        let body = b"SERROR\0C23505\0Mduplicate key\0\0";
        assert_eq!(error_field(body, b'C'), Some(&b"23505"[..]));
        assert_eq!(error_field(body, b'H'), None);
    }
}
