//! A session on LMDB: each operation is one transaction.

use crate::store::{Store, after, explain};
use heed::{PutFlags, RoTxn};
use kurabe_driver_common::key;
use kurabe_driver_common::ownership::MARKER;
use kurabe_driver_common::packed;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::slots::{Slots, check_parameters, check_supported};
use std::sync::Arc;

const NO_INDEX: Option<&str> = Some("LMDB has no indexes: only the first fields of the key find rows");

/// The reason why LMDB does not support an operation; `None` if it does.
pub(crate) fn unsupported(operation: &Operation) -> Option<&'static str> {
    match operation {
        Operation::FindEqual { collection, by, .. } if !collection.key.starts_with(by) => NO_INDEX,
        Operation::FindRange { collection, by, .. } if collection.key.first() != Some(by) => NO_INDEX,
        Operation::InsertEach { .. } => Some("a transaction of LMDB adds all rows or none"),
        Operation::Begin | Operation::Commit | Operation::Rollback => {
            Some("the crate heed binds a write transaction to its thread")
        }
        Operation::Purge { .. } => Some("LMDB does not remove rows by their time"),
        Operation::Page { .. } | Operation::Raw { .. } => Some("LMDB has neither pages nor statements"),
        Operation::Flow(_) => Some(NO_FLOW),
        _ => None,
    }
}

/// Sets the key of a row: the collection's name, a colon, and the fields; `whole`: these are all fields of the key.
pub(crate) fn set_key<'a>(
    key: &mut Vec<u8>,
    collection: &str,
    fields: impl ExactSizeIterator<Item = Value<'a>>,
    whole: bool,
) -> Result<()> {
    key.clear();
    key.extend_from_slice(collection.as_bytes());
    key.push(b':');
    key::push_ordered(key, collection, fields, whole)
}

/// The key of a collection's entry in the ownership table.
pub(crate) fn entry(collection: &str) -> Vec<u8> {
    format!("{MARKER}:{collection}").into_bytes()
}

pub(crate) struct LmdbSession {
    pub(crate) store: Arc<Store>,
    pub(crate) slots: Slots<Operation>,
    pub(crate) key: Vec<u8>,
    pub(crate) row: Vec<u8>,
}

impl Session for LmdbSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        check_supported(operation, unsupported(operation))?;
        if let Some(collection) = operation.collection() {
            check_exists(&self.store, &*self.store.env.read_txn().map_err(explain)?, &collection.name)?;
        }
        Ok(self.slots.insert(operation.clone()))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let (store, operation) = (&self.store, self.slots.get(prepared)?);
        check_parameters(operation.name(), operation.parameters(), parameters.len())?;
        let Some(collection) = operation.collection() else {
            return store.env.read_txn().map(drop).map_err(explain);
        };
        let (key, all, width) = (&mut self.key, parameters.iter().copied(), collection.fields.len());
        match operation {
            // NULL equals no value and orders with none.
            Operation::FindEqual { .. } | Operation::FindRange { .. }
                if parameters.contains(&Value::Null) => {}
            Operation::Get { fields, .. } | Operation::FindEqual { fields, .. }
                if parameters.len() == collection.key.len() =>
            {
                set_key(key, &collection.name, all, true)?;
                let txn = store.env.read_txn().map_err(explain)?;
                let found = store.rows.get(&txn, key).map_err(explain)?;
                if let Some(row) = found {
                    packed::give(out, row, fields);
                }
            }
            Operation::FindEqual { fields, .. } => {
                set_key(key, &collection.name, all, false)?;
                store.scan(key, &after(key), |_, row| packed::give(out, row, fields))?;
            }
            Operation::FindRange { fields, .. } => {
                let (whole, end) = (collection.key.len() == 1, &mut self.row);
                set_key(key, &collection.name, all.clone().take(1), whole)?;
                set_key(end, &collection.name, all.skip(1), whole)?;
                store.scan(key, end, |_, row| packed::give(out, row, fields))?;
            }
            Operation::Count { .. } => {
                let mut rows = 0;
                set_key(key, &collection.name, all, false)?;
                store.scan(key, &after(key), |_, _| rows += 1)?;
                out.push_int(rows);
                out.end_row();
            }
            _ => out.set_affected(store.write(|txn| {
                check_exists(store, txn, &collection.name)?;
                if let Operation::Delete { .. } = operation {
                    set_key(key, &collection.name, all, true)?;
                    return store.rows.delete(txn, key).map(u64::from).map_err(explain);
                }
                let row = &mut self.row;
                if let Operation::Update { fields, .. } = operation {
                    set_key(key, &collection.name, all.skip(fields.len()), true)?;
                    let Some(before) = store.rows.get(txn, key).map_err(explain)? else { return Ok(0) };
                    row.clear();
                    packed::pack(row, packed::changed(before, width, fields, parameters));
                    return store.rows.put(txn, key, row).map(|()| 1).map_err(explain);
                }
                let put = matches!(operation, Operation::Put { .. });
                let flags = if put { PutFlags::empty() } else { PutFlags::NO_OVERWRITE };
                for values in parameters.chunks(width) {
                    set_key(key, &collection.name, collection.key.iter().map(|at| values[*at]), true)?;
                    row.clear();
                    packed::pack(row, values.iter().copied());
                    store.rows.put_with_flags(txn, flags, key, row).map_err(explain)?;
                }
                Ok((parameters.len() / width) as u64)
            })?),
        }
        Ok(())
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    fn bulk(&mut self) -> Result<&mut dyn Bulk> {
        Ok(self)
    }

    without!(planner, cache, raw_messages, transactions);
}

/// Fails if a collection has neither an entry in the ownership table nor rows, as after its removal.
pub(crate) fn check_exists(store: &Store, txn: &RoTxn<'_>, name: &str) -> Result<()> {
    if name == MARKER
        || store.rows.get(txn, &entry(name)).map_err(explain)?.is_some()
        || store.rows.prefix_iter(txn, format!("{name}:").as_bytes()).map_err(explain)?.next().is_some()
    {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Server, format!("lmdb: there is no collection {name}")).code("NO_COLLECTION"))
}
