//! The application's answer: the record that was read or written, as `docs/app.openapi.yaml` describes it.

use crate::prelude::*;
use std::fmt::Display;
use std::io::Write;

/// Appends a record: its key on a separate line, then its data. A numeric key has twenty digits, so that all
/// answers have the same length: ab counts an answer of another length as a failure.
pub(crate) fn record(key: impl Display, data: &[u8], out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = writeln!(out, "{key:0>20}");
    out.extend_from_slice(data);
}

/// The key and the data of a record in the answer to this page.
///
/// # Errors
/// [`Mismatch`](kurabe_core::ErrorKind::Mismatch) if the answer does not begin with a key, or has another key than
/// the requested one.
pub(crate) fn read<'a>(page: &str, body: &'a [u8], asked: Option<u64>) -> Result<(u64, &'a [u8])> {
    let end = body.iter().take(24).position(|byte| *byte == b'\n');
    let key = end.and_then(|end| std::str::from_utf8(&body[..end]).ok()?.parse().ok());
    let (Some(end), Some(key)) = (end, key) else {
        return Err(Error::mismatch(format!("the answer to {page} does not begin with a key")));
    };
    match asked {
        Some(asked) if asked != key => {
            Err(Error::mismatch(format!("requested record {asked}, received record {key}")))
        }
        _ => Ok((key, &body[end + 1..])),
    }
}
