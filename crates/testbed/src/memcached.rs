//! memcached.

use std::net::SocketAddrV4;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engine::{ConnectionLimit, Engine, Installed, Instance, Launch};
use crate::spec::Spec;
use crate::wire::Socket;
use crate::{TestbedError, host, programs, wire};

/// It has no data folder, and either a port or a Unix socket, never both.
/// The value of its setting `login` with which it has no users.
pub(crate) const NONE: &str = "none";

pub(crate) static MEMCACHED: Engine = Engine {
    refuses_root: true,
    reserved: &[
        "A", "auth-file", "d", "daemon", "enable-shutdown", "l", "listen", "P", "p", "pidfile", "port", "s",
        "U", "u", "udp-port", "unix-mask", "unix-socket", "user", "Y", "a",
    ],
    check,
    has_users: |spec, _| !spec.socket_only && !spec.login,
    // For clients that cannot log in.
    login: Some(NONE),
    prepare,
    cache: Some(cache),
    // It reserves one for itself and five files for each of its four threads (`reserved_fds` in memcached.c).
    connections: Some(ConnectionLimit { names: &["c", "conn-limit"], own: 21, default: 1_024 }),
    socket,
    own_host: true,
    ..Engine::new("memcached", "install it (https://memcached.org/downloads)", find, command, ping, url)
};

fn find() -> Result<Installed, String> {
    let program = programs::required("memcached")?;
    Installed::identify(Command::new(&program).arg("-V"), program, "memcached", |line| {
        programs::word_after(line, "memcached")
    })
}

fn check(spec: &Spec) -> Result<(), String> {
    if spec.tls && spec.socket_only {
        return Err("TLS requires a port".to_owned());
    }
    Ok(())
}

fn cache(values: u64, bytes: u64) -> Vec<(String, String)> {
    // Determined by experiment (1.6.18): each value has a header of 56 bytes and about 76 for key and flags. It
    // is in a chunk of the next size, each a quarter larger than the last, and chunks are in pages of 1 MB, one
    // of which holds small values of other sizes.
    let pages = values as f64 * (bytes as f64 + 132.0) * 1.12 / f64::from(1 << 20);
    // It does not start with less than 2 MB.
    vec![("m".to_owned(), (pages.round() as u64 + 1).max(2).to_string())]
}

/// The file of users: `NAME:PASSWORD` a line. After the login, a connection costs what one without users does.
const USERS: &str = "users";

/// The name of the user.
const USER: &str = "kurabe";

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    if instance.password.is_some() {
        instance.write_secret(USERS, &format!("{USER}:{}\n", instance.secret()))?;
    }
    Ok(Vec::new())
}

fn command(instance: &Instance, _first: bool) -> Launch {
    let mut launch = Launch::new(&instance.installed.program).arg("--udp-port=0");
    // The default of 64 MB is filled by one cell of megabyte values, and evictions would falsify results.
    if !instance.spec.settings.iter().any(|(key, _)| key == "m" || key == "memory-limit") {
        launch = launch.arg("--memory-limit=1024");
    }
    launch = match socket(instance) {
        Some(socket) => launch.path("unix-socket", &socket),
        None => {
            launch.arg(format!("--listen={}", instance.address())).arg(format!("--port={}", instance.port))
        }
    };
    if instance.password.is_some() {
        launch = launch.path("auth-file", &instance.dir.join(USERS));
    }
    if let Some(tls) = &instance.tls {
        let mut option = std::ffi::OsString::from("ssl_chain_cert=");
        option.push(&tls.certificate);
        option.push(",ssl_key=");
        option.push(&tls.key);
        launch = launch.arg("--enable-ssl").arg("-o").arg(option);
    }
    for (key, value) in &instance.spec.settings {
        // A one-letter option takes its value as the next argument, a long one after the equals sign; either may
        // have none.
        launch = match (key.len(), value.is_empty()) {
            (1, true) => launch.arg(format!("-{key}")),
            (1, false) => launch.arg(format!("-{key}")).arg(value),
            (_, true) => launch.arg(format!("--{key}")),
            (_, false) => launch.arg(format!("--{key}={value}")),
        };
    }
    launch
}

fn ping(instance: &Instance, pid: u32) -> Result<(), String> {
    match socket(instance) {
        Some(path) => wire::memcached_on_socket(Socket { path: &path, uid: instance.uid() }, pid),
        // A TLS port does not answer plain text; it is enough that it listens.
        None if instance.tls.is_some() => instance.accepts(),
        None => {
            instance.link().map_or(Ok(()), host::Link::check)?;
            let user = instance.password.as_ref().map(|password| format!("{USER} {}", password.expose()));
            wire::memcached_at(SocketAddrV4::new(instance.address(), instance.port), user.as_deref(), pid)
        }
    }
}

fn socket(instance: &Instance) -> Option<PathBuf> {
    instance.spec.socket_only.then(|| instance.run().join("memcached.sock"))
}

fn url(instance: &Instance) -> String {
    if let Some(socket) = socket(instance) {
        return format!("memcached://localhost?socket={}", escaped(&socket));
    }
    let login = if instance.password.is_some() { instance.login(USER) + "@" } else { String::new() };
    format!("memcached://{login}{}:{}", instance.address(), instance.port)
}

/// Escapes a path for an option's value in a URL.
fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let escape =
        |byte: &u8| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    path.as_os_str().as_bytes().iter().map(escape).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn path_in_url_is_escaped() {
        assert_eq!(super::escaped("/tmp/a b/é&.sock".as_ref()), "/tmp/a%20b/%C3%A9%26.sock");
    }
}
