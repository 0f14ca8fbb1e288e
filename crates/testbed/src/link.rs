//! The connection of a tool to the supervisor of a server, or to a pool that lends one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::TestbedError;
use crate::supervisor::{Facts, Report};

/// The time limit of the supervisor to stop the server and remove its folder.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Is told how the server ended.
pub(crate) type Watcher = Box<dyn Fn(&str) + Send>;

/// The unexpected end of a server.
#[derive(Default)]
pub(crate) struct Events {
    pub died: Mutex<Option<String>>,
    pub watcher: Mutex<Option<Watcher>>,
}

impl Events {
    fn died(&self, how: String) {
        if let Some(watcher) = &*lock(&self.watcher) {
            watcher(&how);
        }
        *lock(&self.died) = Some(how);
    }
}

/// The direction to a pool. Dropping it gives the server back, although the other direction is still open.
pub(crate) struct ToPool(pub UnixStream);

impl Write for ToPool {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for ToPool {
    fn drop(&mut self) {
        // If the pool has ended, there is nothing to give back.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

/// The pipes to and from a supervisor, or a connection to a pool.
pub(crate) struct Link {
    pub engine: String,
    pub timeout: Duration,
    /// The supervisor; `None` if a pool lends the server.
    pub child: Option<Child>,
    /// Closing it makes the supervisor exit, or gives the server back.
    pub pipe: Option<Box<dyn Write + Send>>,
    pub reports: Receiver<Report>,
    /// The newest facts, once received.
    pub facts: Option<Facts>,
}

impl Link {
    pub fn send(&mut self, text: &str) -> Result<(), TestbedError> {
        let written = match &mut self.pipe {
            Some(pipe) => pipe.write_all(format!("{text}\n").as_bytes()).and_then(|()| pipe.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|error| self.error(format!("it has exited ({error})")))
    }

    pub fn receive(&mut self) -> Result<Report, TestbedError> {
        match self.reports.recv_timeout(self.timeout) {
            Ok(report) => Ok(report),
            Err(RecvTimeoutError::Timeout) => {
                // The next request would take a late answer for its own, so there is none: the server is removed.
                self.pipe = None;
                Err(self.error("it does not answer".to_owned()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.end();
                let Some(child) = &mut self.child else {
                    return Err(self.error("the pool of servers has ended".to_owned()));
                };
                let status = child.try_wait().ok().flatten();
                if let Some(status) = status.filter(|status| status.signal().is_some()) {
                    return Err(self.error(format!("it was killed ({status})")));
                }
                let how = status.map_or_else(String::new, |status| format!(" ({status})"));
                let hint = "the program must call kurabe_testbed::supervisor::run";
                Err(self.error(format!("it exited without an answer{how}; {hint}")))
            }
        }
    }

    /// Closes the pipe and waits for the supervisor to end, or the pool to take the server back; returns whether it did.
    pub fn end(&mut self) -> bool {
        self.pipe = None;
        let until = Instant::now() + STOP_TIMEOUT;
        let Some(child) = &mut self.child else {
            let ended = |left| matches!(self.reports.recv_timeout(left), Err(RecvTimeoutError::Disconnected));
            return ended(STOP_TIMEOUT);
        };
        loop {
            match child.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(3)),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }

    /// Removes the server and the folder that a killed supervisor left.
    fn sweep_after_kill(&mut self) {
        let Some(child) = &mut self.child else { return };
        let killed = child.try_wait().is_ok_and(|ended| ended.is_some_and(|status| status.code().is_none()));
        let folder = self.facts.as_ref().map(|facts| facts.dir.clone());
        if let Some(base) = folder.as_deref().and_then(Path::parent).filter(|_| killed) {
            crate::folder::sweep(base);
        }
    }

    pub fn wait_for_stop(&mut self) -> Result<(), TestbedError> {
        if !self.end() {
            return Err(self.error(format!("it did not finish within {} s", STOP_TIMEOUT.as_secs())));
        }
        match self.reports.try_iter().last() {
            Some(Report::Failed(error)) => Err(error),
            _ => Ok(()),
        }
    }

    pub fn error(&self, what: String) -> TestbedError {
        TestbedError::Supervisor { engine: self.engine.clone(), what }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
        self.sweep_after_kill();
    }
}

/// Forwards the supervisor's messages, except the server's unexpected end, for which there may be no receiver.
pub(crate) fn listen(output: impl Read + Send + 'static, events: Arc<Events>) -> Receiver<Report> {
    let (sender, reports) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
                Some(Report::Died(how)) => events.died(how),
                Some(report) => {
                    let _ = sender.send(report);
                }
                None => break,
            }
        }
        // The system kills the server with its supervisor.
        if lock(&events.died).is_none() {
            events.died("its supervisor has exited".to_owned());
        }
    });
    reports
}

/// Locks a mutex whose content is always consistent, even after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn late_answer_is_not_that_of_the_next_request() {
        let script = "read first; sleep 1; echo \"$0\"; read second";
        let answer = serde_json::to_string(&Report::Done).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, &answer]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (pipe, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let events = Arc::new(Events::default());
        let reports = listen(output, events.clone());
        let timeout = Duration::from_millis(100);
        let pipe = pipe.map(|pipe| Box::new(pipe) as Box<dyn Write + Send>);
        let mut link =
            Link { engine: "none".to_owned(), timeout, child: Some(child), pipe, reports, facts: None };
        link.send("first").unwrap();
        assert!(link.receive().unwrap_err().to_string().contains("does not answer"));
        while lock(&events.died).is_none() {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(link.send("second").unwrap_err().to_string().contains("has exited"));
    }
}
