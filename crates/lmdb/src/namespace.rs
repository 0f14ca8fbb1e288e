//! Namespace of a run on LMDB. The ownership table is an ordinary collection.

use crate::session::entry;
use crate::store::{Store, after, explain};
use kurabe_driver_common::embedded::Claim;
use kurabe_driver_common::ownership::{MADE_BY, NamespaceOps, Words, now};
use kurabe_driver_common::packed::{Fields, pack};
use kurabe_driver_common::prelude::*;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) struct LmdbNamespace {
    pub(crate) store: Arc<Store>,
    pub(crate) lock: PathBuf,
    pub(crate) claim: Claim,
}

impl NamespaceOps for LmdbNamespace {
    fn words(&self) -> Words {
        Words { engine: "lmdb", thing: "collection", instead: "use another file", kept: &[] }
    }

    fn claim(&mut self, run: &str) -> Result<()> {
        self.claim.take("lmdb", &self.lock, run)
    }

    fn entries(&mut self) -> Result<Vec<String>> {
        let (start, mut names, mut foreign) = (entry(""), Vec::new(), false);
        self.store.scan(&start, &after(&start), |key, row| {
            let name = String::from_utf8_lossy(&key[start.len()..]).into_owned();
            let by_us = matches!(Fields::of(row).at(1), Value::Bytes(by) if by.starts_with(b"kurabe "));
            foreign |= !by_us || !Collection::name_is_ours(&name);
            names.push(name);
        })?;
        if foreign { Err(self.words().foreign_marker("")) } else { Ok(names) }
    }

    fn in_the_way(&mut self, name: &str) -> Result<Option<String>> {
        let txn = self.store.env.read_txn().map_err(explain)?;
        let start = format!("{name}:");
        let mut keys = self.store.rows.prefix_iter(&txn, start.as_bytes()).map_err(explain)?;
        Ok(keys.next().map(|_| format!("a key that starts with {start}")))
    }

    fn enter(&mut self, collection: &Collection) -> Result<()> {
        let (name, mut row) = (&collection.name, Vec::new());
        let made_at = Value::Int(now().as_secs() as i64);
        pack(&mut row, [Value::Text(name), Value::Text(MADE_BY), made_at].into_iter());
        self.store.write(|txn| self.store.rows.put(txn, &entry(name), &row).map_err(explain))
    }

    fn strike(&mut self, name: &str) -> Result<()> {
        self.store.write(|txn| self.store.rows.delete(txn, &entry(name)).map(drop).map_err(explain))
    }

    fn make(&mut self, collection: &Collection, _known: bool) -> Result<()> {
        self.destroy(&collection.name)
    }

    fn destroy(&mut self, name: &str) -> Result<()> {
        let (start, end) = (format!("{name}:"), format!("{name};"));
        let range = (Bound::Included(start.as_bytes()), Bound::Excluded(end.as_bytes()));
        self.store.write(|txn| self.store.rows.delete_range(txn, &range).map(drop).map_err(explain))
    }
}
