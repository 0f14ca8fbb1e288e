//! Runs the program under attack with a time limit, and measures its peak memory.

use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The number of bytes of a program's output that are kept.
const KEPT: usize = 4 << 20;

/// How a program ended, and what it printed.
#[derive(Debug, Default)]
pub struct Ran {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// How long it took.
    pub elapsed: Duration,
    /// Its peak memory, in kilobytes.
    pub peak_kb: u64,
    /// Whether it was killed because it did not end.
    pub hung: bool,
}

impl Ran {
    /// Output and errors together.
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// The last lines of its output, for messages.
    pub fn tail(&self) -> String {
        let all = self.all();
        let lines: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" / ");
        last.chars().take(400).collect()
    }

    /// Its error messages, without warnings.
    pub fn errors(&self) -> Vec<&str> {
        let told = self.err.lines().filter(|line| line.starts_with("kurabe: "));
        told.filter(|line| !line.starts_with("kurabe: warning: ")).collect()
    }

    /// Why its end is not clean, if so: it hung, panicked, or exited with another code.
    pub fn unclean(&self, codes: &[i32]) -> Option<String> {
        if self.hung {
            return Some(format!("did not end within {:.0} s", self.elapsed.as_secs_f64()));
        }
        if self.all().contains("panicked at") {
            return Some(format!("panicked: {}", self.tail()));
        }
        match self.code {
            Some(code) if codes.contains(&code) => None,
            code => Some(format!("exit {code:?}, documented {codes:?}: {}", self.tail())),
        }
    }
}

/// The thread that reads a pipe, and the bytes that it has read.
type Reader = (JoinHandle<()>, Arc<Mutex<Vec<u8>>>);

/// A running program.
pub struct Running {
    child: Child,
    readers: Vec<Reader>,
    began: Instant,
    peak_kb: u64,
}

impl Running {
    /// Starts a program without input. Its output is read continuously.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self, String> {
        Self::with_output(command, Stdio::piped())
    }

    /// The same, with another standard output.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn with_output(command: &mut Command, output: Stdio) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let out = child.stdout.take().map_or_else(|| read(std::io::empty()), read);
        let readers = std::iter::once(out).chain(child.stderr.take().map(read)).collect();
        Ok(Self { child, readers, began: Instant::now(), peak_kb: 0 })
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn ended(&mut self) -> bool {
        self.peak_kb = self.peak_kb.max(peak_kb(self.child.id()));
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its output so far on standard output (0) or standard error (1).
    pub fn said(&self, stream: usize) -> String {
        let said = self
            .readers
            .get(stream)
            .map(|(_, said)| said.lock().unwrap_or_else(PoisonError::into_inner).clone());
        String::from_utf8_lossy(&said.unwrap_or_default()).into_owned()
    }

    /// How long it has run.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// Waits for its end; kills it `limit` after its start.
    pub fn finish(mut self, limit: Duration) -> Ran {
        let mut hung = false;
        while !self.ended() {
            if self.began.elapsed() > limit {
                hung = true;
                let _ = self.child.kill();
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let elapsed = self.began.elapsed();
        let code = self.child.wait().ok().and_then(|status| status.code());
        // A child may keep the pipes open: wait at most a second for them.
        let until = Instant::now() + Duration::from_secs(1);
        while !self.readers.iter().all(|(thread, _)| thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(2));
        }
        let (out, err) = (self.said(0), self.said(1));
        Ran { code, out, err, elapsed, peak_kb: self.peak_kb, hung }
    }
}

/// Kills the program if its end was not awaited.
impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs a program to its end.
///
/// # Errors
/// If it cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ran, String> {
    Ok(Running::start(command)?.finish(limit))
}

/// Sends a signal to a process that an attack started.
pub fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn read(mut pipe: impl Read + Send + 'static) -> Reader {
    let said = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&said);
    let thread = thread::spawn(move || {
        let mut piece = [0; 8192];
        while let Ok(read @ 1..) = pipe.read(&mut piece) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < KEPT {
                kept.extend_from_slice(&piece[..read]);
            }
        }
    });
    (thread, said)
}

/// The peak memory of a process, in kilobytes.
pub fn peak_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// All processes below one.
pub fn descendants(of: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// The numbers of all processes.
fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
}

/// The parent of a process; `None` if it does not exist or is a zombie.
fn parent(pid: u32) -> Option<u32> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = line.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z").then_some(parent)
}

/// Processes whose environment contains this text: those of one attack, even after their parents have ended.
pub fn with_environment(text: &str) -> Vec<u32> {
    let holds = |pid: &u32| {
        let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes()) && parent(*pid).is_some()
    };
    all().filter(holds).collect()
}
