//! Executes queued runs, one after the other.

use super::broker::Broker;
use super::locks::Locks;
use super::results::{OUTPUT, RUNS};
use super::{Entry, Job, Queue, State, Submission, seconds};
use async_nats::jetstream::{AckKind, Message};
use kurabe_core::text::printable;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the queue is looked at.
const POLL: Duration = Duration::from_millis(500);
/// How often the process of a run is looked at.
const TICK: Duration = Duration::from_millis(100);
/// How often a worker confirms that it executes a run. A third of the time after which that is doubted, at most.
const BEAT: Duration = Duration::from_secs(3);
/// After this time without an answer of the broker, or of its worker, a run is stopped: its locks are about to expire.
pub const ALONE: Duration = Duration::from_secs(12);
/// A run whose hosts are in use is looked at again after this time.
const BUSY: Duration = Duration::from_secs(2);
/// The start of a repeated run is delayed by this: the last worker may just be stopping it.
const GRACE: Duration = Duration::from_secs(6);
/// How long a stopped run has to end by itself.
const END: Duration = Duration::from_secs(6);
/// The exit code of a run that was stopped.
const INTERRUPTED: i32 = 130;
/// The maximum number of attempts.
const ATTEMPTS: u32 = 3;

/// Starts runs.
pub trait Executor {
    /// Starts a submitted run. Its folder has a folder `runs` of recorded runs, and the file `output.txt`.
    ///
    /// # Errors
    /// Why it cannot be started, as a clause.
    fn start(
        &mut self,
        id: &str,
        submission: &Submission,
        folder: &Path,
    ) -> Result<Box<dyn Execution>, String>;
}

/// A run that goes on. It ends when this is dropped.
pub trait Execution {
    /// Its exit code, once it has ended.
    fn ended(&mut self) -> Option<i32>;
    /// Says that it may go on. It ends by itself if it is not told so for [`ALONE`].
    fn confirm(&mut self);
    /// Asks it to end.
    fn stop(&mut self);
}

/// How the execution of a run ended.
enum Ending {
    /// By itself.
    Code(i32),
    /// Someone cancelled it.
    Cancelled,
    /// The worker is to end.
    Stopped,
    /// Another worker has it.
    Lost,
}

/// A worker.
struct Worker<'a> {
    broker: &'a Broker,
    name: &'a str,
    /// The host's own name for locks.
    host: String,
    stop: &'a AtomicBool,
    note: &'a dyn Fn(&str),
}

impl Queue {
    /// Executes queued runs until `stop` is set. `name` is the worker's, `note` is told what happens.
    /// What goes wrong is noted and tried again.
    pub fn work(
        &self,
        name: &str,
        executor: &mut dyn Executor,
        folder: &Path,
        stop: &AtomicBool,
        note: &dyn Fn(&str),
    ) {
        note(&format!("worker {name} waits for runs on {}", self.shown));
        let host = kurabe_observe::boot().unwrap_or_else(|| name.to_owned());
        let worker = Worker { broker: &self.broker, name, host, stop, note };
        self.runtime.block_on(async {
            let mut said = String::new();
            while !stop.load(Ordering::Relaxed) {
                match worker.next(executor, folder).await {
                    Ok(true) => said.clear(),
                    Ok(false) => tokio::time::sleep(POLL).await,
                    Err(why) => {
                        if said != why {
                            note(&format!("{}: {why}; trying again", self.shown));
                            said = why;
                        }
                        tokio::time::sleep(POLL).await;
                    }
                }
            }
        });
    }
}

impl Worker<'_> {
    /// Executes the next run that can be, in the order of submission. Returns whether there was one.
    async fn next(&self, executor: &mut dyn Executor, folder: &Path) -> Result<bool, String> {
        let mut lanes = self.broker.lanes().await?;
        if lanes.is_empty() {
            return Ok(false);
        }
        let mut entries = self.broker.all_entries().await?;
        entries.reverse();
        let mut order: Vec<String> = Vec::new();
        for entry in entries.into_iter().filter(|entry| !entry.state.is_over()) {
            if lanes.remove(&entry.lane) {
                order.push(entry.lane);
            }
        }
        // What is left belongs to runs that are over.
        order.extend(lanes);
        let mut busy = BTreeSet::new();
        for lane in order {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let Some(message) = self.broker.take(&lane).await? else { continue };
            if self.handle(&message, executor, folder, &mut busy).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Executes the run of a message. Returns `false` if its hosts are in use, which are added to `busy`.
    async fn handle(
        &self,
        message: &Message,
        executor: &mut dyn Executor,
        folder: &Path,
        busy: &mut BTreeSet<String>,
    ) -> Result<bool, String> {
        let Ok(job) = serde_json::from_slice::<Job>(&message.payload) else {
            (self.note)("a message of the queue does not follow the protocol; it is removed");
            return acknowledge(message, AckKind::Term).await.map(|()| true);
        };
        let Some(entry) = self.broker.entry(&job.id).await?.filter(|entry| !entry.state.is_over()) else {
            return acknowledge(message, AckKind::Ack).await.map(|()| true);
        };
        let (attempts, again) = match entry.state {
            State::Queued { attempts } => (attempts, attempts > 0),
            State::Running { attempt, .. } => (attempt, true),
            _ => (0, false),
        };
        let keys = job.submission.locks(&self.host);
        // A later run must not take a host that an earlier one waits for.
        let is_waited_for = keys.iter().any(|key| busy.contains(key));
        let locks = if is_waited_for {
            Err(String::new())
        } else {
            let owner = format!("{} {} {}", self.name, self.host, std::process::id());
            Locks::take(self.broker, keys.clone(), &owner).await?
        };
        let Ok(mut locks) = locks else {
            busy.extend(keys);
            acknowledge(message, AckKind::Nak(Some(BUSY))).await?;
            return Ok(false);
        };
        let handled = if attempts >= ATTEMPTS {
            let why = format!("the worker ended during each of {attempts} attempts");
            self.conclude(message, &entry, State::Failed { at: seconds(), why }).await
        } else {
            if again {
                tokio::time::sleep(GRACE).await;
            }
            self.execute(message, &job, &entry, attempts + 1, executor, folder, &mut locks).await
        };
        locks.release().await;
        handled.map(|()| true)
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one attempt")]
    async fn execute(
        &self,
        message: &Message,
        job: &Job,
        entry: &Entry,
        attempt: u32,
        executor: &mut dyn Executor,
        folder: &Path,
        locks: &mut Locks<'_>,
    ) -> Result<(), String> {
        let id = &job.id;
        let running = State::Running { worker: self.name.to_owned(), since: seconds(), attempt };
        self.broker.put(&Entry { state: running, ..entry.clone() }).await?;
        let folder = folder.join(id);
        let made =
            fs::remove_dir_all(&folder).or(Ok(())).and_then(|()| fs::create_dir_all(folder.join(RUNS)));
        let started = made
            .map_err(|error| format!("{} cannot be made: {error}", folder.display()))
            .and_then(|()| executor.start(id, &job.submission, &folder));
        let mut execution = match started {
            Ok(execution) => execution,
            Err(why) => {
                (self.note)(&format!("{id} cannot be started: {why}"));
                let why = format!("worker {} could not start it: {why}", self.name);
                return self.conclude(message, entry, State::Failed { at: seconds(), why }).await;
            }
        };
        (self.note)(&format!("{id} began"));
        let mut ending = self.accompany(message, id, &mut *execution, locks).await;
        drop(execution);
        let mut files = Vec::new();
        if matches!(ending, Ending::Code(_)) {
            match self.store(message, id, &folder, locks).await {
                Ok(stored) => files = stored,
                Err(other) => ending = other,
            }
        }
        let result = match ending {
            // Nobody stopped it but the run itself, which was not told that it may go on.
            Ending::Code(INTERRUPTED) => {
                (self.note)(&format!("{id} was interrupted; it is given back to the queue"));
                self.give_back(message, entry, attempt).await
            }
            Ending::Code(code) => {
                (self.note)(&format!("{id} ended with exit code {code}"));
                let (runs, error) = (names(&folder.join(RUNS)), error_of(&folder.join(OUTPUT)));
                let worker = self.name.to_owned();
                let ended = State::Ended { at: seconds(), worker, code, error, runs, files };
                self.conclude(message, entry, ended).await
            }
            Ending::Cancelled => {
                (self.note)(&format!("{id} was cancelled"));
                acknowledge(message, AckKind::Ack).await
            }
            Ending::Stopped => {
                (self.note)(&format!("{id} is given back to the queue"));
                self.give_back(message, entry, attempt - 1).await
            }
            Ending::Lost => {
                (self.note)(&format!(
                    "{id} was stopped: the broker did not answer, and another worker may have it"
                ));
                Ok(())
            }
        };
        let _ = fs::remove_dir_all(&folder);
        result
    }

    /// Waits for the end of a run, and confirms meanwhile that it goes on.
    async fn accompany(
        &self,
        message: &Message,
        id: &str,
        execution: &mut dyn Execution,
        locks: &mut Locks<'_>,
    ) -> Ending {
        let (mut beat, mut confirmed) = (Instant::now(), Instant::now());
        let ending = loop {
            if let Some(code) = execution.ended() {
                // The user's Ctrl-C reaches both.
                let stopped = self.stop.load(Ordering::Relaxed);
                return if stopped { Ending::Stopped } else { Ending::Code(code) };
            }
            if self.stop.load(Ordering::Relaxed) {
                break Ending::Stopped;
            }
            if beat.elapsed() >= BEAT {
                beat = Instant::now();
                match tokio::time::timeout(BEAT, self.confirm(message, id, locks)).await {
                    Ok(Ok(None)) => {
                        confirmed = Instant::now();
                        execution.confirm();
                    }
                    Ok(Ok(Some(ending))) => break ending,
                    Ok(Err(_)) | Err(_) if confirmed.elapsed() >= ALONE => break Ending::Lost,
                    Ok(Err(_)) | Err(_) => {}
                }
            }
            tokio::time::sleep(TICK).await;
        };
        execution.stop();
        let until = Instant::now() + END;
        while execution.ended().is_none() && Instant::now() < until {
            tokio::time::sleep(TICK).await;
        }
        ending
    }

    /// Confirms message and locks. Returns why the run must end, if it must.
    async fn confirm(
        &self,
        message: &Message,
        id: &str,
        locks: &mut Locks<'_>,
    ) -> Result<Option<Ending>, String> {
        acknowledge(message, AckKind::Progress).await?;
        if !locks.renew().await? {
            return Ok(Some(Ending::Lost));
        }
        Ok(match self.broker.entry(id).await? {
            Some(Entry { state: State::Running { worker, .. }, .. }) if worker == self.name => None,
            Some(Entry { state: State::Running { .. } | State::Queued { .. }, .. }) => Some(Ending::Lost),
            _ => Some(Ending::Cancelled),
        })
    }

    /// Stores the files of an ended run; tries it again while the broker does not answer. Returns them, or why they do not
    /// count: someone cancelled the run, or another worker has it.
    async fn store(
        &self,
        message: &Message,
        id: &str,
        folder: &Path,
        locks: &mut Locks<'_>,
    ) -> Result<Vec<String>, Ending> {
        loop {
            match self.confirm(message, id, locks).await {
                Ok(Some(ending)) => return Err(ending),
                Ok(None) => {
                    if let Ok(files) = self.broker.store(id, folder).await {
                        return Ok(files);
                    }
                }
                Err(_) => {}
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Ending::Stopped);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Puts a run back into the queue, after this many attempts.
    async fn give_back(&self, message: &Message, entry: &Entry, attempts: u32) -> Result<(), String> {
        self.broker.put(&Entry { state: State::Queued { attempts }, ..entry.clone() }).await?;
        acknowledge(message, AckKind::Nak(None)).await
    }

    /// Sets the last state of a run, and removes its message.
    async fn conclude(&self, message: &Message, entry: &Entry, state: State) -> Result<(), String> {
        self.broker.put(&Entry { state, ..entry.clone() }).await?;
        acknowledge(message, AckKind::Ack).await
    }
}

async fn acknowledge(message: &Message, kind: AckKind) -> Result<(), String> {
    message.ack_with(kind).await.map_err(|error| error.to_string())
}

/// The names of the entries of a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().join("run.jsonl").is_file());
    let mut names: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The last error message in what a run printed.
fn error_of(output: &Path) -> Option<String> {
    let text = fs::read_to_string(output).ok()?;
    let is_error = |line: &&str| line.starts_with("kurabe: ") && !line.starts_with("kurabe: warning: ");
    text.lines().rfind(is_error).map(|line| printable(&line["kurabe: ".len()..]).into_owned())
}
