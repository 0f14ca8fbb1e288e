//! Executes queued runs, one after the other.

use super::broker::Broker;
use super::locks::Locks;
use super::results::{OUTPUT, RUNS};
use super::{Entry, Job, Queue, Revised, State, Submission, WorkFolder, seconds};
use async_nats::jetstream::{AckKind, Message};
use kurabe_core::name::{FileName, Name, RelativePath};
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
/// How long a stopped run has to end by itself, …
const END: Duration = Duration::from_secs(6);
/// … if the worker is to end too. The program exits 4.5 s after Ctrl-C, and the run must be given back before.
const LAST: Duration = Duration::from_millis(2_500);
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
        id: &Name,
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

struct Worker<'a> {
    broker: &'a Broker,
    name: &'a Name,
    /// The host's own name for locks.
    host: String,
    folder: &'a WorkFolder,
    stop: &'a AtomicBool,
    note: &'a dyn Fn(&str),
}

/// A run that this worker executes: its message, and its entry as this worker wrote it.
struct Attempt<'a> {
    message: &'a Message,
    entry: Entry,
    revision: u64,
    /// Its number, from 1.
    number: u32,
}

impl Queue {
    /// Executes queued runs until `stop` is set. `name` is the worker's, `note` is told what happens.
    /// What goes wrong is noted and tried again.
    pub fn work(
        &self,
        name: &Name,
        executor: &mut dyn Executor,
        folder: &WorkFolder,
        stop: &AtomicBool,
        note: &dyn Fn(&str),
    ) {
        note(&format!("worker {name} waits for runs on {}", self.shown));
        let host = kurabe_observe::boot().unwrap_or_else(|| name.to_string());
        let worker = Worker { broker: &self.broker, name, host, folder, stop, note };
        self.runtime.block_on(async {
            let mut said = String::new();
            while !worker.is_stopped() {
                match worker.next(executor).await {
                    Ok(true) => said.clear(),
                    Ok(false) => {
                        worker.pause(POLL).await;
                    }
                    Err(why) => {
                        if said != why {
                            note(&format!("{}: {why}; trying again", self.shown));
                            said = why;
                        }
                        worker.pause(POLL).await;
                    }
                }
            }
            self.broker.flush().await;
        });
    }
}

impl Worker<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends when the worker is to end.
    async fn stopped(&self) {
        while !self.is_stopped() {
            tokio::time::sleep(TICK).await;
        }
    }

    /// What a future returns; `None` if the worker is to end before that.
    async fn unless_stopped<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = future => Some(done),
            () = self.stopped() => None,
        }
    }

    /// Waits for this long, or until the worker is to end; whether it goes on.
    async fn pause(&self, time: Duration) -> bool {
        self.unless_stopped(tokio::time::sleep(time)).await.is_some()
    }

    /// Executes the next run that can be, in the order of submission. Returns whether there was one.
    async fn next(&self, executor: &mut dyn Executor) -> Result<bool, String> {
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
            if self.is_stopped() {
                break;
            }
            let Some(message) = self.broker.take(&lane).await? else { continue };
            if self.handle(&message, executor, &mut busy).await? {
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
        busy: &mut BTreeSet<String>,
    ) -> Result<bool, String> {
        let Ok(job) = serde_json::from_slice::<Job>(&message.payload) else {
            (self.note)("a message of the queue does not follow the protocol; it is removed");
            return acknowledge(message, AckKind::Term).await.map(|()| true);
        };
        let found = self.broker.entry(&job.id).await?.filter(|found| !found.entry.state.is_over());
        let Some(Revised { entry, revision }) = found else {
            return acknowledge(message, AckKind::Ack).await.map(|()| true);
        };
        let (attempts, again) = match entry.state {
            State::Queued { attempts } => (attempts, attempts > 0),
            State::Running { attempt, .. } => (attempt, true),
            _ => (0, false),
        };
        let mut attempt = Attempt { message, entry, revision, number: attempts.saturating_add(1) };
        if let Err(why) = job.submission.check() {
            return self.conclude(&attempt, State::Failed { at: seconds(), why }).await.map(|()| true);
        }
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
            self.conclude(&attempt, State::Failed { at: seconds(), why }).await
        } else if again && !self.pause(GRACE).await {
            acknowledge(message, AckKind::Nak(None)).await
        } else {
            self.execute(&mut attempt, &job, executor, &mut locks).await
        };
        locks.release().await;
        handled.map(|()| true)
    }

    async fn execute(
        &self,
        attempt: &mut Attempt<'_>,
        job: &Job,
        executor: &mut dyn Executor,
        locks: &mut Locks<'_>,
    ) -> Result<(), String> {
        let id = &job.id;
        let running = State::Running { worker: self.name.clone(), since: seconds(), attempt: attempt.number };
        let running = Entry { state: running, ..attempt.entry.clone() };
        let Some(revision) = self.broker.replace(attempt.revision, &running).await? else {
            // It was just cancelled, or another worker has it: the next look at the message shows that.
            return acknowledge(attempt.message, AckKind::Nak(None)).await;
        };
        (attempt.entry, attempt.revision) = (running, revision);
        // The folder's name is not that of the run: names come from others.
        let made = self.folder.of_run().and_then(|folder| {
            fs::create_dir(folder.path().join(RUNS))?;
            Ok(folder)
        });
        let started =
            made.map_err(|error| format!("its folder cannot be made: {error}")).and_then(|folder| {
                let execution = executor.start(id, &job.submission, folder.path())?;
                Ok((folder, execution))
            });
        let (folder, mut execution) = match started {
            Ok(started) => started,
            Err(why) => {
                (self.note)(&format!("{id} cannot be started: {why}"));
                let why = format!("worker {} could not start it: {why}", self.name);
                return self.conclude(attempt, State::Failed { at: seconds(), why }).await;
            }
        };
        (self.note)(&format!("{id} began"));
        let mut ending = self.accompany(attempt, &mut *execution, locks).await;
        drop(execution);
        let mut files = Vec::new();
        if matches!(ending, Ending::Code(_)) {
            match self.unless_stopped(self.store(attempt, folder.path(), locks)).await {
                Some(Ok(stored)) => files = stored,
                Some(Err(other)) => ending = other,
                None => ending = Ending::Stopped,
            }
        }
        let (all, before) = (attempt.number, attempt.number - 1);
        match ending {
            // Nobody stopped it but the run itself, which was not told that it may go on.
            Ending::Code(INTERRUPTED) => {
                (self.note)(&format!("{id} was interrupted; it is given back to the queue"));
                self.give_back(attempt, all).await
            }
            Ending::Code(code) => {
                (self.note)(&format!("{id} ended with exit code {code}"));
                let (runs, error) = (names(&folder.path().join(RUNS)), error_of(&folder.path().join(OUTPUT)));
                let worker = self.name.clone();
                let ended = State::Ended { at: seconds(), worker, code, error, runs, files };
                self.conclude(attempt, ended).await
            }
            Ending::Cancelled => {
                (self.note)(&format!("{id} was cancelled"));
                acknowledge(attempt.message, AckKind::Ack).await
            }
            Ending::Stopped => {
                (self.note)(&format!("{id} is given back to the queue"));
                self.give_back(attempt, before).await
            }
            Ending::Lost => {
                (self.note)(&format!(
                    "{id} was stopped: the broker did not answer, and another worker may have it"
                ));
                Ok(())
            }
        }
    }

    /// Waits for the end of a run, and confirms meanwhile that it goes on.
    async fn accompany(
        &self,
        attempt: &Attempt<'_>,
        execution: &mut dyn Execution,
        locks: &mut Locks<'_>,
    ) -> Ending {
        let (mut beat, mut confirmed) = (Instant::now(), Instant::now());
        let ending = loop {
            if let Some(code) = execution.ended() {
                // The user's Ctrl-C reaches both.
                return if self.is_stopped() { Ending::Stopped } else { Ending::Code(code) };
            }
            if self.is_stopped() {
                break Ending::Stopped;
            }
            if beat.elapsed() >= BEAT {
                beat = Instant::now();
                let confirm = tokio::time::timeout(BEAT, self.confirm(attempt, locks));
                match self.unless_stopped(confirm).await {
                    None => break Ending::Stopped,
                    Some(Ok(Ok(None))) => {
                        confirmed = Instant::now();
                        execution.confirm();
                    }
                    Some(Ok(Ok(Some(ending)))) => break ending,
                    Some(Ok(Err(_)) | Err(_)) if confirmed.elapsed() >= ALONE => break Ending::Lost,
                    Some(Ok(Err(_)) | Err(_)) => {}
                }
            }
            tokio::time::sleep(TICK).await;
        };
        execution.stop();
        let mut until = Instant::now() + END;
        while execution.ended().is_none() && Instant::now() < until {
            if self.is_stopped() {
                until = until.min(Instant::now() + LAST);
                self.end_within(execution, until).await;
                break;
            }
            tokio::time::sleep(TICK).await;
        }
        ending
    }

    /// Waits for the end of a stopped run.
    async fn end_within(&self, execution: &mut dyn Execution, until: Instant) {
        while execution.ended().is_none() && Instant::now() < until {
            tokio::time::sleep(TICK).await;
        }
    }

    /// Confirms message and locks. Returns why the run must end, if it must.
    async fn confirm(&self, attempt: &Attempt<'_>, locks: &mut Locks<'_>) -> Result<Option<Ending>, String> {
        acknowledge(attempt.message, AckKind::Progress).await?;
        if !locks.renew().await? {
            return Ok(Some(Ending::Lost));
        }
        Ok(match self.broker.entry(&attempt.entry.id).await? {
            Some(found) if found.revision == attempt.revision => None,
            Some(found) if !found.entry.state.is_over() => Some(Ending::Lost),
            _ => Some(Ending::Cancelled),
        })
    }

    /// Stores the files of an ended run; tries it again while the broker does not answer. Returns them, or why they do not
    /// count: someone cancelled the run, or another worker has it.
    async fn store(
        &self,
        attempt: &Attempt<'_>,
        folder: &Path,
        locks: &mut Locks<'_>,
    ) -> Result<Vec<RelativePath>, Ending> {
        loop {
            match self.confirm(attempt, locks).await {
                Ok(Some(ending)) => return Err(ending),
                Ok(None) => {
                    if let Ok(files) = self.broker.store(&attempt.entry.id, folder).await {
                        return Ok(files);
                    }
                }
                Err(_) => {}
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Puts a run back into the queue, after this many attempts.
    async fn give_back(&self, attempt: &Attempt<'_>, attempts: u32) -> Result<(), String> {
        self.record(attempt, State::Queued { attempts }, AckKind::Nak(None)).await
    }

    /// Sets the last state of a run, and removes its message.
    async fn conclude(&self, attempt: &Attempt<'_>, state: State) -> Result<(), String> {
        self.record(attempt, state, AckKind::Ack).await
    }

    /// Changes the state of a run whose entry is as this worker knows it, and answers its message.
    async fn record(&self, attempt: &Attempt<'_>, state: State, answer: AckKind) -> Result<(), String> {
        let (id, changed) = (&attempt.entry.id, Entry { state, ..attempt.entry.clone() });
        if self.broker.replace(attempt.revision, &changed).await?.is_some() {
            return acknowledge(attempt.message, answer).await;
        }
        match self.broker.entry(id).await? {
            // Its message belongs to the worker that has it.
            Some(found) if !found.entry.state.is_over() => {
                (self.note)(&format!(
                    "{id} belongs to another worker now; what this one measured does not count"
                ));
                Ok(())
            }
            _ => {
                (self.note)(&format!("{id} was cancelled before that; its results are discarded"));
                acknowledge(attempt.message, AckKind::Ack).await
            }
        }
    }
}

async fn acknowledge(message: &Message, kind: AckKind) -> Result<(), String> {
    message.ack_with(kind).await.map_err(|error| error.to_string())
}

/// The names of the runs in a folder.
fn names(folder: &Path) -> Vec<FileName> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().join("run.jsonl").is_file());
    let mut names: Vec<FileName> =
        folders.filter_map(|entry| FileName::parse(entry.file_name().to_str()?).ok()).collect();
    names.sort();
    names
}

/// The last error message in what a run printed.
fn error_of(output: &Path) -> Option<String> {
    let text = fs::read_to_string(output).ok()?;
    let is_error = |line: &&str| line.starts_with("kurabe: ") && !line.starts_with("kurabe: warning: ");
    text.lines().rfind(is_error).map(|line| printable(&line["kurabe: ".len()..]).into_owned())
}
