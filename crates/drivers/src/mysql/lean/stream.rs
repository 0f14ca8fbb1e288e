//! Many rows of a table: one result that is read as it arrives, or a server-side cursor that is read in parts.
//!
//! MySQL Source Code Documentation, "`COM_STMT_EXECUTE`", "`COM_STMT_FETCH`", "Binary Protocol Resultset". A cursor's rows
//! are collected on the server before the first is sent.

use super::answer::{Kind, datetime, int};
use super::packets::{Packets, length};
use super::{Lean, Statement};
use crate::prelude::*;
use crate::sql::RowsText;
use crate::wire::link::{Link, Outcome};
use crate::wire::{Peer, malformed};
use kurabe_driver_common::usable;
use kurabe_protocol::mysql::frame::MAX;
use kurabe_protocol::mysql::message::{answer, command, status};

/// A cursor that only reads (`CURSOR_TYPE_READ_ONLY`).
const READ_ONLY_CURSOR: u8 = 1;

impl<S: Peer + Send> Lean<S> {
    /// Reads all rows.
    pub(super) fn stream(&mut self, text: &RowsText, fetch: Fetch, row: &mut RowSink<'_>) -> Result<Moved> {
        let mut statement = Link::prepare(self, &text.select)?;
        let moved = self.exchange(|this| this.read_parts(&mut statement, fetch, row))?;
        self.forget(statement)?;
        Ok(moved)
    }

    pub(super) fn read_parts(
        &mut self,
        statement: &mut Statement,
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Outcome<Moved> {
        let part = match fetch {
            Fetch::Rows(rows) => Some(u32::try_from(rows.max(1)).unwrap_or(u32::MAX)),
            Fetch::Whole => None,
        };
        let number = statement.number.to_le_bytes();
        let cursor = if part.is_some() { READ_ONLY_CURSOR } else { 0 };
        self.packets.wire.widen();
        let once = [cursor, 1, 0, 0, 0];
        self.command(command::STMT_EXECUTE, &[&number[..], &once].concat())?;
        let columns = &mut statement.column_kinds;
        // With preparing.
        let (mut received, mut round_trips) = (0, 2);
        let mut status = usable!(self.packets.table(columns)?).filter(|status| status & status::CURSOR != 0);
        loop {
            let status = match status.take() {
                Some(status) => status,
                None => usable!(self.packets.rows(columns, row, &mut received)?),
            };
            let Some(part) =
                part.filter(|_| status & status::CURSOR != 0 && status & status::LAST_ROW_SENT == 0)
            else {
                return Ok(Ok(Moved { rows: received, round_trips: Some(round_trips) }));
            };
            self.command(command::STMT_FETCH, &[number, part.to_le_bytes()].concat())?;
            round_trips += 1;
        }
    }
}

impl<S: Peer> Packets<S> {
    /// Reads the start of a result: its columns. Returns the status of the EOF packet after them, if there is one.
    fn table(&mut self, columns: &mut Vec<Kind>) -> Outcome<Option<u16>> {
        self.next()?;
        match self.first()? {
            answer::ERR => return self.error().map(Err),
            answer::OK | answer::LOCAL_INFILE => {
                return Err(malformed("a result without rows instead of a table"));
            }
            _ => {}
        }
        let expected = columns.len();
        let (count, status) = self.columns(Some(columns))?;
        if count == expected {
            return Ok(Ok(status));
        }
        Err(malformed("a result with other columns than the prepared statement"))
    }

    /// Reads rows up to the end of the result, or of a part of it, and returns its status.
    fn rows(&mut self, columns: &[Kind], row: &mut RowSink<'_>, received: &mut u64) -> Outcome<u16> {
        loop {
            // Each row has all of the time allowed.
            self.wire.begin()?;
            self.next()?;
            match self.first()? {
                0 => {
                    binary_row(self.rest()?, columns, row)?;
                    *received += 1;
                }
                answer::ERR => return self.error().map(Err),
                answer::EOF if self.left() < MAX => return self.status().map(Ok),
                other => return Err(malformed(format!("a row that starts with {other:#04x}"))),
            }
        }
    }
}

/// Passes on a row of the binary protocol.
fn binary_row(body: &[u8], columns: &[Kind], row: &mut RowSink<'_>) -> Result<()> {
    let mut rest = Rest(body);
    rest.take(1)?;
    let nulls = rest.take((columns.len() + 9) / 8)?;
    with_fields(columns.len(), |fields| {
        for (at, (field, kind)) in fields.iter_mut().zip(columns).enumerate() {
            // The first two bits are reserved.
            let bit = at + 2;
            if nulls[bit / 8] & (1 << (bit % 8)) == 0 {
                *field = rest.value(*kind)?;
            }
        }
        if !rest.0.is_empty() {
            return Err(malformed("a row longer than its fields"));
        }
        row(fields)
    })
}

/// The unread part of a row.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    #[inline]
    fn take(&mut self, length: usize) -> Result<&'b [u8]> {
        let parts = self.0.split_at_checked(length);
        let (taken, rest) = parts.ok_or_else(|| malformed("a row shorter than its fields"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// A little-endian integer.
    #[inline]
    fn int(&mut self, length: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(self.take(length)?);
        Ok(u64::from_le_bytes(bytes))
    }

    #[inline]
    fn value(&mut self, kind: Kind) -> Result<Value<'b>> {
        Ok(match kind {
            Kind::Bytes => {
                let length = length(|bytes| self.int(bytes))?.and_then(|length| usize::try_from(length).ok());
                Value::Bytes(self.take(length.ok_or_else(|| malformed("a value of invalid length"))?)?)
            }
            Kind::Int { bytes, signed } => Value::Int(int(self.int(bytes.into())?, bytes, signed)?),
            Kind::Time => Value::Time(datetime(|bytes| self.int(bytes))?),
            Kind::Real { .. } | Kind::Foreign => {
                let what = "the table has a value that is not text, bytes, an integer or a timestamp";
                return Err(Error::unsupported(what));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 4] = [Kind::Int { bytes: 8, signed: true }, Kind::Bytes, Kind::Bytes, Kind::Time];

    fn read(body: &[u8]) -> Result<Vec<String>> {
        let mut shown = Vec::new();
        binary_row(body, &KINDS, &mut |fields| {
            shown = fields.iter().map(|field| format!("{field:?}")).collect();
            Ok(())
        })?;
        Ok(shown)
    }

    #[test]
    fn every_type_is_read_from_a_binary_row() {
        // The third field is null: bit 4 of the bitmap, of which the first two are reserved.
        let mut body = vec![0, 0b1_0000];
        body.extend_from_slice(&(-7_i64).to_le_bytes());
        body.extend_from_slice(&[0xfc, 3, 0]);
        body.extend_from_slice(b"abc");
        // 1970-01-02 without a time of day.
        body.extend_from_slice(&[4, 0xb2, 0x07, 1, 2]);
        let shown = read(&body).unwrap();
        let bytes = format!("{:?}", Value::Bytes(b"abc"));
        assert_eq!(shown, ["Int(-7)", &bytes, "Null", "Time(86400000000)"]);
        for cut in 0..body.len() {
            assert!(read(&body[..cut]).is_err(), "{cut}");
        }
        body.push(0);
        assert_eq!(read(&body).unwrap_err().kind(), ErrorKind::Protocol);
    }
}
