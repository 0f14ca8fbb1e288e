//! A session of `null:`, which executes each operation immediately.

use super::row;
use super::table::{Store, Table, Undo, View};
use crate::packed::changed;
use crate::prelude::*;
use crate::slots::{Slots, check_parameters};
use std::sync::Arc;

pub(super) fn supports(operation: &Operation) -> Support {
    match operation {
        Operation::Page { .. } => Support::no("null: has no pages"),
        Operation::Raw { .. } => Support::no("null: has no SQL for the statements of a workload"),
        Operation::Flow(_) => Support::no("null: has no connections to carry bytes"),
        other if other.collection().is_some_and(|of| !Collection::name_is_ours(&of.name)) => {
            Support::no("null: has only the tables that a run creates")
        }
        _ => Support::Native,
    }
}

pub(super) struct NullSession {
    store: Arc<Store>,
    slots: Slots<Slot>,
    work: Work,
}

struct Slot {
    operation: Operation,
    parameters: usize,
    table: Option<Arc<Table>>,
    view: View,
}

/// Reusable buffers, and the undo log of a transaction.
#[derive(Default)]
struct Work {
    key: Vec<u8>,
    row: Vec<u8>,
    written: Vec<Undo>,
    transaction: Option<Vec<Undo>>,
}

impl NullSession {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store, slots: Slots::default(), work: Work::default() }
    }
}

impl Session for NullSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        if let Support::No(reason) = supports(operation) {
            return Err(Error::unsupported(reason));
        }
        let table = operation.collection().map(|c| self.store.table(&c.name)).transpose()?;
        if let (Some(table), Some(collection)) = (&table, operation.collection())
            && table.collection != **collection
        {
            let message = format!("null: {} has other fields than the operation", collection.name);
            return Err(Error::new(ErrorKind::Server, message).code("OTHER_FIELDS"));
        }
        let parameters = operation.parameters();
        Ok(self.slots.insert(Slot { operation: operation.clone(), parameters, table, view: View::default() }))
    }

    /// Same as `prepare`: there is no statement text.
    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        self.prepare(operation)
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let slot = self.slots.get_mut(prepared)?;
        check_parameters(slot.operation.name(), slot.parameters, parameters.len())?;
        match &slot.table {
            Some(table) => {
                table.check()?;
                if let Operation::Get { fields, .. } = &slot.operation {
                    let key = table.key(&mut self.work.key, parameters)?;
                    table.get(&mut slot.view, key, fields, out);
                    return Ok(());
                }
                self.work.on_table(&slot.operation, table, parameters, out)
            }
            None => self.work.transaction(&slot.operation),
        }
    }

    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        let each = self.slots.get(prepared)?.parameters;
        check_parameters("a pipeline", each * out.len(), parameters.len())?;
        let mut first = Ok(());
        for (n, reply) in out.iter_mut().enumerate() {
            // The requests are independent: after an error the others are executed too.
            let done = self.execute(prepared, &parameters[n * each..(n + 1) * each], reply);
            first = first.and(done);
        }
        first
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    fn in_transaction(&self) -> Option<bool> {
        Some(self.work.transaction.is_some())
    }

    without!(bulk, planner, cache, raw_messages);
}

impl Drop for NullSession {
    fn drop(&mut self) {
        self.work.roll_back();
    }
}

impl Work {
    fn on_table(
        &mut self,
        operation: &Operation,
        table: &Arc<Table>,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        match operation {
            Operation::Insert { .. }
            | Operation::InsertMany { .. }
            | Operation::InsertEach { .. }
            | Operation::Put { .. } => {
                let replace = matches!(operation, Operation::Put { .. });
                out.set_affected(self.write(table, parameters, replace)?);
            }
            Operation::Update { fields, .. } => out.set_affected(self.update(table, fields, parameters)?),
            Operation::Delete { .. } => {
                let key = table.key(&mut self.key, parameters)?;
                let undo = table.take(key);
                out.set_affected(u64::from(undo.is_some()));
                self.written.extend(undo);
                self.remember();
            }
            Operation::FindEqual { by, fields, .. } => table.find(by, parameters, fields, out)?,
            Operation::FindRange { by, fields, .. } => table.range(*by, parameters, fields, out)?,
            Operation::Purge { collection } => {
                let mut expired = Reply::new();
                let times = [Value::Time(i64::MIN), parameters[0]];
                table.range(collection.expires.unwrap_or_default(), &times, &collection.key, &mut expired)?;
                for row in 0..expired.rows() {
                    let key: Vec<_> =
                        (0..collection.key.len()).filter_map(|n| expired.field(row, n)).collect();
                    self.written.extend(table.take(table.key(&mut self.key, &key)?));
                }
                out.set_affected(self.written.len() as u64);
                self.remember();
            }
            Operation::Count { .. } => {
                out.push_int(table.count() as i64);
                out.end_row();
            }
            // `Get` is handled by the caller; the others have no table.
            _ => {}
        }
        Ok(())
    }

    fn transaction(&mut self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Begin if self.transaction.is_some() => {
                return Err(Error::new(ErrorKind::Server, "null: a transaction is already in progress")
                    .code("IN_TRANSACTION"));
            }
            Operation::Begin => self.transaction = Some(Vec::new()),
            Operation::Commit => self.transaction = None,
            Operation::Rollback => self.roll_back(),
            _ => {}
        }
        Ok(())
    }

    fn roll_back(&mut self) {
        for undo in self.transaction.take().unwrap_or_default().iter().rev() {
            Table::undo(undo);
        }
    }

    /// Keeps what was written for a rollback.
    fn remember(&mut self) {
        match &mut self.transaction {
            Some(transaction) => transaction.append(&mut self.written),
            None => self.written.clear(),
        }
    }

    /// Writes all rows, or none if one of them is refused.
    fn write(&mut self, table: &Arc<Table>, parameters: &[Value<'_>], replace: bool) -> Result<u64> {
        for fields in parameters.chunks(table.collection.fields.len()) {
            match self.write_row(table, fields, replace) {
                Ok(undo) => self.written.extend(undo),
                Err(error) => {
                    self.written.drain(..).rev().for_each(|undo| Table::undo(&undo));
                    return Err(error);
                }
            }
        }
        let rows = self.written.len() as u64;
        self.remember();
        Ok(rows)
    }

    fn write_row(&mut self, table: &Arc<Table>, fields: &[Value<'_>], replace: bool) -> Result<Option<Undo>> {
        let key = match table.collection.key.as_slice() {
            [one] => table.key(&mut self.key, &fields[*one..=*one])?,
            many => {
                let key: Vec<Value<'_>> = many.iter().map(|field| fields[*field]).collect();
                self.key.clear();
                self.key.extend_from_slice(table.key(&mut Vec::new(), &key)?);
                &self.key
            }
        };
        let row = row::pack(&mut self.row, key, fields.iter().copied());
        table.set(&row, |before| match before {
            Some(_) if !replace => {
                let message = format!("null: {} already has a row with this key", table.collection.name);
                Err(Error::new(ErrorKind::Server, message).code("DUPLICATE"))
            }
            _ => Ok(true),
        })
    }

    fn update(&mut self, table: &Arc<Table>, fields: &[usize], parameters: &[Value<'_>]) -> Result<u64> {
        let (new, key) = parameters.split_at(fields.len());
        let width = table.collection.fields.len();
        loop {
            let key = table.key(&mut self.key, key)?;
            let Some(before) = table.row(key) else { return Ok(0) };
            let rest = row::parts(&before).1;
            let row = row::pack(&mut self.row, key, changed(rest, width, fields, new));
            // If another client changed the row in between, try again with the current row.
            let undo = table.set(&row, |now| Ok(now.is_some_and(|now| Arc::ptr_eq(now, &before))))?;
            if undo.is_some() {
                self.written.extend(undo);
                self.remember();
                return Ok(1);
            }
        }
    }
}
