//! A request as it was recorded, its values, and what is known of the commands of protocols, from `commands.txt`.

use super::{http, memcached, mongodb, redis};
use crate::custom::reads::text_asks_for_write;
use kurabe_capture::record::{Parameter, Request, Value};
use kurabe_core::{Error, Result};
use kurabe_protocol::call::{Call, Language};
use kurabe_protocol::command::Command;
use kurabe_protocol::sql::{Dialect, Statement, are_several};

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

/// The schemes of targets on which captures of the same protocol can be replayed.
const SCHEMES: [&[&str]; 6] = [
    &["postgres", "postgresql"],
    &["mysql", "mariadb"],
    &["redis", "valkey"],
    &["memcached"],
    &["couchdb", "couchdbs"],
    &["mongodb"],
];

/// The schemes of targets on which a capture of a protocol can be replayed; `None` if it cannot be.
pub(super) fn schemes(protocol: &str) -> Option<&'static [&'static str]> {
    SCHEMES.into_iter().find(|schemes| schemes.contains(&protocol))
}

/// Facts about a call, before it is sent again.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Judged {
    /// Why it may change something.
    pub(super) writes: Option<String>,
    /// Whether it locks rows, or may wait for another client.
    pub(super) locks: bool,
    /// Whether it cannot be sent again.
    pub(super) is_left_out: bool,
    /// Whether it would be read as another request, or as several.
    pub(super) is_malformed: bool,
    /// Whether it only prepares a session or a transaction.
    pub(super) is_setup: bool,
}

impl Judged {
    pub(super) fn read(call: &Call<'_>, language: Language) -> Self {
        let is_setup = call.is_setup();
        match call {
            Call::Sql(text, dialect) => Self {
                writes: asks_for_write(text, *dialect),
                locks: Statement::read(text, *dialect).locks(),
                is_left_out: is_left_out(text),
                is_malformed: dialect.is_postgres() && text.contains('\0'),
                is_setup,
            },
            Call::Command(command) => {
                let is = |what: &str| is(language, what, command.name());
                let (what, judged) = match language {
                    Language::Redis => ("keys", redis::writes(command)),
                    _ => ("values", memcached::writes(command)),
                };
                let writes = !is("reads") && !is("judged");
                Self {
                    writes: writes.then(|| format!("{} may change {what}", command.name())).or(judged),
                    locks: is("waits"),
                    // Requests that execute a script by its checksum need it.
                    is_left_out: is("left-out") && !command.names().eq(["SCRIPT", "LOAD"]),
                    is_malformed: command.has_unknown()
                        || language == Language::Memcached && memcached::is_malformed(command),
                    is_setup,
                }
            }
            Call::Document(command) => Self {
                writes: mongodb::writes(command),
                is_left_out: mongodb::is_left_out(command),
                is_setup,
                ..Self::default()
            },
            Call::Http(request) => Self {
                writes: http::writes(request),
                is_left_out: http::is_left_out(request),
                is_malformed: http::is_malformed(request),
                is_setup,
                ..Self::default()
            },
        }
    }
}

/// The name of the engine that writes SQL so.
pub(super) fn engine(dialect: Dialect) -> &'static str {
    if dialect.is_mysql() { "mysql" } else { "postgres" }
}

fn asks_for_write(text: &str, dialect: Dialect) -> Option<String> {
    if dialect.is_mysql() && is_of_session(text) {
        return text.starts_with(SET_OPTION).then(|| "a text may be several statements after it".to_owned());
    }
    // A statement may give the session another dialect than the recorded one.
    are_several(text, &[dialect]).or_else(|| text_asks_for_write(text, Some(engine(dialect))))
}

/// Whether what stands for a request of MySQL or PostgreSQL has no text of SQL.
fn is_left_out(text: &str) -> bool {
    let is_command = text.starts_with("COM_") && !text.starts_with("COM_INIT_DB ") && !is_of_session(text);
    is_command || text.starts_with("command ") || text == "a function call"
}

const SET_OPTION: &str = "COM_SET_OPTION ";

/// Whether a command of MySQL's protocol without a text changes its session at most.
fn is_of_session(text: &str) -> bool {
    text == "COM_PING" || text.starts_with(SET_OPTION)
}
