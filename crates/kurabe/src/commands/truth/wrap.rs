//! Drivers around drivers: one whose client works hard for each request, one whose table has to be walked through.

use kurabe_core::Result;
use kurabe_core::driver::{ConnectOptions, Driver, Namespace, Prepared, ServerFacts, Session, Support};
use kurabe_core::observation::Endpoint;
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
pub(super) struct Burdened {
    pub(super) inner: Box<dyn Driver>,
    pub(super) burden: Burden,
}

impl Driver for Burdened {
    fn describe(&self) -> Result<ServerFacts> {
        self.inner.describe()
    }

    fn supports(&self, operation: &Operation) -> Support {
        self.inner.supports(operation)
    }

    fn prepared_statements(&self) -> Support {
        self.inner.prepared_statements()
    }

    fn pipelining(&self) -> Support {
        self.inner.pipelining()
    }

    fn endpoint(&self) -> Endpoint {
        self.inner.endpoint()
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let inner = self.inner.connect(options)?;
        Ok(Box::new(BurdenedSession {
            inner,
            burden: self.burden,
            counts: BTreeMap::new(),
            reply: Reply::new(),
        }))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        self.inner.namespace()
    }
}

struct BurdenedSession {
    inner: Box<dyn Session>,
    burden: Burden,
    /// The count that goes before each operation.
    counts: BTreeMap<usize, Prepared>,
    reply: Reply,
}

impl Session for BurdenedSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        let prepared = self.inner.prepare(operation)?;
        if let (Burden::Table, Operation::Get { collection, .. }) = (self.burden, operation) {
            let count = self.inner.prepare(&Operation::Count { collection: collection.clone() })?;
            self.counts.insert(prepared.0, count);
        }
        Ok(prepared)
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        if let Burden::Client(time) = self.burden {
            let began = Instant::now();
            while began.elapsed() < time {
                std::hint::spin_loop();
            }
        }
        if let Some(count) = self.counts.get(&prepared.0) {
            self.inner.execute(count, &[], &mut self.reply)?;
        }
        self.inner.execute(prepared, parameters, out)
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        if let Some(count) = self.counts.remove(&prepared.0) {
            self.inner.release(count)?;
        }
        self.inner.release(prepared)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}
