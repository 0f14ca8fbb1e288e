//! Facts about a call, before it is sent again, by the language of its protocol.

use super::{commands, http, memcached, mongodb, redis};
use crate::custom::reads::text_asks_for_write;
use kurabe_protocol::call::{Call, Language};
use kurabe_protocol::sql::{Dialect, Statement, are_several};

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
                let is = |what: &str| commands::is(language, what, command.name());
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
