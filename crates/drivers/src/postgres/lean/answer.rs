//! Replies of the server, up to `ReadyForQuery`.

use crate::postgres::values::Form;
use crate::postgres::{errors, read_only};
use crate::prelude::*;
use crate::wire::link::Outcome;
use crate::wire::{Peer, Wire, malformed};
use kurabe_core::driver::Access;
use kurabe_protocol::postgres::frame::{Tagged, backend};
use kurabe_protocol::postgres::message::{Types, command_complete, error_field};

/// Maximum message other than a row: the description of 65,535 columns with long names is shorter.
const LONGEST: usize = 16 * 1024 * 1024;

/// Length of the longest number: the smallest 64-bit integer, in digits.
const MAX_DIGITS: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) parameter_types: Vec<u32>,
    pub(super) column_forms: Vec<Form>,
}

/// Destination of rows and descriptions.
pub(super) enum Rows<'a> {
    Text(&'a mut Reply),
    /// Rows with columns in these forms.
    Typed(&'a [Form], &'a mut Reply),
    /// Passed on in pages. The lines of a `COPY … TO STDOUT` are rows of one column.
    Paged(&'a [Form], &'a mut Reply, Pages<'a>),
    Described(&'a mut Described),
}

/// What is known of a session, and what the server reports of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionState {
    /// What its statements may do.
    pub(super) access: Access,
    /// Whether the check of a read-only session follows the statement.
    pub(super) is_checked: bool,
    /// Whether a transaction is open.
    pub(super) in_transaction: bool,
}

/// Reads messages up to the `syncs`th `ReadyForQuery`, one for each Sync or Query sent. In a read-only session a statement
/// that writes, or that makes later transactions write, is an error.
pub(super) fn read<S: Peer>(
    wire: &mut Wire<S>,
    rows: &mut Rows<'_>,
    mut syncs: usize,
    state: &mut SessionState,
) -> Outcome<()> {
    let (mut ended, mut bound) = (Ok(()), 0);
    loop {
        let Tagged { tag, length } = match header(wire) {
            Ok(header) => header,
            // If the server sent an error before it closed the connection, that error is the more specific one.
            Err(error) => return ended.and(Err(error)),
        };
        let is_of_check = state.is_checked && bound > 1;
        match tag {
            backend::DATA_ROW | backend::COMMAND_COMPLETE if is_of_check => wire.skip(length)?,
            backend::BIND_COMPLETE => {
                bound += 1;
                wire.skip(length)?;
            }
            backend::DATA_ROW => row(wire, length, rows)?,
            backend::COPY_DATA if let Rows::Paged(_, out, pages) = rows => {
                out.push_bytes_with(|to| wire.take_into(length, to))?;
                end_row(wire, out, Some(pages))?;
            }
            backend::COPY_OUT_RESPONSE | backend::COPY_DONE if matches!(rows, Rows::Paged(..)) => {
                wire.skip(length)?;
            }
            backend::READY_FOR_QUERY => {
                state.in_transaction = whole(wire, length, |status| status != b"I")?;
                syncs -= 1;
                if syncs == 0 {
                    return Ok(ended);
                }
            }
            backend::COMMAND_COMPLETE => {
                let affected = whole(wire, length, affected)?;
                if let (Rows::Text(out) | Rows::Typed(_, out), Some(affected)) = (&mut *rows, affected) {
                    out.set_affected(affected);
                }
            }
            backend::ERROR_RESPONSE if is_of_check => {
                let (has_failed, error) =
                    whole(wire, length, |body| (read_only::has_failed(body), error(body)))?;
                ended = ended.and(Err(if has_failed { read_only::switched_off() } else { error? }));
            }
            backend::ERROR_RESPONSE => ended = ended.and(Err(whole(wire, length, error)??)),
            backend::PARAMETER_DESCRIPTION | backend::ROW_DESCRIPTION => match rows {
                Rows::Described(described) if tag == backend::PARAMETER_DESCRIPTION => {
                    described.parameter_types = whole(wire, length, parameter_types)??;
                }
                Rows::Described(described) => {
                    described.column_forms = whole(wire, length, column_forms)??;
                }
                _ => wire.skip(length)?,
            },
            backend::PARAMETER_STATUS if state.access == Access::ReadOnly => {
                if whole(wire, length, read_only::reported)? == Some(false) {
                    ended = ended.and(Err(read_only::switched_off()));
                }
            }
            backend::PARSE_COMPLETE
            | backend::CLOSE_COMPLETE
            | backend::NO_DATA
            | backend::EMPTY_QUERY_RESPONSE
            | backend::PARAMETER_STATUS => wire.skip(length)?,
            // Includes CopyInResponse and similar, to which Kurabe's statements do not lead.
            other => return Err(unexpected(other, "")),
        }
    }
}

/// The error of a message that the protocol does not have here.
pub(super) fn unexpected(tag: u8, place: &str) -> Error {
    malformed(format!("unexpected message '{}'{place}", tag.escape_ascii()))
}

/// Reads to the end of the connection. Only unsolicited messages may precede it: notices, notifications, settings, and
/// the reason why the server ends the connection.
pub(super) fn until_end<S: Peer>(wire: &mut Wire<S>) -> Result<()> {
    while !wire.has_ended()? {
        if !matches!(wire.buffered(), [b'N' | b'A' | b'S' | b'E', ..]) {
            return Err(wire.surplus());
        }
        let header: Tagged = wire.header()?;
        wire.skip(header.length)?;
    }
    Ok(())
}

/// The header of the next message. Notices and notifications are skipped.
#[inline]
pub(super) fn header<S: Peer>(wire: &mut Wire<S>) -> Result<Tagged> {
    loop {
        let header: Tagged = wire.header()?;
        if !matches!(header.tag, backend::NOTICE_RESPONSE | backend::NOTIFICATION_RESPONSE) {
            return Ok(header);
        }
        wire.skip(header.length)?;
    }
}

/// Reads a whole message other than a row, and consumes it.
pub(super) fn whole<S: Peer, T>(
    wire: &mut Wire<S>,
    length: usize,
    read: impl FnOnce(&[u8]) -> T,
) -> Result<T> {
    if length > LONGEST {
        return Err(malformed(format!("a message of {length} bytes")));
    }
    let found = read(wire.peek(length)?);
    wire.consume(length);
    Ok(found)
}

/// `DataRow`.
fn row<S: Peer>(wire: &mut Wire<S>, length: usize, rows: &mut Rows<'_>) -> Result<()> {
    let short = || malformed("a row shorter than its fields");
    let mut left = length.checked_sub(2).ok_or_else(short)?;
    let &[a, b] = wire.peek(2)? else { return Err(short()) };
    let count = usize::from(u16::from_be_bytes([a, b]));
    wire.consume(2);
    let (forms, out, pages) = match rows {
        Rows::Text(out) => (None, out, None),
        Rows::Typed(forms, out) if forms.len() == count => (Some(*forms), out, None),
        Rows::Paged(forms, out, pages) if forms.len() == count => (Some(*forms), out, Some(pages)),
        Rows::Typed(forms, _) | Rows::Paged(forms, ..) => {
            return Err(malformed(format!("a row of {count} fields, expected {}", forms.len())));
        }
        Rows::Described(_) => return Err(malformed("a row instead of a description")),
    };
    for field in 0..count {
        left = left.checked_sub(4).ok_or_else(short)?;
        let &[a, b, c, d] = wire.peek(4)? else { return Err(short()) };
        wire.consume(4);
        let Ok(length) = usize::try_from(i32::from_be_bytes([a, b, c, d])) else {
            out.push_null();
            continue;
        };
        left = left.checked_sub(length).ok_or_else(short)?;
        match forms.and_then(|forms| forms.get(field)) {
            None | Some(Form::Bytes | Form::Text) => out.push_bytes_with(|to| wire.take_into(length, to))?,
            Some(_) if length > MAX_DIGITS => return Err(malformed(format!("a number of {length} bytes"))),
            Some(form) => {
                form.push(wire.peek(length)?, out)?;
                wire.consume(length);
            }
        }
    }
    if left > 0 {
        return Err(malformed("a row longer than its fields"));
    }
    end_row(wire, out, pages)
}

fn end_row<S: Peer>(wire: &mut Wire<S>, out: &mut Reply, pages: Option<&mut Pages<'_>>) -> Result<()> {
    out.end_row();
    wire.check_reply(out)?;
    if let Some(pages) = pages
        && pages.row(out)?
    {
        // Each page has all of the time and the size allowed.
        wire.begin()?;
    }
    Ok(())
}

/// The number of rows that a statement changed; `None` if it only reads.
fn affected(body: &[u8]) -> Option<u64> {
    if !matches!(body.first(), Some(b'I' | b'U' | b'D' | b'M')) {
        return None;
    }
    let (command, count) = command_complete(body);
    count.filter(|_| matches!(command, b"INSERT" | b"UPDATE" | b"DELETE" | b"MERGE"))
}

/// `ErrorResponse`: fields with a letter each (manual, "Error and Notice Message Fields").
pub(super) fn error(body: &[u8]) -> Result<Error> {
    let truncated = || malformed("a truncated error message");
    let (fields, _) = body.split_at(body.len().checked_sub(1).ok_or_else(truncated)?);
    if body.last() != Some(&0) || !(fields.is_empty() || fields.ends_with(b"\0")) {
        return Err(truncated());
    }
    let field = |letter: u8| error_field(fields, letter).map(String::from_utf8_lossy);
    let (state, message) = (field(b'C').unwrap_or_default(), field(b'M'));
    let mut error = errors::server(&state, message.as_deref().unwrap_or("an error without a message"));
    let number = |letter: u8| field(letter).and_then(|text| text.parse().ok());
    if let (Some(position), Some(inner)) = (number(b'p'), field(b'q')) {
        // A position in a statement of a function's.
        error = error.position(position).in_statement(&inner);
    }
    if let Some(position) = number(b'P') {
        error = error.position(position);
    }
    for (letter, label) in [(b'D', "DETAIL"), (b'H', "HINT"), (b'W', "CONTEXT")] {
        error = error.detail(label, &field(letter).unwrap_or_default());
    }
    Ok(error)
}

/// `ParameterDescription`.
fn parameter_types(body: &[u8]) -> Result<Vec<u32>> {
    let types = Types::after_count(body);
    if body.len() < 2 || !types.is_whole() {
        return Err(malformed("a parameter description with a wrong count"));
    }
    Ok(types.numbers().collect())
}

/// `RowDescription`. Each column has a name, table (4 bytes), number (2), type (4), and 8 more bytes.
fn column_forms(body: &[u8]) -> Result<Vec<Form>> {
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(|| malformed("no count of columns"))?;
    let short = || malformed("a truncated column description");
    let columns = (0..u16::from_be_bytes(*count)).map(|_| {
        let name = rest.iter().position(|b| *b == 0).ok_or_else(short)?;
        let (column, after) =
            rest.get(name + 1..).and_then(<[u8]>::split_first_chunk::<18>).ok_or_else(short)?;
        rest = after;
        let [_, _, _, _, _, _, a, b, c, d, ..] = *column;
        Ok(Form::of(u32::from_be_bytes([a, b, c, d])))
    });
    columns.collect()
}
