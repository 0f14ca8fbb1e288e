//! kv through an application: each transaction is one page, and every answer is compared with what it must be.

use super::record::{self, LENGTH};
use super::{INFO, READ, WRITE};
use crate::answer;
use crate::defect::no_operation;
use crate::via::{Added, Pages, facts, page};
use kurabe_core::driver::Session;
use kurabe_core::experiment::{Client, ExperimentInfo, Notes, Transaction};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, Result};
use kurabe_stats::rng::Rng;
use serde::Deserialize;
use std::fmt::Write as _;
use std::sync::Arc;

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
        data: Arc<Facts>,
        last: bool,
    ) -> Result<Box<dyn Transaction>> {
        match operation {
            READ => {
                let rng = Rng::new(client.seed);
                Ok(Box::new(Read { data, last, page: Page::default(), rng, key: 0 }))
            }
            WRITE => {
                let page = Page { path: page(&INFO, WRITE), ..Page::default() };
                Ok(Box::new(Write { data, last, page, keys: Vec::new() }))
            }
            _ => Err(no_operation(INFO.name, operation)),
        }
    }

    fn hold(
        &self,
        session: &mut dyn Session,
        data: &Facts,
        told: &[&Vec<u64>],
        added: &Added,
    ) -> Result<Verification> {
        let mut keys: Vec<u64> = told.iter().copied().flatten().copied().collect();
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
    data: Arc<Facts>,
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
        self.key = 1 + self.rng.below(self.data.records);
        self.page.read(self.key);
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        self.page.ask(session, self.last)
    }

    fn check(&mut self) -> Result<()> {
        self.page.check(self.data.seed, Some(self.key)).map(drop)
    }
}

/// Has the application add records, under keys that it chooses.
struct Write {
    data: Arc<Facts>,
    last: bool,
    page: Page,
    /// Of the records that were added.
    keys: Vec<u64>,
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
        let key = self.page.check(self.data.seed, None)?;
        if key <= self.data.records {
            return Err(Error::mismatch(format!("record {key} was there already and is said to be added")));
        }
        self.keys.push(key);
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.keys.len() as u64
    }

    fn notes(&mut self) -> Option<Notes> {
        Some(Box::new(std::mem::take(&mut self.keys)))
    }
}
