//! Loading rows from memory (`LOAD DATA LOCAL INFILE`).
//!
//! The server answers the statement with a request for the file; its content follows in packets, and an empty packet
//! ends it (MySQL Source Code Documentation, "LOCAL INFILE Request"). No file is ever opened: only this statement has
//! its request answered.

use super::Lean;
use super::answer::Rows;
use crate::packed::bytes_of;
use crate::prelude::*;
use crate::sql::RowsText;
use crate::wire::{Peer, malformed, push_number};
use kurabe_driver_common::usable;
use kurabe_protocol::mysql::frame::MAX;
use kurabe_protocol::mysql::message::{answer, command};

/// Bytes of a packet of rows: few packets, and they stay in the processor's cache.
const CHUNK: usize = 64 * 1024;

impl<S: Peer + Send> Lean<S> {
    pub(super) fn load_data(&mut self, text: &RowsText, rows: &mut dyn RowSource) -> Result<Moved> {
        // Characters as numbers, whatever sql_mode says about backslashes. Bytes are stored as they are.
        let sql = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET binary FIELDS TERMINATED BY X'09' \
             ESCAPED BY X'5C' LINES TERMINATED BY X'0A' ({})",
            text.table, text.columns
        );
        self.exchange(|this| {
            this.command(command::QUERY, sql.as_bytes())?;
            this.packets.next()?;
            match this.packets.first()? {
                answer::LOCAL_INFILE => this.packets.skip_rest()?,
                answer::ERR => return this.packets.error().map(|error| Err(refused(error))),
                other => {
                    return Err(malformed(format!("an answer to LOAD DATA that starts with {other:#04x}")));
                }
            }
            // The request was packet 1.
            let mut number = 2_u8;
            let mut chunk = Vec::with_capacity(2 * CHUNK);
            loop {
                let more = rows.next(&mut |values| {
                    check_parameters("a row", text.kinds.len(), values.len())?;
                    push_line(&mut chunk, values)
                })?;
                if chunk.len() >= CHUNK || !more {
                    for piece in chunk.chunks(MAX - 1) {
                        this.send_piece(piece, &mut number)?;
                    }
                    chunk.clear();
                }
                if !more {
                    break;
                }
            }
            this.send_piece(&[], &mut number)?;
            this.packets.expect_answer(usize::from(number));
            let mut reply = Reply::new();
            usable!(this.packets.read(&mut Rows::Text, &mut reply)?);
            Ok(Ok(Moved { rows: reply.affected(), round_trips: Some(2) }))
        })
    }

    /// Sends a packet of the file.
    fn send_piece(&mut self, piece: &[u8], number: &mut u8) -> Result<()> {
        self.packets.wire.begin()?;
        self.packets.push(piece, *number)?;
        *number = number.wrapping_add(1);
        Ok(())
    }
}

/// A server without `local_infile` has no bulk load (`ER_CLIENT_LOCAL_FILES_DISABLED`; older ones:
/// `ER_NOT_ALLOWED_COMMAND`).
fn refused(error: Error) -> Error {
    match error.server_code() {
        Some("3948" | "1148") => {
            Error::unsupported("the server refuses LOAD DATA LOCAL: local_infile is off")
        }
        _ => error,
    }
}

/// Appends a row: fields between tabs, special characters escaped, `\N` for null.
fn push_line(out: &mut Vec<u8>, values: &[Value<'_>]) -> Result<()> {
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(b'\t');
        }
        match value {
            Value::Null => out.extend_from_slice(b"\\N"),
            Value::Int(number) => push_int(out, *number),
            Value::Bool(truth) => out.push(b'0' + u8::from(*truth)),
            Value::Time(micros) => {
                out.extend_from_slice(DateTime::from_micros(*micros)?.to_string().as_bytes());
            }
            Value::Text(_) | Value::Bytes(_) => push_escaped(out, bytes_of(value).unwrap_or_default()),
        }
    }
    out.push(b'\n');
    Ok(())
}

fn push_int(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_number(out, number.unsigned_abs());
}

fn push_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let letter = |byte: u8| match byte {
        b'\\' => Some(b'\\'),
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        0 => Some(b'0'),
        _ => None,
    };
    // Without an early end, so that the compiler looks at many bytes at once.
    let special = bytes.iter().fold(false, |found, byte| found | letter(*byte).is_some());
    if !special {
        out.extend_from_slice(bytes);
        return;
    }
    for byte in bytes {
        match letter(*byte) {
            None => out.push(*byte),
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_and_null_are_escaped() {
        let mut out = Vec::new();
        let values = [Value::Int(i64::MIN), Value::Null, Value::Text("a\tb\\c\nd\0"), Value::Time(1)];
        push_line(&mut out, &values).unwrap();
        let expected = b"-9223372036854775808\t\\N\ta\\tb\\\\c\\nd\\0\t1970-01-01 00:00:00.000001\n";
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(expected));
    }
}
