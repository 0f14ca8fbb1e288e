//! What one client does: read a row, or change one of its own.

use super::store::{LOADED, Store};
use crate::answer::record;
use crate::fill::text;
use crate::statement::{Bind, Statement};
use kurabe_core::driver::Session;
use kurabe_core::experiment::{Client, Transaction};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::Rng;
use std::sync::Arc;

/// Reads rows drawn uniformly from all.
pub(super) struct Read {
    store: Arc<Store>,
    statement: Statement,
    reply: Reply,
    rng: Rng,
    key: u64,
}

impl Read {
    pub(super) fn new(store: &Arc<Store>, bind: Bind, client: Client) -> Self {
        Self {
            store: Arc::clone(store),
            statement: Statement::new(store.select(), bind),
            reply: Reply::new(),
            rng: Rng::new(client.seed),
            key: 0,
        }
    }
}

impl Transaction for Read {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.detach(session)
    }

    #[inline]
    fn draw(&mut self) {
        self.key = 1 + self.rng.below(self.store.records);
    }

    fn choose(&mut self, key: u64) -> Result<()> {
        if !(1..=self.store.records).contains(&key) {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no row {key}")));
        }
        self.key = key;
        Ok(())
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.execute(session, &[Value::Int(self.key as i64)], &mut self.reply)
    }

    #[inline]
    fn check(&mut self) -> Result<()> {
        self.store.check(self.key, LOADED, &self.reply)
    }

    fn answer(&self, out: &mut Vec<u8>) {
        record(self.key, self.reply.field_bytes(0, 0).unwrap_or_default(), out);
    }
}

/// The keys that one client changes, in the order in which it does: drawn uniformly from a residue class of its own,
/// so that the last version of every row is known without asking who came last.
#[derive(Debug)]
pub(super) struct Keys {
    rng: Rng,
    first: u64,
    step: u64,
    own: u64,
}

impl Keys {
    /// The keys of a client; there must be at least as many records as clients.
    pub(super) fn new(records: u64, client: Client) -> Self {
        let (index, count) = (client.index as u64, client.count as u64);
        Self {
            rng: Rng::new(client.seed),
            first: 1 + index,
            step: count,
            own: records.saturating_sub(index).div_ceil(count).max(1),
        }
    }

    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        self.first + self.step * self.rng.below(self.own)
    }
}

/// Changes rows of its own. Each change has a version that no row of the table ever had, so that one which never
/// happened cannot be taken for one that did, and no server can skip it because nothing would change.
pub(super) struct Write {
    store: Arc<Store>,
    statement: Statement,
    reply: Reply,
    keys: Keys,
    key: u64,
    version: u64,
    data: Vec<u8>,
    written: u64,
}

impl Write {
    /// `base` is the version before the trial's first.
    pub(super) fn new(store: &Arc<Store>, bind: Bind, base: u64, client: Client) -> Self {
        Self {
            store: Arc::clone(store),
            statement: Statement::new(store.update(), bind),
            reply: Reply::new(),
            keys: Keys::new(store.records, client),
            key: 0,
            version: base,
            data: Vec::new(),
            written: 0,
        }
    }
}

impl Transaction for Write {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    #[inline]
    fn draw(&mut self) {
        self.key = self.keys.draw();
        self.version += 1;
        self.store.content.write(self.key, self.version, &mut self.data);
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let parameters = [text(&self.data)?, Value::Int(self.key as i64)];
        self.statement.execute(session, &parameters, &mut self.reply)
    }

    #[inline]
    fn check(&mut self) -> Result<()> {
        one_changed(self.key, &self.reply)?;
        self.written += 1;
        Ok(())
    }

    fn answer(&self, out: &mut Vec<u8>) {
        record(self.key, &self.data, out);
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}

/// Whether the server acknowledged that one row was changed.
#[inline]
pub(super) fn one_changed(key: u64, reply: &Reply) -> Result<()> {
    if reply.affected() == 1 {
        return Ok(());
    }
    let said = reply.affected();
    Err(Error::mismatch(format!("row {key} was changed and the server acknowledged {said} rows")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn clients_share_out_all_keys_and_no_key_twice(records in 1u64..200, count in 1usize..20) {
            prop_assume!(records >= count as u64);
            let mut seen = HashSet::new();
            for index in 0..count {
                let mut keys = Keys::new(records, Client { index, count, seed: index as u64 });
                let own: HashSet<u64> = (0..keys.own * 40).map(|_| keys.draw()).collect();
                prop_assert!(own.iter().all(|key| (1..=records).contains(key)));
                prop_assert!(own.iter().all(|key| seen.insert(*key)), "a key of two clients");
            }
            // With forty draws a key, one in 10^17 is never drawn.
            prop_assert_eq!(seen.len() as u64, records);
        }
    }
}
