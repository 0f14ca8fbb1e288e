//! Redis and Valkey, which differ in their program's name.

use std::path::PathBuf;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{ConnectionLimit, Engine, Installed, Instance, Launch, Missing};
use crate::root::Place;
use crate::{programs, wire};

/// One of the two.
pub(crate) struct Redis {
    pub name: &'static str,
    pub program: &'static str,
    /// Its place in the cache, if the distribution may not have it.
    pub cached: Option<Place>,
}

/// The configuration file, read at each start.
const CONFIG: &str = "server.conf";

impl Redis {
    /// The version, if the program is the expected one. The line is `Redis server v=7.0.15 sha=00000000:0
    /// malloc=jemalloc-5.3.0 bits=64 build=…`; Valkey prints its own name.
    fn version(&self, command: &mut Command) -> Result<Option<String>, String> {
        Ok(version(&programs::first_line(command.arg("--version"))?, self.name))
    }
}

impl Engine for Redis {
    fn name(&self) -> &'static str {
        self.name
    }

    fn find(&self) -> Result<Installed, Missing> {
        let how = match self.cached {
            None => "apt-get install redis-server, or `cargo xtask setup`",
            Some(_) => {
                "on Debian run `cargo xtask setup` as root, which installs it in the cache; else install Valkey"
            }
        };
        let missing = |what| Missing { what, how: how.to_owned() };
        let mut what = format!("no program `{}`", self.program);
        if let Some(program) = programs::find(self.program, &programs::folders()) {
            match self.version(&mut Command::new(&program)) {
                Ok(Some(version)) => return Ok(Installed { program, version }),
                Ok(None) => what = format!("{} is not {}", program.display(), self.name),
                Err(why) => what = why,
            }
        }
        let Some(cached) = self.cached else { return Err(missing(what)) };
        let Some(root) = cached.root() else { return Err(missing(what + ", none in the cache")) };
        match self.version(Command::new(&root.loader).args(root.prefix())) {
            Ok(Some(version)) => Ok(Installed { program: root.program, version }),
            Ok(None) => Err(missing(format!("{} is not {}", root.program.display(), self.name))),
            Err(what) => Err(missing(what)),
        }
    }

    fn refuses_root(&self) -> bool {
        false
    }

    fn reserved(&self) -> &'static [&'static str] {
        &[
            "aclfile",
            "bind",
            "daemonize",
            "dir",
            "include",
            "loadmodule",
            "logfile",
            "masterauth",
            "pidfile",
            "port",
            "replicaof",
            "requirepass",
            "slaveof",
            "supervised",
            "tls-port",
            "unixsocket",
            "unixsocketperm",
            "user",
        ]
    }

    fn durability(&self, class: &str) -> &'static [(&'static str, &'static str)] {
        match class {
            "memory" => &[("appendonly", "no")],
            "os-cache" => &[("appendonly", "yes"), ("appendfsync", "no")],
            "periodic-sync" => &[("appendonly", "yes"), ("appendfsync", "everysec")],
            "synced" => &[("appendonly", "yes"), ("appendfsync", "always")],
            _ => &[],
        }
    }

    fn cache(&self, values: u64, bytes: u64) -> Option<Vec<(String, String)>> {
        // Determined by experiment (7.0): an empty server uses about 1.3 MB including client buffers; a value uses
        // about 230 additional bytes for key, entry, expiry and allocator overhead.
        let memory = 1_300_000 + values * (bytes + 230);
        // Only items with an expiry are evicted; Kurabe's bookkeeping has none.
        let settings = [
            ("maxmemory", memory.to_string()),
            ("maxmemory-policy", "volatile-lru".to_owned()),
            ("save", String::new()),
        ];
        Some(settings.map(|(name, value)| (name.to_owned(), value)).to_vec())
    }

    fn connections(&self) -> Option<ConnectionLimit> {
        Some(ConnectionLimit { names: &["maxclients"], own: 0, default: 10_000 })
    }

    fn prepare(&self, instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
        let data = instance.data();
        std::fs::create_dir_all(&data)
            .map_err(TestbedError::io(format!("creating the folder {}", data.display())))?;
        let mut lines = vec!["bind 127.0.0.1".to_owned(), line("dir", &data.to_string_lossy())];
        if let Some(password) = &instance.spec.password {
            // The digest, so that the password itself is in no file.
            let digest = ring::digest::digest(&ring::digest::SHA256, password.as_bytes());
            let digest: String =
                digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(hex).collect();
            lines.push(format!("user default on #{digest} ~* &* +@all"));
        }
        if let Some(tls) = &instance.tls {
            lines.push(line("tls-cert-file", &tls.certificate.to_string_lossy()));
            lines.push(line("tls-key-file", &tls.key.to_string_lossy()));
            lines.push(line("tls-ca-cert-file", &tls.ca.to_string_lossy()));
            lines.push("tls-auth-clients no".to_owned());
        }
        lines.extend(instance.spec.settings.iter().map(|(key, value)| line(key, value)));
        lines.push(String::new());
        instance.write_secret(CONFIG, &lines.join("\n")).map(|_| Vec::new())
    }

    /// The data of a new server is an empty folder.
    fn can_use_template(&self, _instance: &Instance) -> bool {
        false
    }

    fn command(&self, instance: &Instance, _first: bool) -> Launch {
        let program = &instance.installed.program;
        let root = self.cached.and_then(|cached| cached.root_of(program));
        let launch = root.map_or_else(|| Launch::new(program), |root| Launch::in_root(&root));
        let launch = launch.arg(instance.dir.join(CONFIG));
        let (plain, encrypted) = if instance.tls.is_some() { (0, instance.port) } else { (instance.port, 0) };
        let launch = launch.arg("--port").arg(plain.to_string());
        // A server built without TLS does not know this option.
        let launch =
            if encrypted == 0 { launch } else { launch.arg("--tls-port").arg(encrypted.to_string()) };
        let socket = self.socket(instance).unwrap_or_default();
        launch.arg("--unixsocket").arg(socket).arg("--unixsocketperm").arg("700")
    }

    fn ping(&self, instance: &Instance, _pid: u32) -> Result<(), String> {
        self.socket(instance)
            .map_or(Ok(()), |socket| wire::redis(&socket))
            .and_then(|()| wire::tcp(instance.port))
    }

    fn socket(&self, instance: &Instance) -> Option<PathBuf> {
        Some(instance.dir.join("redis.sock"))
    }

    fn url(&self, instance: &Instance) -> String {
        let empty = if instance.no_password().is_empty() { "" } else { ":@" };
        format!("{}://{empty}127.0.0.1:{}", self.name, instance.port)
    }
}

fn hex(digit: u8) -> Option<char> {
    char::from_digit(digit.into(), 16)
}

/// A line of the configuration file. Several words stay separate, as in `save 60 1000`.
fn line(key: &str, value: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\');
    if !value.is_empty()
        && value.chars().all(|c| plain(c) || c == ' ')
        && !key.contains("file")
        && key != "dir"
    {
        return format!("{key} {value}");
    }
    format!("{key} \"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The version, if the program is the expected one.
fn version(line: &str, name: &str) -> Option<String> {
    let (program, rest) = line.split_once(" server v=")?;
    program.eq_ignore_ascii_case(name).then(|| rest.split_whitespace().next().map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_identified_by_its_version_output() {
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=d8";
        assert_eq!(version(redis, "redis").as_deref(), Some("7.0.15"));
        // A link with another name does not change it.
        assert_eq!(version(redis, "valkey"), None);
        assert_eq!(version("Valkey server v=8.1.1 sha=0", "valkey").as_deref(), Some("8.1.1"));
    }

    #[test]
    fn settings_are_quoted_as_the_server_requires() {
        assert_eq!(line("save", "60 1000"), "save 60 1000");
        assert_eq!(line("save", ""), "save \"\"");
        assert_eq!(line("dir", "/tmp/a b"), "dir \"/tmp/a b\"");
        assert_eq!(line("x", "a\"b\\c"), r#"x "a\"b\\c""#);
    }
}
