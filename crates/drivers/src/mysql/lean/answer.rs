//! Replies to commands ("Text Protocol", "Binary Protocol Resultset", `OK_Packet`, `ERR_Packet`).

use super::packets::{MOST, Packets};
use crate::mysql::errors;
use crate::prelude::*;
use crate::wire::link::Outcome;
use crate::wire::{Peer, malformed};
use kurabe_driver_common::usable;

/// Agreed capabilities that affect the format of replies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    /// No EOF packet follows the columns, and an OK packet ends the rows (`CLIENT_DEPRECATE_EOF`).
    pub(super) no_eof: bool,
    /// A byte after the column count shows whether definitions follow (`MARIADB_CLIENT_CACHE_METADATA`).
    pub(super) cached_columns: bool,
}

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
            1 => int(1),
            2 | 13 => int(2),
            3 | 9 => int(4),
            8 => int(8),
            4 => Self::Real { bytes: 4 },
            5 => Self::Real { bytes: 8 },
            7 | 10 | 12 => Self::Time,
            0 | 15 | 16 | 245..=255 => Self::Bytes,
            _ => Self::Foreign,
        }
    }
}

/// Status flag of a result that another one follows (`SERVER_MORE_RESULTS_EXISTS`).
const MORE_RESULTS: u64 = 8;

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
}

/// Reads all results of a reply: `CALL` has those of the procedure's statements and a final one without rows. Several
/// sets of rows are an error, because [`Reply`] holds one.
pub(super) fn read<S: Peer>(
    packets: &mut Packets<S>,
    agreed: Agreed,
    rows: &mut Rows<'_>,
    out: &mut Reply,
) -> Outcome<()> {
    let mut sets = 0;
    loop {
        let ended = usable!(result(packets, agreed, rows, out)?);
        sets += usize::from(ended.rows);
        if !ended.more {
            return Ok(if sets > 1 { Err(several_sets()) } else { Ok(()) });
        }
    }
}

/// The error of a statement with more than one set of rows.
pub(crate) fn several_sets() -> Error {
    Error::unsupported("the statement returns several sets of rows; one is supported")
        .hint("change the procedure to return one")
}

fn result<S: Peer>(
    packets: &mut Packets<S>,
    agreed: Agreed,
    rows: &mut Rows<'_>,
    out: &mut Reply,
) -> Outcome<Ended> {
    let known = match rows {
        Rows::Text => None,
        Rows::Binary(columns, _) => Some(&mut **columns),
    };
    let count = match begin(packets, agreed, known, out)? {
        Begun::Ended(result) => return Ok(result),
        Begun::Rows(count) => count,
    };
    if let Rows::Binary(columns, _) = rows
        && count != columns.len()
    {
        return Err(malformed(format!("{count} columns, expected {}", columns.len())));
    }
    loop {
        packets.next()?;
        match (packets.first()?, &mut *rows) {
            (0xff, _) => return error(packets).map(Err),
            (0xfe, _) if packets.left() < MOST => return end_of_rows(packets, agreed).map(Ok),
            (0, Rows::Binary(columns, bitmap)) => binary_row(packets, columns, bitmap, out)?,
            (other, Rows::Binary(..)) => {
                return Err(malformed(format!("a row that starts with {other:#04x}")));
            }
            (_, Rows::Text) => {
                for _ in 0..count {
                    match packets.length()? {
                        None => out.push_null(),
                        Some(length) => value(packets, length, out)?,
                    }
                }
                end_row(packets, out)?;
            }
        }
        packets.wire.check_reply(out)?;
    }
}

/// Reads `OK_Packet`, or `EOF_Packet` from a server that ends rows with one.
fn end_of_rows<S: Peer>(packets: &mut Packets<S>, agreed: Agreed) -> Result<Ended> {
    if agreed.no_eof {
        return ok(packets).map(|(_, more)| Ended { rows: true, more });
    }
    // 0xfe and the number of warnings.
    packets.int(3)?;
    let more = more_results(packets)?;
    Ok(Ended { rows: true, more })
}

/// Reads `OK_Packet`: the number of affected rows, and whether another result follows.
fn ok<S: Peer>(packets: &mut Packets<S>) -> Result<(u64, bool)> {
    packets.int(1)?;
    let affected = packets.length()?.ok_or_else(|| malformed("an invalid number of rows"))?;
    if packets.left() > 0 {
        // The last AUTO_INCREMENT value.
        packets.length()?;
    }
    Ok((affected, more_results(packets)?))
}

/// Reads the status and the rest of the packet.
fn more_results<S: Peer>(packets: &mut Packets<S>) -> Result<bool> {
    let status = if packets.left() >= 2 { packets.int(2)? } else { 0 };
    packets.skip_rest()?;
    Ok(status & MORE_RESULTS != 0)
}

enum Begun {
    /// No rows follow.
    Ended(Result<Ended>),
    /// Rows with this number of columns follow.
    Rows(usize),
}

/// Reads the start of a result: OK, an error, or the columns.
fn begin<S: Peer>(
    packets: &mut Packets<S>,
    agreed: Agreed,
    columns: Option<&mut Vec<Kind>>,
    out: &mut Reply,
) -> Result<Begun> {
    packets.next()?;
    match packets.first()? {
        0 => {
            let (affected, more) = ok(packets)?;
            out.set_affected(affected);
            return Ok(Begun::Ended(Ok(Ended { rows: false, more })));
        }
        0xff => return error(packets).map(|error| Begun::Ended(Err(error))),
        0xfb => return Err(malformed("the server requests a local file")),
        _ => {}
    }
    packets.rest()?;
    let count = packets.length()?.filter(|count| (1..=0xffff).contains(count));
    let count = count.ok_or_else(|| malformed("an invalid number of columns"))? as usize;
    let definitions_follow = !(agreed.cached_columns && packets.left() > 0 && packets.first()? == 0);
    if definitions_follow {
        read_columns(packets, agreed, count, columns)?;
    } else if !agreed.no_eof {
        packets.next()?;
    }
    Ok(Begun::Rows(count))
}

/// Reads `count` column definitions and stores their types in `columns`.
pub(super) fn read_columns<S: Peer>(
    packets: &mut Packets<S>,
    agreed: Agreed,
    count: usize,
    mut columns: Option<&mut Vec<Kind>>,
) -> Result<()> {
    if let Some(columns) = &mut columns {
        columns.clear();
    }
    for _ in 0..count {
        packets.next()?;
        if let Some(columns) = &mut columns {
            columns.push(column(packets.rest()?)?);
        }
    }
    if count > 0 && !agreed.no_eof {
        packets.next()?;
        if packets.first()? != 0xfe {
            return Err(malformed("no EOF packet after the columns"));
        }
    }
    Ok(())
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

fn binary_row<S: Peer>(
    packets: &mut Packets<S>,
    columns: &[Kind],
    bitmap: &mut Vec<u8>,
    out: &mut Reply,
) -> Result<()> {
    packets.int(1)?;
    bitmap.clear();
    packets.take_into((columns.len() + 9) / 8, bitmap)?;
    for (at, kind) in columns.iter().enumerate() {
        // The first two bits are reserved.
        if bitmap[(at + 2) / 8] & (1 << ((at + 2) % 8)) != 0 {
            out.push_null();
            continue;
        }
        match *kind {
            Kind::Int { bytes, signed } => out.push_int(int(packets.int(bytes.into())?, bytes, signed)?),
            Kind::Real { bytes } => {
                let bits = packets.int(bytes.into())?;
                let text = if bytes == 4 {
                    f32::from_bits(bits as u32).to_string()
                } else {
                    f64::from_bits(bits).to_string()
                };
                out.push_bytes(text.as_bytes());
            }
            Kind::Time => {
                let time = datetime(packets)?;
                out.push_time(time.micros().ok_or_else(|| Error::unsupported("an invalid date"))?);
            }
            Kind::Bytes => {
                let length = packets.length()?.ok_or_else(|| malformed("an invalid length"))?;
                value(packets, length, out)?;
            }
            Kind::Foreign => {
                return Err(Error::unsupported(
                    "the reply has a value that is not text, bytes, an integer or a timestamp",
                ));
            }
        }
    }
    end_row(packets, out)
}

fn end_row<S: Peer>(packets: &mut Packets<S>, out: &mut Reply) -> Result<()> {
    if packets.left() > 0 {
        return Err(malformed("a row longer than its fields"));
    }
    // An empty packet follows a row that fills its packet exactly.
    packets.skip_rest()?;
    out.end_row();
    Ok(())
}

fn value<S: Peer>(packets: &mut Packets<S>, length: u64, out: &mut Reply) -> Result<()> {
    let length = usize::try_from(length).map_err(|_| malformed("a value of invalid length"))?;
    out.push_bytes_with(|to| packets.take_into(length, to))
}

fn int(value: u64, bytes: u8, signed: bool) -> Result<i64> {
    if signed {
        let unused = 64 - 8 * u32::from(bytes);
        return Ok((value << unused) as i64 >> unused);
    }
    i64::try_from(value).map_err(|_| Error::unsupported("an integer of more than 63 bits"))
}

/// Reads a date and time; the server may omit trailing parts that are zero ("Binary Protocol Value").
fn datetime<S: Peer>(packets: &mut Packets<S>) -> Result<DateTime> {
    let length = packets.int(1)?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(malformed(format!("a timestamp of {length} bytes")));
    }
    let mut part = |from: u64, bytes: usize| if length > from { packets.int(bytes) } else { Ok(0) };
    Ok(DateTime {
        year: part(0, 2)? as u16,
        month: part(0, 1)? as u8,
        day: part(0, 1)? as u8,
        hour: part(4, 1)? as u8,
        minute: part(4, 1)? as u8,
        second: part(4, 1)? as u8,
        micros: part(7, 4)? as u32,
    })
}

/// Reads the current packet as `ERR_Packet`.
pub(super) fn error<S: Peer>(packets: &mut Packets<S>) -> Result<Error> {
    let [0xff, low, high, message @ ..] = packets.rest()? else {
        return Err(malformed("an invalid error packet"));
    };
    let number = u16::from_le_bytes([*low, *high]);
    // '#' and the SQLSTATE; errors before the handshake have neither.
    let message = match message {
        [b'#', ..] => message.get(6..).unwrap_or_default(),
        _ => message,
    };
    let error = errors::server(number, &String::from_utf8_lossy(message));
    packets.skip_rest()?;
    Ok(error)
}
