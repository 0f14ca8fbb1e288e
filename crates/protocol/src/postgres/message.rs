//! Requests and answers (manual, "Message Formats"). What was cut off is read as far as it is there.

use super::frame::frontend;
use crate::bytes::{chunk, short_be, until_zero, word_be};

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
    /// A call of a function, with its body.
    FunctionCall(&'a [u8]),
    Sync,
    CopyData(&'a [u8]),
    CopyDone,
    /// COPY's data ends early, and why.
    CopyFail(&'a [u8]),
    /// Passwords, Flush, Terminate: the tag, and the body.
    Other(u8, &'a [u8]),
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

    fn write(&self, tag: u8, out: &mut Vec<u8>) {
        let (kind, name) = match self {
            Self::Statement(name) => (b"S", name),
            Self::Portal(name) => (b"P", name),
        };
        push(out, tag, &[kind, name, b"\0"]);
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
            frontend::FUNCTION_CALL => Self::FunctionCall(body),
            frontend::SYNC => Self::Sync,
            frontend::COPY_DATA => Self::CopyData(body),
            frontend::COPY_DONE => Self::CopyDone,
            frontend::COPY_FAIL => Self::CopyFail(until_zero(body, 0).0),
            frontend::PASSWORD | frontend::FLUSH | frontend::TERMINATE => Self::Other(tag, body),
            _ => return None,
        })
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Query(text) => push(out, frontend::QUERY, &[text, b"\0"]),
            Self::Parse { name, text, types } => {
                push(out, frontend::PARSE, &[name, b"\0", text, b"\0", types.bytes]);
            }
            Self::Bind(Bind { portal, statement, rest }) => {
                push(out, frontend::BIND, &[portal, b"\0", statement, b"\0", rest]);
            }
            Self::Describe(target) => target.write(frontend::DESCRIBE, out),
            Self::Execute { portal, limit } => {
                push(out, frontend::EXECUTE, &[portal, b"\0", &limit.to_be_bytes()]);
            }
            Self::Close(target) => target.write(frontend::CLOSE, out),
            Self::FunctionCall(body) => push(out, frontend::FUNCTION_CALL, &[body]),
            Self::Sync => push(out, frontend::SYNC, &[]),
            Self::CopyData(data) => push(out, frontend::COPY_DATA, &[data]),
            Self::CopyDone => push(out, frontend::COPY_DONE, &[]),
            Self::CopyFail(why) => push(out, frontend::COPY_FAIL, &[why, b"\0"]),
            Self::Other(tag, body) => push(out, *tag, &[body]),
        }
    }
}

/// Appends a message with a tag, of these parts.
fn push(out: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.push(tag);
    out.extend((length as u32 + 4).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Numbers of types (OIDs): a count of two bytes, and four bytes each.
#[derive(Clone, Copy, Debug)]
pub struct Types<'a> {
    bytes: &'a [u8],
}

impl<'a> Types<'a> {
    /// The end of Parse, and the body of `ParameterDescription`.
    pub fn after_count(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether there are as many as the count says, and nothing else.
    pub fn is_whole(self) -> bool {
        let count = short_be(self.bytes, 0).map_or(0, usize::from);
        self.bytes.get(2..).map_or(0, <[u8]>::len) == 4 * count
    }

    /// The bytes of these numbers; `None` if they are more than a message has.
    pub fn written(numbers: &[u32]) -> Option<Vec<u8>> {
        let count = u16::try_from(numbers.len()).ok()?.to_be_bytes();
        Some(count.into_iter().chain(numbers.iter().flat_map(|number| number.to_be_bytes())).collect())
    }

    /// The numbers that are there.
    pub fn numbers(self) -> impl Iterator<Item = u32> + use<'a> {
        let numbers = self.bytes.get(2..).unwrap_or_default();
        numbers.as_chunks().0.iter().map(|number| u32::from_be_bytes(*number))
    }
}

/// Bind: parameters for a statement.
#[derive(Clone, Copy, Debug)]
pub struct Bind<'a> {
    pub portal: &'a [u8],
    pub statement: &'a [u8],
    /// The parameters and the formats of columns, see [`parameters`](Self::parameters).
    pub rest: &'a [u8],
}

impl<'a> Bind<'a> {
    /// What follows the names, of these parameters, each with whether it is in binary format, and these formats of columns; `None` if
    /// they are more than a message has.
    pub fn rest_of(parameters: &[(bool, Option<&[u8]>)], columns: &[bool]) -> Option<Vec<u8>> {
        let format = |binary: bool| [0, u8::from(binary)];
        let count = u16::try_from(parameters.len()).ok()?.to_be_bytes();
        let mut out = count.to_vec();
        out.extend(parameters.iter().flat_map(|(binary, _)| format(*binary)));
        out.extend(count);
        for (_, value) in parameters {
            let length = value.map_or(Ok(-1), |value| i32::try_from(value.len())).ok()?;
            out.extend(length.to_be_bytes());
            out.extend_from_slice(value.unwrap_or_default());
        }
        out.extend(u16::try_from(columns.len()).ok()?.to_be_bytes());
        out.extend(columns.iter().flat_map(|binary| format(*binary)));
        Some(out)
    }

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
    fn message_that_is_read_is_written_to_the_same_bytes() {
        let values: [(bool, Option<&[u8]>); 3] = [(true, Some(b"x")), (false, None), (false, Some(b""))];
        let (rest, types) = (Bind::rest_of(&values, &[true]).unwrap(), Types::written(&[23, 0]).unwrap());
        let mut out = Vec::new();
        for request in [
            Request::Query(b"SELECT 1"),
            Request::Parse { name: b"s", text: b"SELECT $1", types: Types::after_count(&types) },
            Request::Bind(Bind { portal: b"p", statement: b"s", rest: &rest }),
            Request::Describe(Target::Statement(b"s")),
            Request::Execute { portal: b"p", limit: 7 },
            Request::Close(Target::Portal(b"p")),
            Request::FunctionCall(b"\0\0\0\x01"),
            Request::Sync,
            Request::CopyData(b"1\n"),
            Request::CopyDone,
            Request::CopyFail(b"no"),
            Request::Other(frontend::FLUSH, b""),
        ] {
            out.clear();
            request.write(&mut out);
            let (tag, body) = (out[0], &out[5..]);
            assert_eq!(out[1..5], (out.len() as u32 - 1).to_be_bytes());
            let read = Request::read(tag, body).unwrap();
            assert_eq!(format!("{read:?}"), format!("{request:?}"));
            let mut again = Vec::new();
            read.write(&mut again);
            assert_eq!(again, out);
        }
        let mut found = Vec::new();
        let bind = Bind { portal: b"", statement: b"", rest: &rest };
        let columns = bind.parameters(|binary, value| found.push((binary, value)));
        assert_eq!((&found[..], columns), (&values[..], Some(&[BINARY][..])));
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
