//! The tool's side: a handle to a server that a supervisor runs, or that a pool of tests lends.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::link::{Events, Link, ToPool, Watcher, listen, lock};
use crate::password::Password;
use crate::spec::Spec;
use crate::supervisor::{self, Facts, Report, Request};
use crate::{TestbedError, affinity, environment, programs};

/// Added to a server's time limit, for the supervisor's work before and after.
const MARGIN: Duration = Duration::from_secs(30);

/// Starts a server under a supervisor of its own.
pub(crate) fn start_own(
    program: &Path,
    programs: Option<&Path>,
    spec: &Spec,
) -> Result<Server, TestbedError> {
    let error = |what: String| TestbedError::Supervisor { engine: spec.engine.clone(), what };
    if std::env::var_os(supervisor::ENVIRONMENT).is_some() {
        return Err(error("a supervisor cannot start another supervisor".to_owned()));
    }
    let shown = program.display();
    let mut child = environment::without_secrets(&mut Command::new(program))
        .arg(supervisor::SUBCOMMAND)
        .env(supervisor::ENVIRONMENT, "1")
        .envs(programs.iter().map(|folder| (programs::ONLY, folder)))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|why| error(format!("{shown} cannot be run: {why}")))?;
    let (Some(pipe), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(error("it has no pipes".to_owned()));
    };
    let started = open(spec, Some(child), Box::new(pipe), output)?;
    started.ok_or_else(|| error("unexpected message".to_owned()))
}

/// Leases a server from a pool, whose end of a connection speaks as a supervisor does; `None` if the pool does not lend
/// such a server.
pub(crate) fn lease(pool: UnixStream, spec: &Spec) -> Result<Option<Server>, TestbedError> {
    let output = pool.try_clone().map_err(TestbedError::io("connecting to the pool of servers"))?;
    let server = open(spec, None, Box::new(ToPool(pool)), output)?;
    // A supervisor passes its processors on to its server.
    if let Some(server) = &server {
        server.keep_processors()?;
    }
    Ok(server)
}

/// Requests the server. `None` if there is none with these options.
fn open(
    spec: &Spec,
    child: Option<Child>,
    pipe: Box<dyn Write + Send>,
    output: impl Read + Send + 'static,
) -> Result<Option<Server>, TestbedError> {
    let events = Arc::new(Events::default());
    let reports = listen(output, events.clone());
    let timeout = Duration::from_millis(spec.timeout_ms) + MARGIN;
    let mut link =
        Link { engine: spec.engine.clone(), timeout, child, pipe: Some(pipe), reports, facts: None };
    let text = serde_json::to_string(spec).map_err(TestbedError::io("writing the request"))?;
    // If this fails, the supervisor has ended, and the missing answer gives a better error.
    let _ = link.send(&text);
    match link.receive()? {
        Report::Ready(facts) => {
            link.facts = Some(facts.clone());
            let processors = if link.child.is_none() { affinity::own() } else { None };
            Ok(Some(Server { facts, events, link: Mutex::new(link), processors }))
        }
        Report::Failed(error) => {
            // Waits until its folder is removed, so that nothing is left when the error is shown.
            link.end();
            Err(error)
        }
        Report::Done | Report::Died(_) => Ok(None),
    }
}

/// A running throwaway server.
pub struct Server {
    facts: Facts,
    events: Arc<Events>,
    link: Mutex<Link>,
    /// The processors of a leased server; `None`: those of its supervisor.
    processors: Option<Vec<u32>>,
}

impl Server {
    /// Its URL, on 127.0.0.1, with its random password: `postgres://kurabe:PASSWORD@127.0.0.1:PORT/kurabe`. A password
    /// that was chosen is not in it. It must not become an argument of a program or a line of a log.
    pub fn url(&self) -> &str {
        &self.facts.url
    }

    /// The password of its user; `None` if it has no users, so that every account of this machine may use it.
    pub fn password(&self) -> Option<&str> {
        self.facts.password.as_ref().map(Password::expose)
    }

    /// Whether every account of this machine may use it: it listens at a port, and has no users.
    pub fn is_open(&self) -> bool {
        self.facts.password.is_none() && self.facts.port != 0 && !self.facts.url.contains("?socket=")
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.facts.port
    }

    /// Its Unix socket, if it has one.
    pub fn socket(&self) -> Option<&Path> {
        self.facts.socket.as_deref()
    }

    /// The number of its main process; it changes with [`Server::restart`].
    pub fn pid(&self) -> u32 {
        lock(&self.link).facts.as_ref().map_or(self.facts.pid, |facts| facts.pid)
    }

    /// The number of its supervisor's process.
    pub fn supervisor_pid(&self) -> u32 {
        self.facts.supervisor
    }

    /// Its version, as the program reports it.
    pub fn version(&self) -> &str {
        &self.facts.version
    }

    /// The program that runs.
    pub fn program(&self) -> &Path {
        &self.facts.program
    }

    /// Its folder, which is removed with it.
    pub fn dir(&self) -> &Path {
        &self.facts.dir
    }

    /// Its log, in its folder.
    pub fn log_path(&self) -> &Path {
        &self.facts.log
    }

    /// The certificate (PEM) of the authority of the server's certificate, if TLS is enabled.
    pub fn ca(&self) -> Option<&Path> {
        self.facts.ca.as_deref()
    }

    /// A client certificate for `CN=kurabe`, signed by this authority, and its key (PEM), if TLS is enabled.
    pub fn client_certificate(&self) -> Option<[PathBuf; 2]> {
        self.ca().map(crate::tls::client_files)
    }

    /// How it ended, if it ended unexpectedly.
    pub fn died(&self) -> Option<String> {
        lock(&self.events.died).clone()
    }

    /// Kills it with all its processes, as in a power failure. Its data, port and folder stay.
    ///
    /// # Errors
    /// If it is not running, or its supervisor does not answer.
    pub fn kill_hard(&self) -> Result<(), TestbedError> {
        self.request(Request::Kill).map(drop)
    }

    /// Starts it again with the same data and port; kills it first if it runs. Returns when it answers.
    ///
    /// # Errors
    /// If it does not start, or its supervisor does not answer.
    pub fn restart(&self) -> Result<(), TestbedError> {
        self.request(Request::Restart)?;
        self.keep_processors()
    }

    /// Stops it, keeps a copy of its data, and starts it again. Each later [`Server::restart`] begins with that copy.
    ///
    /// # Errors
    /// If the data cannot be copied, or it does not start.
    pub fn keep_data(&self) -> Result<(), TestbedError> {
        self.request(Request::Keep)?;
        self.keep_processors()
    }

    /// Stops all its processes with SIGSTOP: connections stay open, and requests get no answer.
    ///
    /// # Errors
    /// If it is not running, or its supervisor does not answer.
    pub fn pause(&self) -> Result<(), TestbedError> {
        self.request(Request::Pause).map(drop)
    }

    /// Resumes it after [`Server::pause`].
    ///
    /// # Errors
    /// If it is not running, or its supervisor does not answer.
    pub fn resume(&self) -> Result<(), TestbedError> {
        self.request(Request::Resume).map(drop)
    }

    /// Restricts all threads of all its processes, and those that start later, to these processors; `pinned`: each
    /// thread to one of them, in turn. A restarted server is no longer restricted.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn restrict(&self, cpus: &[u32], pinned: bool) -> Result<(), TestbedError> {
        let numbers: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let what = format!("restricting the server to processors {}", numbers.join(","));
        affinity::restrict(self.pid(), cpus, pinned).map_err(TestbedError::io(what))
    }

    /// Stops it and removes its folder; returns when both are done. Dropping does the same, and ignores errors.
    ///
    /// # Errors
    /// If the folder could not be removed, or the supervisor takes too long.
    pub fn stop(self) -> Result<(), TestbedError> {
        lock(&self.link).wait_for_stop()
    }

    /// The newest facts.
    pub(crate) fn facts(&self) -> Facts {
        lock(&self.link).facts.clone().unwrap_or_else(|| self.facts.clone())
    }

    /// Calls this when the server ends unexpectedly, until the next call.
    pub(crate) fn when_it_dies(&self, watcher: Option<Watcher>) {
        *lock(&self.events.watcher) = watcher;
    }

    /// Keeps a leased server to the processors of its user, where it has others.
    fn keep_processors(&self) -> Result<(), TestbedError> {
        match &self.processors {
            Some(cpus) if affinity::of(self.pid()).as_ref() != Some(cpus) => self.restrict(cpus, false),
            _ => Ok(()),
        }
    }

    /// Asks the supervisor, and returns its answer, which is no failure.
    pub(crate) fn request(&self, request: Request) -> Result<Report, TestbedError> {
        let mut link = lock(&self.link);
        let text = serde_json::to_string(&request).map_err(TestbedError::io("writing the request"))?;
        link.send(&text)?;
        let report = link.receive()?;
        match &report {
            Report::Done => {}
            Report::Ready(facts) => {
                link.facts = Some(facts.clone());
                *lock(&self.events.died) = None;
            }
            Report::Failed(error) => return Err(error.clone()),
            Report::Died(_) => return Err(link.error("unexpected message".to_owned())),
        }
        Ok(report)
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("facts", &self.facts).finish_non_exhaustive()
    }
}
