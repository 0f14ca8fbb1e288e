//! The run's side: starts an agent and requests observations from it.

use super::{Answer, Greeting, PROTOCOL, RemoteSample, Request, boot, read_line, send};
use kurabe_core::text::{printable, printable_json};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The command that starts a program on another host. It must not ask for a password, since it has no terminal.
pub const DEFAULT_COMMAND: &str = "ssh -o BatchMode=yes";

/// The time limit for starting an agent, with the login on its host.
const START: Duration = Duration::from_secs(20);
/// The time limit for an answer.
pub const ANSWER: Duration = Duration::from_secs(5);
/// The time for a started command to end by itself after its input is closed.
const END: Duration = Duration::from_millis(500);
/// The maximum number of lines before the greeting. A login may write some.
const MAX_LINES: usize = 100;
/// The maximum length of an error message of the started command.
const MAX_ERROR: u64 = 64 << 10;

/// An agent that answers requests for observations, one after the other, over some transport.
pub trait Conversation: Send {
    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// Why there is none, as a clause.
    fn request(&mut self, request: &Request) -> Result<Answer, String>;
}

type Begin = dyn Fn() -> Result<Box<dyn Conversation>, String> + Send + Sync;

/// An agent on another host.
#[derive(Clone)]
pub struct Remote {
    /// What it is in messages: the command and its arguments, then the destination.
    name: String,
    start: Arc<Begin>,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Remote").field("name", &self.name).finish_non_exhaustive()
    }
}

enum State {
    /// Not started yet, or used by a trial.
    Free,
    Started(Box<dyn Conversation>),
    /// It failed, and is not started again in this run; why, as a clause.
    Failed(String),
}

/// A started agent, which speaks over a pipe. Its process ends when this is dropped.
#[derive(Debug)]
pub struct AgentProcess {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    errors: Receiver<String>,
}

/// One trial that an agent observes.
pub(crate) struct RemoteMonitor {
    connection: Box<dyn Conversation>,
    state: Arc<Mutex<State>>,
    /// Whether it runs on the same machine as this program, in another network namespace.
    pub(crate) here: bool,
}

impl Remote {
    /// An agent that `command` starts at `destination`, as in `ssh -o BatchMode=yes db.example`. It is started when it is
    /// needed.
    pub fn new(command: &str, destination: &str) -> Self {
        let words = command.split_whitespace().chain([destination]).map(str::to_owned);
        let words: Vec<String> = words.collect();
        Self::reached_by(words.join(" "), move || {
            AgentProcess::start(&words).map(|process| -> Box<dyn Conversation> { Box::new(process) })
        })
    }

    /// An agent with this name in messages, with which `start` begins a conversation when it is needed.
    pub fn reached_by(
        name: String,
        start: impl Fn() -> Result<Box<dyn Conversation>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name, start: Arc::new(start), state: Arc::new(Mutex::new(State::Free)) }
    }

    /// What it is in messages: the command that starts it, or its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that the agent can be started, and that it can observe the server at this host and port.
    ///
    /// # Errors
    /// Why not, as a clause.
    pub fn try_out(&self, host: &str, port: u16) -> Result<(), String> {
        self.begin(host, port)?.end().map(drop)
    }

    pub(crate) fn begin(&self, host: &str, port: u16) -> Result<RemoteMonitor, String> {
        let about = |why: String| format!("the agent of '{}': {why}", self.name);
        let before = std::mem::replace(&mut *lock(&self.state), State::Free);
        let mut connection = match before {
            State::Started(connection) => connection,
            State::Free => (self.start)().map_err(|why| fail(&self.state, about(why)))?,
            State::Failed(why) => return Err(fail(&self.state, why)),
        };
        let request = Request::Begin { host: host.to_owned(), port };
        match connection.request(&request).map_err(|why| fail(&self.state, about(why)))? {
            Answer::Begun { boot: theirs } => {
                let here = theirs.is_some() && theirs == boot();
                Ok(RemoteMonitor { connection, state: Arc::clone(&self.state), here })
            }
            // It can be asked again: a server may listen later.
            Answer::Not(why) => {
                *lock(&self.state) = State::Started(connection);
                Err(about(why))
            }
            Answer::Ended(_) => Err(fail(&self.state, about(NOT_THE_PROTOCOL.to_owned()))),
        }
    }
}

impl RemoteMonitor {
    pub(crate) fn end(mut self) -> Result<RemoteSample, String> {
        let answer = self.connection.request(&Request::End).map_err(|why| fail(&self.state, why))?;
        let ended = match answer {
            Answer::Ended(seen) => Ok(*seen),
            Answer::Not(why) => Err(why),
            Answer::Begun { .. } => return Err(fail(&self.state, NOT_THE_PROTOCOL.to_owned())),
        };
        *lock(&self.state) = State::Started(self.connection);
        ended
    }
}

const NOT_THE_PROTOCOL: &str = "it does not follow the protocol";

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that the agent failed.
fn fail(state: &Mutex<State>, why: String) -> String {
    *lock(state) = State::Failed(why.clone());
    why
}

impl AgentProcess {
    /// Starts an agent with a command and its arguments, as in `ssh -o BatchMode=yes db.example`.
    ///
    /// # Errors
    /// Why it cannot be started, as a clause.
    pub fn start(command: &[String]) -> Result<Self, String> {
        let Some((program, arguments)) = command.split_first() else {
            return Err("no command starts it".to_owned());
        };
        let mut started = Command::new(program);
        started.args(arguments).args(["kurabe", "agent", "--stdio"]);
        Self::of(started)
    }

    /// Starts an agent with a whole command.
    pub fn of(mut started: Command) -> Result<Self, String> {
        started.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C on the terminal does not end it while a trial is completed.
        started.process_group(0);
        let mut child = started.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let input = child.stdin.take();
        let (output, error) = (child.stdout.take(), child.stderr.take());
        let (lines_to, lines) = sync_channel(1);
        let (errors_to, errors) = sync_channel(1);
        let threads = output.zip(error).map(|(output, error)| {
            let named = |name: &str| thread::Builder::new().name(name.to_owned());
            named("agent").spawn(move || pass_lines(BufReader::new(output), &lines_to))?;
            named("agent's errors").spawn(move || errors_to.send(last_line(error)))
        });
        let mut connection = Self { child, input, lines, errors };
        if !matches!(threads, Some(Ok(_))) {
            return Err("no thread can be started for its answers".to_owned());
        }
        connection.greet()?;
        Ok(connection)
    }

    /// Waits for the greeting. Lines before it are of the login.
    fn greet(&mut self) -> Result<(), String> {
        let until = Instant::now() + START;
        for _ in 0..MAX_LINES {
            let line = self.receive(until.saturating_duration_since(Instant::now()))?;
            let greeting = serde_json::from_slice::<Greeting>(&line);
            match greeting.map(|greeting| greeting.kurabe_agent) {
                Ok(PROTOCOL) => return Ok(()),
                Ok(other) => {
                    return Err(format!(
                        "it uses version {other} of the protocol, this program version {PROTOCOL}"
                    ));
                }
                Err(_) => {}
            }
        }
        Err(NOT_THE_PROTOCOL.to_owned())
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line, which ends with a line break.
    ///
    /// # Errors
    /// If it does not read any more.
    pub fn send_line(&mut self, line: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(line)?;
        input.flush()
    }

    /// The lines that it sends from now on, and its error message once it has ended. They can be taken once.
    pub fn take_output(&mut self) -> (Receiver<Vec<u8>>, Receiver<String>) {
        let (lines, errors) = (sync_channel(1).1, sync_channel(1).1);
        (std::mem::replace(&mut self.lines, lines), std::mem::replace(&mut self.errors, errors))
    }

    /// Closes its input, so that it ends.
    pub fn hang_up(&mut self) {
        drop(self.input.take());
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn receive(&mut self, time: Duration) -> Result<Vec<u8>, String> {
        self.lines.recv_timeout(time).map_err(|error| match error {
            RecvTimeoutError::Timeout => "it did not answer in time".to_owned(),
            RecvTimeoutError::Disconnected => match self.errors.recv_timeout(END) {
                Ok(message) if !message.is_empty() => format!("it ended: {message}"),
                _ => "it ended".to_owned(),
            },
        })
    }
}

impl Conversation for AgentProcess {
    fn request(&mut self, request: &Request) -> Result<Answer, String> {
        let sent = self.input.as_mut().map(|input| send(input, request));
        // A command that has ended cannot be written to; its error message says why.
        let time = if matches!(sent, Some(Ok(()))) { ANSWER } else { END };
        let line = self.receive(time)?;
        let text = std::str::from_utf8(&line).map(printable_json);
        let answer = text.ok().and_then(|text| serde_json::from_str(&text).ok());
        answer.ok_or_else(|| NOT_THE_PROTOCOL.to_owned())
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        let until = Instant::now() + END;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes lines on until the stream ends, is invalid, or nothing receives them.
fn pass_lines(mut from: impl BufRead, to: &SyncSender<Vec<u8>>) {
    while let Ok(Some(line)) = read_line(&mut from) {
        if to.send(line).is_err() {
            return;
        }
    }
}

/// The last line of an error message, with escaped control characters.
fn last_line(from: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = from.take(MAX_ERROR).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map(|line| printable(line).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an agent answers that is this shell script.
    fn try_out(script: &str) -> (String, Duration) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("agent");
        std::fs::write(&path, script).unwrap();
        let began = Instant::now();
        let why = Remote::new("sh", path.to_str().unwrap()).try_out("127.0.0.1", 1).unwrap_err();
        (why, began.elapsed())
    }

    #[test]
    fn failed_start_is_reported_with_the_error_message() {
        let why = Remote::new("/no/such/program", "host").try_out("127.0.0.1", 1).unwrap_err();
        assert!(why.starts_with("the agent of '/no/such/program host': cannot be started"), "{why}");
        let (why, _) = try_out("echo first >&2; printf 'Permission \\033[2Jdenied\\n' >&2; exit 255");
        assert!(why.ends_with("it ended: Permission \\u{1b}[2Jdenied"), "{why}");
        let (why, _) = try_out("true");
        assert!(why.ends_with("it ended"), "{why}");
    }

    #[test]
    fn other_versions_and_other_programs_are_refused() {
        let (why, _) = try_out("echo welcome; echo '{\"kurabe_agent\":99}'; cat");
        assert!(why.contains("version 99 of the protocol"), "{why}");
        let (why, _) = try_out("echo '{\"kurabe_agent\":3}'; cat");
        assert!(why.ends_with(NOT_THE_PROTOCOL), "{why}");
        let (why, took) = try_out("yes");
        assert!(why.ends_with(NOT_THE_PROTOCOL) && took < START, "{why}");
    }

    #[test]
    fn silent_agent_times_out_and_is_not_started_again() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("agent");
        let starts = place.path().join("starts");
        let text = format!("echo >> {}; echo '{{\"kurabe_agent\":3}}'; exec sleep 60", starts.display());
        std::fs::write(&script, text).unwrap();
        let remote = Remote::new("sh", script.to_str().unwrap());
        let began = Instant::now();
        for _ in 0..3 {
            let why = remote.try_out("127.0.0.1", 1).unwrap_err();
            assert!(why.ends_with("it did not answer in time"), "{why}");
        }
        assert!(began.elapsed() < 2 * ANSWER, "{:?}", began.elapsed());
        assert_eq!(std::fs::read_to_string(starts).unwrap().lines().count(), 1);
    }
}
