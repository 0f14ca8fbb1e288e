//! An interceptor that misbehaves as the scripts and servers of the published experiments did.

use kurabe_core::Result;
use kurabe_core::collection::Collection;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::interceptor::Interceptor;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use std::sync::{Arc, Mutex};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// None: the control.
    Truth,
    /// A session split over rows is written without its last piece, as the original's splitting pattern did.
    DropsLastPiece,
    /// A read returns the previous session.
    AnotherSession,
    /// Long values are truncated, as the original's driver was configured to do.
    Truncates,
    /// One session in ten is discarded after it was acknowledged, as a full cache does.
    Evicts,
    /// Writes are acknowledged and never sent.
    NeverWrites,
    /// Statements are prepared and never executed, as the original's Oracle test did.
    NeverReads,
    /// Writes are acknowledged and sent after the next request.
    WritesLater,
    /// All cells share one table, so that every read size reads the same rows.
    OneTableForAll,
    /// Expired sessions are acknowledged as deleted, and stay.
    KeepsExpired,
    /// Changed sessions are acknowledged, and stay as they were.
    KeepsOld,
    /// A client thread panics during the trial.
    Panics,
}

pub(super) struct Saboteur {
    lie: Lie,
    first_table: Arc<Mutex<Option<Arc<Collection>>>>,
    operations: Vec<(usize, Operation)>,
    last: Option<Vec<Vec<Option<OwnedValue>>>>,
    postponed: Vec<(usize, Vec<OwnedValue>)>,
    executed: u64,
}

/// A value that can be kept.
#[derive(Clone, Debug)]
enum OwnedValue {
    Null,
    Int(i64),
    Time(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl OwnedValue {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(n) => Self::Int(n),
            Value::Time(n) => Self::Time(n),
            Value::Bool(truth) => Self::Int(i64::from(truth)),
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }

    fn lend(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Int(n) => Value::Int(*n),
            Self::Time(n) => Value::Time(*n),
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

/// The content of a reply, to be returned later or with changes.
fn rows(reply: &Reply) -> Vec<Vec<Option<OwnedValue>>> {
    (0..reply.rows())
        .map(|row| (0..reply.width()).map(|field| reply.field(row, field).map(OwnedValue::of)).collect())
        .collect()
}

fn fill(reply: &mut Reply, rows: &[Vec<Option<OwnedValue>>]) {
    reply.clear();
    for row in rows {
        for field in row {
            match field {
                Some(OwnedValue::Int(n)) => reply.push_int(*n),
                Some(OwnedValue::Time(n)) => reply.push_time(*n),
                Some(OwnedValue::Text(text)) => reply.push_bytes(text.as_bytes()),
                Some(OwnedValue::Bytes(bytes)) => reply.push_bytes(bytes),
                Some(OwnedValue::Null) | None => reply.push_null(),
            }
        }
        reply.end_row();
    }
}

impl Saboteur {
    pub(super) fn new(lie: Lie, first_table: &Arc<Mutex<Option<Arc<Collection>>>>) -> Self {
        Self {
            lie,
            first_table: Arc::clone(first_table),
            operations: Vec::new(),
            last: None,
            postponed: Vec::new(),
            executed: 0,
        }
    }

    fn operation(&self, prepared: &Prepared) -> Operation {
        self.operations
            .iter()
            .find(|(id, _)| *id == prepared.0)
            .map(|(_, operation)| operation.clone())
            .unwrap()
    }

    /// The collection of the first cell instead of any other, for reads.
    fn redirect(&self, operation: &Operation) -> Operation {
        let mut first = self.first_table.lock().unwrap();
        match operation {
            Operation::Get { collection, fields } => {
                let collection = Arc::clone(first.get_or_insert_with(|| Arc::clone(collection)));
                Operation::Get { collection, fields: fields.clone() }
            }
            other => other.clone(),
        }
    }
}

impl Interceptor for Saboteur {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let operation =
            if self.lie == Lie::OneTableForAll { self.redirect(operation) } else { operation.clone() };
        let prepared = inner.prepare(&operation)?;
        self.operations.push((prepared.0, operation));
        Ok(prepared)
    }

    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let operation = self.operation(prepared);
        self.executed += 1;
        let is_read = matches!(operation, Operation::Get { .. } | Operation::FindEqual { .. });
        let is_write = matches!(operation, Operation::Insert { .. } | Operation::InsertMany { .. });
        let written = match &operation {
            Operation::InsertMany { rows, .. } => *rows as u64,
            _ => 1,
        };
        // Loading is correct: the check after the trial must detect the fault, not that of the load.
        let in_trial = operation.collection().is_some_and(|collection| collection.name.ends_with("_w"));
        match (self.lie, &operation) {
            (Lie::Panics, _) if is_read => panic!("planted"),
            (Lie::DropsLastPiece, Operation::InsertMany { collection, rows }) if in_trial => {
                let fewer = Operation::InsertMany { collection: Arc::clone(collection), rows: rows - 1 };
                let kept = parameters.len() / rows * (rows - 1);
                if kept > 0 {
                    let prepared = inner.prepare(&fewer)?;
                    inner.execute(&prepared, &parameters[..kept], out)?;
                    inner.release(prepared)?;
                }
                out.clear();
                out.set_affected(written);
                Ok(())
            }
            (Lie::NeverWrites, _) if is_write && in_trial => {
                out.clear();
                out.set_affected(written);
                Ok(())
            }
            (Lie::KeepsExpired, Operation::Delete { .. } | Operation::Purge { .. })
            | (Lie::KeepsOld, Operation::Update { .. }) => {
                out.clear();
                out.set_affected(1);
                Ok(())
            }
            (Lie::WritesLater, _) if is_write => {
                self.postponed.push((prepared.0, parameters.iter().copied().map(OwnedValue::of).collect()));
                out.clear();
                out.set_affected(written);
                Ok(())
            }
            (Lie::NeverReads, _) if is_read => {
                out.clear();
                Ok(())
            }
            (Lie::AnotherSession, _) if is_read => {
                inner.execute(prepared, parameters, out)?;
                let now = rows(out);
                if let Some(mut before) = self.last.replace(now.clone()) {
                    // The timestamp stays right, so that only the bytes differ.
                    for (row, right) in before.iter_mut().zip(&now) {
                        row[1].clone_from(&right[1]);
                    }
                    fill(out, &before);
                }
                Ok(())
            }
            (Lie::Truncates, _) if is_read => {
                inner.execute(prepared, parameters, out)?;
                let mut cut = rows(out);
                for field in cut.iter_mut().flatten().flatten() {
                    if let OwnedValue::Bytes(bytes) = field {
                        bytes.truncate(bytes.len().saturating_sub(1));
                    }
                }
                fill(out, &cut);
                Ok(())
            }
            (Lie::Evicts, Operation::Insert { collection })
                if in_trial && self.executed.is_multiple_of(10) =>
            {
                inner.execute(prepared, parameters, out)?;
                let delete = inner.prepare(&Operation::Delete { collection: Arc::clone(collection) })?;
                let mut nobody = Reply::new();
                inner.execute(&delete, &parameters[..1], &mut nobody)?;
                inner.release(delete)
            }
            _ => inner.execute(prepared, parameters, out),
        }
    }

    fn pipeline(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        let mut all = parameters.chunks(parameters.len() / out.len()).zip(out);
        all.try_for_each(|(parameters, out)| self.execute(inner, prepared, parameters, out))
    }

    fn release(&mut self, inner: &mut dyn Session, prepared: Prepared) -> Result<()> {
        self.operations.retain(|(id, _)| *id != prepared.0);
        inner.release(prepared)
    }

    fn closing(&mut self, inner: &mut dyn Session) -> Result<()> {
        let mut nobody = Reply::new();
        for (id, parameters) in std::mem::take(&mut self.postponed) {
            let lent: Vec<Value<'_>> = parameters.iter().map(OwnedValue::lend).collect();
            inner.execute(&Prepared(id), &lent, &mut nobody)?;
        }
        Ok(())
    }
}
