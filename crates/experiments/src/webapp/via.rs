//! The web application through an application, or several before one database: each request is one page, and every answer is
//! compared with what it must be.

use super::answer::{self, Told};
use super::codes::{Codes, Source};
use super::user::User;
use super::workload::no_operation;
use super::{COUNT, INFO, LOG, REQUEST, USER};
use crate::fill::sample;
use crate::kv::count_page;
use kurabe_core::axis::Cell;
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{Checked, Client, Demand, Done, Transaction, Workload};
use kurabe_core::{Error, ErrorKind, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the application says of its data on `/webapp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct Facts {
    seed: u64,
    /// How many users there are; their numbers are 1 to this.
    records: u64,
    /// How many towns.
    codes: u64,
    /// Tells the list of towns from others.
    codes_digest: u64,
}

/// What is known of the data.
#[derive(Debug)]
struct Data {
    facts: Facts,
    codes: Arc<Codes>,
}

/// What a trial found when it began, and what its clients were told.
#[derive(Debug, Default)]
struct Trial {
    data: Option<Arc<Data>>,
    /// Lines that the log had before.
    lines_before: Option<u64>,
    /// Each line that was written, with its user.
    lines: Vec<(u64, u64)>,
    /// Each user that was changed, with the highest version told: an application gives a user its versions in order.
    versions: BTreeMap<u64, u64>,
}

pub(super) struct ViaWorkload {
    clients: usize,
    connection_per_request: bool,
    /// The file of the application's postal codes, where they were not generated.
    file: Option<String>,
    trial: Arc<Mutex<Trial>>,
}

fn lock(trial: &Mutex<Trial>) -> MutexGuard<'_, Trial> {
    trial.lock().unwrap_or_else(PoisonError::into_inner)
}

fn page(of: &str) -> String {
    format!("/{}/{of}", INFO.name)
}

impl ViaWorkload {
    pub(super) fn new(cell: &Cell) -> Result<Self> {
        let file = match Source::of(cell, 0, 1) {
            Source::File(path) => Some(path),
            Source::Generated { .. } => None,
        };
        Ok(Self {
            clients: cell.number("clients")? as usize,
            connection_per_request: cell.word("connection")? == "per-request",
            file,
            trial: Arc::default(),
        })
    }

    /// The application's postal codes, made here again.
    fn codes(&self, facts: &Facts) -> Result<Arc<Codes>> {
        let source = match &self.file {
            Some(path) => Source::File(path.clone()),
            None => Source::Generated { seed: facts.seed, count: facts.codes },
        };
        let codes = Codes::get(&source)?;
        if codes.digest == facts.codes_digest {
            return Ok(codes);
        }
        let what = "the application has other postal codes than these";
        Err(Error::mismatch(what).hint("if it was given a file of them, name it by --postal-codes here too"))
    }
}

/// Asks for a page and compares all of it.
fn ask_for(session: &mut dyn Session, page: &str, expected: &[u8], body: &mut Vec<u8>) -> Result<()> {
    session.ask(page, false, body)?;
    if body == expected {
        return Ok(());
    }
    Err(Error::mismatch(format!("read back: {page} shows something else than was written")))
}

impl Workload for ViaWorkload {
    fn demand(&self) -> Demand {
        Demand { connections: self.clients as u64 + 1, client_bytes: 128_000, ..Demand::default() }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn connection_per_request(&self) -> bool {
        self.connection_per_request
    }

    fn stored_bytes(&self) -> Option<u64> {
        None
    }

    fn data(&self) -> String {
        INFO.name.to_owned()
    }

    /// The application loaded its data itself.
    fn load(&self, _namespace: &mut dyn Namespace, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn before(
        &self,
        _operation: &str,
        _namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        let mut out = Vec::new();
        session.ask(&format!("/{}", INFO.name), false, &mut out)?;
        let facts: Facts = serde_json::from_slice(&out).map_err(|error| {
            Error::mismatch(format!("the application does not say what its data are: {error}"))
        })?;
        if facts.records == 0 || !(1..=super::codes::MOST).contains(&facts.codes) {
            return Err(Error::mismatch("the application says that it has no users, or no postal codes"));
        }
        let data = Data { facts, codes: self.codes(&facts)? };
        let lines_before = count_page(session, &page(COUNT))?;
        *lock(&self.trial) = Trial { data: Some(Arc::new(data)), lines_before, ..Trial::default() };
        Ok(())
    }

    fn transaction(&self, operation: &str, _client: Client) -> Result<Box<dyn Transaction>> {
        if operation != REQUEST {
            return Err(no_operation(operation));
        }
        let data = lock(&self.trial).data.clone();
        let data =
            data.ok_or_else(|| Error::new(ErrorKind::Internal, "the application was not asked yet"))?;
        Ok(Box::new(Request {
            data,
            page: page(REQUEST),
            last: self.connection_per_request,
            body: Vec::new(),
            expected: Vec::new(),
            user: User::default(),
            trial: Arc::clone(&self.trial),
            written: 0,
        }))
    }

    fn after(&self, _operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Checked> {
        let mut trial = std::mem::take(&mut *lock(&self.trial));
        let Some(data) = trial.data.take() else { return Ok(Checked::default()) };
        let written: u64 = done.iter().map(|done| done.rows_written).sum();
        trial.lines.sort_unstable();
        trial.lines.dedup_by_key(|(line, _)| *line);
        if trial.lines.len() as u64 != written {
            let different = trial.lines.len();
            return Err(Error::mismatch(format!(
                "{written} lines of the log were acknowledged under {different} different numbers"
            )));
        }
        let counted = match (trial.lines_before, count_page(session, &page(COUNT))?) {
            (Some(before), Some(now)) if now.checked_sub(before) != Some(written) => {
                return Err(Error::mismatch(format!(
                    "{written} lines of the log were acknowledged; the application counted {before} before the trial and \
                     {now} after it"
                )));
            }
            (before, now) => before.is_some() && now.is_some(),
        };
        let (mut body, mut expected, mut read) = (Vec::new(), Vec::new(), 0);
        let mut look = |(line, user): &(u64, u64)| {
            expected.clear();
            answer::line(data.facts.seed, *line, *user, &mut expected);
            read += 1;
            ask_for(session, &format!("{}?key={line}", page(LOG)), &expected, &mut body)
        };
        if counted {
            sample(&trial.lines).try_for_each(&mut look)?;
        } else {
            trial.lines.iter().try_for_each(&mut look)?;
        }
        let versions: Vec<(u64, u64)> = trial.versions.into_iter().collect();
        let mut user = User::default();
        for (number, version) in sample(&versions) {
            user.become_version(data.facts.seed, &data.codes, *number, *version);
            expected.clear();
            answer::user(&user, &mut expected);
            ask_for(session, &format!("{}?key={number}", page(USER)), &expected, &mut body)?;
            read += 1;
        }
        Ok(Checked { writes_counted: written, records_read_back: read })
    }
}

/// Has the application serve requests, of users that it chooses.
struct Request {
    data: Arc<Data>,
    page: String,
    last: bool,
    body: Vec<u8>,
    expected: Vec<u8>,
    user: User,
    trial: Arc<Mutex<Trial>>,
    written: u64,
}

impl Transaction for Request {
    fn attach(&mut self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn draw(&mut self) {}

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        session.ask(&self.page, self.last, &mut self.body)
    }

    fn check(&mut self) -> Result<()> {
        let Data { facts, codes } = &*self.data;
        let told = answer::read(&self.body)?;
        let Told { user, version, line, changed, .. } = told;
        if !(1..=facts.records).contains(&user) {
            return Err(Error::mismatch(format!("user {user} logged in, and there is none")));
        }
        self.user.become_version(facts.seed, codes, user, version);
        self.expected.clear();
        answer::request(facts.seed, codes, &told, &self.user, &mut self.expected);
        if self.body != self.expected {
            return Err(Error::mismatch(format!(
                "the answer of line {line} of the log is not what user {user} at version {version} is to see"
            )));
        }
        let mut trial = lock(&self.trial);
        trial.lines.push((line, user));
        if let Some(changed) = changed {
            let last = trial.versions.entry(user).or_default();
            *last = (*last).max(changed);
        }
        self.written += 1;
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}
