//! Runs that were started from the page: each a process of its own.
//!
//! A job has a folder below the store, `.jobs/ID`, with its command, its process, its progress and its output. So the
//! page finds its jobs again when it is restarted, and they do not end with it.

use kurabe_core::name::Name;
use kurabe_core::sort;
use kurabe_core::target::without_passwords;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::private;
use kurabe_os::process::Stat;
use kurabe_record::Store;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder of all jobs, below that of the runs. Lists of runs leave out names that begin with a dot.
const FOLDER: &str = ".jobs";
/// Ended jobs beyond this number are removed, the oldest first.
const KEPT: usize = 50;
/// The longest output that a page shows, in bytes.
const SHOWN: usize = 100_000;

/// Starts and finds jobs.
pub(crate) struct Jobs {
    dir: PathBuf,
    runs: PathBuf,
    program: PathBuf,
}

/// What a job's folder records.
#[derive(Serialize, Deserialize)]
struct Record {
    /// The command line, without passwords.
    command: String,
    pid: i32,
    /// When the process started, in the kernel's clock ticks: another process with the same number has another time.
    started: u64,
}

pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) command: String,
    folder: PathBuf,
    pid: i32,
    started: u64,
}

impl Job {
    pub(crate) fn is_running(&self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn stop(&self) -> Result<()> {
        if !self.is_running() {
            return Ok(());
        }
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(()) };
        kill_process(pid, Signal::INT).map_err(|error| {
            Error::new(ErrorKind::Environment, format!("job {} cannot be stopped: {error}", self.id))
        })
    }

    /// The file of its progress: JSON objects, one per line.
    pub(crate) fn progress(&self) -> PathBuf {
        self.folder.join("progress.jsonl")
    }

    /// The name of its run, once it has one.
    pub(crate) fn run(&self) -> Option<String> {
        let text = fs::read_to_string(self.progress()).ok()?;
        text.lines().find_map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).ok()?;
            let kind = event["event"].as_str()?;
            matches!(kind, "run-begins" | "run-ends").then(|| event["run"].as_str().map(str::to_owned))?
        })
    }

    /// What it printed, without the progress of trials.
    pub(crate) fn said(&self) -> String {
        let messages = fs::read_to_string(self.progress()).unwrap_or_default();
        let messages = messages.lines().filter_map(|line| {
            let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else {
                return Some(line.to_owned());
            };
            Some(format!("{}: {}", event["event"].as_str()?, event["text"].as_str()?))
        });
        let messages: Vec<String> = messages.collect();
        let results = fs::read_to_string(self.folder.join("output.txt")).unwrap_or_default();
        let mut text = messages.join("\n") + "\n\n" + &results;
        if let Some((end, _)) = text.char_indices().nth(SHOWN) {
            text.truncate(end);
        }
        text
    }
}

/// When a process that has not ended started; `None` if there is none.
fn started(pid: i32) -> Option<u64> {
    Stat::of(pid.try_into().ok()?).filter(Stat::lives).map(|stat| stat.began)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Environment, format!("cannot {what} {}: {error}", path.display()))
}

impl Jobs {
    pub(crate) fn open(store: &Store, program: PathBuf) -> Result<Self> {
        store.try_out()?;
        let runs = store.dir().canonicalize().map_err(|error| failed("use", store.dir(), &error))?;
        let dir = runs.join(FOLDER);
        private::create_dir_all(&dir).map_err(|error| failed("create", &dir, &error))?;
        Ok(Self { dir, runs, program })
    }

    /// All jobs, the newest first.
    pub(crate) fn all(&self) -> Vec<Job> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut all: Vec<Job> =
            entries.filter_map(|entry| self.find(entry.file_name().to_str()?).ok()).collect();
        sort::by(&mut all, |a, b| b.id.cmp(&a.id));
        all
    }

    pub(crate) fn running(&self) -> Vec<Job> {
        self.all().into_iter().filter(Job::is_running).collect()
    }

    /// The newest job that made or continued this run.
    pub(crate) fn of_run(&self, run: &str) -> Option<Job> {
        self.all().into_iter().find(|job| job.run().as_deref() == Some(run))
    }

    /// The job with this name.
    pub(crate) fn find(&self, id: &str) -> Result<Job> {
        let none = || Error::new(ErrorKind::NotFound, format!("there is no job '{id}'"));
        let id = Name::parse(id)
            .ok()
            .filter(|id| !id.contains(|c: char| c.is_ascii_alphabetic()))
            .ok_or_else(none)?;
        let folder = self.dir.join(&id);
        let text = fs::read(folder.join("job.json")).map_err(|_| none())?;
        let record: Record = serde_json::from_slice(&text).map_err(|_| none())?;
        Ok(Job {
            id: id.to_string(),
            command: record.command,
            folder,
            pid: record.pid,
            started: record.started,
        })
    }

    /// Starts `kurabe` with these arguments; returns the job's name.
    pub(crate) fn start(&self, arguments: &Arguments) -> Result<String> {
        self.prune();
        let mut ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let (id, folder) = loop {
            // Numbers of equal length, so that names sort by time.
            let id = format!("{ms:013}-{:07}", std::process::id());
            let folder = self.dir.join(&id);
            match private::create_dir(&folder) {
                Ok(()) => break (id, folder),
                // Somebody else starts a run in this millisecond.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => ms += 1,
                Err(error) => return Err(failed("create", &folder, &error)),
            }
        };
        let started = self.start_in(&folder, arguments);
        if started.is_err() {
            // Nothing would find it, or remove it.
            let _ = fs::remove_dir_all(&folder);
        }
        started.map(|()| id)
    }

    /// What a run with these arguments would do and how long it would take: the first line of its plan.
    pub(crate) fn plan(&self, arguments: &Arguments) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.arg("--runs-dir").arg(&self.runs).stdout(Stdio::piped()).stderr(Stdio::piped());
        let made = arguments.spawn(&mut command).and_then(Child::wait_with_output);
        let made = made.map_err(|error| failed("start", &self.program, &error))?;
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned();
        if made.status.success() { Ok(text(&made.stdout)) } else { Err(Error::usage(text(&made.stderr))) }
    }

    fn start_in(&self, folder: &Path, arguments: &Arguments) -> Result<()> {
        let file = |name: &str| {
            let path = folder.join(name);
            private::create_new(&path).map_err(|error| failed("create", &path, &error))
        };
        let mut command = Command::new(&self.program);
        // The stop of the page must not reach it.
        command.arg("--runs-dir").arg(&self.runs).process_group(0);
        command.stdout(file("output.txt")?).stderr(file("progress.jsonl")?);
        let mut child =
            arguments.spawn(&mut command).map_err(|error| failed("start", &self.program, &error))?;
        let pid = child.id() as i32;
        let record = Record {
            command: arguments.command_line(),
            pid,
            // It cannot have been reaped yet.
            started: started(pid).unwrap_or_default(),
        };
        let text = serde_json::to_vec(&record).unwrap_or_default();
        let path = folder.join("job.json");
        let written = private::write_new(&path, &text).map_err(|error| failed("write", &path, &error));
        if written.is_err() {
            // Nobody could stop it.
            let _ = child.kill();
        }
        std::thread::spawn(move || child.wait());
        written
    }

    fn prune(&self) {
        for job in self.all().into_iter().filter(|job| !job.is_running()).skip(KEPT) {
            let _ = fs::remove_dir_all(&job.folder);
        }
    }
}

/// The arguments of `kurabe`. URLs are given to it on standard input, one a line: other accounts can read the arguments of
/// a process, and a URL may have a password.
pub(crate) struct Arguments {
    /// As a user would write them.
    shown: Vec<String>,
    /// As the process gets them, with `-` for each URL.
    given: Vec<String>,
    urls: String,
}

impl Arguments {
    pub(crate) fn new<const N: usize>(words: [&str; N]) -> Self {
        let words = words.map(str::to_owned).to_vec();
        Self { shown: words.clone(), given: words, urls: String::new() }
    }

    pub(crate) fn push(&mut self, word: &str) {
        self.shown.push(word.to_owned());
        self.given.push(word.to_owned());
    }

    pub(crate) fn push_url(&mut self, url: String) {
        self.given.push("-".to_owned());
        self.urls.push_str(&url);
        self.urls.push('\n');
        self.shown.push(url);
    }

    /// As a user would write them, with passwords.
    #[cfg(test)]
    pub(crate) fn shown(&self) -> &[String] {
        &self.shown
    }

    /// The command line with these arguments, without passwords.
    pub(crate) fn command_line(&self) -> String {
        let words = std::iter::once("kurabe".to_owned()).chain(self.shown.iter().cloned());
        kurabe_report::command_line(&without_passwords(words))
    }

    /// Starts the process with these arguments.
    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut child = command.args(&self.given).stdin(Stdio::piped()).spawn()?;
        // A process that has ended says why.
        let _ = child.stdin.take().map(|mut input| input.write_all(self.urls.as_bytes()));
        Ok(child)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(program: &str) -> (tempfile::TempDir, Jobs) {
        let dir = tempfile::tempdir().unwrap();
        let jobs = Jobs::open(&Store::open(dir.path()).unwrap(), program.into()).unwrap();
        (dir, jobs)
    }

    #[test]
    fn job_is_found_again_and_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        // Like the program itself, it is interrupted also where these tests ignore that.
        fs::write(&program, "#!/bin/sh\nexec env --default-signal=INT sleep 60\n").unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let (dir, jobs) = jobs(program.to_str().unwrap());
        // While another test forks, the kernel takes the new file for one that is still written.
        let start = || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            jobs.start(&Arguments::new(["60"])).ok()
        };
        let id = (0..100).find_map(|_| start()).unwrap();
        let again = Jobs::open(&Store::open(dir.path()).unwrap(), program).unwrap();
        let job = again.find(&id).unwrap();
        assert!(job.is_running() && again.running().len() == 1 && job.command == "kurabe 60");
        job.stop().unwrap();
        for _ in 0..1_000 {
            if !job.is_running() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the job was not stopped");
    }

    #[test]
    fn other_process_with_the_same_number_is_not_the_job() {
        let own = std::process::id() as i32;
        let job = |started| Job {
            id: String::new(),
            command: String::new(),
            folder: PathBuf::new(),
            pid: own,
            started,
        };
        let started = started(own).unwrap();
        assert!(job(started).is_running() && !job(started + 1).is_running());
    }

    #[test]
    fn names_of_jobs_are_no_paths() {
        let (_dir, jobs) = jobs("true");
        for id in ["", "..", "../x", "/etc", "a"] {
            assert_eq!(jobs.find(id).err().map(|error| error.kind()), Some(ErrorKind::NotFound), "{id}");
        }
    }

    #[test]
    fn program_that_does_not_exist_is_named_and_leaves_no_folder() {
        let (_dir, jobs) = jobs("/nonexistent/kurabe");
        assert!(jobs.start(&Arguments::new([])).unwrap_err().to_string().contains("/nonexistent/kurabe"));
        assert_eq!(fs::read_dir(&jobs.dir).unwrap().count(), 0);
    }

    #[test]
    fn files_of_a_job_are_readable_by_their_owner_only() {
        use std::os::unix::fs::MetadataExt as _;
        let (_dir, jobs) = jobs("true");
        let folder = jobs.dir.join(jobs.start(&Arguments::new([])).unwrap());
        let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let all: Vec<PathBuf> = files.chain([jobs.dir.clone(), folder.clone()]).collect();
        assert_eq!(all.len(), 5, "{all:?}");
        for path in all {
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o077, 0, "{}", path.display());
        }
    }

    #[test]
    fn runs_that_start_at_one_time_have_names_of_their_own() {
        let (_dir, jobs) = jobs("true");
        let start = || jobs.start(&Arguments::new([])).unwrap();
        let ids: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..32).map(|_| scope.spawn(start)).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 32);
    }
}
