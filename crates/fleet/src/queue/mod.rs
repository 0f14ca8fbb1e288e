//! A queue of runs on NATS JetStream, which a team shares: `kurabe submit`, and `kurabe agent --role run`.
//!
//! A run waits as a message of a work-queue stream, one subject for each set of hosts. A consumer of a subject has at
//! most one message out, so runs on the same hosts are executed in the order of their submission. Sets may overlap.
//! A worker therefore also holds a lock for each host (`locks.rs`). It confirms message and locks while the run goes on.
//! If it ends, both expire, and another worker gets the run (`work.rs`). The state of each run is an entry of a
//! key-value bucket, and its files are in an object store (`results.rs`).

mod broker;
mod folder;
mod locks;
mod results;
mod work;

use crate::nats;
use crate::place::FleetUrl;
use async_nats::jetstream::kv::CreateErrorKind;
use async_nats::jetstream::kv::{Operation, UpdateErrorKind};
use broker::Broker;
use broker::answer;
pub use folder::WorkFolder;
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::name::{FileName, Name, RelativePath};
use kurabe_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
pub use work::{ALONE, Execution, Executor};

/// The number of agents of a run whose clients the worker runs by itself.
pub const NO_AGENTS: u32 = 0;
/// The maximum size of the files of a submitted run: a broker's default limit of a message is 1 MiB.
const LARGEST: usize = 900_000;
/// Names that a run may get if its name is taken.
const NAMES: u32 = 100;
/// The maximum number of hosts of a run, and of labels.
const MAX: usize = 100;
/// The longest token that is written as it is.
const LONGEST_TOKEN: usize = 160;
/// How often a run is cancelled again whose state changed meanwhile.
const CANCELS: u32 = 20;

/// A run that is submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The suite's file among `files`.
    pub suite: RelativePath,
    /// The suite and the files that it names, with their text, by relative path.
    pub files: BTreeMap<RelativePath, String>,
    /// The targets, without passwords.
    pub targets: Vec<String>,
    /// The hosts of their servers; empty for the worker's own host.
    pub hosts: Vec<String>,
    /// The number of agents that run the clients; [`NO_AGENTS`]: the worker does; `None`: all agents that answer.
    pub agents: Option<u32>,
    /// The labels that each agent must have.
    pub labels: BTreeMap<String, String>,
    /// What becomes of the run if it loses an agent.
    pub on_lost_agent: OnLostAgent,
    /// Variables of custom workloads.
    pub define: BTreeMap<String, String>,
    /// Whether custom statements may change existing tables.
    pub write: bool,
    /// Who submitted it: user and host.
    pub by: String,
}

/// A submitted run and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the queue.
    pub id: Name,
    /// The targets, without passwords.
    pub targets: Vec<String>,
    /// Who submitted it.
    pub by: String,
    /// When, in seconds since 1970.
    pub submitted: u64,
    /// The token of its subject.
    pub lane: String,
    pub state: State,
}

/// The state of a submitted run. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits; `attempts` workers have ended while they executed it.
    Queued {
        /// Their number.
        attempts: u32,
    },
    /// A worker executes it.
    Running {
        /// The worker's name.
        worker: Name,
        /// Since when.
        since: u64,
        /// The number of this attempt, from 1.
        attempt: u32,
    },
    /// It has ended, and its files are stored.
    Ended {
        /// When.
        at: u64,
        /// The worker's name.
        worker: Name,
        /// The exit code of `kurabe run`.
        code: i32,
        /// Its last error message, if it has one.
        error: Option<String>,
        /// Its recorded runs.
        runs: Vec<FileName>,
        /// Their files, by their paths from the folder of runs.
        files: Vec<RelativePath>,
    },
    /// It was not executed to its end.
    Failed {
        /// When.
        at: u64,
        /// Why, as a clause.
        why: String,
    },
    Cancelled {
        /// When.
        at: u64,
    },
}

impl State {
    /// Whether no worker executes it any more.
    pub fn is_over(&self) -> bool {
        !matches!(self, Self::Queued { .. } | Self::Running { .. })
    }
}

/// The queue on a broker.
pub struct Queue {
    runtime: Runtime,
    broker: Broker,
    /// The broker's URL without its password.
    shown: String,
}

impl Queue {
    /// Connects to the broker, and makes what the queue needs there if it is missing.
    ///
    /// # Errors
    /// If the broker cannot be reached, or has no JetStream.
    pub fn connect(url: &FleetUrl, name: &str) -> Result<Self> {
        let FleetUrl::Nats(address) = url else {
            return Err(Error::usage("--broker: a queue is on a broker").hint("write nats://HOST:4222"));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Error::new(ErrorKind::Environment, format!("no runtime for NATS can be made: {error}"))
        })?;
        let shown = url.shown();
        let open = async {
            let client = nats::connect(address, name).await.map_err(|why| {
                Error::new(ErrorKind::Unreachable, format!("{shown}: {why}"))
                    .hint("check that nats-server runs there, and the user and password of the URL")
            })?;
            Broker::open(client).await.map_err(|why| {
                Error::new(ErrorKind::Unsupported, format!("{shown}: the queue cannot be opened: {why}"))
                    .hint("the queue needs JetStream: start the broker with 'nats-server -js'")
            })
        };
        let broker = runtime.block_on(open)?;
        Ok(Self { runtime, broker, shown })
    }

    /// Puts a run into the queue, under this name or a similar one, which is returned.
    ///
    /// # Errors
    /// If it is too large, or the broker does not store it.
    pub fn submit(&self, id: &Name, submission: &Submission) -> Result<Name> {
        let broker = &self.broker;
        let submitted = seconds();
        let publish = async {
            let queued = |id: Name| Entry {
                targets: submission.targets.clone(),
                by: submission.by.clone(),
                submitted,
                lane: submission.lane(&id),
                state: State::Queued { attempts: 0 },
                id,
            };
            let mut names = (1..=NAMES).map(|n| if n == 1 { id.to_string() } else { format!("{id}-{n}") });
            let entry = loop {
                let name = names.next().ok_or_else(|| "its name is taken".to_owned())?;
                let entry = queued(Name::parse(&name).map_err(|error| error.to_string())?);
                match broker.entries.create(&name, json(&entry)?.into()).await {
                    Ok(_) => break entry,
                    Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error.to_string()),
                }
            };
            let sent = json(&Job { id: entry.id.clone(), submission: submission.clone() });
            let sent = match sent {
                Ok(payload) => broker.publish(&entry, payload).await,
                Err(why) => Err(why),
            };
            if let Err(why) = sent {
                let _ = broker.entries.purge(entry.id.as_str()).await;
                return Err(why);
            }
            Ok(entry.id)
        };
        let size: usize = submission.files.iter().map(|(name, text)| name.len() + text.len()).sum();
        if size > LARGEST {
            return Err(Error::usage(format!("the suite and its files have {size} bytes"))
                .hint(format!("a submitted run may have {LARGEST}")));
        }
        submission.check().map_err(Error::usage)?;
        self.runtime.block_on(publish).map_err(|why| self.error("the run is not queued", &why))
    }

    /// All submitted runs, the newest first.
    ///
    /// # Errors
    /// If the broker does not answer.
    pub fn list(&self) -> Result<Vec<Entry>> {
        self.runtime
            .block_on(self.broker.all_entries())
            .map_err(|why| self.error("the queue cannot be read", &why))
    }

    /// The submitted run with this name, or the only one whose name begins like that.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is none, or several.
    pub fn find(&self, id: &str) -> Result<Entry> {
        let all = self.list()?;
        if let Some(found) = all.iter().find(|entry| entry.id == id) {
            return Ok(found.clone());
        }
        let found: Vec<&Entry> = all.iter().filter(|entry| entry.id.starts_with(id)).collect();
        match found[..] {
            [one] => Ok(one.clone()),
            [] => Err(Error::new(
                ErrorKind::NotFound,
                format!("{}: no submitted run is named '{id}'", self.shown),
            )
            .hint(format!("list them: kurabe runs ls --broker {}", self.shown))),
            _ => Err(Error::new(
                ErrorKind::NotFound,
                format!("{}: {} submitted runs have names that begin with '{id}'", self.shown, found.len()),
            )
            .hint("write more of the name")),
        }
    }

    /// Cancels a run. One that a worker executes is stopped within a few seconds.
    ///
    /// The broker decides who was first: a run whose end is recorded is not cancelled, and the end of a cancelled run is not
    /// recorded.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) if it is over already, [`NotFound`](ErrorKind::NotFound) if the broker does not have it,
    /// or if the broker does not answer.
    pub fn cancel(&self, id: &Name) -> Result<()> {
        let failed = |why: String| self.error("the run is not cancelled", &why);
        for _ in 0..CANCELS {
            let found = self.runtime.block_on(self.broker.entry(id)).map_err(failed)?;
            let Some(Revised { entry, revision }) = found else {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("{}: there is no submitted run {id}", self.shown),
                ));
            };
            if entry.state.is_over() {
                return Err(Error::usage(format!("{id} is over already, and is not cancelled")));
            }
            let cancelled = Entry { state: State::Cancelled { at: seconds() }, ..entry };
            if self.runtime.block_on(self.broker.replace(revision, &cancelled)).map_err(failed)?.is_some() {
                return Ok(());
            }
        }
        Err(failed("its state changes all the time".to_owned()))
    }

    fn error(&self, what: &str, why: &str) -> Error {
        Error::new(ErrorKind::Unreachable, format!("{}: {what}: {why}", self.shown))
            .hint("check that the broker runs, and try again")
    }
}

/// A message of the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    id: Name,
    submission: Submission,
}

impl Submission {
    /// Whether a run of it can be made, or why not.
    fn check(&self) -> Result<(), String> {
        let most = self.hosts.len().max(self.labels.len());
        if !self.files.contains_key(&self.suite) {
            Err(format!("its suite {} is not among its files", self.suite))
        } else if most > MAX {
            Err(format!("it names {most} hosts or labels, and may name {MAX}"))
        } else {
            Ok(())
        }
    }

    /// The token of its subject. Runs with the same one are executed in turn. A run on the worker's own host waits for no
    /// other one until it is known which worker that is.
    fn lane(&self, id: &str) -> String {
        let mut hosts: Vec<&str> =
            self.hosts.iter().map(String::as_str).filter(|host| !host.is_empty()).collect();
        if hosts.is_empty() {
            return token(id);
        }
        hosts.sort_unstable();
        hosts.dedup();
        token(&hosts.join("+"))
    }

    /// What only one run may use at a time. `own` is the worker's own host.
    fn locks(&self, own: &str) -> Vec<String> {
        let host = |host: &String| format!("host.{}", token(if host.is_empty() { own } else { host }));
        let mut all: Vec<String> = self.hosts.iter().map(host).collect();
        if self.agents != Some(NO_AGENTS) {
            let labels: Vec<String> =
                self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            all.push(format!("agents.{}", token(&labels.join(","))));
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A text as a token of a subject, or a part of a key: other characters than letters, digits and `-` are written as `_`
/// and their bytes in hexadecimal. The end of a long one is written as a sum.
fn token(text: &str) -> String {
    let mut token = String::from("x");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            token.push(byte.into());
        } else {
            let _ = write!(token, "_{byte:02x}");
        }
    }
    if token.len() > LONGEST_TOKEN {
        // FNV-1a, 64 bits: the same in each version of the program.
        let sum = token.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        token.truncate(LONGEST_TOKEN);
        let _ = write!(token, "__{sum:016x}");
    }
    token
}

/// Whether a text may be a token. Others in subjects are not of this program.
fn is_token(text: &str) -> bool {
    text.len() <= LONGEST_TOKEN + 18
        && text.starts_with('x')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    serde_json::to_vec(value).map_err(|error| format!("it cannot be written: {error}"))
}

/// Seconds since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// An entry, with the revision that the broker gave it. Each change makes another one.
struct Revised {
    entry: Entry,
    revision: u64,
}

impl Broker {
    /// All entries, the newest first. What cannot be read, of another version, is left out.
    async fn all_entries(&self) -> Result<Vec<Entry>, String> {
        let mut all: Vec<Entry> = Vec::new();
        for id in self.ids().await? {
            all.extend(self.entry(&id).await?.map(|found| found.entry));
        }
        all.sort_by(|a, b| (b.submitted, &b.id).cmp(&(a.submitted, &a.id)));
        Ok(all)
    }

    /// The entry of a run; `None` if there is none, or it cannot be read.
    async fn entry(&self, id: &Name) -> Result<Option<Revised>, String> {
        let found = answer(self.entries.entry(id.as_str())).await?;
        Ok(found.filter(|found| found.operation == Operation::Put).and_then(|found| {
            let entry: Entry = serde_json::from_slice(&found.value).ok()?;
            (entry.id == *id).then_some(Revised { entry, revision: found.revision })
        }))
    }

    /// Replaces an entry that still has this revision, and returns the new one. `None`: somebody else has changed it.
    async fn replace(&self, revision: u64, entry: &Entry) -> Result<Option<u64>, String> {
        let value = json(entry)?;
        let mut is_sent = false;
        loop {
            match self.entries.update(entry.id.as_str(), value.clone().into(), revision).await {
                Ok(revision) => return Ok(Some(revision)),
                // The answer to the first attempt was lost: it may have been the change.
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision && is_sent => {
                    let found = self.entry(&entry.id).await?;
                    return Ok(found.filter(|found| found.entry == *entry).map(|found| found.revision));
                }
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => return Ok(None),
                Err(error) if is_sent => return Err(error.to_string()),
                Err(_) => is_sent = true,
            }
        }
    }
}

/// How long the broker keeps runs, their states and their files.
const KEPT: Duration = Duration::from_secs(30 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    fn on(hosts: &[&str]) -> Submission {
        let suite = RelativePath::parse("s.toml").unwrap();
        Submission {
            files: BTreeMap::from([(suite.clone(), String::new())]),
            suite,
            targets: Vec::new(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            agents: None,
            labels: BTreeMap::new(),
            on_lost_agent: OnLostAgent::default(),
            define: BTreeMap::new(),
            write: false,
            by: String::new(),
        }
    }

    #[test]
    fn message_with_a_hostile_name_is_no_job() {
        let job = |id: &str, suite: &str, file: &str| {
            let mut job =
                serde_json::to_value(Job { id: Name::parse("a").unwrap(), submission: on(&[""]) }).unwrap();
            job["id"] = id.into();
            job["submission"]["suite"] = suite.into();
            job["submission"]["files"] = serde_json::json!({ file: "" });
            serde_json::from_value::<Job>(job).ok().filter(|job| job.submission.check().is_ok())
        };
        assert!(job("a", "s.toml", "s.toml").is_some() && job("a", "./s/t.toml", "s/t.toml").is_some());
        for id in ["", ".", "..", "/tmp", "../a", "a/b", "a\0", "-x", "é", "a.b", "*", ">", &"a".repeat(200)]
        {
            assert!(job(id, "s.toml", "s.toml").is_none(), "{id:?}");
        }
        for path in ["", "/etc/passwd", "../s.toml", "a/../../s.toml", "s\0.toml", ".."] {
            assert!(job("a", path, "s.toml").is_none() && job("a", "s.toml", path).is_none(), "{path:?}");
            assert!(job("a", path, path).is_none(), "{path:?}");
        }
        assert!(job("a", "other.toml", "s.toml").is_none());
    }

    #[test]
    fn run_of_too_many_hosts_is_refused() {
        let hosts: Vec<String> = (0..=MAX).map(|n| n.to_string()).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        assert!(on(&hosts[..MAX]).check().is_ok() && on(&hosts).check().is_err());
    }

    #[test]
    fn runs_on_the_same_hosts_wait_in_one_lane() {
        assert_eq!(on(&["b", "a", "a"]).lane("1"), on(&["a", "b"]).lane("2"));
        assert_ne!(on(&["a"]).lane("1"), on(&["a", "b"]).lane("1"));
        assert_ne!(on(&[""]).lane("1"), on(&[""]).lane("2"));
    }

    #[test]
    fn run_locks_its_hosts_and_its_agents() {
        let run = on(&["db.example", ""]);
        assert_eq!(run.locks("me"), ["agents.x", "host.xdb_2eexample", "host.xme"]);
        let alone = Submission { agents: Some(NO_AGENTS), ..run };
        assert_eq!(alone.locks("db.example"), ["host.xdb_2eexample"]);
    }

    #[test]
    fn token_is_unique_and_valid_in_a_subject() {
        let long = ["a".repeat(LONGEST_TOKEN), "a".repeat(LONGEST_TOKEN) + "b", ".".repeat(1_000_000)];
        let texts = ["", "a", "a.b", "a_2eb", "a b", "*", ">", "é", &long[0], &long[1], &long[2]];
        let tokens: std::collections::BTreeSet<String> = texts.into_iter().map(token).collect();
        assert_eq!(tokens.len(), texts.len());
        assert!(tokens.iter().all(|token| is_token(token)), "{tokens:?}");
        for other in ["", "y", "x.a", "x*", "x>", "x a", "x/..", &"x".repeat(1_000)] {
            assert!(!is_token(other), "{other}");
        }
    }
}
