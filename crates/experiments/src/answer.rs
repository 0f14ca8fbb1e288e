//! What an application answers: the record that it read or wrote, as `docs/app.openapi.yaml` describes it.

use std::fmt::Display;
use std::io::Write;

/// Appends a record: its key in a line of its own, then its data to the end. A key that is a number has twenty digits, so
/// that all answers are equally long: ab calls one that is not a failure.
pub(crate) fn record(key: impl Display, data: &[u8], out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = writeln!(out, "{key:0>20}");
    out.extend_from_slice(data);
}
