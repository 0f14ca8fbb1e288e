//! What one client does on a database: read a record, or add one.

use super::record::{self, LENGTH};
use super::store::Store;
use crate::answer;
use crate::defect::no_session;
use crate::fill::text;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::experiment::{Client, Transaction};
use kurabe_core::page::Page;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::Rng;
use std::sync::Arc;

/// Reads records drawn uniformly from those that were loaded, or one that is named.
pub(super) struct Read {
    store: Arc<Store>,
    prepared: Option<Prepared>,
    reply: Reply,
    rng: Rng,
    key: u64,
    chosen: bool,
}

impl Read {
    pub(super) fn new(store: &Arc<Store>, client: Client) -> Self {
        Self {
            store: Arc::clone(store),
            prepared: None,
            reply: Reply::new(),
            rng: Rng::new(client.seed),
            key: 0,
            chosen: false,
        }
    }
}

impl Transaction for Read {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = Some(session.prepare(&Store::select(&self.store.loaded))?);
        Ok(())
    }

    #[inline]
    fn draw(&mut self) {
        self.key = 1 + self.rng.below(self.store.records);
        self.chosen = false;
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let parameters = [Value::Int(self.key as i64)];
        if self.key <= self.store.records {
            let prepared = self.prepared.as_ref().ok_or_else(no_session)?;
            return session.execute(prepared, &parameters, &mut self.reply);
        }
        // One that was added is asked for now and then, by whoever wants to see that it is there.
        let prepared = session.prepare(&Store::select(self.store.home(self.key)))?;
        let done = session.execute(&prepared, &parameters, &mut self.reply);
        done.and(session.release(prepared))
    }

    #[inline]
    fn check(&mut self) -> Result<()> {
        if self.chosen && self.reply.rows() == 0 && !(1..=self.store.records).contains(&self.key) {
            return Err(absent(self.key));
        }
        self.store.check(self.key, &self.reply)
    }
}

impl Page for Read {
    fn choose(&mut self, key: u64) -> Result<()> {
        // Keys are signed on the server.
        self.key = i64::try_from(key).map_err(|_| absent(key))? as u64;
        self.chosen = true;
        Ok(())
    }

    fn show(&self, out: &mut Vec<u8>) {
        answer::record(self.key, self.reply.field_bytes(0, 0).unwrap_or_default(), out);
    }
}

/// Nobody said that there was such a record.
fn absent(key: u64) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no record {key}"))
}

/// Adds records: their keys count up, apart from those of the other clients.
pub(super) struct Write {
    store: Arc<Store>,
    prepared: Option<Prepared>,
    reply: Reply,
    key: u64,
    next: u64,
    step: u64,
    data: Vec<u8>,
    written: u64,
}

impl Write {
    pub(super) fn new(store: &Arc<Store>, client: Client) -> Self {
        Self {
            store: Arc::clone(store),
            prepared: None,
            reply: Reply::new(),
            key: 0,
            next: first(store, client),
            step: client.count as u64,
            data: Vec::with_capacity(LENGTH),
            written: 0,
        }
    }

    /// The keys of the records that a client has added after `completed` transactions.
    pub(super) fn keys(store: &Store, client: Client, completed: u64) -> impl Iterator<Item = u64> {
        let first = first(store, client);
        (0..completed).map(move |n| first + n * client.count as u64)
    }
}

fn first(store: &Store, client: Client) -> u64 {
    store.records + 1 + client.index as u64
}

impl Transaction for Write {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = Some(session.prepare(&self.store.insert())?);
        Ok(())
    }

    #[inline]
    fn draw(&mut self) {
        self.key = self.next;
        // Also where the last one failed: its answer may have been lost, and not the record.
        self.next += self.step;
        record::write(self.store.seed, self.key, &mut self.data);
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let parameters = [Value::Int(self.key as i64), text(&self.data)?];
        let prepared = self.prepared.as_ref().ok_or_else(no_session)?;
        session.execute(prepared, &parameters, &mut self.reply)
    }

    #[inline]
    fn check(&mut self) -> Result<()> {
        if self.reply.affected() != 1 {
            let (key, said) = (self.key, self.reply.affected());
            return Err(Error::mismatch(format!(
                "record {key} was added and the server acknowledged {said}"
            )));
        }
        self.written += 1;
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}

impl Page for Write {
    fn show(&self, out: &mut Vec<u8>) {
        answer::record(self.key, &self.data, out);
    }
}
