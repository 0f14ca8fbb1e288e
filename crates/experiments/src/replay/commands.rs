//! A request as it was recorded, its values, and what is known of the commands of protocols, from `commands.txt`.

use kurabe_capture::record::{Parameter, Request, Value};
use kurabe_core::{Error, Result};

/// The maximum size of a message with bulk data, in bytes.
pub(super) const PIECE: usize = 1 << 20;

/// A request as it was recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    pub(super) request: Request,
    pub(super) template: usize,
    /// Types of the parameters of a statement that is prepared.
    pub(super) types: Vec<u32>,
    /// Values that the server made, in the answer.
    pub(super) made: Vec<Vec<u8>>,
    /// What a command that gave ids of streams named beside them, or those of its transaction.
    pub(super) names: Vec<Vec<u8>>,
    /// Bulk data.
    pub(super) data: Vec<u8>,
    /// Whether it goes on with what another connection began.
    pub(super) goes_on: bool,
    /// When the cursor was opened that it goes on with.
    pub(super) since: Option<u64>,
    /// Whether its answer has those of commands that depend on time, chance or the server: `EXEC`.
    pub(super) varies: bool,
}

/// Whether `commands.txt` says this of the first word of a command.
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

/// Whether a byte of what is divided by spaces and ends of lines would end a word or a line.
pub(super) fn divides(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
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
pub(super) fn values(request: &Request) -> Result<Vec<&[u8]>> {
    request.parameters.iter().map(|one| value(one).map(Option::unwrap_or_default)).collect()
}
