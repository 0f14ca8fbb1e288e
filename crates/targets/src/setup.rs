//! `--setup`: the user's schema and data on throwaway servers, loaded by the engine's own programs.
//!
//! Once they are loaded, the server keeps a copy of its data folder, with which each restart begins: blocks of rounds find the
//! same data, whatever the workload changes.

use crate::reporter::Reporter;
use crate::shared::Started;
use kurabe_core::target::{SETUP, TargetUrl, UP, is_throwaway, without_passwords};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_driver_common::program;
use kurabe_testbed::Server;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What precedes the URL of a database that is copied.
const COPY: &str = "copy:";
/// The engines whose servers are set up.
const ENGINES: [&str; 5] = ["postgres", "mysql", "mariadb", "redis", "valkey"];
/// How a dump of `pg_dump -Fc` begins.
const CUSTOM: &[u8] = b"PGDMP";
/// The database of a throwaway server.
const DATABASE: &str = "kurabe";

/// What a target is loaded with: the file that its URL names, from which it is taken, or that of `--setup`.
pub(crate) fn taken(url: &mut TargetUrl, of_all: Option<&str>) -> Option<String> {
    let own = if url.scheme == UP { url.options.remove(SETUP) } else { None };
    own.or_else(|| of_all.map(str::to_owned))
}

/// Checks what `--setup` or a target's URL names, and that it changes nothing of others: the target must be a throwaway server.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) with what to write.
pub(crate) fn check(setup: &str, url: &TargetUrl) -> Result<()> {
    if url.scheme != UP {
        return Err(Error::usage(format!(
            "--setup changes the servers that it loads, so that it takes throwaway servers only: {url} is none"
        ))
        .hint("name up:postgres, up:mysql, up:mariadb or up:redis; for a server of yours leave out --setup, its tables are there"));
    }
    if !ENGINES.contains(&url.path.as_str()) {
        return Err(Error::usage(format!("--setup: up:{} cannot be loaded", url.path))
            .hint(format!("there are: up:{}", ENGINES.join(", up:"))));
    }
    if let Some(source) = setup.strip_prefix(COPY) {
        let url = TargetUrl::parse(source).map_err(|error| error.context("--setup"))?;
        if is_throwaway(source) || url.scheme.is_empty() {
            return Err(Error::usage("--setup: a throwaway server has nothing to copy")
                .hint("write copy:postgres://host/shop"));
        }
        // What cannot be opened is known before a server is started.
        return kurabe_drivers::registry::open(&url).map(drop).map_err(|error| error.context("--setup"));
    }
    let mut start = [0; 5];
    let read = File::open(setup).and_then(|mut file| file.read(&mut start)).map_err(|error| {
        let shown = without_passwords(std::iter::once(setup.to_owned())).concat();
        Error::usage(format!("--setup: {shown} cannot be read: {error}"))
            .hint("name a file of SQL, a dump of pg_dump or mysqldump, or copy:URL")
    })?;
    match &start[..read] {
        CUSTOM if url.path != ENGINES[0] => {
            Err(Error::usage(format!("--setup: {setup} is of PostgreSQL, and {url} is not"))
                .hint("pg_dump without -Fc writes SQL; copy:URL copies between engines"))
        }
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            Err(Error::usage(format!("--setup: {setup} is compressed")).hint("unpack it"))
        }
        _ => Ok(()),
    }
}

/// Loads throwaway servers, if a setup is given, and changes them by a file of SQL. Returns how long the last change took.
pub(crate) fn load_all(
    (setup, change): (Option<&str>, Option<&Path>),
    url: &TargetUrl,
    servers: [Option<&Started>; 2],
    reporter: &dyn Reporter,
) -> Result<Duration> {
    let Some(setup) = setup else { return Ok(Duration::ZERO) };
    let shown = without_passwords(std::iter::once(setup.to_owned())).concat();
    reporter.note(&format!("loading {shown} into {url} …"));
    let load = |_, started: &Started| load(setup, change, url, &started.server, reporter);
    servers.into_iter().flatten().try_fold(Duration::ZERO, load)
}

/// Loads a throwaway server, changes it, and has it keep a copy of its data. Returns how long the change took.
///
/// # Errors
/// If the file, the copy or the change fails, with what the engine's program said, or if it made no table.
fn load(
    setup: &str,
    change: Option<&Path>,
    url: &TargetUrl,
    server: &Server,
    reporter: &dyn Reporter,
) -> Result<Duration> {
    let engine = Engine::of(url, server)?;
    let done = match setup.strip_prefix(COPY) {
        Some(source) => copy(source, server),
        None => engine.read(Path::new(setup), reporter),
    };
    let of_setup = |error: Error| error.context("--setup").context(url);
    done.map_err(of_setup)?;
    reporter.check()?;
    let began = Instant::now();
    change.map_or(Ok(()), |change| engine.read(change, reporter))?;
    let took = began.elapsed();
    engine.settle().map_err(of_setup)?;
    reporter.check()?;
    let failed =
        |error| Error::new(ErrorKind::Environment, format!("{url}: keeping a copy of its data: {error}"));
    server.keep_data().map_err(failed)?;
    Ok(took)
}

/// Copies a database by this program's own command, in a process of its own. It reads both URLs from standard input, since
/// everybody on this machine can read a process's arguments.
fn copy(source: &str, server: &Server) -> Result<()> {
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut command = Command::new(program);
    // The environment is for the source.
    let target = server.url();
    let target = format!("{target}{}environment=ignore", if target.contains('?') { '&' } else { '?' });
    command.args(["copy", "-", "-", "--quiet"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    // A process that has ended says why.
    let _ = child.stdin.take().map(|mut input| input.write_all(format!("{source}\n{target}\n").as_bytes()));
    let output = child.wait_with_output().map_err(|error| failed(&error))?;
    if output.status.success() {
        return Ok(());
    }
    let source = without_passwords(std::iter::once(source.to_owned())).concat();
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(ErrorKind::Server, format!("{source} was not copied:")).log(said.lines()).hint(format!(
        "'kurabe copy {source} {}' has options for what cannot be copied as it is",
        TargetUrl::parse(server.url())?
    )))
}

fn failed(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Environment, error.to_string())
}

/// Client programs with options of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    Psql,
    Mysql,
    RedisCli,
}

/// An engine's own client program, and the server that it reaches.
struct Engine<'a> {
    client: Client,
    program: PathBuf,
    server: &'a Server,
}

impl<'a> Engine<'a> {
    fn of(url: &TargetUrl, server: &'a Server) -> Result<Self> {
        let (client, names, package): (_, &[&str], _) = match url.path.as_str() {
            "postgres" => (Client::Psql, &["psql"], "postgresql-client"),
            "redis" => (Client::RedisCli, &["redis-cli"], "redis-tools"),
            "valkey" => (Client::RedisCli, &["valkey-cli", "redis-cli"], "valkey-tools"),
            "mysql" => (Client::Mysql, &["mysql"], "mysql-client"),
            _ => (Client::Mysql, &["mariadb", "mysql"], "mariadb-client"),
        };
        let beside =
            names.iter().map(|name| server.program().with_file_name(name)).find(|path| path.is_file());
        let is_own = |line: &str| line.contains("MariaDB") == (url.path == "mariadb");
        let program = match beside {
            Some(beside) if is_own(&program::version(&beside)) => beside,
            _ => program::find_of(names, package, is_own)?,
        };
        Ok(Self { client, program, server })
    }

    /// The client program, connected to the database.
    fn client(&self) -> Command {
        let mut command = self.connected(&self.program);
        if self.client == Client::Psql {
            command.args(["--no-psqlrc", "--quiet"]);
        }
        command
    }

    /// A program, connected to the database. Its environment has the password: everybody can read its arguments.
    fn connected(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // Nothing of the user's settings for other servers.
        command.env_clear().env("LC_ALL", "C").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let (port, password) = (self.server.port().to_string(), self.server.password().unwrap_or_default());
        match self.client {
            Client::Psql => {
                command.args(["--no-password"]);
                command
                    .args(["--host=127.0.0.1", "--port", &port, "--username=kurabe", "--dbname", DATABASE]);
                command.env("PGPASSWORD", password);
            }
            // An error is one of the program too.
            Client::RedisCli => {
                command.args(["-h", "127.0.0.1", "-p", &port, "-e"]).env("REDISCLI_AUTH", password);
            }
            Client::Mysql => {
                // A dump has objects of other users (DEFINER): the superuser makes these, who logs in on the socket.
                command.args(["--no-defaults", "--user=root", "--default-character-set=utf8mb4"]);
                // Whatever the server's new sessions have, what is loaded is committed, and all of it is read.
                command.arg(
                    "--init-command=SET autocommit = 1, completion_type = 0, sql_select_limit = 18446744073709551615",
                );
                command.args(["--max-allowed-packet=1G", "--database", DATABASE]);
                command.arg("--socket").arg(self.server.socket().unwrap_or(Path::new("")));
                command.env("MYSQL_PWD", password);
            }
        }
        command
    }

    /// Reads a file of SQL or of commands, or a dump.
    fn read(&self, path: &Path, reporter: &dyn Reporter) -> Result<()> {
        let mut start = [0; 5];
        let mut file = File::open(path).map_err(|error| failed(&error))?;
        let length = file.read(&mut start).map_err(|error| failed(&error))?;
        if self.client != Client::Psql {
            let file = File::open(path).map_err(|error| failed(&error))?;
            return run(self.client().stdin(file))
                .and_then(|output| refuse(path, &output, &|_| false).map(drop));
        }
        let output = if &start[..length] == CUSTOM {
            let mut command = self.connected(&self.program.with_file_name("pg_restore"));
            command.args(["--no-owner", "--no-privileges", "--exit-on-error"]);
            run(command.arg(path).stdin(Stdio::null()))
        } else {
            run(self.client().arg("--file").arg(path).stdin(Stdio::null()))
        }?;
        // A dump names its database's roles, which are not in it.
        let is_of_role = |line: &str| line.contains("role \"") && line.ends_with("does not exist");
        let skipped = refuse(path, &output, &is_of_role)?;
        if skipped > 0 {
            reporter.note(&format!(
                "{}: {skipped} statements name roles that the throwaway server does not have, and were skipped",
                path.display()
            ));
        }
        Ok(())
    }

    /// Has the planner's statistics made now, so that the server does not make them during a trial, and asks it for its tables.
    fn settle(&self) -> Result<()> {
        let count = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema";
        if self.client == Client::RedisCli {
            // The data folder has what there is; no key is right for what begins empty.
            let output = run(self.client().arg("SAVE").stdin(Stdio::null()))?;
            return refuse(Path::new("SAVE"), &output, &|_| false).map(drop);
        }
        let output = if self.client == Client::Psql {
            run(self.client().args(["--command", "VACUUM (ANALYZE)"]).stdin(Stdio::null()))?;
            let count = format!("{count} NOT IN ('pg_catalog', 'information_schema')");
            run(self
                .client()
                .args(["--tuples-only", "--no-align", "--command", &count])
                .stdin(Stdio::null()))?
        } else {
            let count = format!("{count} = '{DATABASE}'");
            run(self
                .client()
                .args(["--skip-column-names", "--batch", "--execute", &count])
                .stdin(Stdio::null()))?
        };
        let said = String::from_utf8_lossy(&output.stdout);
        match said.trim().parse::<u64>() {
            Ok(0) => Err(Error::usage("it makes no table in the database of the throwaway server").hint(
                "a dump must not create a database of its own: pg_dump without --create, mysqldump without --databases",
            )),
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::Server, "the tables could not be counted:")
                .log(String::from_utf8_lossy(&output.stderr).lines())),
        }
    }
}

fn run(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .output()
        .map_err(|error| Error::new(ErrorKind::Environment, format!("{name} cannot be run: {error}")))
}

/// Fails with the first errors that a program reported, other than those that are allowed, of which it returns the number.
fn refuse(path: &Path, output: &Output, allowed: &dyn Fn(&str) -> bool) -> Result<usize> {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_error = |line: &&str| line.contains("ERROR") || line.contains("error:") || line.contains("FATAL");
    let (skipped, errors): (Vec<&str>, Vec<&str>) =
        said.lines().filter(is_error).partition(|line| allowed(line));
    if errors.is_empty() && output.status.success() {
        return Ok(skipped.len());
    }
    let shown = if errors.is_empty() { said.lines().collect() } else { errors };
    let message = format!("{} could not be loaded, {} errors:", path.display(), shown.len());
    Err(Error::usage(message).log(shown.into_iter().take(5)))
}
