//! Commands and answers ("Command Phase"). What was cut off is read as far as it is there.

use super::capability;
use crate::bytes::{chunk, short, until_zero, word};
use std::borrow::Cow;
use std::ops::Range;

/// The first byte of a command.
pub mod command {
    pub const QUIT: u8 = 0x01;
    pub const INIT_DB: u8 = 0x02;
    pub const QUERY: u8 = 0x03;
    pub const FIELD_LIST: u8 = 0x04;
    pub const STATISTICS: u8 = 0x09;
    pub const PING: u8 = 0x0e;
    pub const CHANGE_USER: u8 = 0x11;
    pub const STMT_PREPARE: u8 = 0x16;
    pub const STMT_EXECUTE: u8 = 0x17;
    pub const STMT_SEND_LONG_DATA: u8 = 0x18;
    pub const STMT_CLOSE: u8 = 0x19;
    pub const STMT_RESET: u8 = 0x1a;
    pub const SET_OPTION: u8 = 0x1b;
    pub const STMT_FETCH: u8 = 0x1c;
    pub const RESET_CONNECTION: u8 = 0x1f;
    /// MariaDB's `COM_STMT_BULK_EXECUTE`.
    pub const STMT_BULK_EXECUTE: u8 = 0xfa;
}

/// The server's status in OK and EOF packets ("`SERVER_STATUS_flags_enum`").
pub mod status {
    pub const IN_TRANSACTION: u16 = 1;
    /// Another result follows.
    pub const MORE_RESULTS: u16 = 1 << 3;
    /// Rows are fetched from a cursor later.
    pub const CURSOR: u16 = 1 << 6;
    /// These were the last rows of a cursor.
    pub const LAST_ROW_SENT: u16 = 1 << 7;
    /// What has changed of the session follows.
    pub const SESSION_CHANGED: u16 = 1 << 14;
}

/// The first byte of an answer. In front of rows it is the number of columns.
pub mod answer {
    pub const OK: u8 = 0;
    /// The server requests a file.
    pub const LOCAL_INFILE: u8 = 0xfb;
    /// EOF, or OK in its place.
    pub const EOF: u8 = 0xfe;
    pub const ERR: u8 = 0xff;
}

/// Types of columns and parameters (`field_types.h`) that are not sent as text or bytes.
pub mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
}

/// MariaDB's number of the statement that was prepared last.
pub const LAST_STATEMENT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub enum Command<'a> {
    InitDb(&'a [u8]),
    /// A statement; `None` if it is behind query attributes that are cut off.
    Query(Option<&'a [u8]>),
    /// The table.
    FieldList(&'a [u8]),
    Prepare(&'a [u8]),
    /// Executes a statement of this number once, or with many rows (MariaDB).
    Execute {
        statement: u32,
        is_bulk: bool,
    },
    /// A piece of a parameter. It has no answer, as the next two have none.
    LongData {
        statement: u32,
        parameter: u16,
        data: &'a [u8],
    },
    CloseStatement(u32),
    /// Forgets the pieces of parameters, and the cursor.
    ResetStatement(u32),
    Quit,
    Other(u8),
}

impl<'a> Command<'a> {
    /// Reads a payload that was sent under these capabilities; `None` if it is empty.
    pub fn read(payload: &'a [u8], capabilities: u32) -> Option<Self> {
        let (code, rest) = payload.split_first()?;
        Some(match *code {
            command::INIT_DB => Self::InitDb(rest),
            command::QUERY if capabilities & capability::QUERY_ATTRIBUTES != 0 => {
                Self::Query(after_attributes(rest))
            }
            command::QUERY => Self::Query(Some(rest)),
            command::FIELD_LIST => Self::FieldList(until_zero(rest, 0).0),
            command::STMT_PREPARE => Self::Prepare(rest),
            command::STMT_EXECUTE => Self::Execute { statement: word(rest, 0), is_bulk: false },
            command::STMT_BULK_EXECUTE => Self::Execute { statement: word(rest, 0), is_bulk: true },
            command::STMT_SEND_LONG_DATA => Self::LongData {
                statement: word(rest, 0),
                parameter: short(rest, 4),
                data: rest.get(6..).unwrap_or_default(),
            },
            command::STMT_CLOSE => Self::CloseStatement(word(rest, 0)),
            command::STMT_RESET => Self::ResetStatement(word(rest, 0)),
            command::QUIT => Self::Quit,
            other => Self::Other(other),
        })
    }
}

/// The payload of an execution, of a client that sends no attributes: each parameter with its type, whether it is no text, and its
/// bytes, `None` for NULL.
pub fn execution(statement: u32, parameters: &[(u16, bool, Option<&[u8]>)]) -> Vec<u8> {
    let mut out = [&[command::STMT_EXECUTE][..], &statement.to_le_bytes(), &[0, 1, 0, 0, 0]].concat();
    let mut nulls = vec![0; parameters.len().div_ceil(8)];
    for (n, _) in parameters.iter().enumerate().filter(|(_, (.., value))| value.is_none()) {
        nulls[n / 8] |= 1 << (n % 8);
    }
    out.extend(nulls);
    if !parameters.is_empty() {
        out.push(1);
        out.extend(parameters.iter().flat_map(|(kind, ..)| kind.to_le_bytes()));
    }
    for (kind, is_binary, value) in parameters {
        let Some(value) = value else { continue };
        // Dates and times have one byte of length.
        if !is_binary || matches!(*kind as u8, kind::TIMESTAMP | kind::DATE..=kind::DATETIME) {
            push_length(&mut out, value.len());
        }
        out.extend_from_slice(value);
    }
    out
}

/// Gives each parameter of an execution (`COM_STMT_EXECUTE`) that was sent under these capabilities, of a statement with so many: its
/// place, its type, and its bytes as [`value`] has them, `None` for NULL. `kinds` are the types that were sent last, which new ones
/// replace. `is_sent` says of a parameter whether its value was sent before. Returns `None` if the payload is cut off.
pub fn parameters<'a>(
    payload: &'a [u8],
    capabilities: u32,
    parameters: usize,
    kinds: &mut Vec<u16>,
    is_sent: impl Fn(usize) -> bool,
    each: impl FnMut(usize, u16, bool, Option<&'a [u8]>),
) -> Option<()> {
    // Parameters have names then, and their number is sent.
    let has_attributes = capabilities & capability::QUERY_ATTRIBUTES != 0;
    // Behind command (1), statement (4), flags (1) and iterations (4).
    let (mut count, mut at) = (parameters, 10);
    if has_attributes && (count > 0 || payload.get(5)? & 8 != 0) {
        let (all, next) = number(payload, at)?;
        (count, at) = (usize::try_from(all).ok().filter(|all| *all <= payload.len())?, next);
    }
    if count == 0 {
        return Some(());
    }
    values(payload, at, count, has_attributes, kinds, is_sent, each).map(drop)
}

/// The answer to a statement that was prepared (`COM_STMT_PREPARE_OK`): 0, statement (4), columns (2), parameters (2), more.
#[derive(Clone, Copy, Debug)]
pub struct PrepareOk {
    pub statement: u32,
    pub columns: u16,
    pub parameters: u16,
}

impl PrepareOk {
    pub fn read(payload: &[u8]) -> Option<Self> {
        let &[answer::OK, a, b, c, d, columns_low, columns_high, low, high] = payload.first_chunk()? else {
            return None;
        };
        Some(Self {
            statement: u32::from_le_bytes([a, b, c, d]),
            columns: u16::from_le_bytes([columns_low, columns_high]),
            parameters: u16::from_le_bytes([low, high]),
        })
    }
}

/// An OK packet: what a statement changed, and the state behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changed {
    pub affected: u64,
    /// The `AUTO_INCREMENT` value of the first row; 0: none.
    pub key: u64,
    pub status: u16,
}

impl Changed {
    /// Reads a payload. What is missing is 0.
    pub fn read(payload: &[u8]) -> Self {
        let Some((affected, at)) = number(payload, 1) else { return Self::default() };
        let Some((key, at)) = number(payload, at) else { return Self { affected, ..Self::default() } };
        Self { affected, key, status: short(payload, at) }
    }
}

/// A column of rows (`ColumnDefinition41`).
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    pub name: &'a [u8],
    pub form: Form,
}

/// How the values of a column are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pub kind: u8,
    pub is_unsigned: bool,
    /// The digits of a fraction; more than 30: as many as the value has.
    pub decimals: u8,
}

impl Form {
    /// The text of a value whose bytes are those of the binary form, as the server writes it; `None` of a value that it may write
    /// in several ways.
    pub fn text(self, bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
        let le = |range: Range<usize>| -> u64 {
            bytes.get(range).unwrap_or_default().iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        let fraction = |at: usize| match usize::from(self.decimals.min(6)) {
            0 => String::new(),
            digits => format!(".{:06}", le(at..at + 4))[..=digits].to_owned(),
        };
        let clock =
            |hours: u64, at: usize| format!("{hours:02}:{:02}:{:02}", le(at..at + 1), le(at + 1..at + 2));
        let text = match self.kind {
            kind::YEAR => format!("{:04}", le(0..2)),
            kind::TINY | kind::SHORT | kind::LONG | kind::INT24 | kind::LONGLONG => {
                let (number, unused) = (le(0..bytes.len()), 64 - 8 * bytes.len() as u32);
                if self.is_unsigned {
                    number.to_string()
                } else {
                    (number.cast_signed() << unused >> unused).to_string()
                }
            }
            kind::FLOAT | kind::DOUBLE => self.number(bytes)?,
            kind::TIMESTAMP | kind::DATE | kind::DATETIME => {
                let date = format!("{:04}-{:02}-{:02}", le(0..2), le(2..3), le(3..4));
                if self.kind == kind::DATE {
                    date
                } else {
                    format!("{date} {}{}", clock(le(4..5), 5), fraction(7))
                }
            }
            kind::TIME => {
                let sign = if le(0..1) == 1 { "-" } else { "" };
                format!("{sign}{}{}", clock(24 * le(1..5) + le(5..6), 6), fraction(8))
            }
            _ => return Some(Cow::Borrowed(bytes)),
        };
        Some(Cow::Owned(text.into_bytes()))
    }

    /// A floating-point number without an exponent.
    fn number(self, bytes: &[u8]) -> Option<String> {
        let number = match bytes.try_into() {
            Ok(bytes) => f64::from_le_bytes(bytes),
            // Six digits are shown of the shorter ones.
            Err(_) => format!("{:.5e}", f32::from_le_bytes(bytes.try_into().ok()?)).parse().ok()?,
        };
        let is_plain = number == 0.0 || (1e-4..1e15).contains(&number.abs());
        let digits = usize::from(self.decimals);
        is_plain.then(|| if digits <= 30 { format!("{number:.digits$}") } else { number.to_string() })
    }
}

/// The flag of a column without negative numbers.
const UNSIGNED: u8 = 32;

impl<'a> Column<'a> {
    /// Reads a payload: catalogue, schema, table and its own name, name and own name, and at the end character set (2), length
    /// (4), type (1), flags (2), decimals (1) and two bytes more.
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        let mut at = 0;
        for _ in 0..4 {
            at = text(payload, at)?.1;
        }
        let (name, _) = text(payload, at)?;
        let [kind, flags, _, decimals, ..] = *payload.get(payload.len().checked_sub(6)?..)? else {
            return None;
        };
        Some(Self { name, form: Form { kind, is_unsigned: flags & UNSIGNED != 0, decimals } })
    }
}

/// A number of one to nine bytes and the position after it (`int<lenenc>`).
pub fn number(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let size = match *bytes.get(at)? {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xff => return None,
        small => return Some((small.into(), at + 1)),
    };
    let digits = bytes.get(at + 1..at + 1 + size)?;
    Some((digits.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)), at + 1 + size))
}

/// Encoded size of a length, in bytes.
#[inline]
pub fn length_width(length: usize) -> usize {
    match length {
        0..0xfb => 1,
        0xfb..0x1_0000 => 3,
        0x1_0000..0x100_0000 => 4,
        _ => 9,
    }
}

/// Appends a length (`int<lenenc>`).
#[inline]
pub fn push_length(out: &mut Vec<u8>, length: usize) {
    let (marker, width) = match length_width(length) {
        1 => (None, 1),
        3 => (Some(0xfc), 2),
        4 => (Some(0xfd), 3),
        _ => (Some(0xfe), 8),
    };
    out.extend(marker);
    out.extend_from_slice(&(length as u64).to_le_bytes()[..width]);
}

/// A text and the position after it (`string<lenenc>`).
pub fn text(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (length, at) = number(bytes, at)?;
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    Some((bytes.get(at..end)?, end))
}

/// A value of this type ("Binary Protocol Value"): whether it is no text, its bytes, and the position after it. The length
/// before a date or a time is none of its bytes.
pub fn value(bytes: &[u8], at: usize, kind: u8) -> Option<(bool, &[u8], usize)> {
    let (start, size) = match kind {
        kind::NULL => (at, 0),
        kind::TINY => (at, 1),
        kind::SHORT | kind::YEAR => (at, 2),
        kind::LONG | kind::FLOAT | kind::INT24 => (at, 4),
        kind::DOUBLE | kind::LONGLONG => (at, 8),
        kind::TIMESTAMP | kind::DATE..=kind::DATETIME => (at + 1, usize::from(*bytes.get(at)?)),
        _ => {
            let (value, next) = text(bytes, at)?;
            return Some((false, value, next));
        }
    };
    Some((true, bytes.get(start..start + size)?, start + size))
}

/// Gives each of so many values behind a NULL bitmap and, if a byte says so, types, each of which may have a name; see
/// [`parameters`]. Returns the position after them.
fn values<'a>(
    bytes: &'a [u8],
    mut at: usize,
    count: usize,
    have_names: bool,
    kinds: &mut Vec<u16>,
    is_sent: impl Fn(usize) -> bool,
    mut each: impl FnMut(usize, u16, bool, Option<&'a [u8]>),
) -> Option<usize> {
    let nulls = bytes.get(at..at + count.div_ceil(8))?;
    at += nulls.len() + 1;
    if bytes.get(at - 1) == Some(&1) {
        kinds.clear();
        for _ in 0..count {
            kinds.push(chunk(bytes, at).map(u16::from_le_bytes)?);
            at += 2;
            at = if have_names { text(bytes, at)?.1 } else { at };
        }
    }
    for n in 0..count {
        let kind = *kinds.get(n)?;
        let is_null = nulls.get(n / 8)? >> (n % 8) & 1 == 1 || kind as u8 == kind::NULL;
        if is_null || is_sent(n) {
            each(n, kind, false, None);
        } else {
            let (is_binary, value, next) = value(bytes, at, kind as u8)?;
            each(n, kind, is_binary, Some(value));
            at = next;
        }
    }
    Some(at)
}

/// The statement behind query attributes (`COM_QUERY` with `CLIENT_QUERY_ATTRIBUTES`).
fn after_attributes(bytes: &[u8]) -> Option<&[u8]> {
    let (count, at) = number(bytes, 0)?;
    let (_, mut at) = number(bytes, at)?;
    if count == 0 {
        return bytes.get(at..);
    }
    let count = usize::try_from(count).ok().filter(|count| *count <= bytes.len())?;
    // Types always follow in a query.
    at = values(bytes, at, count, true, &mut Vec::new(), |_| false, |_, _, _, _| ())?;
    bytes.get(at..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_that_was_written_reads_back() {
        for length in [0, 0xfa, 0xfb, 0xff, 0x1_0000, 0xff_ffff, 0x100_0000, 1 << 40] {
            let mut out = Vec::new();
            push_length(&mut out, length);
            assert_eq!(number(&out, 0), Some((length as u64, length_width(length))), "{length}");
            assert_eq!(number(&out[..out.len() - 1], 0), None, "{length}");
        }
    }

    #[test]
    fn parameters_that_were_written_are_read() {
        let given: [(u16, bool, Option<&[u8]>); 4] = [
            (kind::LONG.into(), true, Some(&[7, 0, 0, 0])),
            (0xfd, false, None),
            (kind::DATETIME.into(), true, Some(&[0xea, 7, 11, 28])),
            (0xfd, false, Some(b"text")),
        ];
        let payload = execution(5, &given);
        assert!(matches!(
            Command::read(&payload, 0),
            Some(Command::Execute { statement: 5, is_bulk: false })
        ));
        let (mut kinds, mut found) = (Vec::new(), Vec::new());
        let each = |_, kind, is_binary, value| found.push((kind, is_binary, value));
        let read = parameters(&payload, 0, 4, &mut kinds, |_| false, each);
        assert_eq!((read, &found[..]), (Some(()), &given[..]));
    }

    #[test]
    fn statement_is_found_behind_attributes_of_any_type() {
        // Two attributes: a null, and a number of two bytes.
        let query = b"\x02\x01\x01\x01\xfd\0\x01a\x02\0\x01b\x05\0SELECT 1";
        assert_eq!(after_attributes(query), Some(&b"SELECT 1"[..]));
        assert_eq!(after_attributes(b"\0\x01SELECT 1"), Some(&b"SELECT 1"[..]));
        assert_eq!(after_attributes(b"\xff"), None);
    }
}
