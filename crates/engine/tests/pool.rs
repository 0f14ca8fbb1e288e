//! A connection pool on `null:`: all clients share it, and a lost connection does not block them.

use crate::common::{self, null};
use kurabe_core::driver::{ConnectOptions, Prepared, Session};
use kurabe_core::experiment::{Dataset, Stop};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::metric::WAIT;
use kurabe_core::operation::Operation;
use kurabe_core::run::Measurement;
use kurabe_core::threads::ClientThreads;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::trial::{Failure, Trial};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[derive(Default)]
struct Counts {
    opened: AtomicU64,
    closed: AtomicU64,
    prepared: AtomicU64,
    released: AtomicU64,
    requests: AtomicU64,
    /// The request that loses its connection; 0: none.
    lost_at: AtomicU64,
    panics: AtomicBool,
}

/// Counts connections, and loses one after that many requests.
struct Counted(Arc<Counts>);

impl Counted {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.opened.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counts))
    }
}

impl Interceptor for Counted {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        self.0.prepared.fetch_add(1, Ordering::Relaxed);
        inner.prepare(operation)
    }

    fn prepare_literal(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        self.0.prepared.fetch_add(1, Ordering::Relaxed);
        inner.prepare_literal(operation)
    }

    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let request = 1 + self.0.requests.fetch_add(1, Ordering::Relaxed);
        // Long enough for others to wait meanwhile.
        kurabe_reactor::sleep(Duration::from_micros(200));
        if request == self.0.lost_at.load(Ordering::Relaxed) {
            assert!(!self.0.panics.load(Ordering::Relaxed), "the driver panicked");
            return Err(Error::new(ErrorKind::ConnectionLost, "the server closed the connection"));
        }
        inner.execute(prepared, parameters, out)
    }

    fn release(&mut self, inner: &mut dyn Session, prepared: Prepared) -> Result<()> {
        self.0.released.fetch_add(1, Ordering::Relaxed);
        inner.release(prepared)
    }

    fn closing(&mut self, _: &mut dyn Session) -> Result<()> {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Each client has a thread, or they share some.
const THREADS: [ClientThreads; 3] =
    [ClientThreads::PerClient, ClientThreads::Count(1), ClientThreads::Count(3)];

/// A trial of `connect` with a pool of this size and eight clients.
fn trial(
    size: &str,
    lost_at: u64,
    panics: bool,
    threads: ClientThreads,
) -> (Result<Measurement, Failure>, Arc<Counts>) {
    let experiment = common::experiment("connect");
    let info = experiment.info;
    let cell = info.baseline(&[("connection", "pool"), ("pool", size), ("clients", "8")]).unwrap();
    let cell = (experiment.plan)(&cell, &Dataset { seed: 1, records: Some(100), slot: 0 }).unwrap();
    let work = cell.trial_work();
    let null = null();
    let mut session = null.connect(&ConnectOptions::default()).unwrap();
    let state = work.load(&mut *null.namespace().unwrap(), &mut *session).unwrap();
    let counts = Arc::new(Counts::default());
    counts.lost_at.store(lost_at, Ordering::Relaxed);
    counts.panics.store(panics, Ordering::Relaxed);
    let shared = Arc::clone(&counts);
    let driver = DriverLayer::new(null, move || Counted::new(&shared));
    let options = ConnectOptions::default();
    let trial = Trial {
        stop: Stop { requests: Some(400), ..Stop::default() },
        threads: Some(threads),
        ..Trial::new(&driver, &options, &cell, &work, &info.operations[0])
    };
    (trial.run(&state, &mut *session), counts)
}

#[test]
fn all_clients_share_pool_connections_and_release_their_statements() {
    let sizes = [("1", 1), ("3", 3), ("8", 8)];
    for ((size, connections), threads) in
        sizes.into_iter().flat_map(|size| THREADS.map(|threads| (size, threads)))
    {
        let (measured, counts) = trial(size, 0, false, threads);
        let measured = measured.unwrap_or_else(|failure| panic!("{}", failure.error));
        assert_eq!((measured.clients, measured.completed), (8, 400));
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        assert_eq!((count(&counts.opened), count(&counts.closed)), (connections, connections));
        assert_eq!(count(&counts.prepared), measured.completed + measured.warmup);
        assert_eq!(count(&counts.released), count(&counts.prepared));
        // A busy machine may add a metric of starved clients.
        let wait = measured.metrics.iter().find(|metric| metric.name == WAIT.name);
        let wait = wait.unwrap_or_else(|| panic!("{:?}", measured.metrics));
        if connections == 1 {
            // On average, seven other waiting clients are served first.
            assert!(wait.value > 200_000.0, "{wait:?}");
        }
    }
}

#[test]
fn lost_connection_fails_trial_with_its_reason_and_blocks_no_client() {
    for (size, threads) in ["1", "3"].into_iter().flat_map(|size| THREADS.map(|threads| (size, threads))) {
        // In the warm-up, and later.
        for lost_at in [3, 100] {
            let (measured, _) = trial(size, lost_at, false, threads);
            let failure = measured.expect_err("a connection was lost");
            assert_eq!(failure.error.kind(), ErrorKind::ConnectionLost, "{}", failure.error);
            let (measured, _) = trial(size, lost_at, true, threads);
            let failure = measured.expect_err("a client panicked");
            assert!(failure.error.to_string().contains("panicked"), "{}", failure.error);
        }
    }
}
