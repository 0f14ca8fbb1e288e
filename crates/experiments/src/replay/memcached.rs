//! Commands of memcached: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.

use super::traffic::Sent;
use kurabe_capture::record::Value as Recorded;
use kurabe_core::{Error, Result};

/// Commands that change no value.
const READS: [&str; 7] = ["get", "gets", "mg", "mn", "me", "version", "stats"];
/// Commands that are not sent again: they are about the server, or have a number that another server does not give (`cas`).
const LEFT_OUT: [&str; 3] = ["cas", "flush_all", "verbosity"];
/// Commands whose answers depend on time or the server.
pub(super) const VOLATILE: [&str; 3] = ["me", "stats", "version"];
/// A request with one answer, after those that have none.
pub(super) const SYNC: &[u8] = b"version\r\n";

fn command(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// Why a command may change something.
pub(super) fn writes(text: &str) -> Option<String> {
    (!READS.contains(&command(text))).then(|| format!("{} may change values", command(text)))
}

/// Whether a command is not sent again.
pub(super) fn is_left_out(text: &str) -> bool {
    LEFT_OUT.contains(&command(text))
}

/// Whether a request has no answer.
pub(super) fn is_quiet(text: &str) -> bool {
    text.ends_with(" noreply")
}

/// The keys among its parameters.
pub(super) fn keys(text: &str, sent: &Sent) -> impl Iterator<Item = String> {
    let (first, count) = match command(text) {
        "get" | "gets" => (0, usize::MAX),
        "gat" | "gats" => (1, usize::MAX),
        "stats" | "version" | "mn" => (0, 0),
        _ => (0, 1),
    };
    sent.request.parameters.iter().skip(first).take(count).filter_map(|one| match &one.value {
        Recorded::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    })
}

/// Appends a request: its line, and its value, whose size is in the line.
pub(super) fn push(out: &mut Vec<u8>, text: &str, sent: &Sent) -> Result<()> {
    let given = sent.request.parameters.iter().map(|one| match &one.value {
        Recorded::Bytes(bytes) => Ok(bytes.as_slice()),
        _ => Err(Error::usage("a value of the capture was not kept")),
    });
    let mut given: Vec<&[u8]> = given.collect::<Result<_>>()?;
    let place = match command(text) {
        "set" | "add" | "replace" | "append" | "prepend" => Some(3),
        "ms" => Some(1),
        _ => None,
    };
    let value = place.and_then(|_| given.pop());
    let size = value.map_or_else(String::new, |value| value.len().to_string());
    if let Some(place) = place {
        given.insert(place.min(given.len()), size.as_bytes());
    }
    out.extend(command(text).bytes());
    for word in given.into_iter().chain(is_quiet(text).then_some(&b"noreply"[..])) {
        out.push(b' ');
        out.extend(word);
    }
    out.extend(b"\r\n");
    if let Some(value) = value {
        out.extend(value);
        out.extend(b"\r\n");
    }
    Ok(())
}
