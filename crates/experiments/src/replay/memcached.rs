//! Commands of memcached: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.

use super::commands::{Sent, command, values};
use kurabe_capture::record::Value as Recorded;
use kurabe_core::Result;
use kurabe_protocol::memcached::place_of_size;

/// A request with one answer, after those that have none.
pub(super) const SYNC: &[u8] = b"version\r\n";

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
    let mut given = values(sent)?;
    let place = place_of_size(command(text).as_bytes());
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
