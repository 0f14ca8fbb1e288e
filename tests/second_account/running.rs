//! Commands that go on while they are attacked.

use super::accounts::User;
use crate::support::{Answer, eventually, piped};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// A running command, which is ended with the value.
pub(super) struct Running {
    child: Option<Child>,
    /// The file that lets a paused run go on.
    go_on: Option<PathBuf>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        Self { child: Some(piped(command)), go_on: None }
    }

    /// Starts a run, and returns when it waits after its first trial.
    pub fn start_to_pause(user: &User, mut command: Command) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let go_on = user.signals().join(format!("go-on-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        command.env("KURABE_PAUSE", format!("1:{}", go_on.display()));
        let mut running = Self::start(&mut command);
        running.go_on = Some(go_on.clone());
        let waits = go_on.with_extension("waits");
        let child = running.child.as_mut().unwrap();
        let paused =
            eventually(240, || (waits.exists() || child.try_wait().unwrap().is_some()).then_some(()));
        let is_paused = paused.is_some() && waits.exists();
        assert!(is_paused, "the run did not come to its first trial: {:?}", running.end());
        running
    }

    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// The first line that it prints; an empty one if it ends without any.
    pub fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::with_capacity(1, self.child.as_mut().unwrap().stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        line.trim().to_owned()
    }

    /// Lets a paused run go on, and waits for its end.
    pub fn finish(mut self) -> Answer {
        std::fs::write(self.go_on.take().unwrap(), "").unwrap();
        Answer::at_end_of(self.child.take().unwrap())
    }

    /// Ends it as Ctrl-C does.
    pub fn end(&mut self) -> Answer {
        let Some(mut child) = self.child.take() else { return Answer::default() };
        interrupt(&child);
        let ended = eventually(60, || child.try_wait().unwrap());
        let mut answer = Answer { code: ended.and_then(|status| status.code()), ..Answer::default() };
        if ended.is_none() {
            child.kill().unwrap();
        }
        let _ = child.stdout.take().unwrap().read_to_string(&mut answer.out);
        let _ = child.stderr.take().unwrap().read_to_string(&mut answer.err);
        let _ = child.wait();
        answer
    }
}

fn interrupt(child: &Child) {
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
