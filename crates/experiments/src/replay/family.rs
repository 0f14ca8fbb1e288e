//! Protocols that are sent alike, and what differs between them when a capture is read.

use super::{commands, http, memcached, mongodb, redis};
use crate::custom::reads::{has_values_in_gaps, is_value, text_asks_for_write};
use kurabe_capture::record::Parameter;
use kurabe_protocol::call::{Call, Language, is_quiet};
use kurabe_protocol::sql::{Dialect, Statement};
use kurabe_wire::statement::GAP;

/// Protocols that are sent alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Family {
    #[default]
    Postgres,
    Mysql,
    Redis,
    Memcached,
    Http,
    Mongodb,
}

/// The schemes of their targets.
const SCHEMES: [(Family, &[&str]); 6] = [
    (Family::Postgres, &["postgres", "postgresql"]),
    (Family::Mysql, &["mysql", "mariadb"]),
    (Family::Redis, &["redis", "valkey"]),
    (Family::Memcached, &["memcached"]),
    (Family::Http, &["couchdb", "couchdbs"]),
    (Family::Mongodb, &["mongodb"]),
];

impl Family {
    pub(super) fn of(scheme: &str) -> Option<Self> {
        SCHEMES.iter().find(|(_, schemes)| schemes.contains(&scheme)).map(|(family, _)| *family)
    }

    /// The schemes of targets on which its captures can be replayed.
    pub(super) fn schemes(self) -> &'static [&'static str] {
        SCHEMES.iter().find(|(family, _)| *family == self).map_or(&[], |(_, schemes)| schemes)
    }

    /// Whether the table of commands says this of a command of Redis or memcached.
    pub(super) fn is(self, what: &str, command: &str) -> bool {
        let protocol = if self == Self::Redis { "redis" } else { "memcached" };
        matches!(self, Self::Redis | Self::Memcached) && commands::is(protocol, what, command)
    }

    /// Whether it has commands, or methods with paths, in place of statements.
    pub(super) fn has_commands(self) -> bool {
        self.language().sql().is_none()
    }

    /// Whether a request has no answer.
    pub(super) fn is_quiet(self, parts: &[Parameter]) -> bool {
        self.has_commands() && is_quiet(parts)
    }

    fn language(self) -> Language {
        match self {
            Self::Postgres => Language::Sql(Dialect::POSTGRES),
            Self::Mysql => Language::Sql(Dialect::MYSQL),
            Self::Redis | Self::Memcached => Language::Commands,
            Self::Mongodb => Language::Documents,
            Self::Http => Language::Couchdb,
        }
    }

    /// How its texts of SQL are read.
    pub(super) fn dialect(self) -> Dialect {
        self.language().sql().unwrap_or_default()
    }

    /// The call of a request, whose statement has this text.
    pub(super) fn call<'a>(self, text: &'a str, parts: &'a [Parameter]) -> Option<Call<'a>> {
        self.language().call(text, parts)
    }

    /// Facts about a call, before it is sent again.
    pub(super) fn judged(self, call: &Call<'_>) -> Judged {
        let is_setup = call.is_setup();
        match call {
            Call::Sql(text, dialect) => Judged {
                writes: self.asks_for_write(text),
                locks: Statement::read(text, *dialect).locks(),
                is_left_out: is_left_out(text),
                is_malformed: self == Self::Postgres && text.contains('\0'),
                is_setup,
            },
            Call::Command(command) => {
                let is = |what: &str| self.is(what, command.name());
                let (what, judged) = match self {
                    Self::Redis => ("keys", redis::writes(command)),
                    _ => ("values", memcached::writes(command)),
                };
                let writes = !is("reads") && !is("judged");
                Judged {
                    writes: writes.then(|| format!("{} may change {what}", command.name())).or(judged),
                    locks: is("waits"),
                    // Requests that execute a script by its checksum need it.
                    is_left_out: is("left-out") && !command.names().eq(["SCRIPT", "LOAD"]),
                    is_malformed: command.has_unknown()
                        || self == Self::Memcached && memcached::is_malformed(command),
                    is_setup,
                }
            }
            Call::Document(command) => Judged {
                writes: mongodb::writes(command),
                is_left_out: mongodb::is_left_out(command),
                is_setup,
                ..Judged::default()
            },
            Call::Http(request) => Judged {
                writes: http::writes(request),
                is_left_out: http::is_left_out(request),
                is_malformed: http::is_malformed(request),
                is_setup,
                ..Judged::default()
            },
        }
    }

    /// Whether a statement inserts rows, or asks for the next number of a sequence.
    pub(super) fn inserts(self, shown: &str) -> bool {
        if self.has_commands() {
            return false;
        }
        let statement = Statement::read(shown, self.dialect());
        let words = ["insert", "merge", "nextval", "replace"];
        statement.tokens().iter().any(|token| token.is_one_of(&words))
    }

    /// The name of the engine whose way of writing SQL it has.
    fn engine(self) -> Option<&'static str> {
        match self {
            Self::Postgres => Some("postgres"),
            Self::Mysql => Some("mysql"),
            _ => None,
        }
    }

    fn asks_for_write(self, text: &str) -> Option<String> {
        let is_command = self == Self::Mysql && is_of_session(text);
        if is_command { None } else { text_asks_for_write(text, self.engine()) }
    }

    /// Whether what [`is_plain`](Self::is_plain) says of the literals of a request is enough to judge it by its template.
    pub(super) fn has_values_in_gaps(self, template: &str) -> bool {
        self.engine().is_some_and(|engine| has_values_in_gaps(template, GAP, engine))
    }

    /// Whether a literal is one value.
    pub(super) fn is_plain(self, literal: &str) -> bool {
        self.engine().is_some_and(|engine| is_value(literal, engine))
    }

    /// The tables that a template of SQL names.
    pub(super) fn tables(self, shown: &str) -> Vec<String> {
        if self.has_commands() { Vec::new() } else { Statement::read(shown, self.dialect()).tables() }
    }
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

/// Whether what stands for a request of MySQL or PostgreSQL has no text of SQL.
fn is_left_out(text: &str) -> bool {
    let is_command = text.starts_with("COM_") && !text.starts_with("COM_INIT_DB ") && !is_of_session(text);
    is_command || text.starts_with("command ") || text == "a function call"
}

/// Whether a command of MySQL's protocol without a text changes its session at most.
fn is_of_session(text: &str) -> bool {
    text == "COM_PING" || text.starts_with("COM_SET_OPTION ")
}
