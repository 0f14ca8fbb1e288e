//! Commands of Redis and Valkey: <https://redis.io/docs/latest/commands/>.

use super::commands::{Sent, values};
use kurabe_capture::record::Value as Recorded;
use kurabe_core::Result;

/// Bytes of a parameter up to which it may be a key.
const KEY: usize = 512;

/// What may be keys among its parameters.
pub(super) fn keys(sent: &Sent) -> impl Iterator<Item = String> {
    sent.request.parameters.iter().filter_map(|one| match &one.value {
        Recorded::Bytes(bytes) if bytes.len() <= KEY => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    })
}

/// Appends a request, as an array of its words.
pub(super) fn push(out: &mut Vec<u8>, text: &str, sent: &Sent) -> Result<()> {
    let own: Vec<&[u8]> = text.split(' ').filter(|word| *word != "?").map(str::as_bytes).collect();
    let given = values(sent)?;
    out.extend(format!("*{}\r\n", own.len() + given.len()).bytes());
    for word in own.into_iter().chain(given) {
        out.extend(format!("${}\r\n", word.len()).bytes());
        out.extend(word);
        out.extend(b"\r\n");
    }
    Ok(())
}
