//! Common code of the testbed's tests.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use kurabe_os::process::Stat;
use kurabe_testbed::{StartOptions, testing};
use rustix::process::{Pid, Signal, kill_process};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_kurabe-testbed");

/// Whether a process with this number runs. Zombies do not.
pub fn alive(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.lives())
}

pub fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// Waits until the condition holds, at most a minute.
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < until, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A tool that has started a server: `kurabe-testbed up ENGINE`.
pub struct Tool {
    pub child: Child,
    pub input: Option<ChildStdin>,
    pub dir: PathBuf,
    pub server: u32,
    pub supervisor: u32,
}

impl Tool {
    /// The command as a shell would start it: as the leader of a process group.
    pub fn command(engine: &str, base: &Path) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["up", engine]).env("KURABE_TMP", base).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    pub fn start(engine: &str, base: &Path) -> Self {
        Self::of(&mut Self::command(engine, base))
    }

    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut line = || lines.next().expect("the tool has started a server");
        let _url = line();
        let dir = PathBuf::from(line());
        let (server, supervisor) = (line().parse().unwrap(), line().parse().unwrap());
        let input = child.stdin.take();
        Self { child, input, dir, server, supervisor }
    }

    /// Asserts that server, supervisor and folder are removed.
    pub fn assert_gone(&self) {
        eventually("the server is gone", || !alive(self.server));
        eventually("the supervisor is gone", || !alive(self.supervisor));
        eventually("the folder is gone", || !self.dir.exists());
    }
}

/// Whether that engine is installed. If not, prints so, or fails the test if servers are required.
pub fn installed(engine: &str) -> bool {
    let found = kurabe_testbed::installed(engine).unwrap();
    if found.is_err() {
        // Prints the skip, or panics.
        assert!(testing::server(engine).is_none());
    }
    found.is_ok()
}

pub fn options() -> StartOptions {
    StartOptions::new(PROGRAM)
}

/// A folder that other users can enter, since some servers run as another user, with a path short enough for sockets.
pub fn base() -> tempfile::TempDir {
    let base = tempfile::Builder::new().prefix("kt").tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(base.path(), open).unwrap();
    base
}
