//! A queue of runs on NATS JetStream, which a team shares: `kurabe submit`, and `kurabe agent --role run`.
//!
//! A run waits as a message of a work-queue stream, one subject for each set of hosts. A consumer of a subject has at
//! most one message out, so runs on the same hosts are executed in the order of their submission. Sets may overlap.
//! A worker therefore also holds a lock for each host (`locks.rs`). It confirms message and locks while the run goes on.
//! If it ends, both expire, and another worker gets the run (`work.rs`). The state of each run is an entry of a
//! key-value bucket, and its files are in an object store (`results.rs`).

mod broker;
mod locks;
mod results;
mod work;

use crate::nats;
use crate::place::FleetUrl;
use async_nats::jetstream::kv::CreateErrorKind;
use broker::Broker;
use kurabe_core::fleet::OnLostAgent;
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

/// A run that is submitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The suite's file among `files`.
    pub suite: String,
    /// The suite and the files that it names, with their text, by relative path.
    pub files: BTreeMap<String, String>,
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
    pub id: String,
    /// The targets, without passwords.
    pub targets: Vec<String>,
    /// Who submitted it.
    pub by: String,
    /// When, in seconds since 1970.
    pub submitted: u64,
    /// The token of its subject.
    pub lane: String,
    /// Its state.
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
        worker: String,
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
        worker: String,
        /// The exit code of `kurabe run`.
        code: i32,
        /// Its last error message, if it has one.
        error: Option<String>,
        /// Its recorded runs.
        runs: Vec<String>,
        /// Their files, by their paths from the folder of runs.
        files: Vec<String>,
    },
    /// It was not executed to its end.
    Failed {
        /// When.
        at: u64,
        /// Why, as a clause.
        why: String,
    },
    /// It was cancelled.
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
            return Err(Error::usage("--fleet: a queue is on a broker").hint("write nats://HOST:4222"));
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
    pub fn submit(&self, id: &str, submission: &Submission) -> Result<String> {
        let broker = &self.broker;
        let submitted = seconds();
        let publish = async {
            let queued = |id: &str| Entry {
                id: id.to_owned(),
                targets: submission.targets.clone(),
                by: submission.by.clone(),
                submitted,
                lane: submission.lane(id),
                state: State::Queued { attempts: 0 },
            };
            let mut names = (1..=NAMES).map(|n| if n == 1 { id.to_owned() } else { format!("{id}-{n}") });
            let entry = loop {
                let name = names.next().ok_or_else(|| "its name is taken".to_owned())?;
                let entry = queued(&name);
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
                let _ = broker.entries.purge(&entry.id).await;
                return Err(why);
            }
            Ok(entry.id)
        };
        let size: usize = submission.files.iter().map(|(name, text)| name.len() + text.len()).sum();
        if size > LARGEST {
            return Err(Error::usage(format!("the suite and its files have {size} bytes"))
                .hint(format!("a submitted run may have {LARGEST}")));
        }
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
            .hint(format!("list them: kurabe runs ls --fleet {}", self.shown))),
            _ => Err(Error::new(
                ErrorKind::NotFound,
                format!("{}: {} submitted runs have names that begin with '{id}'", self.shown, found.len()),
            )
            .hint("write more of the name")),
        }
    }

    /// Cancels a run. One that a worker executes is stopped within a few seconds.
    ///
    /// # Errors
    /// If it is over already, or the broker does not answer.
    pub fn cancel(&self, entry: &Entry) -> Result<()> {
        if entry.state.is_over() {
            return Err(Error::usage(format!("{} is over already", entry.id)));
        }
        let cancelled = Entry { state: State::Cancelled { at: seconds() }, ..entry.clone() };
        self.runtime
            .block_on(self.broker.put(&cancelled))
            .map_err(|why| self.error("the run is not cancelled", &why))
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
    id: String,
    submission: Submission,
}

impl Submission {
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
/// and their bytes in hexadecimal.
fn token(text: &str) -> String {
    let mut token = String::from("x");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            token.push(byte.into());
        } else {
            let _ = write!(token, "_{byte:02x}");
        }
    }
    token
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    serde_json::to_vec(value).map_err(|error| format!("it cannot be written: {error}"))
}

/// Seconds since 1970.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Broker {
    /// All entries, the newest first. What cannot be read, of another version, is left out.
    async fn all_entries(&self) -> Result<Vec<Entry>, String> {
        let mut all: Vec<Entry> = Vec::new();
        for id in self.ids().await? {
            all.extend(self.entry(&id).await?);
        }
        all.sort_by(|a, b| (b.submitted, &b.id).cmp(&(a.submitted, &a.id)));
        Ok(all)
    }

    /// The entry of a run; `None` if there is none, or it cannot be read.
    async fn entry(&self, id: &str) -> Result<Option<Entry>, String> {
        let value = self.entries.get(id).await.map_err(|error| error.to_string())?;
        Ok(value.and_then(|value| serde_json::from_slice(&value).ok()))
    }

    async fn put(&self, entry: &Entry) -> Result<(), String> {
        let value = json(entry)?;
        self.entries.put(&entry.id, value.into()).await.map(drop).map_err(|error| error.to_string())
    }
}

/// How long the broker keeps runs, their states and their files.
const KEPT: Duration = Duration::from_secs(30 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    fn on(hosts: &[&str]) -> Submission {
        Submission { hosts: hosts.iter().map(|host| (*host).to_owned()).collect(), ..Submission::default() }
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
        let texts = ["", "a", "a.b", "a_2eb", "a b", "*", ">", "é"];
        let tokens: std::collections::BTreeSet<String> = texts.into_iter().map(token).collect();
        assert_eq!(tokens.len(), texts.len());
        for token in tokens {
            assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{token}");
        }
    }
}
