//! Parameters and replies of operations, without an allocation per operation.

use std::ops::Range;

/// A parameter of an operation, or a field of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    /// An integer.
    Int(i64),
    /// Text. Only parameters are `Text`. A reply returns text as [`Value::Bytes`], since validating a megabyte of
    /// UTF-8 costs more than receiving it.
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A timestamp: microseconds since 1970-01-01 00:00 UTC.
    Time(i64),
    /// A boolean. Only parameters of [`Operation::Raw`](crate::operation::Operation::Raw) are booleans, since no
    /// field has this type. Engines without booleans get 1 and 0.
    Bool(bool),
}

impl Value<'_> {
    /// The name of its type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Int(_) => "integer",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Time(_) => "timestamp",
            Self::Bool(_) => "boolean",
        }
    }
}

#[derive(Clone, Debug)]
enum Slot {
    Null,
    Int(i64),
    Time(i64),
    Bytes(Range<usize>),
}

/// The reply to one operation: rows of fields. A client owns one and reuses its buffers; a driver fills it.
#[derive(Debug, Default)]
pub struct Reply {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    rows: usize,
    width: usize,
    affected: u64,
}

impl Reply {
    /// An empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clears the reply and keeps the buffers. A driver calls it first in `execute`.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.rows = 0;
        self.width = 0;
        self.affected = 0;
    }

    /// Appends a null to the current row.
    pub fn push_null(&mut self) {
        self.slots.push(Slot::Null);
    }

    /// Appends an integer to the current row.
    #[inline]
    pub fn push_int(&mut self, value: i64) {
        self.slots.push(Slot::Int(value));
    }

    /// Appends a timestamp to the current row, in microseconds since 1970-01-01 00:00 UTC.
    #[inline]
    pub fn push_time(&mut self, micros: i64) {
        self.slots.push(Slot::Time(micros));
    }

    /// Appends text or bytes to the current row.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.slots.push(Slot::Bytes(start..self.bytes.len()));
    }

    /// Appends a field of bytes that `fill` writes in place, so that a driver can receive directly into the reply.
    /// `fill` appends to the vector that it gets. If it fails, nothing is appended.
    ///
    /// # Errors
    /// The error of `fill`.
    pub fn push_bytes_with<E>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.bytes.len();
        if let Err(error) = fill(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        self.slots.push(Slot::Bytes(start..self.bytes.len()));
        Ok(())
    }

    /// Ends the current row. All rows of a reply have the same number of fields.
    #[inline]
    pub fn end_row(&mut self) {
        if self.rows == 0 {
            // Stored, since a division at each access to a field costs more than the access.
            self.width = self.slots.len();
        }
        self.rows += 1;
    }

    /// Sets the number of rows inserted, changed or removed, as reported by the server.
    pub fn set_affected(&mut self, rows: u64) {
        self.affected = rows;
    }

    /// The number of rows inserted, changed or removed, as reported by the server.
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// The memory used by the fields, in bytes.
    #[inline]
    pub fn held(&self) -> usize {
        self.bytes.len() + self.slots.len() * size_of::<Slot>()
    }

    /// The number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of fields per row.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// A field of the reply; `None` if there is no such row or field. Text is returned as [`Value::Bytes`].
    #[inline]
    pub fn field(&self, row: usize, field: usize) -> Option<Value<'_>> {
        let width = self.width();
        if field >= width {
            return None;
        }
        Some(match self.slots.get(row * width + field)? {
            Slot::Null => Value::Null,
            Slot::Int(value) => Value::Int(*value),
            Slot::Time(micros) => Value::Time(*micros),
            Slot::Bytes(range) => Value::Bytes(&self.bytes[range.clone()]),
        })
    }

    /// The bytes of a text or bytes field; `None` if the field is missing or has another type.
    #[inline]
    pub fn field_bytes(&self, row: usize, field: usize) -> Option<&[u8]> {
        match self.field(row, field)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The value of an integer field; `None` if the field is missing or has another type.
    #[inline]
    pub fn field_int(&self, row: usize, field: usize) -> Option<i64> {
        match self.field(row, field)? {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_pushed() {
        let mut reply = Reply::new();
        for n in 0..3 {
            reply.push_int(n);
            reply.push_bytes(format!("row {n}").as_bytes());
            reply.push_null();
            reply.end_row();
        }
        assert_eq!((reply.rows(), reply.width()), (3, 3));
        assert_eq!(reply.field_int(2, 0), Some(2));
        assert_eq!(reply.field_bytes(1, 1), Some(&b"row 1"[..]));
        assert_eq!(reply.field(0, 2), Some(Value::Null));
        assert_eq!(reply.field(0, 3), None);
        assert_eq!(reply.field(3, 0), None);
        reply.clear();
        assert_eq!((reply.rows(), reply.width(), reply.field(0, 0)), (0, 0, None));
    }

    #[test]
    fn failed_field_leaves_no_partial_value() {
        let mut reply = Reply::new();
        let failed = reply.push_bytes_with(|out| {
            out.extend_from_slice(b"half");
            Err("cut")
        });
        assert_eq!(failed, Err("cut"));
        reply.push_bytes(b"whole");
        reply.end_row();
        assert_eq!(reply.field_bytes(0, 0), Some(&b"whole"[..]));
    }
}
