//! What the tool asks a supervisor for: a server with its settings, and the application of a stack.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::password::Password;
use crate::{TestbedError, host};

/// The options that the tool sends to the supervisor's standard input, so that the password is in no argument list.
#[derive(Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Spec {
    pub engine: String,
    pub settings: Vec<(String, String)>,
    /// The MTU of the link to a host of its own; `None`: it runs on this host.
    pub host_mtu: Option<u32>,
    pub tls: bool,
    pub socket_only: bool,
    /// The chosen password; `None`: a random one.
    pub password: Option<Password>,
    /// Whether the setting [`LOGIN`] was given.
    pub login: bool,
    pub base: Option<PathBuf>,
    pub sync_data: bool,
    pub small_files: bool,
    pub shared: bool,
    pub application: Option<Application>,
    pub timeout_ms: u64,
}

/// The name of the setting that changes what a login takes or gives; its value is the engine's.
pub(crate) const LOGIN: &str = "login";

/// Its value with which the role of the URL is a superuser.
pub(crate) const SUPERUSER: &str = "superuser";

impl Spec {
    /// Takes the setting [`LOGIN`] out of the server's settings. `known`: its only value, if the engine has it.
    pub fn take_login(&mut self, known: Option<&str>) -> Result<(), TestbedError> {
        let Some(at) = self.settings.iter().position(|(name, _)| name == LOGIN) else {
            return Ok(());
        };
        let (_, value) = self.settings.remove(at);
        if known != Some(&*value) {
            let what = format!(
                "`{LOGIN}` is none for memcached, superuser for PostgreSQL, MySQL and MariaDB, and no setting of others"
            );
            return Err(TestbedError::BadOption { engine: self.engine.clone(), what });
        }
        self.login = true;
        Ok(())
    }

    /// Takes the setting that asks for a host of its own, if the engine can have one, out of the server's settings.
    pub fn take_host(&mut self, has_own_host: bool) -> Result<(), TestbedError> {
        let Some(at) = self.settings.iter().position(|(name, _)| name == host::SETTING) else {
            return Ok(());
        };
        let (_, value) = self.settings.remove(at);
        let bad = |what: &str| TestbedError::BadOption { engine: self.engine.clone(), what: what.to_owned() };
        if !has_own_host || self.socket_only {
            return Err(bad(
                "`mtu` starts a server on a host of its own, and this one is started on this host only",
            ));
        }
        if self.tls {
            return Err(bad("`mtu` excludes TLS: the throwaway certificate is that of 127.0.0.1"));
        }
        self.host_mtu = Some(host::mtu(&value).map_err(|what| bad(&what))?);
        Ok(())
    }

    /// Rejects invalid settings and reserved ones, with which a server could leave the loopback or its folder.
    pub fn check(&self, reserved: &[&str]) -> Result<(), TestbedError> {
        let bad = |what| Err(TestbedError::BadOption { engine: self.engine.clone(), what });
        for (key, value) in &self.settings {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if key.is_empty() || key.starts_with('-') || !key.chars().all(plain) {
                return bad(format!("`{key}` is not a setting name; write key=value"));
            }
            if value.contains(['\0', '\n']) {
                return bad(format!("the value of `{key}` contains a line break or a zero byte"));
            }
            // Servers accept - for _ and, some of them, any letter case.
            let same = |name: &&str| name.len() == 1 && *name == key || alike(name, key);
            if reserved.iter().any(same) {
                return bad(format!(
                    "`{key}` is reserved for the testbed (folder, port and loopback address)"
                ));
            }
        }
        if self
            .password
            .as_ref()
            .map(Password::expose)
            .is_some_and(|p| p.is_empty() || p.contains(['\0', '\n', '\r']))
        {
            return bad("a password must not be empty or contain a line break".to_owned());
        }
        Ok(())
    }
}

/// Whether two long names are equal apart from `-`, `_` and letter case.
pub(crate) fn alike(a: &str, b: &str) -> bool {
    let plain = |s: &str| s.replace('-', "_").to_ascii_lowercase();
    a.len() > 1 && plain(a) == plain(b)
}

/// What an application has to know: its database, and the data that were loaded there.
#[derive(Clone, Serialize, Deserialize)]
pub struct Application {
    pub database: Database,
    /// The prefix of its tables.
    pub prefix: String,
    /// What it says on the first page of each experiment that it serves: a JSON object by the experiment's name.
    pub experiments: serde_json::Map<String, serde_json::Value>,
    /// The text before the keys of a table's rows, by the table's name, in databases without tables.
    pub key_prefixes: serde_json::Map<String, serde_json::Value>,
    /// The database's product: `MariaDB`.
    pub engine: String,
    pub version: String,
    /// The durability class of its acknowledged writes, if it is known.
    pub durability: Option<String>,
}

/// Where a database is, and who may use it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Database {
    /// Its scheme: `mysql`, `mariadb`, `postgres`.
    pub kind: String,
    /// The host, a name or an address.
    pub host: String,
    pub port: u16,
    pub user: String,
    /// The password; may be empty.
    pub password: String,
    /// The name of the database.
    pub name: String,
}
