//! Replies to commands ("Text Protocol", "Binary Protocol Resultset", `OK_Packet`, `ERR_Packet`).

use super::packets::Packets;
use crate::mysql::errors;
use crate::prelude::*;
use crate::wire::link::Outcome;
use crate::wire::{Peer, malformed};
use kurabe_core::driver::Access;
use kurabe_driver_common::usable;
use kurabe_protocol::mysql::frame::MAX;
use kurabe_protocol::mysql::message::{answer, kind, status};
use std::ops::ControlFlow;

/// Encoding of a column's binary value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An integer.
    Int { bytes: u8, signed: bool },
    /// A date, or a date and time.
    Time,
    /// Text or bytes, after their length.
    Bytes,
    /// A floating-point number, which a custom statement may return.
    Real { bytes: u8 },
    /// A type that Kurabe's tables do not have.
    Foreign,
}

impl Kind {
    /// The encoding for a type number and column flags (`field_types.h`).
    fn of(number: u8, flags: u16) -> Self {
        let int = |bytes| Self::Int { bytes, signed: flags & 0x20 == 0 };
        match number {
            kind::TINY => int(1),
            kind::SHORT | kind::YEAR => int(2),
            kind::LONG | kind::INT24 => int(4),
            kind::LONGLONG => int(8),
            kind::FLOAT => Self::Real { bytes: 4 },
            kind::DOUBLE => Self::Real { bytes: 8 },
            kind::TIMESTAMP | kind::DATE | kind::DATETIME => Self::Time,
            0 | 15 | 16 | 245..=255 => Self::Bytes,
            _ => Self::Foreign,
        }
    }
}

/// The end of one result.
struct Ended {
    /// Whether the result was a set of rows.
    rows: bool,
    /// Whether another result follows.
    more: bool,
}

/// Format of a reply's rows.
pub(super) enum Rows<'a> {
    Text,
    /// Binary, with the known column types, which new definitions replace, and a buffer for a NULL bitmap.
    Binary(&'a mut Vec<Kind>, &'a mut Vec<u8>),
    /// The same, passed on in pages.
    Paged(&'a mut Vec<Kind>, &'a mut Vec<u8>, Pages<'a>),
}

impl<S: Peer> Packets<S> {
    /// Reads all results of a reply: `CALL` has those of the procedure's statements and a final one without rows. Several
    /// sets of rows are an error, because [`Reply`] holds one.
    pub(super) fn read(&mut self, rows: &mut Rows<'_>, out: &mut Reply) -> Outcome<()> {
        let mut sets = 0;
        loop {
            let ended = usable!(self.result(rows, out)?);
            sets += usize::from(ended.rows);
            if !ended.more {
                return Ok(self.state.checked().and(if sets > 1 { Err(several_sets()) } else { Ok(()) }));
            }
        }
    }

    fn result(&mut self, rows: &mut Rows<'_>, out: &mut Reply) -> Outcome<Ended> {
        let known = match rows {
            Rows::Text => None,
            Rows::Binary(columns, _) | Rows::Paged(columns, ..) => Some(&mut **columns),
        };
        let count = match usable!(self.begin(known, out)?) {
            ControlFlow::Break(ended) => return Ok(Ok(ended)),
            ControlFlow::Continue(count) => count,
        };
        if let Rows::Binary(columns, _) | Rows::Paged(columns, ..) = rows
            && count != columns.len()
        {
            return Err(malformed(format!("{count} columns, expected {}", columns.len())));
        }
        loop {
            self.next()?;
            match (self.first()?, &mut *rows) {
                (answer::ERR, _) => return self.error().map(Err),
                (answer::EOF, _) if self.left() < MAX => return self.end_of_rows().map(Ok),
                (0, Rows::Binary(columns, bitmap)) => self.binary_row(columns, bitmap, out)?,
                (0, Rows::Paged(columns, bitmap, pages)) => {
                    self.binary_row(columns, bitmap, out)?;
                    if pages.row(out)? {
                        // Each page has all of the time and the size allowed.
                        self.wire.begin()?;
                    }
                }
                (other, Rows::Binary(..) | Rows::Paged(..)) => {
                    return Err(malformed(format!("a row that starts with {other:#04x}")));
                }
                (_, Rows::Text) => {
                    for _ in 0..count {
                        match self.length()? {
                            None => out.push_null(),
                            Some(length) => self.value(length, out)?,
                        }
                    }
                    self.end_row(out)?;
                }
            }
            self.wire.check_reply(out)?;
        }
    }

    fn end_of_rows(&mut self) -> Result<Ended> {
        let status = self.status()?;
        Ok(Ended { rows: true, more: status & status::MORE_RESULTS != 0 })
    }

    /// Reads the status of `OK_Packet`, or of `EOF_Packet` from a server that ends rows with one.
    pub(super) fn status(&mut self) -> Result<u16> {
        if self.agreed.no_eof {
            return self.ok().map(|(_, status)| status);
        }
        // 0xfe and the number of warnings.
        self.int(3)?;
        self.last_status()
    }

    /// Reads `OK_Packet`: the number of affected rows, and the status.
    fn ok(&mut self) -> Result<(u64, u16)> {
        self.int(1)?;
        let affected = self.length()?.ok_or_else(|| malformed("an invalid number of rows"))?;
        if self.left() > 0 {
            // The last AUTO_INCREMENT value.
            self.length()?;
        }
        Ok((affected, self.last_status()?))
    }

    /// Reads the status and the rest of the packet.
    fn last_status(&mut self) -> Result<u16> {
        let status = if self.left() >= 2 { self.int(2)? as u16 } else { 0 };
        let is_changed = self.state.access == Access::ReadOnly && status & status::SESSION_CHANGED != 0;
        let (mut state, rest) = (self.state, if is_changed { self.rest()? } else { &[] });
        state.ended(status, rest);
        self.state = state;
        self.skip_rest()?;
        Ok(status)
    }

    /// Reads the start of a result: OK, an error, or the columns.
    fn begin(
        &mut self,
        columns: Option<&mut Vec<Kind>>,
        out: &mut Reply,
    ) -> Outcome<ControlFlow<Ended, usize>> {
        self.next()?;
        match self.first()? {
            answer::OK => {
                let (affected, status) = self.ok()?;
                out.set_affected(affected);
                let more = status & status::MORE_RESULTS != 0;
                return Ok(Ok(ControlFlow::Break(Ended { rows: false, more })));
            }
            answer::ERR => return self.error().map(Err),
            answer::LOCAL_INFILE => return Err(malformed("the server requests a local file")),
            _ => {}
        }
        let (count, _) = self.columns(columns)?;
        Ok(Ok(ControlFlow::Continue(count)))
    }

    /// Reads the number of columns and their definitions, whose types it stores in `columns`. Returns the number, and the status
    /// of the EOF packet after them, if there is one.
    pub(super) fn columns(&mut self, columns: Option<&mut Vec<Kind>>) -> Result<(usize, Option<u16>)> {
        self.rest()?;
        let count = self.length()?.filter(|count| (1..=0xffff).contains(count));
        let count = count.ok_or_else(|| malformed("an invalid number of columns"))? as usize;
        let definitions_follow = !(self.agreed.cached_columns && self.left() > 0 && self.first()? == 0);
        let status =
            if definitions_follow { self.read_columns(count, columns)? } else { self.end_of_columns()? };
        Ok((count, status))
    }

    /// Reads `count` column definitions and stores their types in `columns`.
    pub(super) fn read_columns(
        &mut self,
        count: usize,
        mut columns: Option<&mut Vec<Kind>>,
    ) -> Result<Option<u16>> {
        if let Some(columns) = &mut columns {
            columns.clear();
        }
        for _ in 0..count {
            self.next()?;
            if let Some(columns) = &mut columns {
                columns.push(column(self.rest()?)?);
            }
        }
        if count > 0 { self.end_of_columns() } else { Ok(None) }
    }

    fn end_of_columns(&mut self) -> Result<Option<u16>> {
        if self.agreed.no_eof {
            return Ok(None);
        }
        self.next()?;
        if self.first()? != answer::EOF {
            return Err(malformed("no EOF packet after the columns"));
        }
        self.status().map(Some)
    }

    fn binary_row(&mut self, columns: &[Kind], bitmap: &mut Vec<u8>, out: &mut Reply) -> Result<()> {
        self.int(1)?;
        bitmap.clear();
        self.take_into((columns.len() + 9) / 8, bitmap)?;
        for (at, kind) in columns.iter().enumerate() {
            // The first two bits are reserved.
            if bitmap[(at + 2) / 8] & (1 << ((at + 2) % 8)) != 0 {
                out.push_null();
                continue;
            }
            match *kind {
                Kind::Int { bytes, signed } => out.push_int(int(self.int(bytes.into())?, bytes, signed)?),
                Kind::Real { bytes } => {
                    let bits = self.int(bytes.into())?;
                    let text = if bytes == 4 {
                        f32::from_bits(bits as u32).to_string()
                    } else {
                        f64::from_bits(bits).to_string()
                    };
                    out.push_bytes(text.as_bytes());
                }
                Kind::Time => {
                    out.push_time(datetime(|bytes| self.int(bytes))?);
                }
                Kind::Bytes => {
                    let length = self.length()?.ok_or_else(|| malformed("an invalid length"))?;
                    self.value(length, out)?;
                }
                Kind::Foreign => {
                    return Err(Error::unsupported(
                        "the reply has a value that is not text, bytes, an integer or a timestamp",
                    ));
                }
            }
        }
        self.end_row(out)
    }

    fn end_row(&mut self, out: &mut Reply) -> Result<()> {
        if self.left() > 0 {
            return Err(malformed("a row longer than its fields"));
        }
        // An empty packet follows a row that fills its packet exactly.
        self.skip_rest()?;
        out.end_row();
        Ok(())
    }

    fn value(&mut self, length: u64, out: &mut Reply) -> Result<()> {
        let length = usize::try_from(length).map_err(|_| malformed("a value of invalid length"))?;
        out.push_bytes_with(|to| self.take_into(length, to))
    }

    /// Reads the current packet as `ERR_Packet`.
    pub(super) fn error(&mut self) -> Result<Error> {
        let [answer::ERR, low, high, message @ ..] = self.rest()? else {
            return Err(malformed("an invalid error packet"));
        };
        let number = u16::from_le_bytes([*low, *high]);
        // '#' and the SQLSTATE; errors before the handshake have neither.
        let (state, message) = match message {
            [b'#', rest @ ..] => rest.split_at(rest.len().min(5)),
            _ => (&[][..], message),
        };
        let error =
            errors::server(number, &String::from_utf8_lossy(state), &String::from_utf8_lossy(message));
        self.skip_rest()?;
        Ok(error)
    }
}

/// Reads a date and time in microseconds since 1970, by `int`, which reads integers of so many bytes. The server may omit trailing
/// parts that are zero ("Binary Protocol Value").
#[inline]
pub(super) fn datetime(mut int: impl FnMut(usize) -> Result<u64>) -> Result<i64> {
    let length = int(1)?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(malformed(format!("a timestamp of {length} bytes")));
    }
    let mut part = |from: u64, bytes: usize| if length > from { int(bytes) } else { Ok(0) };
    let (year, month, day) = (part(0, 2)? as u16, part(0, 1)? as u8, part(0, 1)? as u8);
    let (hour, minute, second) = (part(4, 1)? as u8, part(4, 1)? as u8, part(4, 1)? as u8);
    let time = DateTime { year, month, day, hour, minute, second, micros: part(7, 4)? as u32 };
    time.micros().ok_or_else(|| Error::unsupported("an invalid date"))
}

/// The error of a statement with more than one set of rows.
fn several_sets() -> Error {
    Error::unsupported("the statement returns several sets of rows; one is supported")
        .hint("change the procedure to return one")
}

/// Reads the type from a column definition (`Protocol::ColumnDefinition41`). The last 13 bytes are its fixed-length
/// fields: 0x0c, character set (2), length (4), type (1), flags (2), decimals (1), filler (2).
fn column(definition: &[u8]) -> Result<Kind> {
    match definition.last_chunk::<13>() {
        Some(&[0x0c, _, _, _, _, _, _, number, low, high, ..]) => {
            Ok(Kind::of(number, u16::from_le_bytes([low, high])))
        }
        _ => Err(malformed("an invalid column definition")),
    }
}

pub(super) fn int(value: u64, bytes: u8, signed: bool) -> Result<i64> {
    if signed {
        let unused = 64 - 8 * u32::from(bytes);
        return Ok((value << unused) as i64 >> unused);
    }
    i64::try_from(value).map_err(|_| Error::unsupported("an integer of more than 63 bits"))
}
