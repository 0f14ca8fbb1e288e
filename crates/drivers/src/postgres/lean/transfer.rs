//! Many rows at once: a portal that is read in parts, `COPY … TO STDOUT` and `COPY … FROM STDIN`.
//!
//! Manual, "Message Flow", "Extended Query" and "COPY Operations"; for the binary format "COPY", "Binary Format".

use super::answer::{self, Described, Rows};
use super::{Lean, request};
use crate::postgres::values::Form;
use crate::prelude::*;
use crate::sql::RowsText;
use crate::wire::link::Outcome;
use crate::wire::{Peer, Wire};
use kurabe_driver_common::usable;
use kurabe_protocol::postgres::frame::{Tagged, backend, frontend};
use kurabe_protocol::postgres::message::command_complete;

/// Bytes of one `CopyData` message: few messages, and they stay in the processor's cache.
const CHUNK: usize = 64 * 1024;

/// The start of the binary format: the signature, flags and the length of an extension.
const SIGNATURE: [u8; 11] = *b"PGCOPY\n\xff\r\n\0";
const HEADER: usize = SIGNATURE.len() + 8;

/// How a part of a portal's rows ended.
enum Part {
    /// The portal has more rows, perhaps.
    Suspended,
    /// It has none.
    Complete,
    /// The server's error; it ignores everything up to Sync.
    Failed(Error),
}

impl<S: Peer + Send> Lean<S> {
    /// Reads all rows through a portal, so many in each round trip.
    pub(super) fn read_portal(&mut self, text: &RowsText, rows: u64, row: &mut RowSink<'_>) -> Result<Moved> {
        let most = i32::try_from(rows.max(1)).unwrap_or(i32::MAX).unsigned_abs();
        let (name, Described { column_forms, .. }) = self.describe(&text.select)?;
        self.exchange(|this| {
            this.wire.widen();
            this.begin();
            usable!(request::open_portal(&mut this.out, &name, &column_forms));
            request::fetch(&mut this.out, most);
            this.send()?;
            let mut received = 0;
            // The description, this request, and Sync.
            let mut round_trips = 3;
            let ended = loop {
                match part(&mut this.wire, &column_forms, row, &mut received)? {
                    Part::Complete => break Ok(()),
                    Part::Failed(error) => break Err(error),
                    Part::Suspended => {}
                }
                this.out.clear();
                request::fetch(&mut this.out, most);
                this.wire.send(&this.out)?;
                round_trips += 1;
            };
            this.out.clear();
            request::close(&mut this.out, &name);
            request::sync(&mut this.out);
            this.wire.send(&this.out)?;
            let synced = this.read(&mut Rows::Described(&mut Described::default()), 1, false)?;
            Ok(ended.and(synced).map(|()| Moved { rows: received, round_trips: Some(round_trips) }))
        })
    }

    /// Reads a whole table.
    pub(super) fn copy_out(&mut self, text: &RowsText, row: &mut RowSink<'_>) -> Result<Moved> {
        let forms = self.binary_forms(text)?;
        let sql = format!("COPY {} ({}) TO STDOUT (FORMAT binary)", text.table, text.columns);
        self.exchange(|this| {
            this.wire.widen();
            this.begin_simple();
            usable!(request::query(&mut this.out, &sql));
            this.send()?;
            let (mut received, mut began) = (0, false);
            let ended = this.copied(None, |mut rest| {
                if !std::mem::replace(&mut began, true) {
                    rest = after_header(rest)?;
                }
                while !rest.is_empty() && rest != END {
                    rest = tuple(rest, &forms, row)?;
                    received += 1;
                }
                Ok(())
            })?;
            Ok(ended.map(|_| Moved { rows: received, round_trips: Some(2) }))
        })
    }

    /// Loads rows into a table.
    pub(super) fn copy_in(&mut self, text: &RowsText, rows: &mut dyn RowSource) -> Result<Moved> {
        let forms = self.binary_forms(text)?;
        let sql = format!("COPY {} ({}) FROM STDIN (FORMAT binary)", text.table, text.columns);
        self.exchange(|this| {
            this.begin_simple();
            usable!(request::query(&mut this.out, &sql));
            this.send()?;
            usable!(this.copied(Some(backend::COPY_IN_RESPONSE), no_data)?);
            let mut chunk = vec![frontend::COPY_DATA, 0, 0, 0, 0];
            chunk.extend_from_slice(&SIGNATURE);
            chunk.extend_from_slice(&[0; 8]);
            loop {
                let more = rows.next(&mut |values| push_tuple(&mut chunk, &forms, values))?;
                if !more {
                    chunk.extend_from_slice(&END);
                }
                if chunk.len() < CHUNK && more {
                    continue;
                }
                request::close_message(&mut chunk, 1)?;
                if !more {
                    request::copy_done(&mut chunk);
                }
                this.wire.send(&chunk)?;
                if !more {
                    break;
                }
                chunk.truncate(5);
            }
            let ended = this.copied(None, no_data)?.and_then(counted);
            Ok(ended.map(|rows| Moved { rows, round_trips: Some(3) }))
        })
    }

    /// Executes a `COPY … FROM STDIN` with rows in its text format.
    pub(super) fn copy_text_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64> {
        self.exchange(|this| {
            this.begin_simple();
            usable!(request::query(&mut this.out, sql));
            this.send()?;
            usable!(this.copied(Some(backend::COPY_IN_RESPONSE), no_data)?);
            for part in rows.chunks(CHUNK) {
                this.out.clear();
                this.out.extend_from_slice(&[frontend::COPY_DATA, 0, 0, 0, 0]);
                this.out.extend_from_slice(part);
                request::close_message(&mut this.out, 1)?;
                this.wire.send(&this.out)?;
            }
            this.out.clear();
            request::copy_done(&mut this.out);
            this.wire.send(&this.out)?;
            Ok(this.copied(None, no_data)?.and_then(counted))
        })
    }

    /// The forms of the columns, which are those of both directions. `COPY` has one format for all columns.
    fn binary_forms(&mut self, text: &RowsText) -> Result<Vec<Form>> {
        let (name, Described { column_forms, .. }) = self.describe(&text.select)?;
        request::close(&mut self.closes, &name);
        if column_forms.iter().all(|form| form.is_binary()) {
            return Ok(column_forms);
        }
        Err(Error::unsupported(format!(
            "a column of {} has a type that COPY cannot move as it is",
            text.table
        )))
    }

    /// As [`Lean::begin`], for a simple query, which does not end queued messages of the extended protocol.
    fn begin_simple(&mut self) {
        self.begin();
        self.syncs = 0;
        if !self.out.is_empty() {
            request::sync(&mut self.out);
            self.syncs = 1;
        }
    }

    /// Whether this `ReadyForQuery` answers the Sync before a simple query.
    fn queued_sync(&mut self) -> bool {
        let queued = self.syncs > 0;
        self.syncs = 0;
        queued
    }

    /// Reads the answer to COPY, or up to a message with the tag `until`: passes on its data, and returns the number of rows
    /// that the server says.
    fn copied(
        &mut self,
        until: Option<u8>,
        mut data: impl FnMut(&[u8]) -> Result<()>,
    ) -> Outcome<Option<u64>> {
        let (mut copied, mut ended) = (None, Ok(()));
        loop {
            let wire = &mut self.wire;
            let Tagged { tag, length } = answer::header(wire)?;
            match tag {
                // After an error the server would wait for rows that never come.
                tag if Some(tag) == until => return wire.skip(length).and(ended).map(|()| Ok(None)),
                backend::COPY_DATA => {
                    answer::whole(wire, length, &mut data)??;
                    // Each message has all of the time allowed.
                    wire.begin()?;
                }
                backend::COMMAND_COMPLETE if until.is_none() => {
                    copied = answer::whole(wire, length, rows_copied)?;
                }
                backend::ERROR_RESPONSE => {
                    ended = ended.and(Err(answer::whole(wire, length, answer::error)??));
                }
                backend::READY_FOR_QUERY => {
                    wire.skip(length)?;
                    if !self.queued_sync() {
                        let begins = until.map_or(Ok(()), |_| Err(malformed("COPY ended before it began")));
                        return Ok(ended.and(begins).map(|()| copied));
                    }
                }
                backend::COPY_OUT_RESPONSE
                | backend::COPY_DONE
                | backend::CLOSE_COMPLETE
                | backend::PARAMETER_STATUS => wire.skip(length)?,
                other => return Err(answer::unexpected(other, TRANSFER)),
            }
        }
    }
}

/// Rows that the server sends where it is to receive them.
fn no_data(_: &[u8]) -> Result<()> {
    Err(answer::unexpected(backend::COPY_DATA, TRANSFER))
}

fn counted(rows: Option<u64>) -> Result<u64> {
    rows.ok_or_else(|| malformed("COPY ended without a number of rows"))
}

/// Where an unexpected message came.
const TRANSFER: &str = " in a transfer of rows";

/// Ends the tuples of the binary format.
const END: [u8; 2] = [0xff, 0xff];

/// Reads a part of a portal's rows.
fn part<S: Peer>(
    wire: &mut Wire<S>,
    forms: &[Form],
    row: &mut RowSink<'_>,
    received: &mut u64,
) -> Result<Part> {
    loop {
        // Each row has all of the time allowed.
        wire.begin()?;
        let Tagged { tag, length } = answer::header(wire)?;
        match tag {
            backend::DATA_ROW => {
                let is_whole = |body: &[u8]| tuple(body, forms, row).map(<[u8]>::is_empty);
                if !answer::whole(wire, length, is_whole)?? {
                    return Err(malformed("a row longer than its fields"));
                }
                *received += 1;
            }
            backend::PORTAL_SUSPENDED => return wire.skip(length).map(|()| Part::Suspended),
            backend::COMMAND_COMPLETE => return wire.skip(length).map(|()| Part::Complete),
            backend::ERROR_RESPONSE => return answer::whole(wire, length, answer::error)?.map(Part::Failed),
            backend::BIND_COMPLETE | backend::CLOSE_COMPLETE | backend::PARAMETER_STATUS => {
                wire.skip(length)?;
            }
            other => return Err(answer::unexpected(other, TRANSFER)),
        }
    }
}

/// Passes on one row: the number of fields, and for each its length, or -1 for null, and its bytes. Returns what
/// follows. `DataRow` and a tuple of the binary format have this layout.
#[inline]
fn tuple<'b>(body: &'b [u8], forms: &[Form], row: &mut RowSink<'_>) -> Result<&'b [u8]> {
    let short = || malformed("a row shorter than its fields");
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(short)?;
    let count = usize::from(u16::from_be_bytes(*count));
    if count != forms.len() {
        return Err(malformed(format!("a row of {count} fields, expected {}", forms.len())));
    }
    with_fields(count, |fields| {
        for (field, form) in fields.iter_mut().zip(forms) {
            let (length, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
            rest = after;
            if let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) {
                let (bytes, after) = rest.split_at_checked(length).ok_or_else(short)?;
                *field = form.value(bytes)?;
                rest = after;
            }
        }
        row(fields)
    })?;
    Ok(rest)
}

fn push_tuple(out: &mut Vec<u8>, forms: &[Form], values: &[Value<'_>]) -> Result<()> {
    check_parameters("a row", forms.len(), values.len())?;
    out.extend_from_slice(&(forms.len() as u16).to_be_bytes());
    for (form, value) in forms.iter().zip(values) {
        let encoded = form.encode(value)?;
        let bytes = encoded.bytes();
        let length = bytes.map_or(-1, |bytes| bytes.len() as i32);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(bytes.unwrap_or_default());
    }
    Ok(())
}

/// The tuples after the header of the binary format.
fn after_header(body: &[u8]) -> Result<&[u8]> {
    let head = body.split_at_checked(HEADER).filter(|(head, _)| head.starts_with(&SIGNATURE));
    let (head, rest) =
        head.ok_or_else(|| malformed("rows of COPY without the header of the binary format"))?;
    // Flags below 16 and extensions do not concern a reader; any other flag does.
    let (flags, extension) = head[SIGNATURE.len()..].split_at(4);
    let number = |bytes: &[u8]| bytes.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    if number(flags) >> 16 != 0 {
        return Err(Error::unsupported("the server sends rows of COPY in a newer format"));
    }
    rest.get(number(extension) as usize..).ok_or_else(|| malformed("a truncated header of COPY"))
}

/// The number in `COPY 1000`.
fn rows_copied(body: &[u8]) -> Option<u64> {
    let (command, count) = command_complete(body);
    count.filter(|_| command == b"COPY")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [Form; 3] = [Form::Int(8), Form::Bytes, Form::Bytes];

    fn read(body: &[u8]) -> Result<(Vec<String>, usize)> {
        let mut shown = Vec::new();
        let rest = tuple(body, &FORMS, &mut |fields| {
            shown = fields.iter().map(|field| format!("{field:?}")).collect();
            Ok(())
        })?;
        let left = rest.len();
        Ok((shown, left))
    }

    #[test]
    fn row_that_was_written_reads_back_and_leaves_the_next() {
        let mut body = Vec::new();
        let values = [Value::Int(-7), Value::Null, Value::Text("é")];
        push_tuple(&mut body, &FORMS, &values).unwrap();
        body.extend_from_slice(&END);
        let (shown, left) = read(&body).unwrap();
        assert_eq!((shown[0].as_str(), shown[1].as_str(), left), ("Int(-7)", "Null", 2));
        assert_eq!(shown[2], format!("{:?}", Value::Bytes("é".as_bytes())));
        // Whatever is missing is noticed.
        for cut in 0..body.len() - 2 {
            assert_eq!(read(&body[..cut]).unwrap_err().kind(), ErrorKind::Protocol, "{cut}");
        }
        assert!(push_tuple(&mut body, &FORMS, &values[..2]).is_err());
    }

    #[test]
    fn header_of_binary_rows_is_checked() {
        let mut body = SIGNATURE.to_vec();
        body.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2, 9, 9, 5]);
        assert_eq!(after_header(&body).unwrap(), [5]);
        body[11] = 1;
        assert_eq!(after_header(&body).unwrap_err().kind(), ErrorKind::Unsupported);
        body[0] = b'X';
        assert_eq!(after_header(&body).unwrap_err().kind(), ErrorKind::Protocol);
        assert!(after_header(&SIGNATURE).is_err());
    }

    #[test]
    fn number_of_copied_rows_is_read() {
        assert_eq!(rows_copied(b"COPY 1000\0"), Some(1_000));
        assert_eq!(rows_copied(b"INSERT 0 1\0"), None);
    }
}
