//! A request as it was recorded, its values, and what is known of the commands of protocols, from `commands.txt`.

use super::mongodb;
use kurabe_capture::record::{Parameter, Request, Value};
use kurabe_core::{Error, Result};
use kurabe_protocol::call::Language;
use kurabe_protocol::command::Command;

/// The maximum size of a message with bulk data, in bytes.
pub(super) const PIECE: usize = 1 << 20;

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
    /// Whether its answer depends on time, chance or the server, as that of a command does, or of `EXEC` after such a one.
    pub(super) varies: bool,
    /// Facts about a command of MongoDB.
    pub(super) document: Option<mongodb::Asked>,
}

/// Whether `commands.txt` says this of a command.
pub(super) fn is(language: Language, what: &str, command: &str) -> bool {
    let protocol = match language {
        Language::Redis => "redis",
        Language::Documents => "mongodb",
        _ => "memcached",
    };
    let lines = include_str!("commands.txt").lines().map(|line| line.split(' '));
    let mut named = lines.filter_map(|mut words| {
        (words.next() == Some(protocol) && words.next() == Some(what)).then_some(words)
    });
    named.any(|mut words| words.any(|word| word == command))
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
pub(super) fn words<'a>(command: &Command<'a>) -> Result<Vec<&'a [u8]>> {
    command.values().map(|one| value(one).map(Option::unwrap_or_default)).collect()
}
