//! PostgreSQL.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::TestbedError;
use crate::engine::{ConnectionLimit, Engine, Installed, Instance, Launch};
use crate::entries::OpenFolder;
use crate::spec::{LOGIN, SUPERUSER};
use crate::wire::Socket;
use crate::{host, programs, wire};

pub(crate) static POSTGRES: Engine = Engine {
    refuses_root: true,
    reserved: &[
        "data_directory", "dynamic_shared_memory_type", "external_pid_file", "hba_file", "listen_addresses",
        "port", "unix_socket_directories",
    ],
    // With small segments, the file of settings that `initdb` writes has a smaller limit than the server's default.
    small: &[("max_wal_size", "1GB")],
    small_cache: &[("shared_buffers", "6MB")],
    // A session can choose the other classes.
    durability: |class| if class == "os-cache" { &[("fsync", "off")] } else { &[] },
    // Three are reserved for superusers.
    connections: Some(ConnectionLimit { names: &["max_connections"], own: 3, default: 100 }),
    prepare,
    own_host: true,
    can_use_template: |_| true,
    has_users: |_, _| true,
    login: Some(SUPERUSER),
    // Only a superuser may install what reads other servers' tables.
    links: || vec![(LOGIN.to_owned(), SUPERUSER.to_owned())],
    protect,
    socket: |instance| Some(socket(instance)),
    // "Immediate shutdown": it saves nothing, but ends its processes and frees its shared memory.
    stop_signal: Signal::QUIT,
    clean_up,
    ..Engine::new(
        "postgres",
        "install it (https://www.postgresql.org/download), or name its folder: up:postgres?programs=FOLDER",
        find,
        command,
        |instance, _| {
            let path = socket(instance);
            wire::postgres(Socket { path: &path, uid: instance.uid() }, None)
                .and_then(|()| instance.accepts())
        },
        |instance| {
            let (address, port) = (instance.address(), instance.port);
            format!("postgres://{}@{address}:{port}/kurabe", instance.login("kurabe"))
        },
    )
};

/// Debian installs every version in its own folder, `/usr/lib/postgresql/VERSION/bin`; the newest comes first.
/// `initdb` must be in the same folder, so that links are resolved.
fn program() -> Option<PathBuf> {
    let mut folders = programs::folders();
    if std::env::var_os("KURABE_SERVER_PATH").is_none() {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut versions: Vec<_> = versions.map(|entry| entry.path()).collect();
        versions.sort_by_key(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            std::cmp::Reverse((name.parse::<f64>().unwrap_or(0.0) * 100.0) as u64)
        });
        folders.extend(versions.iter().map(|path| path.join("bin")));
    }
    let complete = |path: &PathBuf| programs::is_program(&path.with_file_name("initdb"));
    let found =
        folders.iter().map(|folder| folder.join("postgres")).filter(|path| programs::is_program(path));
    found.filter_map(|path| path.canonicalize().ok()).find(complete)
}

fn find() -> Result<Installed, String> {
    let program = program().ok_or("no program `postgres` with `initdb` in the same folder")?;
    Installed::identify(Command::new(&program).arg("--version"), program, "PostgreSQL", |line| {
        programs::word_after(line, "(PostgreSQL)")
    })
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    // The C locale sorts text by its bytes, like the other engines, on every machine. An empty folder needs no
    // fsync; the server's own fsync is unchanged.
    let mut initdb = Launch::new(instance.installed.program.with_file_name("initdb"))
        .by_name()
        .path("pgdata", &instance.data())
        // Only this account and the server's own get to the socket. Over TCP a role without a password is refused.
        .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
        .args(["--username=postgres", "--encoding=UTF8", "--no-locale", "--no-instructions", "--no-sync"]);
    if instance.spec.small_files {
        initdb = initdb.arg("--wal-segsize=1");
    }
    // The file that initdb writes admits clients of this host only.
    let rules = format!("local all all trust\nhost all all {} scram-sha-256\n", host::NETWORKS);
    instance.write_secret(ACCESS, &rules)?;
    let create = Launch::new(&instance.installed.program)
        .by_name()
        .arg("--single")
        .arg("-D")
        .arg(instance.data())
        .arg("postgres")
        // It reads the statistics of the server, and owns its database.
        .input("CREATE ROLE kurabe LOGIN IN ROLE pg_monitor\nCREATE DATABASE kurabe OWNER kurabe\n");
    Ok(vec![initdb, create])
}

/// Sets the password of the role of the URL. The superuser has none, and logs in on the Unix socket only. The role's secret is
/// no password for a log of statements.
fn protect(instance: &Instance, first: bool) -> Result<(), String> {
    let Some(password) = instance.password.as_ref().filter(|_| first) else { return Ok(()) };
    let secret = password.scram().map_err(|error| error.to_string())?;
    let path = socket(instance);
    let superuser = if instance.spec.login { "SUPERUSER" } else { "" };
    let statement = format!("ALTER ROLE kurabe {superuser} PASSWORD '{secret}'");
    wire::postgres(Socket { path: &path, uid: instance.uid() }, Some(&statement))
}

fn command(instance: &Instance, _first: bool) -> Launch {
    // The last option takes precedence, so the testbed's come after the user's.
    let mut settings = instance.spec.settings.clone();
    let mut set = |key: &str, value: &str| settings.push((key.to_owned(), value.to_owned()));
    set("listen_addresses", &instance.address().to_string());
    if instance.link().is_some() {
        set("hba_file", &access(instance).to_string_lossy());
    }
    set("port", &instance.port.to_string());
    set("unix_socket_directories", &instance.run().to_string_lossy());
    // Segments are in the data folder, and are removed with it even if the server was killed.
    set("dynamic_shared_memory_type", "mmap");
    if let Some(tls) = &instance.tls {
        set("ssl", "on");
        set("ssl_cert_file", &tls.certificate.to_string_lossy());
        set("ssl_key_file", &tls.key.to_string_lossy());
        set("ssl_ca_file", &tls.ca.to_string_lossy());
    }
    let launch = Launch::new(&instance.installed.program).arg("-D").arg(instance.data());
    settings.iter().fold(launch, |launch, (key, value)| launch.arg("-c").arg(format!("{key}={value}")))
}

/// The file with the clients that a server on its own host admits.
const ACCESS: &str = "pg_hba.conf";

fn access(instance: &Instance) -> PathBuf {
    instance.dir.join(ACCESS)
}

fn socket(instance: &Instance) -> PathBuf {
    instance.run().join(format!(".s.PGSQL.{}", instance.port))
}

/// A killed server leaves its `postmaster.pid`, whose seventh line names its (tiny) shared memory segment:
/// `KEY ID`. Otherwise that would remain until the machine's next boot.
fn clean_up(instance: &Instance) -> Option<Launch> {
    let mut text = String::new();
    let file = OpenFolder::open(&instance.data()).ok()?.read(OsStr::new("postmaster.pid")).ok()?;
    file.take(4_096).read_to_string(&mut text).ok()?;
    let id: u64 = text.lines().nth(6)?.split_whitespace().nth(1)?.parse().ok()?;
    Some(Launch::new(programs::any("ipcrm")?).arg("-m").arg(id.to_string()))
}
