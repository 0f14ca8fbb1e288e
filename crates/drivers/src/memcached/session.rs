//! A connection to memcached: each operation is one request.

use super::house::Generations;
use super::protocol::Client;
use super::{key, server_error, value};
use crate::slots::{Slots, check_parameters};
use crate::wire::Peer;
use kurabe_core::collection::Collection;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why memcached has not an operation; `None` where it has it.
pub(super) fn unsupported(operation: &Operation) -> Option<&'static str> {
    match operation {
        Operation::Ping | Operation::Insert { .. } | Operation::Put { .. } | Operation::Delete { .. } => None,
        Operation::Get { collection, fields } => {
            let in_order = fields.is_sorted_by(|a, b| a < b);
            let stored = fields.iter().all(|field| !collection.key.contains(field));
            (!in_order || !stored).then_some("memcached gives a value back as it was stored, without its key")
        }
        Operation::Update { collection, fields } => (*fields != rest(collection))
            .then_some("memcached replaces a value as a whole: it cannot change some of a row's fields"),
        Operation::InsertMany { .. } => {
            Some("memcached has no request that stores several values, all or none")
        }
        Operation::FindEqual { .. } => Some("memcached finds a value by its whole key only"),
        Operation::Count { .. } => Some("memcached cannot count or list its keys"),
        Operation::Begin | Operation::Commit | Operation::Rollback => Some("memcached has no transactions"),
    }
}

/// The fields that are not in the key.
fn rest(collection: &Collection) -> Vec<usize> {
    (0..collection.fields.len()).filter(|field| !collection.key.contains(field)).collect()
}

pub(super) struct MemcachedSession<S> {
    client: Client<S>,
    generations: Arc<Generations>,
    slots: Slots<Slot>,
    key: Vec<u8>,
    value: Vec<u8>,
}

struct Slot {
    operation: Operation,
    parameters: usize,
    /// Which generation of the collection is the present one; shared, since emptying it makes a new one.
    generation: Arc<AtomicU64>,
    /// The fields that are not in the key.
    rest: Vec<usize>,
    /// For `Get`: which of `rest` come back.
    wanted: Vec<usize>,
}

impl<S: Peer> MemcachedSession<S> {
    pub(super) fn new(client: Client<S>, generations: Arc<Generations>) -> Self {
        Self { client, generations, slots: Slots::default(), key: Vec::new(), value: Vec::new() }
    }
}

impl<S: Peer + Send> Session for MemcachedSession<S> {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        if let Some(reason) = unsupported(operation) {
            return Err(Error::unsupported(format!("{}: {reason}", operation.name())));
        }
        let mut slot = Slot {
            operation: operation.clone(),
            parameters: operation.parameters(),
            generation: Arc::default(),
            rest: Vec::new(),
            wanted: Vec::new(),
        };
        if let Some(collection) = operation.collection() {
            slot.generation = self.generations.get(&collection.name, &mut self.client)?;
            slot.rest = rest(collection);
        }
        if let Operation::Get { fields, .. } = operation {
            slot.wanted = fields.iter().filter_map(|f| slot.rest.iter().position(|rest| rest == f)).collect();
        }
        Ok(self.slots.insert(slot))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let slot = self.slots.get(prepared)?;
        check_parameters(slot.operation.name(), slot.parameters, parameters.len())?;
        let Some(collection) = slot.operation.collection() else { return self.client.ping() };
        let generation = slot.generation.load(Ordering::Relaxed);
        let mut work = Work {
            client: &mut self.client,
            collection,
            generation,
            key: &mut self.key,
            value: &mut self.value,
        };
        let affected = match &slot.operation {
            Operation::Get { .. } => {
                work.write_key(parameters)?;
                if let Some(total) = work.client.get(work.key, " v")? {
                    value::receive(work.client, total, slot.rest.len(), &slot.wanted, out)
                        .inspect_err(|_| out.clear())?;
                }
                return Ok(());
            }
            Operation::Insert { .. } => {
                if !work.write(parameters, &slot.rest, " ME")? {
                    let message = format!("memcached: {} already has a value of this key", collection.name);
                    return Err(server_error(message, "NS"));
                }
                1
            }
            Operation::Put { .. } => u64::from(work.write(parameters, &slot.rest, "")?),
            Operation::Update { .. } => {
                let (fields, key) = parameters.split_at(slot.rest.len());
                work.write_key(key)?;
                u64::from(work.store(fields.iter().copied(), " MR")?)
            }
            Operation::Delete { .. } => {
                work.write_key(parameters)?;
                u64::from(work.client.delete(work.key)?)
            }
            // Never prepared.
            _ => 0,
        };
        out.set_affected(affected);
        Ok(())
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.client.quit();
        Ok(())
    }
}

/// One operation under way.
struct Work<'a, S> {
    client: &'a mut Client<S>,
    collection: &'a Collection,
    generation: u64,
    key: &'a mut Vec<u8>,
    value: &'a mut Vec<u8>,
}

impl<S: Peer> Work<'_, S> {
    fn write_key(&mut self, fields: &[Value<'_>]) -> Result<()> {
        key::write(self.key, &self.collection.name, self.generation, fields)
    }

    /// Writes a row given by all its fields.
    fn write(&mut self, fields: &[Value<'_>], rest: &[usize], flags: &str) -> Result<bool> {
        match self.collection.key.as_slice() {
            [one] => self.write_key(&fields[*one..=*one])?,
            many => {
                let key: Vec<Value<'_>> = many.iter().map(|field| fields[*field]).collect();
                self.write_key(&key)?;
            }
        }
        self.store(rest.iter().map(|field| fields[*field]), flags)
    }

    fn store<'v>(&mut self, fields: impl Iterator<Item = Value<'v>> + Clone, flags: &str) -> Result<bool> {
        let packed = value::pack(self.value, fields)?;
        let (head, tail) = self.value.split_at(packed.split);
        self.client.set(self.key, flags, head, packed.middle, tail)
    }
}
