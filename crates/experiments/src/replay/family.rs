//! Protocols that are sent alike, and what differs between them when a capture is read.

use super::{http, memcached, mongodb, redis, tables};
use crate::custom::reads::text_asks_for_write;

/// Protocols that are sent alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Postgres,
    Mysql,
    Redis,
    Memcached,
    Http,
    Mongodb,
}

impl Family {
    pub(super) fn of(scheme: &str) -> Option<Self> {
        match scheme {
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" | "mariadb" => Some(Self::Mysql),
            "redis" | "valkey" => Some(Self::Redis),
            "memcached" => Some(Self::Memcached),
            "couchdb" => Some(Self::Http),
            "mongodb" => Some(Self::Mongodb),
            _ => None,
        }
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
    pub(super) fn effects(this: Option<Self>, template: &str, shown: &str) -> (Option<String>, bool) {
        let lower = shown.to_ascii_lowercase();
        let locks = ["for update", "for share", "for no key", "for key share", "lock in share", "_lock("];
        match this {
            Some(Self::Redis) => (redis::writes(template), redis::waits(template)),
            Some(Self::Memcached) => (memcached::writes(template), false),
            Some(Self::Http) => (http::writes(template), false),
            Some(Self::Mongodb) => (mongodb::writes(template), false),
            _ => (text_asks_for_write(shown), locks.iter().any(|words| lower.contains(words))),
        }
    }

    /// The tables or collections that a template names.
    pub(super) fn tables(this: Option<Self>, template: &str, shown: &str) -> Vec<String> {
        match this {
            Some(Self::Mongodb) => mongodb::tables(template),
            Some(family) if family.has_commands() => Vec::new(),
            _ => tables::tables(&shown.to_ascii_lowercase()),
        }
    }

    /// Whether requests of this template cannot be sent again.
    pub(super) fn is_left_out(this: Option<Self>, text: &str) -> bool {
        // Commands of MySQL's protocol without a text of SQL.
        let is_command = text.starts_with("COM_") && !text.starts_with("COM_INIT_DB ") && text != "COM_PING";
        match this {
            Some(Self::Redis) => redis::is_left_out(text),
            Some(Self::Memcached) => memcached::is_left_out(text),
            Some(Self::Http) => http::is_left_out(text),
            Some(Self::Mongodb) => mongodb::is_left_out(text),
            _ => is_command || text.starts_with("command ") || text == "a function call",
        }
    }
}
