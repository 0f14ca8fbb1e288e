//! A session of `null:`, which executes each operation immediately.

use super::row::{self, Row};
use super::table::{Table, Undo, View};
use super::{Store, supports};
use crate::prelude::*;
use crate::slots::{Slots, check_parameters};
use std::sync::Arc;

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

    /// Executes the requests one after the other.
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
}

/// Rolls back an open transaction.
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
            Operation::Insert { .. } => {
                self.write(table, parameters, false)?;
                out.set_affected(1);
            }
            Operation::Put { .. } => {
                self.write(table, parameters, true)?;
                out.set_affected(1);
            }
            Operation::InsertMany { rows, .. } | Operation::InsertEach { rows, .. } => {
                self.insert_all(table, parameters)?;
                out.set_affected(*rows as u64);
            }
            Operation::Update { fields, .. } => out.set_affected(self.update(table, fields, parameters)?),
            Operation::Delete { .. } => {
                let key = table.key(&mut self.key, parameters)?;
                let undo = table.take(key);
                out.set_affected(u64::from(undo.is_some()));
                self.remember(undo);
            }
            Operation::FindEqual { by, fields, .. } => table.find(by, parameters, fields, out)?,
            Operation::FindRange { by, fields, .. } => table.range(*by, parameters, fields, out)?,
            Operation::Count { .. } => {
                out.push_int(table.count() as i64);
                out.end_row();
            }
            // `Get` is handled by the caller; the others have no table.
            Operation::Get { .. }
            | Operation::Ping
            | Operation::Begin
            | Operation::Commit
            | Operation::Rollback
            | Operation::Page { .. }
            | Operation::Raw { .. } => {}
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

    fn remember(&mut self, undo: Option<Undo>) {
        if let (Some(transaction), Some(undo)) = (&mut self.transaction, undo) {
            transaction.push(undo);
        }
    }

    fn write(&mut self, table: &Arc<Table>, fields: &[Value<'_>], replace: bool) -> Result<()> {
        let undo = self.write_row(table, fields, replace)?;
        self.remember(undo);
        Ok(())
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

    fn insert_all(&mut self, table: &Arc<Table>, parameters: &[Value<'_>]) -> Result<()> {
        let mut done = Vec::new();
        for fields in parameters.chunks(table.collection.fields.len()) {
            match self.write_row(table, fields, false) {
                Ok(undo) => done.extend(undo),
                Err(error) => {
                    done.iter().rev().for_each(Table::undo);
                    return Err(error);
                }
            }
        }
        for undo in done {
            self.remember(Some(undo));
        }
        Ok(())
    }

    fn update(&mut self, table: &Arc<Table>, fields: &[usize], parameters: &[Value<'_>]) -> Result<u64> {
        let (new, key) = parameters.split_at(fields.len());
        let width = table.collection.fields.len();
        loop {
            let key = table.key(&mut self.key, key)?;
            let Some(before) = table.row(key) else { return Ok(0) };
            let rest = row::parts(&before).1;
            let values: Vec<Value<'_>> = (0..width)
                .map(|position| match fields.iter().position(|field| *field == position) {
                    Some(i) => new[i],
                    None => row::field(rest, width, position),
                })
                .collect();
            let row: Row = row::pack(&mut self.row, key, values.iter().copied());
            // If another client changed the row in between, try again with the current row.
            let undo = table.set(&row, |now| Ok(now.is_some_and(|now| Arc::ptr_eq(now, &before))))?;
            if undo.is_some() {
                self.remember(undo);
                return Ok(1);
            }
        }
    }
}
