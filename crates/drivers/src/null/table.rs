//! A store of collections, each of rows by key in a sharded hash map, and sorted copies for its indexes.

use super::row::{self, Row};
use crate::key;
use crate::packed::{self, Fields};
use crate::prelude::*;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Number of shards; enough that a few clients rarely contend for a lock.
const SHARDS: usize = 64;

type Order = BTreeMap<Vec<u8>, Row>;
/// Rows by the hash of their keys.
type Shard = HashTable<Row>;

/// A snapshot of all rows at a version, read without a lock. A read costs half of a locked one, and less under
/// contention.
#[derive(Debug, Default)]
pub(super) struct View {
    version: u64,
    rows: Shard,
    whole: bool,
    /// Locked reads since the last write that this reader saw.
    reads: usize,
}

/// The previous state of a written row, for a rollback.
#[derive(Debug)]
pub(super) struct Undo {
    pub(super) table: Arc<Table>,
    /// A row with the key that was written.
    row: Row,
    before: Option<Row>,
}

/// State shared by all sessions of one `null:` target.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) tables: RwLock<BTreeMap<String, Arc<Table>>>,
    pub(super) claimed: Mutex<Option<String>>,
}

impl Store {
    pub(super) fn table(&self, name: &str) -> Result<Arc<Table>> {
        read(&self.tables).get(name).cloned().ok_or_else(|| {
            Error::new(ErrorKind::Server, format!("null: there is no collection {name}")).code("NO_TABLE")
        })
    }
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) collection: Collection,
    hasher: DefaultHashBuilder,
    shards: Vec<RwLock<Shard>>,
    /// Sorted rows, for each index and for a key of several fields: the fields, and the rows by them.
    orders: Vec<(Vec<usize>, RwLock<Order>)>,
    removed: AtomicBool,
    /// Number of writes, so that an outdated [`View`] is detected.
    version: AtomicU64,
}

impl Table {
    pub(super) fn new(collection: &Collection) -> Self {
        let mut orders = Vec::new();
        if collection.key.len() > 1 {
            orders.push((collection.key.clone(), RwLock::default()));
        }
        for index in &collection.indexes {
            // The key's fields make equal entries unique, and sort them by key.
            let fields = index.iter().chain(&collection.key).copied().collect();
            orders.push((fields, RwLock::default()));
        }
        Self {
            collection: collection.clone(),
            hasher: DefaultHashBuilder::default(),
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            orders,
            removed: AtomicBool::new(false),
            version: AtomicU64::new(0),
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        // The table itself uses the hash's lowest and highest bits; these are in between.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    pub(super) fn clear(&self) {
        for shard in &self.shards {
            write(shard).clear();
        }
        for (_, order) in &self.orders {
            write(order).clear();
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Removes all rows, and makes prepared operations fail from now on.
    pub(super) fn remove(&self) {
        self.removed.store(true, Ordering::Relaxed);
        self.clear();
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.removed.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Server, format!("{} was removed", self.collection.name))
                .code("NO_TABLE"));
        }
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.shards.iter().map(|shard| read(shard).len()).sum()
    }

    /// Encodes the key into `scratch`, or borrows it if the key is one field of text or bytes.
    pub(super) fn key<'a>(&self, scratch: &'a mut Vec<u8>, fields: &[Value<'a>]) -> Result<&'a [u8]> {
        if let [Value::Bytes(bytes)] = fields {
            return Ok(bytes);
        }
        if let [Value::Text(text)] = fields {
            return Ok(text.as_bytes());
        }
        scratch.clear();
        key::push_ordered(scratch, &self.collection.name, fields.iter().copied(), true)?;
        Ok(scratch)
    }

    /// Appends the row with this key to the reply: from the view if it is current, else under a lock.
    pub(super) fn get(&self, view: &mut View, key: &[u8], fields: &[usize], out: &mut Reply) {
        let hash = self.hash(key);
        if view.version != self.version.load(Ordering::Acquire) || !view.whole {
            self.get_locked(view, hash, key, fields, out);
        } else if let Some(row) = view.rows.find(hash, |row| row::parts(row).0 == key) {
            push_row(out, row, fields);
        }
    }

    fn get_locked(&self, view: &mut View, hash: u64, key: &[u8], fields: &[usize], out: &mut Reply) {
        if let Some(row) = read(self.shard(hash)).find(hash, |row| row::parts(row).0 == key) {
            push_row(out, row, fields);
        }
        // A view is built once there were as many reads without a write as there are rows to copy.
        let version = self.version.load(Ordering::Acquire);
        if view.version != version {
            *view = View { version, ..View::default() };
        }
        view.reads += 1;
        if view.reads >= 128 && view.reads.is_power_of_two() && view.reads >= self.count() {
            for shard in &self.shards {
                for row in read(shard).iter() {
                    let hash = self.hash(row::parts(row).0);
                    view.rows.insert_unique(hash, Arc::clone(row), |row| self.hash(row::parts(row).0));
                }
            }
            // A write in the meantime changes the version, so this view is never read.
            view.whole = true;
        }
    }

    pub(super) fn row(&self, key: &[u8]) -> Option<Row> {
        let hash = self.hash(key);
        read(self.shard(hash)).find(hash, |row| row::parts(row).0 == key).cloned()
    }

    /// Appends all rows whose fields `by` are `values`, in the order of the key.
    pub(super) fn find(
        &self,
        by: &[usize],
        values: &[Value<'_>],
        fields: &[usize],
        out: &mut Reply,
    ) -> Result<()> {
        if values.contains(&Value::Null) {
            return Ok(());
        }
        let mut scratch = Vec::new();
        if by == self.collection.key {
            let key = self.key(&mut scratch, values)?;
            self.get_locked(&mut View::default(), self.hash(key), key, fields, out);
            return Ok(());
        }
        let Some((order_fields, order)) = self.orders.iter().find(|(order, _)| order.starts_with(by)) else {
            let message = format!("{}: no key or index starts with these fields", self.collection.name);
            return Err(Error::new(ErrorKind::Internal, message));
        };
        for value in values {
            key::encode(&mut scratch, *value, false);
        }
        let from: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(scratch.as_slice()), Bound::Unbounded);
        let order = read(order);
        let found = order.range::<[u8], _>(from).take_while(|(entry, _)| entry.starts_with(&scratch));
        // Rows with one value of a whole index are in the order of the key; for a part of an index they must be sorted.
        let rest = &order_fields[by.len()..];
        if self.collection.key.ends_with(rest) {
            found.for_each(|(_, row)| push_row(out, row, fields));
        } else {
            let mut rows: Vec<&Row> = found.map(|(_, row)| row).collect();
            rows.sort_unstable_by_key(|row| row::parts(row).0);
            for row in rows {
                push_row(out, row, fields);
            }
        }
        Ok(())
    }

    /// Appends all rows whose field `by` is at least the first of `values` and less than the second, in the order of
    /// that field and then of the key.
    pub(super) fn range(
        &self,
        by: usize,
        values: &[Value<'_>],
        fields: &[usize],
        out: &mut Reply,
    ) -> Result<()> {
        if values.contains(&Value::Null) {
            return Ok(());
        }
        let order = self.orders.iter().find(|(order, _)| order.first() == Some(&by));
        let alone = order.is_none_or(|(fields, _)| fields.len() == 1);
        let mut bounds = [Vec::new(), Vec::new()];
        for (bound, value) in bounds.iter_mut().zip(values) {
            key::encode(bound, *value, alone);
        }
        let [from, to] = &bounds;
        if from >= to {
            return Ok(());
        }
        let mut rows: Vec<(Option<Vec<u8>>, Row)> = Vec::new();
        if let Some((order_fields, order)) = order {
            let order = read(order);
            let found =
                order.range::<[u8], _>((Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice())));
            if *order_fields == self.collection.key || order_fields[1..] == self.collection.key {
                found.for_each(|(_, row)| push_row(out, row, fields));
                return Ok(());
            }
            // Further fields of the index come before the key.
            rows.extend(found.map(|(_, row)| (Self::entry(row, &[by]), Arc::clone(row))));
        } else if self.collection.key == [by] {
            // A key of one field has no sorted copy: this table is optimized for reads by key.
            for shard in &self.shards {
                let all = read(shard);
                let entries = all.iter().map(|row| (Self::entry(row, &[by]), row));
                let found = entries
                    .filter(|(entry, _)| entry.as_ref().is_some_and(|entry| (from..to).contains(&entry)));
                rows.extend(found.map(|(entry, row)| (entry, Arc::clone(row))));
            }
        } else {
            let message = format!("{}: no key or index starts with this field", self.collection.name);
            return Err(Error::new(ErrorKind::Internal, message));
        }
        rows.sort_unstable_by(|(a, x), (b, y)| (a, row::parts(x).0).cmp(&(b, row::parts(y).0)));
        for (_, row) in &rows {
            push_row(out, row, fields);
        }
        Ok(())
    }

    /// The order-preserving encoding of some fields of a row; `None` if one of them is `Null`.
    fn entry(row: &[u8], fields: &[usize]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut row = Fields::of(row::parts(row).1);
        for (i, field) in fields.iter().enumerate() {
            if !key::encode(&mut out, row.at(*field), i + 1 == fields.len()) {
                return None;
            }
        }
        Some(out)
    }

    /// Stores a row under its key and returns the previous one. `allowed` gets the previous row first and may refuse.
    pub(super) fn set(
        self: &Arc<Self>,
        row: &Row,
        allowed: impl FnOnce(Option<&Row>) -> Result<bool>,
    ) -> Result<Option<Undo>> {
        let key = row::parts(row).0;
        let hash = self.hash(key);
        let mut shard = write(self.shard(hash));
        let entry = shard.entry(hash, |row| row::parts(row).0 == key, |row| self.hash(row::parts(row).0));
        let before = match entry {
            Entry::Occupied(mut entry) => {
                if !allowed(Some(entry.get()))? {
                    return Ok(None);
                }
                Some(std::mem::replace(entry.get_mut(), Arc::clone(row)))
            }
            Entry::Vacant(entry) => {
                if !allowed(None)? {
                    return Ok(None);
                }
                entry.insert(Arc::clone(row));
                None
            }
        };
        // Still under the shard's lock, so that rows and sorted copies change together for each key.
        self.version.fetch_add(1, Ordering::Release);
        self.reorder(before.as_ref(), Some(row));
        Ok(Some(Undo { table: Arc::clone(self), row: Arc::clone(row), before }))
    }

    pub(super) fn take(self: &Arc<Self>, key: &[u8]) -> Option<Undo> {
        let hash = self.hash(key);
        let mut shard = write(self.shard(hash));
        let (row, _) = shard.find_entry(hash, |row| row::parts(row).0 == key).ok()?.remove();
        self.version.fetch_add(1, Ordering::Release);
        self.reorder(Some(&row), None);
        Some(Undo { table: Arc::clone(self), row: Arc::clone(&row), before: Some(row) })
    }

    fn reorder(&self, before: Option<&Row>, after: Option<&Row>) {
        for (fields, order) in &self.orders {
            let entry = |row: &Row| Self::entry(row, fields);
            let (old, new) = (before.and_then(entry), after.and_then(entry));
            let mut order = write(order);
            if let Some(old) = old {
                order.remove(&old);
            }
            if let (Some(new), Some(row)) = (new, after) {
                order.insert(new, Arc::clone(row));
            }
        }
    }

    pub(super) fn undo(undo: &Undo) {
        match &undo.before {
            // `set` fails only if `allowed` refuses, which it does not here.
            Some(before) => drop(undo.table.set(before, |_| Ok(true))),
            None => drop(undo.table.take(row::parts(&undo.row).0)),
        }
    }
}

fn push_row(out: &mut Reply, row: &[u8], fields: &[usize]) {
    packed::give(out, row::parts(row).1, fields);
}

/// Locks for reading. A panic under the lock leaves no partial rows, so poisoning is ignored.
pub(super) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
