//! Facts about a server: version, settings, limits.

use crate::durability::DurabilityClass;
use crate::error::Error;
use crate::text::into_printable;
use serde::{Deserialize, Serialize};

/// The name of the setting that says how clients log in.
pub const LOGIN: &str = "login";

/// A setting of the server or the session that affects results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name in the server's own notation.
    pub name: String,
    /// Its value as the server prints it.
    pub value: String,
}

impl Setting {
    /// A setting by name and value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// Formats settings for display: `fsync = on, full_page_writes = on`.
    pub fn list(settings: &[Self]) -> String {
        let shown = settings.iter().map(|setting| format!("{} = {}", setting.name, setting.value));
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// A limit of the server, with the setting that defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The largest value that is allowed.
    pub most: u64,
    /// The setting that defines it: `max_allowed_packet`, `-I` (item size).
    pub set_by: String,
}

impl Limit {
    /// A limit and its setting.
    pub fn new(most: u64, set_by: impl Into<String>) -> Self {
        Self { most, set_by: set_by.into() }
    }
}

/// The limits of a server. `None`: no limit that matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Connections that this user may hold at once.
    pub connections: Option<Limit>,
    /// Connections that are open now, except Kurabe's, if the server reports them.
    pub connections_in_use: Option<u64>,
    pub value_bytes: Option<Limit>,
    /// Bytes of one request or reply, including all parameters.
    pub request_bytes: Option<Limit>,
    /// Parameters of one request.
    pub parameters: Option<Limit>,
    /// Statements that sessions may have prepared at once, besides those that others have now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared_statements: Option<Limit>,
    /// Seconds after which the server closes an idle connection, whatever a session asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<Limit>,
}

/// What tells a server from all others, and a database from others on it, by whatever name they are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// In the server's own words: `system identifier 7…`.
    pub server: String,
    /// The database on it.
    pub database: String,
}

/// What a driver read from its server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// The engine's name: "PostgreSQL", "MariaDB".
    pub engine: String,
    /// Its version as the server reports it.
    pub version: String,
    /// The client library: "mysql crate 28.0", "libsqlite3 3.50 in process".
    pub client: String,
    /// The transport: "TCP", "Unix socket", "TCP with TLS 1.3", "in process".
    pub transport: String,
    /// How long the smallest request takes, in nanoseconds, if that is long; `None`: less, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ns: Option<u64>,
    /// What an acknowledged write survives; `None` if unknown.
    pub durability: Option<DurabilityClass>,
    /// The settings that decide the durability class.
    pub durability_settings: Vec<Setting>,
    /// Other settings that affect results: buffer sizes, page size, character set.
    pub settings: Vec<Setting>,
    pub limits: Limits,
    /// What tells it from other servers; `None`: unknown. It is compared within a run, and not recorded.
    #[serde(skip)]
    pub identity: Option<ServerIdentity>,
    /// Why nothing can be written, as a clause: "it is a standby (in recovery)"; `None` if it can, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
    /// Why no table can be created, as a clause, if existing ones may be changed; `None` if some can, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_tables: Option<String>,
    /// Unsupported operations and other remarks for the reader, one sentence each.
    pub notes: Vec<String>,
}

impl ServerFacts {
    /// The error for a durability class that the target cannot provide; `why` continues "… and not 'synced', ".
    pub fn refuse_durability(&self, class: DurabilityClass, why: &str, hint: &str) -> Error {
        let found = self.durability.map_or_else(|| "unknown".to_owned(), |found| format!("'{found}'"));
        let settings = Setting::list(&self.durability_settings);
        let because = if settings.is_empty() { settings } else { format!(" ({settings})") };
        let engine = &self.engine;
        let message =
            format!("the durability class of {engine} is {found}{because} and not '{class}', {why}");
        Error::unsupported(message).hint(hint)
    }

    /// The same facts with the server's texts escaped ([`text`](crate::text)).
    #[must_use]
    pub fn printable(mut self) -> Self {
        let Limits {
            connections,
            connections_in_use: _,
            value_bytes,
            request_bytes,
            parameters,
            prepared_statements,
            idle_seconds,
        } = &mut self.limits;
        let limits = [connections, value_bytes, request_bytes, parameters, prepared_statements, idle_seconds];
        let limits = limits.into_iter().flatten().map(|limit| &mut limit.set_by);
        let settings = self.durability_settings.iter_mut().chain(&mut self.settings);
        let settings = settings.flat_map(|setting| [&mut setting.name, &mut setting.value]);
        let texts = [&mut self.engine, &mut self.version, &mut self.client, &mut self.transport].into_iter();
        let reasons = self.read_only.iter_mut().chain(&mut self.no_tables).chain(&mut self.notes);
        for text in texts.chain(limits).chain(settings).chain(reasons) {
            *text = into_printable(std::mem::take(text));
        }
        self
    }
}
