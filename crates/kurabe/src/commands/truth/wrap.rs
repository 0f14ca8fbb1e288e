//! Hooks around sessions: one whose client works hard for each request, one whose table has to be walked through.

use kurabe_core::Result;
use kurabe_core::around::{Around, Hook};
use kurabe_core::driver::{Driver, Prepared, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What is added to each request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Burden {
    /// The client computes for so long.
    Client(Duration),
    /// The server counts the rows of the collection first, as it would have to look at each to find one without an index.
    Table,
}

/// A driver with a burden.
pub(super) fn burdened(inner: Box<dyn Driver>, burden: Burden) -> Box<dyn Driver> {
    Box::new(Around::new(inner, move || Burdened { burden, counts: BTreeMap::new(), reply: Reply::new() }))
}

struct Burdened {
    burden: Burden,
    /// The count that goes before each operation.
    counts: BTreeMap<usize, Prepared>,
    reply: Reply,
}

impl Hook for Burdened {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let prepared = inner.prepare(operation)?;
        if let (Burden::Table, Operation::Get { collection, .. }) = (self.burden, operation) {
            let count = inner.prepare(&Operation::Count { collection: collection.clone() })?;
            self.counts.insert(prepared.0, count);
        }
        Ok(prepared)
    }

    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        if let Burden::Client(time) = self.burden {
            let began = Instant::now();
            while began.elapsed() < time {
                std::hint::spin_loop();
            }
        }
        if let Some(count) = self.counts.get(&prepared.0) {
            inner.execute(count, &[], &mut self.reply)?;
        }
        inner.execute(prepared, parameters, out)
    }

    fn release(&mut self, inner: &mut dyn Session, prepared: Prepared) -> Result<()> {
        if let Some(count) = self.counts.remove(&prepared.0) {
            inner.release(count)?;
        }
        inner.release(prepared)
    }
}
