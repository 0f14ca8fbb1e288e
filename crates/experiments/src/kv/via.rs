//! kv through an application: each transaction is one page, and every answer is compared with what it must be.

use super::record::{self, LENGTH};
use super::{INFO, READ, WRITE};
use crate::answer;
use crate::defect::no_operation;
use crate::via::{Added, Pages, Trial, facts, lock, page};
use kurabe_core::driver::Session;
use kurabe_core::experiment::{Client, ExperimentInfo, Transaction};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, Result};
use kurabe_stats::rng::Rng;
use serde::Deserialize;
use std::fmt::Write as _;

/// What the application says of its records on `/kv`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Facts {
    seed: u64,
    /// How many were there before anything was added; their keys are 1 to this.
    records: u64,
}

pub(super) struct KvPages;

impl Pages for KvPages {
    type Data = Facts;
    /// The keys of the records that were added.
    type Told = Vec<u64>;

    fn info(&self) -> &'static ExperimentInfo {
        &INFO
    }

    fn client_bytes(&self) -> u64 {
        64_000
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(LENGTH as u64)
    }

    fn data(&self, session: &mut dyn Session) -> Result<Facts> {
        let facts: Facts = facts(session, &INFO, "its seed and its number of records")?;
        if facts.records == 0 {
            return Err(Error::mismatch("the application says that it has no records"));
        }
        Ok(facts)
    }

    fn transaction(
        &self,
        operation: &str,
        client: Client,
        trial: Trial<Self>,
    ) -> Result<Box<dyn Transaction>> {
        match operation {
            READ => {
                let rng = Rng::new(client.seed);
                Ok(Box::new(Read { trial, page: Page::default(), rng, key: 0 }))
            }
            WRITE => {
                let page = Page { path: page(&INFO, WRITE), ..Page::default() };
                Ok(Box::new(Write { trial, page, written: 0 }))
            }
            _ => Err(no_operation(INFO.name, operation)),
        }
    }

    fn hold(
        &self,
        session: &mut dyn Session,
        data: &Facts,
        mut keys: Vec<u64>,
        added: &Added,
    ) -> Result<Verification> {
        keys.sort_unstable();
        keys.dedup();
        let counted = added.hold(session, ["records", "keys"], keys.len())?;
        let mut page = Page::default();
        for key in &keys {
            page.read(*key);
            page.ask(session, false)?;
            page.check(data.seed, Some(*key)).map_err(|error| error.context("read back"))?;
        }
        let (writes, read_back) = (added.rows, keys.len() as u64);
        Ok(Verification { writes, records: read_back, counted, read_back, ..Verification::default() })
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
        let (key, data) = answer::read(&self.path, &self.body, asked)?;
        record::check(seed, key, data)?;
        Ok(key)
    }
}

/// Reads records drawn uniformly from those that were loaded.
struct Read {
    trial: Trial<KvPages>,
    page: Page,
    rng: Rng,
    key: u64,
}

impl Transaction for Read {
    fn attach(&mut self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn draw(&mut self) {
        self.key = 1 + self.rng.below(self.trial.data.records);
        self.page.read(self.key);
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        self.page.ask(session, self.trial.last)
    }

    fn check(&mut self) -> Result<()> {
        self.page.check(self.trial.data.seed, Some(self.key)).map(drop)
    }
}

/// Has the application add records, under keys that it chooses.
struct Write {
    trial: Trial<KvPages>,
    page: Page,
    written: u64,
}

impl Transaction for Write {
    fn attach(&mut self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn draw(&mut self) {}

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        self.page.ask(session, self.trial.last)
    }

    fn check(&mut self) -> Result<()> {
        let key = self.page.check(self.trial.data.seed, None)?;
        if key <= self.trial.data.records {
            return Err(Error::mismatch(format!("record {key} was there already and is said to be added")));
        }
        lock(&self.trial.told).push(key);
        self.written += 1;
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}
