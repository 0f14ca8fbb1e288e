//! Commands of Redis and memcached: a name of one word or two, and words that are values.

use crate::call::{NAME, Parameter, QUIET, is_quiet};

/// Commands by which clients set up a connection or ask about the server.
const SETUP: [&str; 25] = [
    "ACL", "ASKING", "AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ECHO", "HELLO", "INFO", "PING",
    "QUIT", "READONLY", "RESET", "ROLE", "SELECT", "SENTINEL", "mn", "quit", "refresh_certs", "shutdown",
    "stats", "verbosity", "version", "watch",
];

#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    parts: &'a [Parameter],
}

/// The parts of a command. The name of one of Redis is in capitals.
pub fn parts<'a>(
    name: impl IntoIterator<Item = &'a str>,
    words: impl IntoIterator<Item = Vec<u8>>,
    is_quiet: bool,
) -> Vec<Parameter> {
    let name = name.into_iter().map(|word| Parameter::new(NAME, false, word.as_bytes()));
    let words = words.into_iter().map(|word| Parameter::new(0, false, word));
    let quiet = is_quiet.then(|| Parameter { kind: QUIET, ..Parameter::default() });
    name.chain(words).chain(quiet).collect()
}

impl<'a> Command<'a> {
    /// Parts as a command; `None` if they have no name.
    pub fn read(parts: &'a [Parameter]) -> Option<Self> {
        parts.first().filter(|first| first.kind == NAME && first.bytes().is_some())?;
        Some(Self { parts })
    }

    pub fn name(self) -> &'a str {
        self.names().next().unwrap_or_default()
    }

    pub fn names(self) -> impl Iterator<Item = &'a str> {
        self.parts.iter().filter(|one| one.kind == NAME).map(Parameter::text)
    }

    /// The parts that are values.
    pub fn values(self) -> impl Iterator<Item = &'a Parameter> {
        self.parts.iter().filter(|one| one.kind == 0)
    }

    /// The values that were kept.
    pub fn words(self) -> impl Iterator<Item = &'a [u8]> {
        self.values().filter_map(Parameter::bytes)
    }

    /// Whether a part is of a kind that this program does not know.
    pub fn has_unknown(self) -> bool {
        self.parts.iter().any(|one| ![NAME, 0, QUIET].contains(&one.kind))
    }

    /// Whether it has no answer.
    pub fn is_quiet(self) -> bool {
        is_quiet(self.parts)
    }

    /// Whether it sets up a connection or asks about the server.
    pub fn is_setup(self) -> bool {
        SETUP.contains(&self.name())
    }

    /// Whether it begins or ends a transaction of Redis, or says what ends one.
    pub fn is_of_transaction(self) -> bool {
        ["DISCARD", "EXEC", "MULTI", "UNWATCH", "WATCH"].contains(&self.name())
    }

    /// For people: `SET ?`.
    pub fn text(self) -> String {
        let mut words: Vec<&str> = self.names().collect();
        words.extend(self.values().next().map(|_| "?"));
        words.extend(self.is_quiet().then_some("noreply"));
        words.join(" ")
    }
}
