//! What the caller may decide about a server.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::{TestbedError, registry};

/// Connections that a server must have room for beside those that are asked for: an administrator's, and those that have
/// not quite ended yet.
const SPARE: u64 = 20;

/// How a server is started. Everything that is not said stays as the engine ships it.
#[derive(Clone)]
pub struct StartOptions {
    /// The program that [`crate::guard::run`]s when its first argument is [`crate::guard::SUBCOMMAND`]. There is no
    /// default on purpose: a program that is not prepared for it would start itself again and again.
    pub guard_program: PathBuf,
    /// The server's own settings by their own names: `max_connections=300`, `max_allowed_packet=64M`; for memcached
    /// the letter or the long name of an option: `m=256`, `I=4m`, `max-item-size=4m`.
    pub settings: Vec<(String, String)>,
    /// Offer TLS, with a certificate for 127.0.0.1 that a throwaway authority signed ([`crate::Server::ca`]).
    pub tls: bool,
    /// Listen on the Unix socket only, for the engine that has either a port or a socket (memcached); the others always
    /// have both.
    pub socket_only: bool,
    /// The password of the superuser; without one nobody is asked for any.
    pub password: Option<String>,
    /// The durability class, by its name, in which the server is to acknowledge writes, where its own defaults do not and
    /// the server alone decides; [`StartOptions::settings`] go before what that takes.
    pub durability: Option<String>,
    /// Connections that the server must take at once; where its own default is less, that setting is raised.
    pub connections: u64,
    /// Where it is to be a cache: for how many values it is to have room, and the bytes of each.
    pub room: Option<(u64, u64)>,
    /// Where the server's folder is made: else `$KURABE_TMP`, else the system's folder for temporary files.
    pub base: Option<PathBuf>,
    /// Write the new data folder to the disk before the server starts, so that the system does not do it later, in
    /// the middle of a measurement. Tests do without.
    pub settle: bool,
    /// How long the server may take until it answers.
    pub patience: Duration,
}

impl StartOptions {
    /// Default settings; `guard_program` as the field of that name.
    pub fn new(guard_program: impl Into<PathBuf>) -> Self {
        Self {
            guard_program: guard_program.into(),
            settings: Vec::new(),
            tls: false,
            socket_only: false,
            password: None,
            durability: None,
            connections: 0,
            room: None,
            base: None,
            settle: true,
            patience: Duration::from_secs(60),
        }
    }

    /// Adds one of the server's own settings.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Display) -> Self {
        self.settings.push((key.into(), format!("{value}")));
        self
    }

    /// Asks for TLS.
    #[must_use]
    pub fn with_tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Asks for a Unix socket in place of a port.
    #[must_use]
    pub fn on_socket_only(mut self) -> Self {
        self.socket_only = true;
        self
    }

    /// Sets the superuser's password.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets the folder in which the server's folder is made.
    #[must_use]
    pub fn in_folder(mut self, base: impl Into<PathBuf>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// The settings, behind those that the durability class takes and that are not among them.
    fn settings_with(&self, engine: &str) -> Vec<(String, String)> {
        let known = |name: &&str| self.settings.iter().any(|(key, _)| key == *name || alike(key, name));
        let of_class = self.durability.as_deref().map_or(&[][..], |class| {
            registry::by_name(engine).map_or(&[][..], |engine| engine.durability(class))
        });
        let more = of_class.iter().filter(|(name, _)| !known(name));
        let most = registry::by_name(engine).ok().and_then(Engine::connections);
        let most = most.and_then(|room| {
            let needed = self.connections + SPARE + room.own;
            let said = room.names.iter().any(known);
            (needed > room.default && !said).then(|| (room.names[0].to_owned(), needed.to_string()))
        });
        let cache =
            self.room.and_then(|(values, bytes)| registry::by_name(engine).ok()?.cache(values, bytes));
        let cache = cache.unwrap_or_default().into_iter().filter(|(name, _)| !known(&name.as_str()));
        more.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .chain(most)
            .chain(cache)
            .chain(self.settings.iter().cloned())
            .collect()
    }

    pub(crate) fn spec(&self, engine: &str) -> Spec {
        Spec {
            engine: engine.to_owned(),
            settings: self.settings_with(engine),
            tls: self.tls,
            socket_only: self.socket_only,
            password: self.password.clone(),
            base: self.base.clone(),
            settle: self.settle,
            patience_ms: u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Without the password.
impl fmt::Debug for StartOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartOptions")
            .field("guard_program", &self.guard_program)
            .field("settings", &self.settings)
            .field("tls", &self.tls)
            .field("socket_only", &self.socket_only)
            .field("has_password", &self.password.is_some())
            .field("durability", &self.durability)
            .field("connections", &self.connections)
            .field("room", &self.room)
            .field("base", &self.base)
            .field("settle", &self.settle)
            .field("patience", &self.patience)
            .finish()
    }
}

/// The order to the guard: what travels over its standard input, so that a password is in no argument list.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub engine: String,
    pub settings: Vec<(String, String)>,
    pub tls: bool,
    pub socket_only: bool,
    pub password: Option<String>,
    pub base: Option<PathBuf>,
    pub settle: bool,
    pub patience_ms: u64,
}

impl Spec {
    /// Refuses settings that are no settings, and those that the testbed decides itself: with them a server could
    /// leave the loopback or its folder.
    pub fn check(&self, reserved: &[&str]) -> Result<(), TestbedError> {
        let bad = |what| Err(TestbedError::BadOption { engine: self.engine.clone(), what });
        for (key, value) in &self.settings {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if key.is_empty() || key.starts_with('-') || !key.chars().all(plain) {
                return bad(format!("`{key}` is not the name of a setting; write it as key=value"));
            }
            if value.contains(['\0', '\n']) {
                return bad(format!("the value of `{key}` holds a line break or a zero byte"));
            }
            // Servers take - for _ and, some of them, any letter case.
            let same = |name: &&str| name.len() == 1 && *name == key || alike(name, key);
            if reserved.iter().any(same) {
                return bad(format!(
                    "`{key}` is decided by the testbed (folder, port and loopback stay its own)"
                ));
            }
        }
        if self.password.as_ref().is_some_and(|p| p.is_empty() || p.contains(['\0', '\n', '\r'])) {
            return bad("a password must not be empty and must not hold a line break".to_owned());
        }
        Ok(())
    }
}

/// Is it the same long name, `-` and `_` and letter case aside?
fn alike(a: &str, b: &str) -> bool {
    let plain = |s: &str| s.replace('-', "_").to_ascii_lowercase();
    a.len() > 1 && plain(a) == plain(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, value: &str) -> Result<(), TestbedError> {
        StartOptions::new("guard").set(key, value).spec("mysql").check(&["bind-address", "l"])
    }

    #[test]
    fn a_setting_of_the_server_passes() {
        assert_eq!(check("max_connections", "300"), Ok(()));
        assert_eq!(check("L", ""), Ok(()));
    }

    #[test]
    fn what_the_testbed_decides_is_refused_however_it_is_spelt() {
        for key in ["bind-address", "bind_address", "Bind_Address", "l"] {
            assert!(check(key, "0.0.0.0").is_err(), "{key}");
        }
    }

    #[test]
    fn the_settings_of_a_durability_class_come_before_the_callers_own_which_replace_them() {
        let mut options = StartOptions::new("guard").set("Sync-Binlog", "7");
        options.durability = Some("periodic-sync".to_owned());
        let settings = options.spec("mysql").settings;
        let text: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(text, ["innodb_flush_log_at_trx_commit=2", "Sync-Binlog=7"]);
    }

    #[test]
    fn room_for_connections_is_made_where_the_default_has_not_enough_and_the_caller_says_nothing() {
        let settings = |engine: &str, connections, own: &[(&str, &str)]| {
            let options = own.iter().fold(StartOptions::new("guard"), |o, (key, value)| o.set(*key, value));
            let options = StartOptions { connections, ..options };
            let settings = options.spec(engine).settings;
            settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(settings("mysql", 131, &[]), "");
        assert_eq!(settings("mysql", 132, &[]), "max_connections=152");
        assert_eq!(settings("postgres", 1_000, &[("Max-Connections", "7")]), "Max-Connections=7");
        assert_eq!(settings("memcached", 983, &[]), "");
        assert_eq!(settings("memcached", 1_002, &[]), "c=1043");
        assert_eq!(settings("memcached", 5_000, &[("conn-limit", "9")]), "conn-limit=9");
        assert_eq!(settings("redis", 10_000, &[]), "maxclients=10020");
    }

    #[test]
    fn a_cache_gets_room_for_its_values_and_only_a_cache_does() {
        let settings = |engine: &str, own: &[(&str, &str)]| {
            let options = own.iter().fold(StartOptions::new("guard"), |o, (key, value)| o.set(*key, value));
            let options = StartOptions { room: Some((10_000, 1_000)), ..options };
            let settings = options.spec(engine).settings;
            settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert!(settings("memcached", &[]).starts_with("m="));
        assert_eq!(settings("memcached", &[("m", "7")]), "m=7");
        assert!(
            settings("redis", &[("maxmemory-policy", "allkeys-lfu")])
                .ends_with("maxmemory-policy=allkeys-lfu")
        );
        assert_eq!(settings("mysql", &[]), "");
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for (key, value) in [("", "1"), ("--x", "1"), ("a b", "1"), ("a=b", "1"), ("a", "1\n2")] {
            assert!(check(key, value).is_err(), "{key}={value}");
        }
    }
}
