//! The transaction of a client that changes its own rows.

use super::store::Store;
use crate::answer::record;
use crate::fill::text;
use crate::prelude::*;
use crate::statement::{Bind, Statement};
use kurabe_core::planned::share;
use kurabe_stats::Permutation;

/// The rows that one client changes, in order: its residue class, shuffled. Each row comes once before any
/// row is repeated. If a trial ends earlier, each change can therefore be read back.
#[derive(Debug)]
pub(super) struct Keys {
    order: Permutation,
    first: u64,
    step: u64,
    /// The version before the client's first change.
    base: u64,
    drawn: u64,
}

impl Keys {
    /// The keys of a client; there must be at least as many records as clients.
    pub(super) fn new(records: u64, client: Client) -> Self {
        let own = share(records, client.index, client.count).max(1);
        Self {
            order: Permutation::new(client.seed, own),
            first: 1 + client.index as u64,
            step: client.count as u64,
            base: client.base_version(),
            drawn: 0,
        }
    }

    /// The next row and its new version.
    #[inline]
    pub(super) fn draw(&mut self) -> (u64, u64) {
        let drawn = self.at(self.drawn);
        self.drawn += 1;
        drawn
    }

    /// The rows that this many draws changed, each with its last version.
    pub(super) fn written(self, draws: u64) -> impl Iterator<Item = (u64, u64)> {
        (draws.saturating_sub(self.order.length())..draws).map(move |place| self.at(place))
    }

    #[inline]
    fn at(&self, place: u64) -> (u64, u64) {
        (self.first + self.step * self.order.at(place), self.base + place + 1)
    }
}

/// Changes the client's own rows. Each change writes a version that no row had before. A lost change is therefore
/// always detected, and no server can skip a change as a no-op.
pub(super) struct Write {
    store: Arc<Store>,
    statement: Statement,
    reply: Reply,
    keys: Keys,
    key: u64,
    data: Vec<u8>,
    written: u64,
}

impl Write {
    pub(super) fn new(store: &Arc<Store>, bind: Bind, client: Client) -> Self {
        Self {
            store: Arc::clone(store),
            statement: Statement::new(store.update(), bind),
            reply: Reply::new(),
            keys: Keys::new(store.records, client),
            key: 0,
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
    fn prepare_input(&mut self) {
        let (key, version) = self.keys.draw();
        self.key = key;
        self.store.data.write(key, version, &mut self.data);
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

    fn rows_written(&self) -> u64 {
        self.written
    }
}

impl Page for Write {
    fn render(&self, out: &mut Vec<u8>) {
        record(self.key, &self.data, out);
    }
}

/// Whether the server acknowledged that one row was changed.
#[inline]
pub(super) fn one_changed(key: u64, reply: &Reply) -> Result<()> {
    if reply.affected() == 1 {
        return Ok(());
    }
    let acknowledged = reply.affected();
    Err(Error::mismatch(format!(
        "the server acknowledged {acknowledged} rows for the change of row {key}, expected 1"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    proptest! {
        #[test]
        fn clients_share_out_all_keys_and_each_comes_once(records in 1u64..200, count in 1usize..20) {
            prop_assume!(records >= count as u64);
            let mut seen = HashSet::new();
            for index in 0..count {
                let client = Client { index, count, seed: index as u64, trial: 1 };
                let mut keys = Keys::new(records, client);
                for _ in 0..share(records, index, count) {
                    let (key, _) = keys.draw();
                    prop_assert!((1..=records).contains(&key));
                    prop_assert!(seen.insert(key), "key {} came twice", key);
                }
            }
            prop_assert_eq!(seen.len() as u64, records);
        }

        #[test]
        fn written_rows_have_the_version_of_their_last_draw(records in 1u64..30, draws in 0u64..100) {
            let client = Client { index: 0, count: 1, seed: 9, trial: 3 };
            let mut keys = Keys::new(records, client);
            let mut last = HashMap::new();
            for n in 0..draws {
                let (key, version) = keys.draw();
                prop_assert_eq!(version, client.base_version() + n + 1);
                last.insert(key, version);
            }
            prop_assert_eq!(keys.written(draws).collect::<HashMap<_, _>>(), last);
        }
    }
}
