//! Rows in canonical form, in one buffer, and their values as parameters.

use kurabe_core::value::Value;
use serde::{Deserialize, Serialize};

/// A value in canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    Null,
    /// A whole number of at most 64 bits, signed.
    Int(i64),
    /// Anything else, as text or bytes.
    Bytes(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Slot {
    Null,
    Int(i64),
    Bytes(usize, usize),
}

/// The header and the trailer of tuples in binary (manual of PostgreSQL, "COPY", "Binary Format"): the signature, no flags and no
/// extension; a number of fields that no tuple has.
pub const BINARY: [&[u8]; 2] = [b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", &[0xff, 0xff]];

/// Rows of one width.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    width: usize,
    /// Whether each row is one value: its tuple in the binary format of `COPY`, whose key is whole numbers.
    #[serde(skip)]
    pub is_tuples: bool,
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

impl Page {
    /// An empty page for rows of this many values.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    pub fn rows(&self) -> usize {
        self.slots.len() / self.width.max(1)
    }

    /// The number of values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The bytes of all values; a whole number counts eight.
    pub fn size(&self) -> u64 {
        let whole = self.slots.iter().filter(|slot| matches!(slot, Slot::Int(_))).count();
        (self.bytes.len() + 8 * whole) as u64
    }

    /// The bytes of all values, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn push(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Null => self.slots.push(Slot::Null),
            Cell::Int(number) => self.slots.push(Slot::Int(number)),
            Cell::Bytes(bytes) => self.push_parts([bytes, &[]]),
        }
    }

    /// Appends one value of bytes, given in two parts.
    pub fn push_parts(&mut self, parts: [&[u8]; 2]) {
        let from = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.slots.push(Slot::Bytes(from, self.bytes.len()));
    }

    /// The rows for which `keep` is true.
    #[must_use]
    pub fn with_rows(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut page = Self { is_tuples: self.is_tuples, ..Self::new(self.width) };
        for row in (0..self.rows()).filter(|row| keep(*row)) {
            (0..self.width).for_each(|at| page.push(self.at(row * self.width + at)));
        }
        page
    }

    /// Replaces the value that was appended last.
    pub fn replace_last(&mut self, cell: Cell<'_>) {
        if self.slots.pop().is_some() {
            self.push(cell);
        }
    }

    /// The value that was appended last.
    pub fn last(&self) -> Cell<'_> {
        self.at(self.slots.len().wrapping_sub(1))
    }

    /// A value; null outside the page. Of a tuple, a whole number.
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match self.at(row * self.width) {
            Cell::Bytes(tuple) if self.is_tuples => {
                whole_of_tuple(tuple, column).map_or(Cell::Null, Cell::Int)
            }
            _ => self.at(row * self.width + column),
        }
    }

    fn at(&self, at: usize) -> Cell<'_> {
        match self.slots.get(at) {
            None | Some(Slot::Null) => Cell::Null,
            Some(Slot::Int(number)) => Cell::Int(*number),
            Some(Slot::Bytes(from, to)) => Cell::Bytes(self.bytes.get(*from..*to).unwrap_or_default()),
        }
    }
}

/// A field of a tuple after its number of fields, each of which follows its length, if it is a whole number.
pub fn whole_of_tuple(tuple: &[u8], column: usize) -> Option<i64> {
    let (mut field, mut rest) = (&[][..], tuple.get(2..)?);
    for _ in 0..=column {
        let (length, after) = rest.split_first_chunk::<4>()?;
        // The length of null is negative.
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        (field, rest) = after.split_at_checked(length)?;
    }
    let (first, digits) = field.split_first()?;
    Some(digits.iter().fold(i64::from(*first as i8), |sum, byte| sum << 8 | i64::from(*byte)))
}

/// Bytes as `\x` and hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len() + 2);
    digits.push_str("\\x");
    kurabe_driver_common::sql::hex(&mut digits, bytes);
    digits
}

impl<'a> Cell<'a> {
    /// The value as a parameter: text, if it is UTF-8.
    pub fn value(self) -> Value<'a> {
        match self {
            Cell::Null => Value::Null,
            Cell::Int(number) => Value::Int(number),
            Cell::Bytes(bytes) => str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text),
        }
    }

    /// The value as JSON; bytes that are no text become hexadecimal digits.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Cell::Null => serde_json::Value::Null,
            Cell::Int(number) => (*number).into(),
            Cell::Bytes(bytes) => str::from_utf8(bytes).map_or_else(|_| hex(bytes).into(), Into::into),
        }
    }

    /// The value for messages, shortened.
    pub fn shown(&self) -> String {
        match self {
            Cell::Null => "null".to_owned(),
            Cell::Int(number) => number.to_string(),
            Cell::Bytes(bytes) => {
                let text: String = String::from_utf8_lossy(bytes).chars().take(60).collect();
                let more = if text.len() < bytes.len() { "…" } else { "" };
                format!("'{text}'{more} ({} bytes)", bytes.len())
            }
        }
    }
}

/// How many rows are inserted together: a page ends after so many rows, or with the row that reaches so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    pub rows: usize,
    /// Bytes, as they arrive.
    pub bytes: usize,
}

impl Default for PageSize {
    fn default() -> Self {
        Self { rows: 10_000, bytes: 4 << 20 }
    }
}

/// A parameter.
pub enum Encoded<'a> {
    /// As it is.
    Value(Value<'a>),
    /// Rewritten: bytes as hexadecimal digits, or a number.
    Text(String),
    /// Bytes that came as digits.
    Bytes(Vec<u8>),
}

impl Encoded<'_> {
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Value(value) => *value,
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}
