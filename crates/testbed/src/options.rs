//! The options of a server.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::password::Password;
use crate::registry;
use crate::spec::{Application, Spec, alike};
use crate::testing::small;

/// Additional connections: an administrator's, and those that are still closing.
const SPARE: u64 = 20;

/// How to start a server. Everything that is not set has the engine's default. It cannot be formatted, since it may
/// contain a password.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct StartOptions {
    /// A program that calls [`crate::supervisor::run`] if its first argument is [`crate::supervisor::SUBCOMMAND`].
    /// There is no default: a program that does not do this would start itself repeatedly.
    pub supervisor_program: PathBuf,
    /// The only folder to search for the server's programs, to choose a version or a build; default: as the crate's
    /// documentation says.
    pub programs: Option<PathBuf>,
    /// Settings of the server by their own names: `max_connections=300`, `max_allowed_packet=64M`; for memcached the
    /// letter or the long name of an option: `m=256`, `I=4m`, `max-item-size=4m`. `mtu=1500` is no setting of a server:
    /// it starts the server on a host of its own, behind a link with this MTU. Nor is `login=none`, of memcached only, whose
    /// clients often cannot log in: every account of this machine may use that server.
    pub settings: Vec<(String, String)>,
    /// Whether to offer TLS, with a certificate for 127.0.0.1 signed by a throwaway authority
    /// ([`crate::Server::ca`]).
    pub tls: bool,
    /// Whether to listen only on the Unix socket, for the engine that has either a port or a socket (memcached); the
    /// others always have both.
    pub socket_only: bool,
    /// The password of the superuser; `None`: a random one, which is in [`crate::Server::url`].
    pub password: Option<String>,
    /// The durability class of writes, by its name, if it differs from the defaults and only the server can set it;
    /// [`StartOptions::settings`] override its settings.
    pub durability: Option<String>,
    /// The minimum number of connections; the setting is increased if its default is lower.
    pub connections: u64,
    /// For a cache: the number of values and the bytes of each.
    pub room: Option<(u64, u64)>,
    /// Whether the server must be able to read other servers' tables: optional storage engines for that are loaded, as
    /// far as they are installed.
    pub links: bool,
    /// The parent of the server's folder; default: `$KURABE_TMP`, or the system's folder for temporary files.
    pub base: Option<PathBuf>,
    /// Whether to write the new data folder to disk before the server starts, so that the system does not do it
    /// during a measurement. Tests skip it.
    pub sync_data: bool,
    /// Whether the data folder is made as small as the engine permits, with small logs. Only tests do this: such a
    /// server may wait for its log where one with default settings does not.
    pub small_files: bool,
    /// Whether the server caches little of its data, so that small stores do not fit.
    pub small_cache: bool,
    /// Whether several tests use the server one after the other, which the count of starts tells.
    pub shared: bool,
    /// For an application stack: its database and its data.
    pub application: Option<Application>,
    /// The time limit until the server answers.
    pub timeout: Duration,
}

impl StartOptions {
    /// Default settings; `supervisor_program` as the field of that name. A program that is tested starts servers as tests
    /// do.
    pub fn new(supervisor_program: impl Into<PathBuf>) -> Self {
        let small_files = small::small_servers();
        Self {
            supervisor_program: supervisor_program.into(),
            programs: None,
            settings: Vec::new(),
            tls: false,
            socket_only: false,
            password: None,
            durability: None,
            connections: 0,
            room: None,
            links: false,
            base: small::memory().filter(|_| small_files).map(Path::to_owned),
            sync_data: !small_files,
            small_files,
            small_cache: false,
            shared: false,
            application: None,
            timeout: Duration::from_secs(60),
        }
    }

    /// Adds a setting of the server.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Display) -> Self {
        self.settings.push((key.into(), format!("{value}")));
        self
    }

    /// Enables TLS.
    #[must_use]
    pub fn with_tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Uses a Unix socket instead of a port.
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

    /// Sets the parent of the server's folder.
    #[must_use]
    pub fn in_folder(mut self, base: impl Into<PathBuf>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// The settings, after those of the durability class that they do not override.
    fn settings_with(&self, engine: &str) -> Vec<(String, String)> {
        let known = |name: &&str| self.settings.iter().any(|(key, _)| key == *name || alike(key, name));
        let engine = registry::by_name(engine).ok();
        let of_class = engine.zip(self.durability.as_deref());
        let of_class = of_class.map_or(&[][..], |(engine, class)| (engine.durability)(class));
        let more = of_class.iter().filter(|(name, _)| !known(name));
        let most = engine.and_then(|engine| engine.connections.as_ref()).and_then(|limit| {
            let needed = self.connections + SPARE + limit.own;
            let is_set = limit.names.iter().any(known);
            (needed > limit.default && !is_set).then(|| (limit.names[0].to_owned(), needed.to_string()))
        });
        let cache = engine.and_then(|engine| engine.cache).zip(self.room);
        let cache = cache.map(|(cache, (values, bytes))| cache(values, bytes));
        let cache = cache.unwrap_or_default().into_iter().filter(|(name, _)| !known(&name.as_str()));
        let links = engine.filter(|_| self.links).map(|engine| (engine.links)()).unwrap_or_default();
        let small = engine.filter(|_| self.small_files).map_or(&[][..], |engine| engine.small);
        let small_cache = engine.filter(|_| self.small_cache).map_or(&[][..], |engine| engine.small_cache);
        let small = small.iter().chain(small_cache).filter(|(name, _)| !known(name));
        more.chain(small)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .chain(links)
            .chain(most)
            .chain(cache)
            .chain(self.settings.iter().cloned())
            .collect()
    }

    pub(crate) fn spec(&self, engine: &str) -> Spec {
        Spec {
            engine: engine.to_owned(),
            settings: self.settings_with(engine),
            host_mtu: None,
            tls: self.tls,
            socket_only: self.socket_only,
            password: self.password.clone().map(Password::new),
            login: false,
            base: self.base.clone(),
            sync_data: self.sync_data,
            small_files: self.small_files,
            shared: self.shared,
            application: self.application.clone(),
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestbedError;

    fn check(key: &str, value: &str) -> Result<(), TestbedError> {
        StartOptions::new("supervisor").set(key, value).spec("mysql").check(&["bind-address", "l"])
    }

    #[test]
    fn valid_setting_is_accepted() {
        assert_eq!(check("max_connections", "300"), Ok(()));
        assert_eq!(check("L", ""), Ok(()));
    }

    #[test]
    fn reserved_setting_is_rejected_in_any_spelling() {
        for key in ["bind-address", "bind_address", "Bind_Address", "l"] {
            assert!(check(key, "0.0.0.0").is_err(), "{key}");
        }
    }

    #[test]
    fn callers_settings_override_those_of_a_durability_class() {
        let mut options = StartOptions::new("supervisor").set("Sync-Binlog", "7");
        options.durability = Some("periodic-sync".to_owned());
        let settings = options.spec("mysql").settings;
        let text: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(text, ["innodb_flush_log_at_trx_commit=2", "Sync-Binlog=7"]);
    }

    #[test]
    fn callers_settings_override_a_small_cache() {
        let own = StartOptions::new("supervisor").set("innodb-buffer-pool-size", "8M");
        for (options, expected) in [(own, "8M"), (StartOptions::new("supervisor"), "6M")] {
            let settings = StartOptions { small_cache: true, ..options }.spec("mariadb").settings;
            let pool: Vec<_> =
                settings.iter().filter(|(name, _)| alike(name, "innodb_buffer_pool_size")).collect();
            assert!(matches!(pool[..], [(_, value)] if value == expected), "{settings:?}");
        }
    }

    #[test]
    fn connection_limit_is_raised_if_default_is_too_low() {
        let settings = |engine: &str, connections, own: &[(&str, &str)]| {
            let options =
                own.iter().fold(StartOptions::new("supervisor"), |o, (key, value)| o.set(*key, value));
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
    fn only_caches_get_memory_limit() {
        let settings = |engine: &str, own: &[(&str, &str)]| {
            let options =
                own.iter().fold(StartOptions::new("supervisor"), |o, (key, value)| o.set(*key, value));
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
    fn invalid_setting_is_rejected() {
        for (key, value) in [("", "1"), ("--x", "1"), ("a b", "1"), ("a=b", "1"), ("a", "1\n2")] {
            assert!(check(key, value).is_err(), "{key}={value}");
        }
    }
}
