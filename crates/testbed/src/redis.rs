//! Redis and Valkey, which differ in their program's name.

use std::path::PathBuf;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{ConnectionLimit, Engine, Installed, Instance, Launch};
use crate::password::Password;
use crate::wire::Socket;
use crate::{programs, root, wire};

pub(crate) static REDIS: Engine = engine(
    "redis",
    "install it (https://redis.io/downloads), or name its folder: up:redis?programs=FOLDER",
    || in_system("redis", "redis-server"),
);

pub(crate) static VALKEY: Engine = engine(
    "valkey",
    "install it (https://valkey.io/download), or name its folder: up:valkey?programs=FOLDER",
    || in_system("valkey", "valkey-server").or_else(in_cache),
);

const fn engine(name: &'static str, how: &'static str, find: fn() -> Result<Installed, String>) -> Engine {
    Engine {
        reserved: &[
            "aclfile", "bind", "daemonize", "dir", "include", "loadmodule", "logfile", "masterauth",
            "pidfile", "port", "replicaof", "requirepass", "slaveof", "supervised", "tls-port", "unixsocket",
            "unixsocketperm", "user",
        ],
        durability: |class| match class {
            "memory" => &[("appendonly", "no")],
            "os-cache" => &[("appendonly", "yes"), ("appendfsync", "no")],
            "periodic-sync" => &[("appendonly", "yes"), ("appendfsync", "everysec")],
            "synced" => &[("appendonly", "yes"), ("appendfsync", "always")],
            _ => &[],
        },
        cache: Some(cache),
        connections: Some(ConnectionLimit { names: &["maxclients"], own: 0, default: 10_000 }),
        has_users: |_, _| true,
        prepare,
        socket: |instance| Some(socket(instance)),
        ..Engine::new(
            name,
            how,
            find,
            command,
            |instance, _| {
                let path = socket(instance);
                let password = instance.password.as_ref().map(Password::expose);
                wire::redis(Socket { path: &path, uid: instance.uid() }, password)
                    .and_then(|()| instance.accepts())
            },
            |instance| {
                let Instance { spec, port, .. } = instance;
                let login = instance.login("");
                let at = if login.is_empty() { "" } else { "@" };
                format!("{}://{login}{at}127.0.0.1:{port}", spec.engine)
            },
        )
    }
}

/// The configuration file, read at each start.
const CONFIG: &str = "server.conf";

fn in_system(name: &'static str, program: &str) -> Result<Installed, String> {
    let program = programs::required(program)?;
    // `Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=…`; Valkey prints its own name.
    Installed::identify(Command::new(&program).arg("--version"), program, name, |line| version(line, name))
}

/// Valkey in the cache; `what` is wrong with the system's.
fn in_cache(what: String) -> Result<Installed, String> {
    let root = root::VALKEY.root().ok_or_else(|| what + ", none in the cache")?;
    let mut command = Command::new(&root.loader);
    let command = command.args(root.prefix()).arg("--version");
    Installed::identify(command, root.program, "valkey", |line| version(line, "valkey"))
}

fn cache(values: u64, bytes: u64) -> Vec<(String, String)> {
    // Determined by experiment (7.0): an empty server uses about 1.3 MB including client buffers; a value uses
    // about 230 additional bytes for key, entry, expiry and allocator overhead.
    let memory = 1_300_000 + values * (bytes + 230);
    // Only items with an expiry are evicted; Kurabe's bookkeeping has none.
    let settings = [
        ("maxmemory", memory.to_string()),
        ("maxmemory-policy", "volatile-lru".to_owned()),
        ("save", String::new()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let mut lines = vec!["bind 127.0.0.1".to_owned(), line("dir", &instance.data().to_string_lossy())];
    if let Some(password) = &instance.password {
        // The digest, so that the password itself is in no file.
        lines.push(format!("user default on #{} ~* &* +@all", password.sha256()));
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

fn command(instance: &Instance, _first: bool) -> Launch {
    let program = &instance.installed.program;
    let launch =
        root::VALKEY.root_of(program).map_or_else(|| Launch::new(program), |root| Launch::in_root(&root));
    let launch = launch.arg(instance.dir.join(CONFIG)).arg("--port");
    let port = instance.port.to_string();
    // A server built without TLS does not know the option of its port.
    let launch =
        if instance.tls.is_some() { launch.args(["0", "--tls-port", &port]) } else { launch.arg(port) };
    launch.arg("--unixsocket").arg(socket(instance)).arg("--unixsocketperm").arg("700")
}

fn socket(instance: &Instance) -> PathBuf {
    instance.run().join("redis.sock")
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
