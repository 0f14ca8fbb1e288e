//! kv through an application: each transaction is one page of it, and every answer is compared with what it must be.

use super::record::{self, LENGTH};
use super::workload::no_operation;
use super::{COUNT, INFO, READ, WRITE};
use crate::fill::sample;
use kurabe_core::axis::Cell;
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{Checked, Client, Demand, Done, Transaction, Workload};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::Rng;
use serde::Deserialize;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// What the application says of its records on `/kv`.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Facts {
    seed: u64,
    /// How many were there before anything was added; their keys are 1 to this.
    records: u64,
}

/// What a trial found when it began, and what its clients were told.
#[derive(Debug, Default)]
struct Trial {
    facts: Option<Facts>,
    /// Records that had been added before, where the application counts them.
    added_before: Option<u64>,
    keys: Vec<u64>,
}

pub(super) struct ViaWorkload {
    clients: usize,
    connection_per_request: bool,
    trial: Arc<Mutex<Trial>>,
}

impl ViaWorkload {
    pub(super) fn new(cell: &Cell) -> Result<Self> {
        Ok(Self {
            clients: cell.number("clients")? as usize,
            connection_per_request: cell.word("connection")? == "per-request",
            trial: Arc::default(),
        })
    }

    fn trial(&self) -> std::sync::MutexGuard<'_, Trial> {
        self.trial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for every record that the clients were told of, or for a sample, and compares each.
    fn read_back<'k>(
        session: &mut dyn Session,
        seed: u64,
        keys: impl Iterator<Item = &'k u64>,
    ) -> Result<u64> {
        let mut page = Page::default();
        let mut read = 0;
        for key in keys {
            page.read(*key);
            page.ask(session, false)?;
            page.check(seed, Some(*key)).map_err(|error| error.context("read back"))?;
            read += 1;
        }
        Ok(read)
    }
}

fn page(of: &str) -> String {
    format!("/{}/{of}", INFO.name)
}

/// How many records the application counts; `None` where it cannot.
fn count(session: &mut dyn Session) -> Result<Option<u64>> {
    count_page(session, &page(COUNT))
}

/// The number on a page that counts; `None` where there is no such page.
pub(crate) fn count_page(session: &mut dyn Session, page: &str) -> Result<Option<u64>> {
    let mut out = Vec::new();
    match session.ask(page, false, &mut out) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::NotFound) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    let rows = std::str::from_utf8(&out).ok().and_then(|text| text.trim_end().parse().ok());
    rows.map(Some).ok_or_else(|| Error::mismatch("the application's count is not a number"))
}

impl Workload for ViaWorkload {
    fn demand(&self) -> Demand {
        Demand { connections: self.clients as u64 + 1, client_bytes: 64_000, ..Demand::default() }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn connection_per_request(&self) -> bool {
        self.connection_per_request
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(LENGTH as u64)
    }

    fn data(&self) -> String {
        INFO.name.to_owned()
    }

    /// The application loaded its records itself.
    fn load(&self, _namespace: &mut dyn Namespace, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn before(
        &self,
        operation: &str,
        _namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        let mut out = Vec::new();
        session.ask(&format!("/{}", INFO.name), false, &mut out)?;
        let facts: Facts = serde_json::from_slice(&out).map_err(|error| {
            Error::mismatch(format!(
                "the application does not say its seed and its number of records: {error}"
            ))
        })?;
        if facts.records == 0 {
            return Err(Error::mismatch("the application says that it has no records"));
        }
        let added_before = if operation == WRITE { count(session)? } else { None };
        *self.trial() = Trial { facts: Some(facts), added_before, keys: Vec::new() };
        Ok(())
    }

    fn transaction(&self, operation: &str, client: Client) -> Result<Box<dyn Transaction>> {
        let facts = self.trial().facts;
        let facts =
            facts.ok_or_else(|| Error::new(ErrorKind::Internal, "the application was not asked yet"))?;
        let last = self.connection_per_request;
        match operation {
            READ => {
                let rng = Rng::new(client.seed);
                Ok(Box::new(Read { facts, last, page: Page::default(), rng, key: 0 }))
            }
            WRITE => {
                let page = Page { path: page(WRITE), ..Page::default() };
                Ok(Box::new(Write { facts, last, page, trial: Arc::clone(&self.trial), written: 0 }))
            }
            _ => Err(no_operation(operation)),
        }
    }

    fn after(&self, operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Checked> {
        if operation != WRITE {
            return Ok(Checked::default());
        }
        let mut trial = std::mem::take(&mut *self.trial());
        let seed = trial.facts.map_or(0, |facts| facts.seed);
        let added: u64 = done.iter().map(|done| done.rows_written).sum();
        trial.keys.sort_unstable();
        trial.keys.dedup();
        let keys = &trial.keys;
        if keys.len() as u64 != added {
            let different = keys.len();
            return Err(Error::mismatch(format!(
                "{added} records were acknowledged under {different} different keys"
            )));
        }
        let (Some(before), Some(now)) = (trial.added_before, count(session)?) else {
            let read = Self::read_back(session, seed, keys.iter())?;
            return Ok(Checked { writes_counted: read, records_read_back: read });
        };
        if now.checked_sub(before) != Some(added) {
            return Err(Error::mismatch(format!(
                "{added} records were acknowledged; the application counted {before} before the trial and {now} after it"
            )));
        }
        let read = Self::read_back(session, seed, sample(keys))?;
        Ok(Checked { writes_counted: added, records_read_back: read })
    }
}

/// A page and its answer: a record.
#[derive(Default)]
struct Page {
    path: String,
    body: Vec<u8>,
}

impl Page {
    /// The page that reads this record.
    fn read(&mut self, key: u64) {
        self.path.clear();
        // Writing to memory does not fail.
        let _ = write!(self.path, "/kv/read?key={key}");
    }

    #[inline]
    fn ask(&mut self, session: &mut dyn Session, last: bool) -> Result<()> {
        session.ask(&self.path, last, &mut self.body)
    }

    /// Compares the answer with the record that it must be, of this key if one was named. Gives the key.
    fn check(&self, seed: u64, asked: Option<u64>) -> Result<u64> {
        let end = self.body.iter().take(24).position(|byte| *byte == b'\n');
        let key = end.and_then(|end| std::str::from_utf8(&self.body[..end]).ok()?.parse().ok());
        let (Some(end), Some(key)) = (end, key) else {
            return Err(Error::mismatch(format!("the answer to {} does not begin with a key", self.path)));
        };
        if let Some(asked) = asked
            && asked != key
        {
            return Err(Error::mismatch(format!("record {asked} was asked for and record {key} came")));
        }
        record::check(seed, key, &self.body[end + 1..])?;
        Ok(key)
    }
}

/// Reads records drawn uniformly from those that were loaded.
struct Read {
    facts: Facts,
    last: bool,
    page: Page,
    rng: Rng,
    key: u64,
}

impl Transaction for Read {
    fn attach(&mut self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn draw(&mut self) {
        self.key = 1 + self.rng.below(self.facts.records);
        self.page.read(self.key);
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        self.page.ask(session, self.last)
    }

    fn check(&mut self) -> Result<()> {
        self.page.check(self.facts.seed, Some(self.key)).map(drop)
    }
}

/// Has the application add records, under keys that it chooses.
struct Write {
    facts: Facts,
    last: bool,
    page: Page,
    trial: Arc<Mutex<Trial>>,
    written: u64,
}

impl Transaction for Write {
    fn attach(&mut self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn draw(&mut self) {}

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        self.page.ask(session, self.last)
    }

    fn check(&mut self) -> Result<()> {
        let key = self.page.check(self.facts.seed, None)?;
        if key <= self.facts.records {
            return Err(Error::mismatch(format!("record {key} was there already and is said to be added")));
        }
        self.trial.lock().unwrap_or_else(PoisonError::into_inner).keys.push(key);
        self.written += 1;
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}
