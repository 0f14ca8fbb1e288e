//! The supervisor's main loop: starts a server, handles requests, and removes everything at the end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use kurabe_os::limits::advice_on_file_size;
use kurabe_os::private;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::child_process::{ChildProcess, Event};
use super::messages::{Facts, Report, Request};
use super::sync::sync_folder;
use crate::TestbedError;
use crate::engine::{DATA, Engine, Instance, Launch};
use crate::entries::OpenFolder;
use crate::folder::{self, Folder};
use crate::os_user::{self, OsUser};
use crate::password::Password;
use crate::spec::Spec;
use crate::{log, port, registry, template, tls};

/// How long a server may take to stop before it is killed. Its data is deleted anyway.
const GRACE: Duration = Duration::from_secs(5);
/// How long a server may take to save what it holds in memory.
const SAVING: Duration = Duration::from_secs(60);
/// The interval of checks whether a starting server answers.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// Maximum number of attempts with a port that another process has taken.
const PORTS: u32 = 5;

/// The log of programs that prepare the data.
const PREPARE_LOG: &str = "prepare.log";

pub(super) fn serve() -> ExitCode {
    let (sender, events) = mpsc::channel();
    end_on_signals(&sender);
    let mut first = String::new();
    if std::io::stdin().lock().read_line(&mut first).is_err() {
        return ExitCode::FAILURE;
    }
    let Ok(spec) = serde_json::from_str::<Spec>(&first) else { return ExitCode::from(2) };
    listen(sender.clone());

    match Supervisor::start_instance(spec, sender, events) {
        Ok(mut supervisor) => {
            report(&Report::Ready(supervisor.facts()));
            supervisor.handle_events();
            supervisor.remove()
        }
        Err(error) => {
            report(&Report::Failed(error));
            ExitCode::FAILURE
        }
    }
}

/// Treats signals like the end of the tool.
fn end_on_signals(sender: &Sender<Event>) {
    if let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM]) {
        let sender = sender.clone();
        thread::spawn(move || {
            for _ in signals.forever() {
                let _ = sender.send(Event::Hangup);
            }
        });
    }
}

/// Forwards requests until the pipe is closed.
fn listen(sender: Sender<Event>) {
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Some(request) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
            let _ = sender.send(Event::Request(request));
        }
        let _ = sender.send(Event::Hangup);
    });
}

/// Sends a message to the tool; ignores errors if it has ended.
fn report(report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

/// Creates a log, which is this user's and is opened once.
fn create(path: &Path) -> Result<File, TestbedError> {
    let open = || {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        OpenFolder::open(folder)?.append(name)
    };
    open().map_err(TestbedError::io(format!("creating {}", path.display())))
}

struct Supervisor {
    engine: &'static Engine,
    instance: Instance,
    folder: Folder,
    /// The server's log, and that of programs that prepare its data.
    logs: [File; 2],
    running: Option<ChildProcess>,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

impl Supervisor {
    /// Starts the server and waits until it answers. On an error everything is removed.
    fn start_instance(
        spec: Spec,
        sender: Sender<Event>,
        events: Receiver<Event>,
    ) -> Result<Self, TestbedError> {
        let engine = registry::by_name(&spec.engine)?;
        spec.check(engine.reserved)?;
        let mut spec = spec;
        spec.take_host(engine.own_host)?;
        spec.take_login(engine.login)?;
        let bad = |what| TestbedError::BadOption { engine: engine.name.to_owned(), what };
        (engine.check)(&spec).map_err(bad)?;
        let installed = engine.installed().map_err(|missing| TestbedError::NotInstalled {
            engine: engine.name.to_owned(),
            how: missing.how(),
            missing: missing.what,
        })?;
        let has_users = (engine.has_users)(&spec, &installed);
        if spec.password.is_some() && !has_users {
            return Err(bad("this server has no users, and no password".to_owned()));
        }
        let password = match spec.password.clone() {
            None if has_users => Some(Password::random()?),
            chosen => chosen,
        };
        let os_user = if engine.refuses_root { os_user::unprivileged()? } else { None };
        let base = folder::base(&spec);
        folder::sweep(&base);
        let folder = Folder::make(&base, os_user.as_ref())?;
        let dir = folder.path().to_owned();
        let instance = Instance { spec, installed, dir, os_user, port: 0, tls: None, password };
        let logs = match [instance.log(), instance.dir.join(PREPARE_LOG)].map(|path| create(&path)) {
            [Ok(server), Ok(prepare)] => [server, prepare],
            [Err(error), _] | [_, Err(error)] => {
                folder.remove()?;
                return Err(error);
            }
        };
        let mut supervisor = Self { engine, instance, folder, logs, running: None, sender, events };
        if let Err(error) = supervisor.first_start() {
            supervisor.remove();
            return Err(error);
        }
        Ok(supervisor)
    }

    fn first_start(&mut self) -> Result<(), TestbedError> {
        let deadline = self.deadline();
        if self.instance.spec.tls {
            self.instance.tls = Some(tls::make(&self.instance.dir, self.instance.os_user.as_ref())?);
        }
        self.make_data(deadline)?;
        self.sync(&self.instance.dir, deadline)?;
        let mut lost = 0;
        loop {
            self.instance.port = port::free()?;
            match self.start(true, deadline) {
                Err(TestbedError::Failed { log, .. })
                    if lost < PORTS && log.contains("ddress already in use") =>
                {
                    lost += 1;
                }
                other => break other?,
            }
        }
        // These may contain the password, and are not needed after the first start.
        for secret in ["password", "init.sql"] {
            let _ = fs::remove_file(self.instance.dir.join(secret));
        }
        Ok(())
    }

    /// Writes a folder to the disk, where that is asked for.
    fn sync(&self, folder: &Path, deadline: Instant) -> Result<(), TestbedError> {
        let failed = TestbedError::io(format!("writing {} to the disk", folder.display()));
        if self.instance.spec.sync_data { sync_folder(folder, deadline).map_err(failed) } else { Ok(()) }
    }

    /// Copies a cached data folder, or creates one.
    fn make_data(&mut self, deadline: Instant) -> Result<(), TestbedError> {
        let steps = (self.engine.prepare)(&self.instance)?;
        let name = self.engine.name;
        let common = (self.engine.can_use_template)(&self.instance);
        if !(common && template::fetch(name, &self.instance)) {
            self.create_data(&steps, deadline)?;
            if common {
                template::keep(name, &self.instance);
            }
        }
        for step in (self.engine.make_own)(&self.instance)? {
            self.run_step(&step, deadline)?;
        }
        Ok(())
    }

    /// Creates a data folder, which these programs fill.
    fn create_data(&mut self, steps: &[Launch], deadline: Instant) -> Result<(), TestbedError> {
        let data = self.instance.data();
        let failed = || TestbedError::io(format!("creating {}", data.display()));
        let named = steps.iter().any(|step| step.needs_name);
        let owner = self.instance.os_user;
        // Nobody else gets into the folder above: it admits the server's group.
        let first = owner.map(|own| if named { OsUser { uid: os_user::nobody().uid, ..own } } else { own });
        let made = OpenFolder::open(&self.instance.dir)
            .and_then(|dir| dir.create_folder(OsStr::new(DATA), first.as_ref()))
            .map_err(failed())?;
        for step in steps {
            self.run_step(step, deadline)?;
        }
        owner.filter(|_| named).map_or(Ok(()), |owner| made.give_all(owner)).map_err(failed())
    }

    /// Runs a program that must succeed before the server can start.
    fn run_step(&mut self, step: &Launch, deadline: Instant) -> Result<(), TestbedError> {
        let log = self.instance.dir.join(PREPARE_LOG);
        let mut step_running =
            ChildProcess::start(step, Signal::KILL, &self.instance, &self.logs[1], &self.sender)?;
        let result = loop {
            if let Some(status) = step_running.ended() {
                let what = format!("{} ended with {status}", step.program.display());
                break if status.success() { Ok(()) } else { Err(self.failed(what, &log)) };
            }
            if let Err(error) =
                self.pause(step_running.pid(), deadline, "preparing its data", Duration::from_secs(1))
            {
                break Err(error);
            }
        };
        step_running.kill();
        result
    }

    /// Removes the locks of sockets that a killed server left: each names its process, whose number another one may have by now,
    /// and MySQL then refuses to start. PostgreSQL asks for its own user's processes only.
    fn remove_locks(&self) -> io::Result<()> {
        let folder = OpenFolder::open(&self.instance.run())?;
        for (name, kind) in folder.entries()? {
            if name.as_encoded_bytes().ends_with(b".lock") {
                folder.remove(&name, kind)?;
            }
        }
        Ok(())
    }

    /// Starts the server and waits until it answers.
    fn start(&mut self, first: bool, deadline: Instant) -> Result<(), TestbedError> {
        if !first {
            self.remove_locks().map_err(TestbedError::io("removing the locks of its sockets".to_owned()))?;
        }
        let mut launch = (self.engine.command)(&self.instance, first);
        launch.link = self.instance.link();
        let mut running = ChildProcess::start(
            &launch, self.engine.stop_signal, &self.instance, &self.logs[0], &self.sender,
        )?;
        let result = self
            .folder
            .note_server(running.pid())
            .and_then(|()| self.wait_until_ready(&mut running, deadline))
            .and_then(|()| self.protect(first));
        if result.is_err() {
            running.kill();
        } else {
            if first {
                self.count(running.pid());
            }
            self.running = Some(running);
        }
        result
    }

    /// Does what the server's password needs.
    fn protect(&self, first: bool) -> Result<(), TestbedError> {
        (self.engine.protect)(&self.instance, first)
            .map_err(|why| self.failed(format!("its password could not be set: {why}"), &self.instance.log()))
    }

    /// Counts this server, if somebody counts. Errors are the counter's own.
    fn count(&self, pid: u32) {
        let Some(path) = std::env::var_os(super::COUNT).filter(|path| !path.is_empty()) else { return };
        let whose = if self.instance.spec.shared { "shared" } else { "own" };
        let line = format!("{} {whose} {pid}\n", self.engine.name);
        // One write, so that lines of others do not come between.
        let _ = private::append(path).and_then(|mut file| file.write_all(line.as_bytes()));
    }

    fn wait_until_ready(&self, running: &mut ChildProcess, deadline: Instant) -> Result<(), TestbedError> {
        loop {
            let why = match (self.engine.ping)(&self.instance, running.pid()) {
                // The answer may be from another server, on a port that this one could not bind.
                Ok(()) if running.ended().is_none() => return Ok(()),
                Ok(()) => "another server answers on this port".to_owned(),
                Err(why) => why,
            };
            if let Some(status) = running.ended() {
                return Err(self.failed(format!("it exited with {status}"), &self.instance.log()));
            }
            self.pause(running.pid(), deadline, &why, ASK_EVERY)?;
        }
    }

    /// Waits for a short time, or until the process ends; fails if the tool has ended or the time limit is reached.
    fn pause(&self, pid: u32, deadline: Instant, why: &str, duration: Duration) -> Result<(), TestbedError> {
        let until = Instant::now() + duration;
        loop {
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Hangup) | Err(RecvTimeoutError::Disconnected) => {
                    // Sent again for the next wait, so that everything is cancelled.
                    let _ = self.sender.send(Event::Hangup);
                    return Err(self.error("the start was cancelled"));
                }
                Ok(Event::Exited(ended)) if ended == pid => return Ok(()),
                Ok(Event::Exited(_) | Event::Request(_)) => {}
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        if Instant::now() < deadline {
            return Ok(());
        }
        Err(TestbedError::TimedOut {
            engine: self.engine.name.to_owned(),
            seconds: self.instance.spec.timeout_ms.div_ceil(1000),
            what: why.to_owned(),
            log: self.tail(&self.instance.log()),
        })
    }

    fn handle_events(&mut self) {
        while let Ok(event) = self.events.recv() {
            match event {
                Event::Hangup => return,
                Event::Request(request) => report(&self.handle(request).unwrap_or_else(Report::Failed)),
                Event::Exited(pid) => self.exited(pid),
            }
        }
    }

    fn handle(&mut self, request: Request) -> Result<Report, TestbedError> {
        match (request, &mut self.running) {
            (Request::Restart, running) => {
                if let Some(mut running) = running.take() {
                    running.kill();
                }
                self.restore()?;
                self.start(false, self.deadline())?;
                return Ok(Report::Ready(self.facts()));
            }
            (Request::Keep, running) => {
                // It saves what it holds in memory: a copy of what a killed server leaves would be recovered at each start.
                if let Some(mut running) = running.take() {
                    running.stop(Signal::TERM, SAVING);
                }
                let data = self.instance.data();
                template::copy_of_data(&data, &self.kept(), &self.instance, None)
                    .map_err(TestbedError::io(format!("copying {}", data.display())))?;
                return self.handle(Request::Restart);
            }
            (Request::Discard, _) => {}
            (_, None) => return Err(self.error("the server is not running")),
            (Request::Kill, Some(running)) => {
                running.kill();
                self.running = None;
            }
            (Request::Pause, Some(running)) => running.signal_all(Signal::STOP),
            (Request::Resume, Some(running)) => running.signal_all(Signal::CONT),
        }
        Ok(Report::Done)
    }

    /// The end of the server's time limit, if it begins now.
    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.instance.spec.timeout_ms)
    }

    /// The folder of the copy of the data that each restart begins with.
    fn kept(&self) -> PathBuf {
        self.instance.dir.join("kept-data")
    }

    /// Puts the copy of the data, if there is one, in the place of the data.
    fn restore(&self) -> Result<(), TestbedError> {
        let (data, kept) = (self.instance.data(), self.kept());
        if !kept.exists() {
            return Ok(());
        }
        let restore = || {
            fs::remove_dir_all(&data)?;
            template::copy_of_data(&kept, &data, &self.instance, self.instance.os_user.as_ref())
        };
        restore().map_err(TestbedError::io(format!("restoring {}", data.display())))?;
        self.sync(&data, self.deadline())
    }

    /// Handles the end of a child: the server, unless it was killed on request.
    fn exited(&mut self, pid: u32) {
        let Some(status) = self.running.as_mut().filter(|r| r.pid() == pid).and_then(ChildProcess::ended)
        else {
            return;
        };
        self.running = None;
        let tail = self.tail(&self.instance.log());
        let log = if tail.is_empty() { String::new() } else { format!("; its log ends with:\n{tail}") };
        report(&Report::Died(format!("it exited with {status}{log}")));
    }

    /// Stops the server and removes its folder. If that fails, the next sweep removes the folder.
    fn remove(mut self) -> ExitCode {
        if let Some(mut running) = self.running.take() {
            running.stop(self.engine.stop_signal, GRACE);
        }
        if let Some(step) = (self.engine.clean_up)(&self.instance) {
            let started =
                ChildProcess::start(&step, Signal::KILL, &self.instance, &self.logs[1], &self.sender);
            if let Ok(mut step) = started {
                step.wait(GRACE);
                step.kill();
            }
        }
        match self.folder.remove() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                report(&Report::Failed(error));
                ExitCode::FAILURE
            }
        }
    }

    fn facts(&self) -> Facts {
        Facts {
            url: (self.engine.url)(&self.instance),
            port: self.instance.port,
            socket: (self.engine.socket)(&self.instance),
            pid: self.running.as_ref().map_or(0, ChildProcess::pid),
            version: self.instance.installed.version.clone(),
            program: self.instance.installed.program.clone(),
            dir: self.instance.dir.clone(),
            log: self.instance.log(),
            ca: self.instance.tls.as_ref().map(|tls| tls.ca.clone()),
            password: self.instance.password.clone(),
            supervisor: std::process::id(),
        }
    }

    fn tail(&self, path: &Path) -> String {
        let of_database = self.instance.spec.application.as_ref();
        let of_database = of_database.map(|application| application.database.password.as_str());
        log::tail(path, self.instance.password.as_ref().map(Password::expose).or(of_database))
    }

    fn failed(&self, what: String, path: &Path) -> TestbedError {
        // A server that may not write a larger file says so in its log, or nowhere.
        let advice = advice_on_file_size();
        let what =
            if advice.is_empty() { what } else { format!("{what}; if a file was too large, {advice}") };
        TestbedError::Failed { engine: self.engine.name.to_owned(), what, log: self.tail(path) }
    }

    fn error(&self, what: &str) -> TestbedError {
        TestbedError::Supervisor { engine: self.engine.name.to_owned(), what: what.to_owned() }
    }
}
