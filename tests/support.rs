//! Helpers of the program's tests: a directory for its runs, and its answers.

use kurabe_testbed::testing;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The program.
pub(crate) const KURABE: &str = env!("CARGO_BIN_EXE_kurabe");

/// Directories for runs and for a home, removed with the test.
pub(crate) struct Place {
    runs: PathBuf,
    home: PathBuf,
    /// Whether the program starts its servers; otherwise it leases those of tests, where it can.
    starts_servers: bool,
    _folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [runs, home] = ["runs", "home"].map(|name| folder.path().join(name));
        std::fs::create_dir(&runs).unwrap();
        std::fs::create_dir(&home).unwrap();
        Self { runs, home, starts_servers: false, _folder: folder }
    }

    /// For tests of how the program starts its servers and ends them.
    pub(crate) fn that_starts_servers() -> Self {
        Self { starts_servers: true, ..Self::new() }
    }

    /// The directory of all runs.
    pub(crate) fn path(&self) -> &Path {
        &self.runs
    }

    /// The home directory of the user.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The program without any user configuration: neither passwords nor names come from the tester's environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(KURABE);
        command.args(args);
        self.configure(&mut command);
        command
    }

    /// The program as a child of a shell that runs `before` first: `ulimit -n 100`.
    pub(crate) fn command_after(&self, before: &str, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{before} && exec \"$0\" \"$@\""), KURABE]).args(args);
        self.configure(&mut command);
        command
    }

    /// The directories of the user.
    pub(crate) fn configure(&self, command: &mut Command) {
        command.env("KURABE_RUNS", &self.runs).env("HOME", &self.home).stdin(Stdio::null());
        command.env(testing::SMALL, "1");
        if self.starts_servers {
            command.env_remove(testing::POOL);
        } else {
            command.env(testing::POOL, testing::pool().unwrap());
        }
        // Servers that the distribution lacks are in the tester's cache.
        command.envs(cache().map(|folder| ("KURABE_CACHE", folder)));
        for name in [
            "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGHOST", "PGPORT", "PGDATABASE", "PGSSLMODE",
            "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "MYSQL_PWD", "REDISCLI_AUTH", "VALKEYCLI_AUTH",
            "COUCHDB_USER", "COUCHDB_PASSWORD", "LC_ALL", "LC_MESSAGES", "LANG", "XDG_CONFIG_HOME",
            "KURABE_CONFIG",
        ] {
            command.env_remove(name);
        }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        Answer { command: args.join(" "), ..Answer::of(&self.command(args).output().unwrap()) }
    }

    /// A path in the user's home directory.
    pub(crate) fn at(&self, name: &str) -> String {
        self.home.join(name).into_os_string().into_string().unwrap()
    }

    /// Writes a file in the user's home directory, and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.at(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        piped(&mut self.command(args))
    }

    /// Starts a run, and returns when it waits after this many trials, until [`Place::go_on`] or a signal. Who then stops
    /// the run, or a server, knows that it has not ended.
    pub(crate) fn spawn_to_trial(&self, args: &[&str], wanted: usize) -> (Child, PathBuf) {
        let child = piped(&mut self.pausing(args, &[wanted]));
        self.wait_for_pause(wanted);
        (child, self.wait_for_trials(0))
    }

    /// The command of a run that waits after each of these numbers of trials, without those that were rerun.
    pub(crate) fn pausing(&self, args: &[&str], wanted: &[usize]) -> Command {
        let mut command = self.command(args);
        let pauses: Vec<_> =
            wanted.iter().map(|trials| format!("{trials}:{}", self.pause(*trials).display())).collect();
        command.env("KURABE_PAUSE", pauses.join(","));
        command
    }

    /// Waits until a run waits after this many trials.
    pub(crate) fn wait_for_pause(&self, trials: usize) {
        let there = eventually(120, || self.is_paused(trials).then_some(()));
        assert!(there.is_some(), "no run came to its trial {trials}");
    }

    /// Whether a run waits after this many trials, or did.
    pub(crate) fn is_paused(&self, trials: usize) -> bool {
        self.pause(trials).with_extension("waits").exists()
    }

    /// Lets a run that waits after this many trials go on.
    pub(crate) fn go_on(&self, trials: usize) {
        std::fs::write(self.pause(trials), "").unwrap();
    }

    fn pause(&self, trials: usize) -> PathBuf {
        self.home.join(format!("go-on-{trials}"))
    }

    /// The JSON report of the newest run.
    pub(crate) fn report(&self) -> serde_json::Value {
        self.run(&["report", "--format", "json"]).json()
    }

    /// The run file of the only run.
    pub(crate) fn run_file(&self) -> PathBuf {
        self.wait_for_trials(0)
    }

    /// The run file of the only run, once it contains this many trials.
    pub(crate) fn wait_for_trials(&self, wanted: usize) -> PathBuf {
        let find = || {
            let entries = std::fs::read_dir(self.path()).unwrap().flatten();
            entries.map(|entry| entry.path().join("run.jsonl")).find(|file| trials(file) >= wanted)
        };
        eventually(120, find).unwrap_or_else(|| panic!("no run with {wanted} trials appeared"))
    }
}

/// Where the testbed finds servers, independent of the program's home directory.
pub(crate) fn cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("KURABE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("kurabe")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/kurabe")))
}

/// A URL with one more option; unchanged if the option is empty.
pub(crate) fn with(url: &str, option: &str) -> String {
    let sign = match option {
        "" => "",
        _ if url.contains('?') => "&",
        _ => "?",
    };
    format!("{url}{sign}{option}")
}

/// The words of a command line.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Starts a program with pipes to read from.
pub(crate) fn piped(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The number of trials in a run file, without those that were rerun after a disturbance; `None` without a file.
pub(crate) fn trials(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let trial = |line: &&str| line.contains(",\"trial\":{") && !line.contains("\"rerun_reason\":");
    text.lines().filter(trial).count()
}

/// The trials in a run file, as they are recorded; without a last line that is not whole.
pub(crate) fn recorded_trials(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|mut line| line.get_mut("trial").map(Value::take)).collect()
}

/// The value of a metric of a cell; `None` if the cell has no such metric.
pub(crate) fn metric(cell: &Value, name: &str) -> Option<f64> {
    let metrics = cell["metrics"].as_array()?;
    metrics.iter().find(|metric| metric["name"] == name)?["value"].as_f64()
}

/// Tests whose servers have a host of their own run one after the other, since they count the devices.
pub(crate) fn own_hosts() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether no device of a server's own host is left.
pub(crate) fn no_device() -> bool {
    let output = Command::new("ip").args(["-o", "link", "show", "type", "veth"]).output().unwrap();
    !String::from_utf8_lossy(&output.stdout).contains(": kbt")
}

/// The result of `find`, if it returns one within this many seconds.
pub(crate) fn eventually<T>(seconds: u64, mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + Duration::from_secs(seconds);
    loop {
        let found = find();
        if found.is_some() || Instant::now() >= until {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Does this with all at the same time, where each mostly waits. The threads have the name of the test, for its messages.
pub(crate) fn beside_each_other<T: Send>(all: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    let (name, each) = (std::thread::current().name().unwrap_or("a test").to_owned(), &each);
    std::thread::scope(|scope| {
        let start = |one| {
            let thread = std::thread::Builder::new().name(name.clone());
            thread.spawn_scoped(scope, move || each(one)).unwrap()
        };
        let threads: Vec<_> = all.into_iter().map(start).collect();
        let failed = threads.into_iter().find_map(|thread| thread.join().err());
        if let Some(panic) = failed {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Sends a signal to a process that this test started.
pub(crate) fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// How the program ended, and its output.
#[derive(Default)]
pub(crate) struct Answer {
    /// The arguments, for messages; empty if only the output was given.
    pub(crate) command: String,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Without the command, which may have the password that a test looks for in the output.
impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, out, err, .. } = self;
        let mut answer = f.debug_struct("Answer");
        answer.field("code", code).field("out", out).field("err", err).finish_non_exhaustive()
    }
}

impl Answer {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            ..Self::default()
        }
    }

    /// That of a program that was started, after it has ended.
    pub(crate) fn at_end_of(child: Child) -> Self {
        Self::of(&child.wait_with_output().unwrap())
    }

    /// Checks that the program succeeded.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        self.exit_code(0)
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn exit_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "kurabe {}: {self:?}", self.command);
        self
    }

    /// Checks that standard output contains a text.
    #[track_caller]
    pub(crate) fn out_has(self, part: &str) -> Self {
        assert!(self.out.contains(part), "kurabe {}: '{part}' is not in the output: {self:?}", self.command);
        self
    }

    /// Checks that standard error contains a text.
    #[track_caller]
    pub(crate) fn err_has(self, part: &str) -> Self {
        assert!(
            self.err.contains(part),
            "kurabe {}: '{part}' is not in the messages: {self:?}",
            self.command
        );
        self
    }

    /// Its error messages: a busy machine is only a warning.
    pub(crate) fn errors(&self) -> Vec<&str> {
        let told = self.err.lines().filter(|line| line.starts_with("kurabe: "));
        told.filter(|line| !line.starts_with("kurabe: warning: ")).collect()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
