//! Interceptors of sessions: one whose client computes before each request, one with a table scan before each.

use kurabe_core::Result;
use kurabe_core::driver::{Driver, Prepared, Session};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The work added to each request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Burden {
    /// The client computes for this time.
    Client(Duration),
    /// The server first scans the collection by a field without an index.
    Table,
}

/// A value of no row, so that the scan reads all rows and returns none.
const NOWHERE: Value<'static> = Value::Text("no row holds this");

/// A driver with such added work.
pub(super) fn burdened(inner: Box<dyn Driver>, burden: Burden) -> Box<dyn Driver> {
    Box::new(DriverLayer::new(inner, move || Burdened {
        burden,
        searches: BTreeMap::new(),
        reply: Reply::new(),
    }))
}

struct Burdened {
    burden: Burden,
    /// The search before each operation.
    searches: BTreeMap<usize, Prepared>,
    reply: Reply,
}

impl Interceptor for Burdened {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let prepared = inner.prepare(operation)?;
        if let (Burden::Table, Operation::Get { collection, fields }) = (self.burden, operation) {
            // Not a count: one engine counts with several threads, and waking them takes longer than their work.
            let collection = collection.clone();
            let search =
                Operation::FindEqual { by: fields.clone(), fields: collection.key.clone(), collection };
            self.searches.insert(prepared.0, inner.prepare(&search)?);
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
        if let Some(search) = self.searches.get(&prepared.0) {
            inner.execute(search, &[NOWHERE], &mut self.reply)?;
        }
        inner.execute(prepared, parameters, out)
    }

    fn release(&mut self, inner: &mut dyn Session, prepared: Prepared) -> Result<()> {
        if let Some(search) = self.searches.remove(&prepared.0) {
            inner.release(search)?;
        }
        inner.release(prepared)
    }
}
