//! The tool's end: a handle on a server that a guard runs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::guard::{self, Facts, Order, Report};
use crate::{StartOptions, TestbedError, environment, registry};

/// Beyond a server's own patience: for what the guard does before and after.
const MARGIN: Duration = Duration::from_secs(30);
/// How long the guard may take to stop the server and remove its folder.
const FAREWELL: Duration = Duration::from_secs(20);

/// Starts a throwaway server, and returns when it answers.
///
/// It lives until [`Server::stop`], until the `Server` is dropped, or until this process ends, however it ends.
///
/// # Errors
/// [`TestbedError`] says which engine, what was wrong and what to do; after a failed start nothing is left behind.
pub fn start(engine: &str, options: &StartOptions) -> Result<Server, TestbedError> {
    // Found here as well as in the guard, so that the plain mistakes need no process.
    registry::by_name(engine)?;
    let error = |what: String| TestbedError::Guard { engine: engine.to_owned(), what };
    if std::env::var_os(guard::ENVIRONMENT).is_some() {
        return Err(error("a guard starts no servers through another guard".to_owned()));
    }
    let shown = options.guard_program.display();
    let mut child = environment::without_secrets(&mut Command::new(&options.guard_program))
        .arg(guard::SUBCOMMAND)
        .env(guard::ENVIRONMENT, "1")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|why| error(format!("{shown} cannot be run: {why}")))?;
    let (Some(pipe), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(error("it has no pipes".to_owned()));
    };
    let died = Arc::new(Mutex::new(None));
    let reports = listen(output, died.clone());
    let mut link = Link {
        engine: engine.to_owned(),
        patience: options.patience + MARGIN,
        child,
        pipe: Some(pipe),
        reports,
        facts: None,
    };
    let spec = serde_json::to_string(&options.spec(engine)).map_err(TestbedError::io("writing the order"))?;
    // If it cannot be written the guard is gone, and the silence says it better.
    let _ = link.say(&spec);
    match link.hear()? {
        Report::Ready(facts) => {
            link.facts = Some(facts.clone());
            Ok(Server { facts, died, link: Mutex::new(link) })
        }
        Report::Failed(error) => {
            // Its folder is being removed: wait for it, so that nothing is left when the error is shown.
            link.end();
            Err(error)
        }
        _ => Err(error("it answers out of turn".to_owned())),
    }
}

/// Removes what guards that were killed have left behind in `base` (or where folders are made by default), and
/// returns the folders. [`start`] does the same first.
pub fn sweep(base: Option<&Path>) -> Vec<PathBuf> {
    let mut options = StartOptions::new("");
    options.base = base.map(Path::to_owned);
    crate::folder::sweep(&crate::folder::base(&options.spec("")))
}

/// A running throwaway server.
pub struct Server {
    facts: Facts,
    died: Arc<Mutex<Option<String>>>,
    link: Mutex<Link>,
}

impl Server {
    /// Where clients find it, on 127.0.0.1, without a password that was chosen: `postgres://kurabe@127.0.0.1:PORT/kurabe`;
    /// where there is none, with an empty one if clients would look for one elsewhere: `mysql://root:@127.0.0.1:PORT/kurabe`.
    pub fn url(&self) -> &str {
        &self.facts.url
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.facts.port
    }

    /// Its Unix socket, if it has one.
    pub fn socket(&self) -> Option<&Path> {
        self.facts.socket.as_deref()
    }

    /// The number of its (main) process; another one after [`Server::restart`].
    pub fn pid(&self) -> u32 {
        lock(&self.link).facts.as_ref().map_or(self.facts.pid, |facts| facts.pid)
    }

    /// The number of its guard's process.
    pub fn guard_pid(&self) -> u32 {
        lock(&self.link).child.id()
    }

    /// Its version, as the program says it.
    pub fn version(&self) -> &str {
        &self.facts.version
    }

    /// The program that runs.
    pub fn program(&self) -> &Path {
        &self.facts.program
    }

    /// Its folder, which goes with it.
    pub fn dir(&self) -> &Path {
        &self.facts.dir
    }

    /// Its log, in its folder.
    pub fn log_path(&self) -> &Path {
        &self.facts.log
    }

    /// The certificate (PEM) of the authority that signed the server's, if TLS was asked for.
    pub fn ca(&self) -> Option<&Path> {
        self.facts.ca.as_deref()
    }

    /// A client's certificate, for `CN=kurabe`, that this authority signed, and its key (PEM), if TLS was asked for.
    pub fn client_certificate(&self) -> Option<[PathBuf; 2]> {
        self.ca().map(crate::tls::client_files)
    }

    /// How it ended, if it ended without being asked to.
    pub fn died(&self) -> Option<String> {
        lock(&self.died).clone()
    }

    /// Kills it with all its processes, as a power cut would. Its data, port and folder stay.
    ///
    /// # Errors
    /// It is not running, or its guard does not answer.
    pub fn kill_hard(&self) -> Result<(), TestbedError> {
        self.order(Order::Kill)
    }

    /// Starts it again on the same data and port; if it runs, it is killed first. Returns when it answers.
    ///
    /// # Errors
    /// It does not start, or its guard does not answer.
    pub fn restart(&self) -> Result<(), TestbedError> {
        self.order(Order::Restart)?;
        *lock(&self.died) = None;
        Ok(())
    }

    /// Holds all its processes still (SIGSTOP): connections stay, nothing is answered.
    ///
    /// # Errors
    /// It is not running, or its guard does not answer.
    pub fn pause(&self) -> Result<(), TestbedError> {
        self.order(Order::Pause)
    }

    /// Lets it go on after [`Server::pause`].
    ///
    /// # Errors
    /// It is not running, or its guard does not answer.
    pub fn resume(&self) -> Result<(), TestbedError> {
        self.order(Order::Resume)
    }

    /// Stops it and removes its folder; returns when both are done. Dropping does the same, without the error.
    ///
    /// # Errors
    /// The folder could not be removed, or the guard takes too long.
    pub fn stop(self) -> Result<(), TestbedError> {
        lock(&self.link).farewell()
    }

    fn order(&self, order: Order) -> Result<(), TestbedError> {
        let mut link = lock(&self.link);
        let text = serde_json::to_string(&order).map_err(TestbedError::io("writing the order"))?;
        link.say(&text)?;
        match link.hear()? {
            Report::Done => Ok(()),
            Report::Ready(facts) => {
                link.facts = Some(facts);
                Ok(())
            }
            Report::Failed(error) => Err(error),
            Report::Died(_) => Err(link.error("it answers out of turn".to_owned())),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// The pipe to a guard and back.
struct Link {
    engine: String,
    patience: Duration,
    child: Child,
    /// Closing it tells the guard to end.
    pipe: Option<ChildStdin>,
    reports: Receiver<Report>,
    /// The newest, once there are any.
    facts: Option<Facts>,
}

impl Link {
    fn say(&mut self, text: &str) -> Result<(), TestbedError> {
        let written = match &mut self.pipe {
            Some(pipe) => pipe.write_all(format!("{text}\n").as_bytes()).and_then(|()| pipe.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|error| self.error(format!("it is gone ({error})")))
    }

    fn hear(&mut self) -> Result<Report, TestbedError> {
        match self.reports.recv_timeout(self.patience) {
            Ok(report) => Ok(report),
            Err(RecvTimeoutError::Timeout) => Err(self.error("it does not answer".to_owned())),
            Err(RecvTimeoutError::Disconnected) => {
                self.end();
                let status = self.child.try_wait().ok().flatten();
                Err(self.error(match status {
                    Some(status) if status.signal().is_some() => {
                        format!("it was ended from outside ({status})")
                    }
                    _ => {
                        let how = status.map_or_else(String::new, |status| format!(" ({status})"));
                        let hint = "is the guard program one that calls kurabe_testbed::guard::run?";
                        format!("it ended without an answer{how}; {hint}")
                    }
                }))
            }
        }
    }

    /// Closes the pipe and waits for the guard to end. True if it did.
    fn end(&mut self) -> bool {
        self.pipe = None;
        let until = Instant::now() + FAREWELL;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(3)),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }

    /// Removes what a supervisor that was killed could not.
    fn sweep_after_kill(&mut self) {
        let killed =
            self.child.try_wait().is_ok_and(|ended| ended.is_some_and(|status| status.code().is_none()));
        let folder = self.facts.as_ref().map(|facts| facts.dir.clone());
        if let Some(base) = folder.as_deref().and_then(Path::parent).filter(|_| killed) {
            crate::folder::sweep(base);
        }
    }

    fn farewell(&mut self) -> Result<(), TestbedError> {
        if !self.end() {
            return Err(self.error(format!("it is still not done after {} s", FAREWELL.as_secs())));
        }
        match self.reports.try_iter().last() {
            Some(Report::Failed(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn error(&self, what: String) -> TestbedError {
        TestbedError::Guard { engine: self.engine.clone(), what }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
        self.sweep_after_kill();
    }
}

/// Passes the guard's reports on, except a death, which nobody may be waiting for.
fn listen(output: impl std::io::Read + Send + 'static, died: Arc<Mutex<Option<String>>>) -> Receiver<Report> {
    let (sender, reports) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
                Some(Report::Died(how)) => *lock(&died) = Some(how),
                Some(report) => {
                    let _ = sender.send(report);
                }
                None => break,
            }
        }
        // The server went with it: the system ends it when its supervisor is gone.
        lock(&died).get_or_insert_with(|| "its supervisor is gone".to_owned());
    });
    reports
}

/// What these locks protect is whole at any moment, also after a panic elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
