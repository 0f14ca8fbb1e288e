//! Servers for the tests of all crates, or a visible skip.
//!
//! ```no_run
//! # use kurabe_testbed::testing;
//! let Some(server) = testing::server("postgres") else { return };
//! println!("{}", server.url());
//! ```

mod mongodb_login;
mod pool;
mod rerun;
mod reset;
pub(crate) mod small;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

pub use rerun::{rerun, rerun_input};
pub use small::{SMALL, memory, small_servers};

use crate::password::base64;
use crate::spec::Spec;
use crate::supervisor::{Report, Request};
use crate::{Server, StartOptions, TestbedError, server, wire};

/// If this is set (`cargo xtask test` does under `CI=true`), a missing server fails the test.
pub const REQUIRE: &str = "KURABE_REQUIRE_SERVERS";

/// The name of a pool of servers, a Unix socket of an abstract name: tests lease servers there, and so does a program that
/// makes its servers [small](SMALL) instead of starting some. Tests whose environment does not have it make a pool.
pub const POOL: &str = "KURABE_SERVER_POOL";

/// A server with default settings, for this test alone until the value is dropped; `None`, and a line on standard
/// error, if it is not installed. It may be one that an earlier test has used, and is like a new one: see [`Lease`].
///
/// # Panics
/// If it is installed and does not start, or is not installed and [`REQUIRE`] is set.
#[must_use]
pub fn server(engine: &str) -> Option<Lease> {
    server_with(engine, |options| options)
}

/// Like [`server`], with options.
///
/// # Panics
/// Like [`server`].
#[must_use]
pub fn server_with(engine: &str, choose: impl FnOnce(StartOptions) -> StartOptions) -> Option<Lease> {
    or_skipped(options().map(choose).and_then(|options| {
        let pool = pool().map_err(TestbedError::io("making a pool of servers"))?;
        let server = match leased(pool, engine, &options)? {
            Some(server) => server,
            None => start(engine, &options)?,
        };
        Ok(Lease(Some(server)))
    }))
}

/// A server that one test uses. When the value is dropped, another test may get the server, or a program that it starts.
///
/// It is like a new server: its databases, users, settings and sessions are those of the start, which is checked before
/// it is handed out. A server that was killed, that is paused or that ended otherwise, whose user failed, or that cannot
/// be made like a new one, is not used again. Tests that send signals to its processes themselves use [`own_server`].
pub struct Lease(Option<Server>);

impl Lease {
    /// Stops it and removes its folder, see [`Server::stop`].
    ///
    /// # Errors
    /// Like [`Server::stop`].
    pub fn stop(mut self) -> Result<(), TestbedError> {
        let Some(server) = self.0.take() else { return Ok(()) };
        discard(&server);
        server.stop()
    }
}

impl Deref for Lease {
    type Target = Server;

    #[expect(clippy::expect_used, reason = "it is taken only by those who consume the value")]
    fn deref(&self) -> &Server {
        self.0.as_ref().expect("a lease has a server until its end")
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A failed test may have left the server in any state, and its own log is of interest.
        if let Some(server) = self.0.as_ref().filter(|_| std::thread::panicking()) {
            discard(server);
        }
    }
}

/// Asks for the server not to be used again. The supervisor of a server that is not leased ignores this.
fn discard(server: &Server) {
    // A server whose pool or supervisor has ended is not used again either.
    let _: Result<Report, TestbedError> = server.request(Request::Discard);
}

/// The name of the pool of this process's tests: that of the environment, or one of its own, made once.
///
/// # Errors
/// If the system does not let it listen.
pub fn pool() -> io::Result<&'static str> {
    static NAME: OnceLock<Result<String, String>> = OnceLock::new();
    let make = || {
        if let Ok(name) = std::env::var(POOL) {
            return Ok(name);
        }
        let name = format!("kurabe-servers-{}", std::process::id());
        let program = supervisor_program().map_err(|error| error.to_string())?;
        serve_pool(&name, program).map_err(|error| error.to_string()).map(|()| name)
    };
    NAME.get_or_init(make).as_deref().map_err(|why| io::Error::other(why.as_str()))
}

/// Serves a pool of this name until the process ends. `supervisor_program` as in [`StartOptions`].
///
/// # Errors
/// If the system does not let it listen, as if another pool has the name.
pub fn serve_pool(name: &str, supervisor_program: PathBuf) -> io::Result<()> {
    pool::listen(name, supervisor_program)
}

/// A leased server; `None` if the pool does not lend such a server.
fn leased(pool: &str, engine: &str, options: &StartOptions) -> Result<Option<Server>, TestbedError> {
    if options.programs.is_some() || std::env::var_os(crate::programs::ONLY).is_some() {
        return Ok(None);
    }
    let spec = options.spec(engine);
    let spec = Spec { base: Some(crate::folder::base(&spec)), ..spec };
    // A program on another host, a network namespace, does not reach it.
    let Ok(stream) = pool::connect(pool) else { return Ok(None) };
    server::lease(stream, &spec)
}

/// A leased server for a program that tests start; `None` if this is no such program, or the pool does not lend such a
/// server.
pub(crate) fn for_program(engine: &str, options: &StartOptions) -> Result<Option<Server>, TestbedError> {
    if !small_servers() {
        return Ok(None);
    }
    std::env::var(POOL).map_or(Ok(None), |pool| leased(&pool, engine, options))
}

/// Like [`server_with`], but a server that no other test has used or will use: for tests that send signals to its
/// processes, or look at what a whole life of a server adds up to.
///
/// # Panics
/// Like [`server`].
#[must_use]
pub fn own_server_with(engine: &str, choose: impl FnOnce(StartOptions) -> StartOptions) -> Option<Server> {
    or_skipped(options().map(choose).and_then(|options| start(engine, &options)))
}

fn start(engine: &str, options: &StartOptions) -> Result<Server, TestbedError> {
    server::start_own(&options.supervisor_program, options.programs.as_deref(), &options.spec(engine))
}

/// Like [`own_server_with`], with default settings.
///
/// # Panics
/// Like [`server`].
#[must_use]
pub fn own_server(engine: &str) -> Option<Server> {
    own_server_with(engine, |options| options)
}

/// A connection to a server's port, logged in as by [`log_in`].
///
/// # Errors
/// If the server cannot be reached, or refuses its own password.
pub fn connected(server: &Server) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
    log_in(server, &mut stream)?;
    Ok(stream)
}

/// Logs in on a connection to a server or to a relay before it, if it is memcached, Redis, Valkey or MongoDB: tests speak
/// these protocols themselves.
///
/// # Errors
/// If the server refuses its own password.
pub fn log_in(server: &Server, stream: &mut TcpStream) -> io::Result<()> {
    let Some(password) = server.password() else { return Ok(()) };
    let (request, expected) = match server.url().split(':').next().unwrap_or_default() {
        "memcached" => {
            let user = format!("kurabe {password}");
            (format!("set auth 0 0 {}\r\n{user}\r\n", user.len()), "STORED\r\n")
        }
        "redis" | "valkey" => {
            (format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{password}\r\n", password.len()), "+OK\r\n")
        }
        "mongodb" => return mongodb_login::log_in(stream, password).map_err(io::Error::other),
        _ => return Ok(()),
    };
    stream.write_all(request.as_bytes())?;
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer)?;
    if answer == expected.as_bytes() { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Makes the role of a server's URL a superuser, for tests that administer PostgreSQL, MySQL or MariaDB by it.
///
/// # Panics
/// If the server refuses.
#[expect(clippy::panic, reason = "this is a part of tests, which fail by panics")]
pub fn make_superuser(server: &Server) {
    if !server.url().starts_with("postgres") {
        return reset::make_superuser(server).unwrap_or_else(|why| panic!("{why}"));
    }
    let path = server.socket().unwrap_or_else(|| panic!("it has no socket"));
    let owner = std::fs::metadata(format!("/proc/{}", server.pid())).map(|process| process.uid());
    let uid = owner.unwrap_or_else(|error| panic!("{error}"));
    // A role that is one already is not changed: a commit may wait for a standby.
    let statement = "DO $$ BEGIN IF NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = 'kurabe') THEN \
                     ALTER ROLE kurabe SUPERUSER; END IF; END $$";
    let made = wire::postgres(wire::Socket { path, uid }, Some(statement));
    made.unwrap_or_else(|why| panic!("{why}"));
}

/// The user and the password of a server's URL, as it has them: `kurabe:PASSWORD`.
#[must_use]
pub fn login(server: &Server) -> &str {
    let (_, rest) = server.url().split_once("://").unwrap_or_default();
    rest.rsplit_once('@').map_or("", |(login, _)| login)
}

/// The header field of HTTP with which CouchDB knows its administrator, with the end of its line.
#[must_use]
pub fn authorization(server: &Server) -> String {
    let login = format!("kurabe:{}", server.password().unwrap_or_default());
    format!("Authorization: Basic {}\r\n", base64(login.as_bytes()))
}

/// A `PgBouncer` that keeps prepared statements in transaction mode, if set-up has made one.
#[must_use]
pub fn new_pgbouncer() -> Option<PathBuf> {
    crate::root::PGBOUNCER.root().map(|root| root.dir.join("bin/pgbouncer"))
}

/// The options of a server for tests: small files, in memory if there is room, that are not written to disk first.
fn options() -> Result<StartOptions, TestbedError> {
    let options = StartOptions::new(supervisor_program()?);
    Ok(StartOptions { sync_data: false, small_files: true, base: memory().map(Path::to_owned), ..options })
}

#[expect(clippy::panic, reason = "this is a part of tests, which fail by panics")]
fn or_skipped<T>(started: Result<T, TestbedError>) -> Option<T> {
    match started {
        Ok(server) => Some(server),
        Err(error) if error.is_not_installed() && !required() => {
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether missing servers fail tests.
pub fn required() -> bool {
    std::env::var_os(REQUIRE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Prints on the real standard error, which the test harness does not capture, that a test was skipped, and why. Also
/// used if servers [are required](REQUIRE), for servers that cannot be installed.
pub fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("skipped {test}: {why}\n").as_bytes());
}

/// The supervisor program for tests, built by cargo if needed: `kurabe-testbed` of this crate, in the folder of the
/// running test.
///
/// # Errors
/// If it cannot be built.
pub fn supervisor_program() -> Result<PathBuf, TestbedError> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(build);
    built.clone().map_err(|what| TestbedError::Supervisor { engine: "tests".to_owned(), what })
}

/// A test is TARGET/PROFILE/deps/NAME-HASH, a program TARGET/PROFILE/NAME.
fn build() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let odd = || format!("{} is not where cargo puts tests", test.display());
    let profile =
        test.ancestors().find(|dir| dir.ends_with("deps")).and_then(Path::parent).ok_or_else(odd)?;
    let target = profile.parent().ok_or_else(odd)?;
    let name = match profile.file_name().and_then(|name| name.to_str()).ok_or_else(odd)? {
        "debug" => "dev",
        other => other,
    };
    let program = profile.join("kurabe-testbed");
    // Only built if needed: for one package alone cargo may choose other features of dependencies than for the
    // workspace, and compile them again.
    let source = newest(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
    if program
        .metadata()
        .and_then(|m| m.modified())
        .is_ok_and(|built| source.is_some_and(|source| built > source))
    {
        return Ok(program);
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Cargo's variables for a test would make build scripts run again, with everything that depends on them.
    let variables = [
        "CARGO_PKG_", "CARGO_BIN_", "CARGO_MANIFEST_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR",
    ];
    for (name, _) in std::env::vars_os() {
        if variables.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            cargo.env_remove(name);
        }
    }
    let output = cargo
        .args(["build", "--quiet", "--package", "kurabe-testbed", "--bin", "kurabe-testbed"])
        .args(["--profile", name, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("it cannot be built: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(program)
}

/// The time of the last change in a folder.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let times = entries.filter_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => newest(&entry.path()),
        _ => entry.metadata().and_then(|meta| meta.modified()).ok(),
    });
    times.max()
}
