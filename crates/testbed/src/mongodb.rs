//! MongoDB if it is installed, otherwise `FerretDB` with its `SQLite` backend and a user, which implements its protocol.
//! `cargo xtask setup` builds it into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::wire::Socket;
use crate::{programs, wire};

/// The program of the substitute in the cache.
const SUBSTITUTE: &str = "ferretdb-users";

/// The user that the testbed makes.
const USER: &str = "kurabe";

/// The file with the substitute's user and password.
const LOGIN: &str = "login";

const BOTH: &str = "certificate-and-key.pem";

pub(crate) static MONGODB: Engine = Engine {
    reserved: &[
        "auth", "bind_ip", "bind_ip_all", "config", "configExpand", "data", "dbpath", "filePermissions",
        "fork", "keyFile", "logpath", "noauth", "nounixsocket", "pidfilepath", "port", "shutdown", "socket",
        "unixSocketPrefix",
    ],
    has_users: |_, _| true,
    // The substitute makes its user itself.
    protect: |instance, first| match instance
        .password
        .as_ref()
        .filter(|_| first && !is_substitute(&instance.installed))
    {
        Some(password) => wire::mongodb_user(socket_of(instance, &socket(instance)), USER, password.expose()),
        None => Ok(()),
    },
    prepare,
    socket: |instance| Some(socket(instance)),
    ..Engine::new(
        "mongodb",
        "install MongoDB (https://www.mongodb.com/try/download/community), so that `mongod` is on the PATH",
        find,
        command,
        |instance, _| wire::mongodb(socket_of(instance, &socket(instance))),
        |instance| {
            let (login, port) = (instance.login(USER), instance.port);
            format!("mongodb://{login}@127.0.0.1:{port}/kurabe?authSource=admin")
        },
    )
};

/// Finds the version in `db version v8.0.4` or `ferretdb-users v1.24.0`.
fn version(mark: &str) -> impl FnOnce(&str) -> Option<String> {
    move |line| programs::word_after(line, mark).map(|version| version.trim_start_matches('v').to_owned())
}

fn is_substitute(installed: &Installed) -> bool {
    installed.program.file_name().is_some_and(|name| name == SUBSTITUTE)
}

fn find() -> Result<Installed, String> {
    let mongod = |program: PathBuf| {
        Installed::identify(Command::new(&program).arg("--version"), program, "MongoDB", version("version"))
    };
    let what = match programs::required("mongod").and_then(mongod) {
        Ok(installed) => return Ok(installed),
        Err(what) => what,
    };
    let substitute = programs::cache().map(|cache| cache.join("servers").join(SUBSTITUTE));
    let program = substitute.filter(|path| programs::is_program(path));
    let program = program.ok_or_else(|| what + ", no substitute in the cache")?;
    Installed::identify(
        Command::new(&program).arg("-version"),
        program,
        "the substitute",
        version(SUBSTITUTE),
    )
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    if is_substitute(&instance.installed) {
        instance.write_secret(LOGIN, &format!("{USER}:{}", instance.secret()))?;
    } else if let Some(tls) = &instance.tls {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(TestbedError::io(format!("reading {}", path.display())))
        };
        // mongod needs certificate and key in one file.
        instance.write_secret(BOTH, &(read(&tls.certificate)? + &read(&tls.key)?))?;
    }
    Ok(Vec::new())
}

fn command(instance: &Instance, _first: bool) -> Launch {
    let launch = Launch::new(&instance.installed.program).arg(format!("--port={}", instance.port));
    let launch = if is_substitute(&instance.installed) {
        let launch = launch.path("data", &instance.data()).path("socket", &socket(instance));
        let launch = launch.path("login", &instance.dir.join(LOGIN));
        match &instance.tls {
            Some(tls) => launch.path("tls-cert", &tls.certificate).path("tls-key", &tls.key),
            None => launch,
        }
    } else {
        let launch = launch
            .path("dbpath", &instance.data())
            .path("unixSocketPrefix", &instance.run())
            // Users must log in, and statements run no scripts on the server.
            .args(["--bind_ip=127.0.0.1", "--auth", "--noscripting"]);
        match &instance.tls {
            Some(_) => {
                launch.arg("--tlsMode=requireTLS").path("tlsCertificateKeyFile", &instance.dir.join(BOTH))
            }
            None => launch,
        }
    };
    launch.settings(instance)
}

/// The path of the socket, whose file name mongod determines.
fn socket(instance: &Instance) -> PathBuf {
    instance.run().join(format!("mongodb-{}.sock", instance.port))
}

fn socket_of<'a>(instance: &Instance, path: &'a Path) -> Socket<'a> {
    Socket { path, uid: instance.uid() }
}
