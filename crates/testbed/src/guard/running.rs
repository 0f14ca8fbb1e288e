//! A child process of the guard's, watched by a thread.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::messages::Order;
use super::shim;
use crate::TestbedError;
use crate::engine::{Launch, Site};
use crate::process::{self, signal};

/// What the guard waits for.
pub(super) enum Event {
    /// The tool wants something.
    Order(Order),
    /// The tool is gone, has closed the pipe, or the guard was told to end.
    Hangup,
    /// The child of that number ended. It is not reaped yet, so the number is still its own.
    Exited(u32),
}

/// A child that was started and not yet reaped.
pub(super) struct Running {
    child: Child,
    reaped: Option<ExitStatus>,
}

impl Running {
    /// Starts `launch`, appending what it prints to the file at `log`; its end will be an [`Event`]. Should the guard
    /// end first, the system sends it `last`.
    pub fn start(
        launch: &Launch,
        last: Signal,
        site: &Site,
        log: &Path,
        events: &Sender<Event>,
    ) -> Result<Self, TestbedError> {
        let failed = |what: String| TestbedError::io(what);
        let file = OpenOptions::new().append(true).create(true).mode(0o644).open(log);
        let file = file.map_err(failed(format!("opening {}", log.display())))?;
        let what = format!("starting {}", launch.program.display());
        let mut child = shim::command(launch, last, site, file)?.spawn().map_err(failed(what))?;
        if let Some(mut input) = child.stdin.take() {
            // A program that ends without reading says why in its log.
            let _ = input.write_all(launch.input.as_bytes());
        }
        let (pid, events) = (child.id(), events.clone());
        thread::spawn(move || {
            if let Some(child) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let until_it_ends = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while matches!(waitid(WaitId::Pid(child), until_it_ends), Err(Errno::INTR)) {}
            }
            // Nobody listens any more when the guard is about to exit.
            let _ = events.send(Event::Exited(pid));
        });
        Ok(Self { child, reaped: None })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.reaped.is_none() {
            self.reaped = self.child.try_wait().ok().flatten();
        }
        self.reaped
    }

    /// Asks it to stop and waits; after `grace` kills it with all that it started.
    pub fn stop(&mut self, ask: Signal, grace: Duration) {
        let below = process::descendants(self.pid());
        if self.ended().is_none() {
            signal(self.pid(), ask);
            // A paused server hears nothing until it goes on.
            for pid in std::iter::once(&self.pid()).chain(&below) {
                signal(*pid, Signal::CONT);
            }
        }
        self.wait(grace);
        self.kill();
    }

    /// Waits for its end, but not for ever.
    pub fn wait(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.ended().is_none() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it with all that it started, like a power cut.
    pub fn kill(&mut self) {
        // As long as it is not reaped, its number cannot be anyone else's.
        if self.ended().is_none() {
            let pid = self.pid();
            process::kill_tree(pid);
            self.reaped = self.child.wait().ok();
        }
    }

    /// Sends a signal to it and all that it started.
    pub fn signal_all(&mut self, what: Signal) {
        if self.ended().is_none() {
            // The parent first: stopped, it starts no more children.
            signal(self.pid(), what);
            for pid in process::descendants(self.pid()) {
                signal(pid, what);
            }
        }
    }
}
