//! Protocols that are sent alike, and what differs between them when a capture is read.

use super::redis;
use super::{commands, http, memcached, mongodb};
use crate::custom::reads::{has_values_in_gaps, is_value, text_asks_for_write};
use kurabe_capture::record::Request;
use kurabe_protocol::sql::Statement;
use kurabe_wire::statement::{Dialect, GAP};

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
    pub(super) fn is(self, what: &str, text: &str) -> bool {
        let protocol = if self == Self::Redis { "redis" } else { "memcached" };
        matches!(self, Self::Redis | Self::Memcached) && commands::is(protocol, what, text)
    }

    /// Whether it has commands, or methods with paths, in place of statements.
    pub(super) fn has_commands(self) -> bool {
        matches!(self, Self::Redis | Self::Memcached | Self::Http | Self::Mongodb)
    }

    /// Whether a request has no answer.
    pub(super) fn is_quiet(self, text: &str) -> bool {
        match self {
            Self::Memcached => memcached::is_quiet(text),
            Self::Mongodb => mongodb::is_quiet(text),
            _ => false,
        }
    }

    /// Why a request of this template may change something, and whether it locks rows.
    pub(super) fn effects(self, template: &str, shown: &str) -> (Option<String>, bool) {
        match self {
            Self::Redis | Self::Memcached => {
                let writes = !self.is("reads", template) && !self.is("judged", template);
                let what = if self == Self::Redis { "keys" } else { "values" };
                let why = || format!("{} may change {what}", commands::command(template));
                (writes.then(why), self.is("waits", template))
            }
            Self::Http => (http::writes(template), false),
            Self::Mongodb => (mongodb::writes(template), false),
            Self::Postgres | Self::Mysql => {
                let locks = Statement::read(shown, self.dialect().sql()).locks();
                (self.asks_for_write(shown), locks)
            }
        }
    }

    /// How its texts are read.
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Self::Mysql => Dialect::Mysql,
            Self::Mongodb => Dialect::Mongodb,
            Self::Http => Dialect::Couchdb,
            Self::Postgres => Dialect::Postgres,
            Self::Redis | Self::Memcached => Dialect::Commands,
        }
    }

    /// Whether a statement inserts rows, or asks for the next number of a sequence.
    pub(super) fn inserts(self, shown: &str) -> bool {
        if self.has_commands() {
            return false;
        }
        let statement = Statement::read(shown, self.dialect().sql());
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

    /// Why a request with this text may change something, as it is sent.
    pub(super) fn writes(self, text: &str, request: &Request) -> Option<String> {
        match self {
            Self::Postgres | Self::Mysql => self.asks_for_write(text),
            Self::Redis => redis::writes(text, request),
            Self::Memcached => memcached::writes(text, request),
            Self::Http => http::writes(text),
            Self::Mongodb => mongodb::writes(text).or_else(|| mongodb::hides(request)),
        }
    }

    /// Whether a request with this text would be read as another one, or as several.
    pub(super) fn is_malformed(self, text: &str, request: &Request) -> bool {
        match self {
            Self::Postgres => text.contains('\0'),
            Self::Memcached => memcached::is_malformed(text, request),
            Self::Http => http::is_malformed(text, request),
            Self::Mysql | Self::Redis | Self::Mongodb => false,
        }
    }

    /// The tables or collections that a template names.
    pub(super) fn tables(self, template: &str, shown: &str) -> Vec<String> {
        match self {
            Self::Mongodb => mongodb::tables(template),
            family if family.has_commands() => Vec::new(),
            _ => Statement::read(shown, self.dialect().sql()).tables(),
        }
    }

    /// Whether requests of this template cannot be sent again.
    pub(super) fn is_left_out(self, text: &str) -> bool {
        // Commands of MySQL's protocol without a text of SQL.
        let is_command =
            text.starts_with("COM_") && !text.starts_with("COM_INIT_DB ") && !is_of_session(text);
        match self {
            // Requests that execute a script by its checksum need it.
            Self::Redis if text.starts_with("SCRIPT LOAD") => false,
            Self::Redis | Self::Memcached => self.is("left-out", text),
            Self::Http => http::is_left_out(text),
            Self::Mongodb => mongodb::is_left_out(text),
            Self::Postgres | Self::Mysql => {
                is_command || text.starts_with("command ") || text == "a function call"
            }
        }
    }
}

/// Whether a command of MySQL's protocol without a text changes its session at most.
fn is_of_session(text: &str) -> bool {
    text == "COM_PING" || text.starts_with("COM_SET_OPTION ")
}
