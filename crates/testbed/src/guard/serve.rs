//! The guard's work: set a server up, look after it, clear it away.

use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::messages::{Facts, Report};
use super::running::{Event, Running};
use crate::TestbedError;
use crate::account;
use crate::engine::{Engine, Launch, Site};
use crate::folder::{self, Folder};
use crate::options::Spec;
use crate::{log, port, registry, template, tls};

/// How long a server may take to stop before it is killed. Its data is thrown away, so nothing is lost by that.
const GRACE: Duration = Duration::from_secs(5);
/// How often a server that is starting is asked whether it answers.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// How many ports may be lost to others in a row.
const PORTS: u32 = 5;

pub(super) fn serve() -> ExitCode {
    let (sender, events) = mpsc::channel();
    end_on_signals(&sender);
    let mut first = String::new();
    if std::io::stdin().lock().read_line(&mut first).is_err() {
        return ExitCode::FAILURE;
    }
    let Ok(spec) = serde_json::from_str::<Spec>(&first) else { return ExitCode::from(2) };
    listen(sender.clone());

    match Guard::set_up(spec, sender, events) {
        Ok(mut guard) => {
            report(&Report::Ready(guard.facts()));
            guard.look_after();
            guard.clear_away()
        }
        Err(error) => {
            report(&Report::Failed(error));
            ExitCode::FAILURE
        }
    }
}

/// To be told to end is as good as the tool's end.
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

/// Passes orders on until the pipe is closed.
fn listen(sender: Sender<Event>) {
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Some(order) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
            let _ = sender.send(Event::Order(order));
        }
        let _ = sender.send(Event::Hangup);
    });
}

/// Tells the tool; one that is gone needs no answer.
fn report(report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

/// Waits until what was just written is on the disk: else the system would write it during a measurement.
fn settle(dir: &Path) -> Result<(), TestbedError> {
    let failed = || TestbedError::io(format!("writing {} to the disk", dir.display()));
    let file = fs::File::open(dir).map_err(failed())?;
    rustix::fs::syncfs(file).map_err(|error| failed()(error.into()))
}

struct Guard {
    engine: &'static dyn Engine,
    site: Site,
    folder: Folder,
    running: Option<Running>,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

impl Guard {
    /// From an order to a server that answers; after an error nothing is left of it.
    fn set_up(spec: Spec, sender: Sender<Event>, events: Receiver<Event>) -> Result<Self, TestbedError> {
        let engine = registry::by_name(&spec.engine)?;
        spec.check(engine.reserved())?;
        engine.check(&spec)?;
        let installed = engine.find().map_err(|missing| missing.error(engine.name()))?;
        let account = if engine.refuses_root() { account::unprivileged() } else { None };
        let base = folder::base(&spec);
        folder::sweep(&base);
        let folder = Folder::make(&base, account.as_ref())?;
        let dir = folder.path().to_owned();
        let site = Site { spec, installed, dir, account, port: 0, tls: None };
        let mut guard = Self { engine, site, folder, running: None, sender, events };
        match guard.first_start() {
            Ok(()) => Ok(guard),
            Err(error) => {
                guard.clear_away();
                Err(error)
            }
        }
    }

    fn first_start(&mut self) -> Result<(), TestbedError> {
        let deadline = Instant::now() + Duration::from_millis(self.site.spec.patience_ms);
        if self.site.spec.tls {
            self.site.tls = Some(tls::make(&self.site.dir, self.site.account.as_ref())?);
        }
        self.make_data(deadline)?;
        if self.site.spec.settle {
            settle(&self.site.dir)?;
        }
        let mut lost = 0;
        loop {
            self.site.port = port::free()?;
            match self.start(true, deadline) {
                Err(TestbedError::Failed { log, .. })
                    if lost < PORTS && log.contains("ddress already in use") =>
                {
                    lost += 1;
                }
                other => break other?,
            }
        }
        // They may hold the password, and have been read.
        for secret in ["password", "init.sql"] {
            let _ = fs::remove_file(self.site.dir.join(secret));
        }
        Ok(())
    }

    /// Copies a data folder that was kept, or makes one.
    fn make_data(&mut self, deadline: Instant) -> Result<(), TestbedError> {
        let steps = self.engine.prepare(&self.site)?;
        let name = self.engine.name();
        let common = self.engine.is_like_any_other(&self.site);
        if !(common && template::fetch(name, &self.site)) {
            for step in steps {
                self.run_step(&step, deadline)?;
            }
            if common {
                template::keep(name, &self.site);
            }
        }
        self.engine.make_unique(&self.site);
        Ok(())
    }

    /// Runs a program that must end well before the server can start.
    fn run_step(&mut self, step: &Launch, deadline: Instant) -> Result<(), TestbedError> {
        let log = self.site.dir.join("prepare.log");
        let mut step_running = Running::start(step, Signal::KILL, &self.site, &log, &self.sender)?;
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

    /// Starts the server and waits until it answers.
    fn start(&mut self, first: bool, deadline: Instant) -> Result<(), TestbedError> {
        let log = self.site.log();
        let launch = self.engine.command(&self.site, first);
        let mut running = Running::start(&launch, self.engine.stop_signal(), &self.site, &log, &self.sender)?;
        let result =
            self.folder.note_server(running.pid()).and_then(|()| self.await_answer(&mut running, deadline));
        if result.is_err() {
            running.kill();
        } else {
            self.running = Some(running);
        }
        result
    }

    fn await_answer(&self, running: &mut Running, deadline: Instant) -> Result<(), TestbedError> {
        loop {
            let why = match self.engine.ping(&self.site, running.pid()) {
                // Who answers may be another server on the port that ours has just failed to get.
                Ok(()) if running.ended().is_none() => return Ok(()),
                Ok(()) => "another server answers".to_owned(),
                Err(why) => why,
            };
            if let Some(status) = running.ended() {
                return Err(self.failed(format!("it ended with {status}"), &self.site.log()));
            }
            self.pause(running.pid(), deadline, &why, ASK_EVERY)?;
        }
    }

    /// Waits a moment, or until the process ends; fails when the tool is gone or the patience is over.
    fn pause(&self, pid: u32, deadline: Instant, why: &str, moment: Duration) -> Result<(), TestbedError> {
        let until = Instant::now() + moment;
        loop {
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Hangup) | Err(RecvTimeoutError::Disconnected) => {
                    // Once more for whoever waits next: nothing goes on after this.
                    let _ = self.sender.send(Event::Hangup);
                    return Err(self.guard_error("the start was called off"));
                }
                Ok(Event::Exited(ended)) if ended == pid => return Ok(()),
                Ok(Event::Exited(_) | Event::Order(_)) => {}
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        if Instant::now() < deadline {
            return Ok(());
        }
        Err(TestbedError::TimedOut {
            engine: self.engine.name().to_owned(),
            seconds: self.site.spec.patience_ms.div_ceil(1000),
            what: why.to_owned(),
            log: self.tail(&self.site.log()),
        })
    }

    fn look_after(&mut self) {
        while let Ok(event) = self.events.recv() {
            match event {
                Event::Hangup => return,
                Event::Order(order) => report(&self.obey(order)),
                Event::Exited(pid) => self.exited(pid),
            }
        }
    }

    fn obey(&mut self, order: super::Order) -> Report {
        use super::Order;
        match (order, &mut self.running) {
            (Order::Restart, running) => {
                if let Some(mut running) = running.take() {
                    running.kill();
                }
                let deadline = Instant::now() + Duration::from_millis(self.site.spec.patience_ms);
                return self
                    .start(false, deadline)
                    .map_or_else(Report::Failed, |()| Report::Ready(self.facts()));
            }
            (_, None) => return Report::Failed(self.guard_error("the server is not running")),
            (Order::Kill, running) => {
                if let Some(mut running) = running.take() {
                    running.kill();
                }
            }
            (Order::Pause, Some(running)) => running.signal_all(Signal::STOP),
            (Order::Resume, Some(running)) => running.signal_all(Signal::CONT),
        }
        Report::Done
    }

    /// A child ended: the server, unless it is one that was killed on purpose.
    fn exited(&mut self, pid: u32) {
        let Some(status) = self.running.as_mut().filter(|r| r.pid() == pid).and_then(Running::ended) else {
            return;
        };
        self.running = None;
        let tail = self.tail(&self.site.log());
        let log = if tail.is_empty() { String::new() } else { format!("; its log ends with:\n{tail}") };
        report(&Report::Died(format!("it ended with {status}{log}")));
    }

    /// Stops the server and removes its folder. What cannot be removed is left to the next sweep.
    fn clear_away(mut self) -> ExitCode {
        if let Some(mut running) = self.running.take() {
            running.stop(self.engine.stop_signal(), GRACE);
        }
        if let Some(step) = self.engine.give_back(&self.site) {
            let log = self.site.dir.join("prepare.log");
            if let Ok(mut step) = Running::start(&step, Signal::KILL, &self.site, &log, &self.sender) {
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
            url: self.engine.url(&self.site),
            port: self.site.port,
            socket: self.engine.socket(&self.site),
            pid: self.running.as_ref().map_or(0, Running::pid),
            version: self.site.installed.version.clone(),
            program: self.site.installed.program.clone(),
            dir: self.site.dir.clone(),
            log: self.site.log(),
            ca: self.site.tls.as_ref().map(|tls| tls.ca.clone()),
        }
    }

    fn tail(&self, path: &Path) -> String {
        log::tail(path, self.site.spec.password.as_deref())
    }

    fn failed(&self, what: String, path: &Path) -> TestbedError {
        TestbedError::Failed { engine: self.engine.name().to_owned(), what, log: self.tail(path) }
    }

    fn guard_error(&self, what: &str) -> TestbedError {
        TestbedError::Guard { engine: self.engine.name().to_owned(), what: what.to_owned() }
    }
}
