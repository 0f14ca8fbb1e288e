//! Messages that the client sends.

use crate::postgres::read_only::CHECK;
use crate::postgres::values::{Encoded, Form};
use crate::prelude::*;
use crate::wire::{Outbox, Peer};
use kurabe_protocol::postgres::frame::frontend;

/// Maximum message that the server accepts (`PQ_LARGE_MESSAGE_LIMIT`).
const LONGEST: usize = 0x3fff_fffe;

/// Execute of portal "" without a row limit, and Sync.
const TAIL: [u8; 15] = [frontend::EXECUTE, 0, 0, 0, 9, 0, 0, 0, 0, 0, frontend::SYNC, 0, 0, 0, 4];
/// The length of Execute in it.
const EXECUTE: usize = 10;

fn text(out: &mut Vec<u8>, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::usage("a text for the server contains a zero byte"));
    }
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

/// Writes a message's length at `at`. The length counts itself but not the type byte.
fn put_length(out: &mut [u8], at: usize, length: usize) -> Result<()> {
    if length > LONGEST {
        return Err(Error::new(ErrorKind::Limit, "a request of more than 1 GB").hint("use a smaller payload"));
    }
    out[at..at + 4].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(())
}

/// Writes the length of a message that ends with `out`.
pub(super) fn close_message(out: &mut [u8], at: usize) -> Result<()> {
    let length = out.len() - at;
    put_length(out, at, length)
}

fn message(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out)?;
    close_message(out, at)
}

pub(super) fn query(out: &mut Vec<u8>, sql: &str) -> Result<()> {
    message(out, frontend::QUERY, |out| text(out, sql))
}

pub(super) fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(&[frontend::SYNC, 0, 0, 0, 4]);
}

pub(super) fn terminate(out: &mut Vec<u8>) {
    out.extend_from_slice(&[frontend::TERMINATE, 0, 0, 0, 4]);
}

/// `PasswordMessage`, `SASLResponse`.
pub(super) fn password(out: &mut Vec<u8>, secret: &[u8]) -> Result<()> {
    message(out, frontend::PASSWORD, |out| {
        out.extend_from_slice(secret);
        Ok(())
    })
}

/// Parse without parameter types, Describe of the statement, Sync.
pub(super) fn prepare(out: &mut Vec<u8>, name: &str, sql: &str) -> Result<()> {
    message(out, frontend::PARSE, |out| {
        text(out, name)?;
        text(out, sql)?;
        out.extend_from_slice(&[0, 0]);
        Ok(())
    })?;
    message(out, frontend::DESCRIBE, |out| {
        out.push(b'S');
        text(out, name)
    })?;
    sync(out);
    Ok(())
}

/// A text as one statement: Parse, Bind and Execute without names. Unlike Query, it refuses several statements.
pub(super) fn whole(out: &mut Vec<u8>, sql: &str) -> Result<()> {
    message(out, frontend::PARSE, |out| {
        out.push(0);
        text(out, sql)?;
        out.extend_from_slice(&[0, 0]);
        Ok(())
    })?;
    bind_and_execute(out, "");
    Ok(())
}

/// Executes the check of a read-only session.
pub(super) fn check(out: &mut Vec<u8>) {
    bind_and_execute(out, CHECK);
}

/// Bind and Execute of a statement without parameters, all of whose rows are text.
fn bind_and_execute(out: &mut Vec<u8>, name: &str) {
    // Cannot fail: the names are short.
    let _ = message(out, frontend::BIND, |out| {
        out.push(0);
        text(out, name)?;
        // No formats and values of parameters, and no formats of columns.
        out.extend_from_slice(&[0; 6]);
        Ok(())
    });
    out.extend_from_slice(&TAIL[..EXECUTE]);
}

pub(super) fn close(out: &mut Vec<u8>, name: &str) {
    // Cannot fail: the names are generated and short.
    let _ = message(out, frontend::CLOSE, |out| {
        out.push(b'S');
        text(out, name)
    });
}

/// Appends the format codes of these forms, 0 for text and 1 for binary: one for all if they are equal, else one for
/// each.
fn push_formats(out: &mut Vec<u8>, forms: &[Form]) {
    let mut formats = forms.iter().map(|form| u8::from(form.is_binary()));
    let first = formats.next().unwrap_or(1);
    if formats.all(|format| format == first) {
        out.extend_from_slice(&[0, 1, 0, first]);
        return;
    }
    // The count fits 16 bits, as in the description from which the forms come.
    out.extend_from_slice(&(forms.len() as u16).to_be_bytes());
    for form in forms {
        out.extend_from_slice(&[0, u8::from(form.is_binary())]);
    }
}

/// Builds the start of every Bind of a statement, with a blank length, for parameters of these forms.
pub(super) fn bind_head(name: &str, parameter_forms: &[Form]) -> Vec<u8> {
    let mut head = vec![frontend::BIND, 0, 0, 0, 0, 0];
    head.extend_from_slice(name.as_bytes());
    head.push(0);
    push_formats(&mut head, parameter_forms);
    head.extend_from_slice(&(parameter_forms.len() as u16).to_be_bytes());
    head
}

/// Bind of the unnamed portal to a statement without parameters, for columns of these forms.
pub(super) fn open_portal(out: &mut Vec<u8>, name: &str, column_forms: &[Form]) -> Result<()> {
    message(out, frontend::BIND, |out| {
        out.push(0);
        text(out, name)?;
        // No parameters: neither formats nor values.
        out.extend_from_slice(&[0, 0, 0, 0]);
        push_formats(out, column_forms);
        Ok(())
    })
}

/// Execute of the unnamed portal for at most so many rows, and Flush: unlike Sync, it keeps the portal open.
pub(super) fn fetch(out: &mut Vec<u8>, rows: u32) {
    out.extend_from_slice(&[frontend::EXECUTE, 0, 0, 0, 9, 0]);
    out.extend_from_slice(&rows.to_be_bytes());
    out.extend_from_slice(&[frontend::FLUSH, 0, 0, 0, 4]);
}

/// `CopyDone`.
pub(super) fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(&[frontend::COPY_DONE, 0, 0, 0, 4]);
}

/// The bytes after the parameters.
pub(super) struct Tail {
    /// The column formats, which end Bind; Execute; the check, if there is one; and Sync.
    pub(super) bytes: Vec<u8>,
    /// The length of the column formats.
    formats: usize,
}

/// Builds the bytes after the parameters.
pub(super) fn bind_tail(column_forms: &[Form], is_checked: bool) -> Tail {
    let mut bytes = Vec::new();
    push_formats(&mut bytes, column_forms);
    let formats = bytes.len();
    let (execute, sync) = TAIL.split_at(EXECUTE);
    bytes.extend_from_slice(execute);
    if is_checked {
        check(&mut bytes);
    }
    bytes.extend_from_slice(sync);
    Tail { bytes, formats }
}

/// Appends Bind up to its parameters, which have `length` bytes and precede `tail`.
pub(super) fn bind(out: &mut Vec<u8>, head: &[u8], length: usize, tail: &Tail) -> Result<()> {
    let at = out.len() + 1;
    out.extend_from_slice(head);
    put_length(out, at, head.len() - 1 + length + tail.formats)
}

/// Encoded size of the parameters, including their length fields, in bytes.
pub(super) fn parameters_length(forms: &[Form], parameters: &[Value<'_>]) -> Result<usize> {
    let mut pairs = forms.iter().zip(parameters);
    pairs.try_fold(0, |sum, (form, value)| Ok(sum + 4 + form.encode(value)?.bytes().map_or(0, <[u8]>::len)))
}

pub(super) fn parameters<'v, S: Peer>(
    outbox: &mut Outbox<'_, 'v, S>,
    forms: &[Form],
    parameters: &[Value<'v>],
) -> Result<()> {
    for (form, value) in forms.iter().zip(parameters) {
        let encoded = form.encode(value)?;
        let length = encoded.bytes().map_or(-1, |bytes| bytes.len() as i32);
        outbox.text.extend_from_slice(&length.to_be_bytes());
        match encoded {
            Encoded::Slice(bytes) => outbox.value(bytes)?,
            short => outbox.text.extend_from_slice(short.bytes().unwrap_or_default()),
        }
    }
    Ok(())
}
