//! A child process of the supervisor, watched by a thread.

use std::fs::File;
use std::io::Write;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::exec_wrapper;
use super::messages::Request;
use crate::TestbedError;
use crate::engine::{Instance, Launch};
use crate::process::{self, signal};

/// An event for the supervisor.
pub(super) enum Event {
    /// A request of the tool.
    Request(Request),
    /// The tool has ended or closed the pipe, or the supervisor was asked to stop.
    Hangup,
    /// The child with this number ended. It is not reaped yet, so that the number is not reused.
    Exited(u32),
}

/// A child process that was not reaped yet.
pub(super) struct ChildProcess {
    child: Child,
    reaped: Option<ExitStatus>,
}

impl ChildProcess {
    /// Starts `launch` with its output appended to this file. Its end becomes an [`Event`]. If the supervisor
    /// ends first, the system sends the signal `last`.
    pub fn start(
        launch: &Launch,
        last: Signal,
        instance: &Instance,
        log: &File,
        events: &Sender<Event>,
    ) -> Result<Self, TestbedError> {
        let failed = |what: String| TestbedError::io(what);
        let file = log.try_clone().map_err(failed("opening the server's log".to_owned()))?;
        let what = format!("starting {}", launch.program.display());
        let mut child = exec_wrapper::command(launch, last, instance, file)?.spawn().map_err(failed(what))?;
        if let Some(mut input) = child.stdin.take() {
            // A program that ends without reading reports why in its log.
            let _ = input.write_all(launch.input.as_bytes());
        }
        let (pid, events) = (child.id(), events.clone());
        thread::spawn(move || {
            if let Some(child) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let until_it_ends = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while matches!(waitid(WaitId::Pid(child), until_it_ends), Err(Errno::INTR)) {}
            }
            // There is no receiver when the supervisor is about to exit.
            let _ = events.send(Event::Exited(pid));
        });
        Ok(Self { child, reaped: None })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.reaped.is_none() {
            self.reaped = self.child.try_wait().ok().flatten();
        }
        self.reaped
    }

    /// Asks it to stop and waits; after `grace` kills it and its descendants.
    pub fn stop(&mut self, ask: Signal, grace: Duration) {
        let below = kurabe_os::process::descendants(self.pid());
        if self.ended().is_none() {
            signal(self.pid(), ask);
            // A paused server must continue to receive the signal.
            for pid in std::iter::once(&self.pid()).chain(&below) {
                signal(*pid, Signal::CONT);
            }
        }
        self.wait(grace);
        self.kill();
    }

    /// Waits for its end, with a time limit.
    pub fn wait(&mut self, timeout: Duration) {
        let until = Instant::now() + timeout;
        while self.ended().is_none() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it and its descendants, as in a power failure.
    pub fn kill(&mut self) {
        // Its number is not reused before it is reaped.
        if self.ended().is_none() {
            let pid = self.pid();
            process::kill_tree(pid);
            self.reaped = self.child.wait().ok();
        }
    }

    /// Sends a signal to it and its descendants.
    pub fn signal_all(&mut self, what: Signal) {
        if self.ended().is_none() {
            // The parent first: when stopped, it starts no more children.
            signal(self.pid(), what);
            for pid in kurabe_os::process::descendants(self.pid()) {
                signal(pid, what);
            }
        }
    }
}
