//! What is known of the commands of protocols, from `commands.txt`, and the values of a recorded command.

use super::traffic::Sent;
use kurabe_capture::record::{Parameter, Value};
use kurabe_core::{Error, Result};

/// Whether the file says this of the first word of a command.
pub(super) fn is(protocol: &str, what: &str, text: &str) -> bool {
    let lines = include_str!("commands.txt").lines().map(|line| line.split(' '));
    let mut named = lines.filter_map(|mut words| {
        (words.next() == Some(protocol) && words.next() == Some(what)).then_some(words)
    });
    named.any(|mut words| words.any(|word| word == command(text)))
}

pub(super) fn command(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// A parameter's value; `None` for NULL.
pub(super) fn value(parameter: &Parameter) -> Result<Option<&[u8]>> {
    match &parameter.value {
        Value::Null => Ok(None),
        Value::Bytes(bytes) => Ok(Some(bytes)),
        Value::Dropped => Err(Error::usage("a value of the capture was not kept")),
    }
}

/// The values of a command, which has no NULL.
pub(super) fn values(sent: &Sent) -> Result<Vec<&[u8]>> {
    sent.request.parameters.iter().map(|one| value(one).map(Option::unwrap_or_default)).collect()
}
