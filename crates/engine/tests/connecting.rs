//! Clients on `null:` that connect to a server which refuses them late.

use crate::common::{self, null};
use kurabe_core::driver::{ConnectOptions, Prepared, Session};
use kurabe_core::experiment::{Dataset, Stop};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::trial::Trial;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts the clients that connect, and refuses the statement that each prepares first.
struct Refusing(Arc<AtomicU64>);

impl Interceptor for Refusing {
    fn prepare(&mut self, _: &mut dyn Session, _: &Operation) -> Result<Prepared> {
        self.0.fetch_add(1, Ordering::Relaxed);
        kurabe_reactor::sleep(Duration::from_millis(20));
        Err(Error::new(ErrorKind::Timeout, "the server did not answer"))
    }
}

#[test]
fn clients_that_wait_to_connect_do_not_once_another_has_failed() {
    let experiment = common::experiment("point-read");
    let info = experiment.info;
    let cell = info.baseline(&[("clients", "300"), ("statement", "once")]).unwrap();
    let cell = (experiment.plan)(&cell, &Dataset { seed: 1, records: Some(100), slot: 0 }).unwrap();
    let work = cell.trial_work();
    for threads in [ClientThreads::PerClient, ClientThreads::Count(1), ClientThreads::Count(3)] {
        let null = null();
        let mut session = null.connect(&ConnectOptions::default()).unwrap();
        let state = work.load(&mut *null.namespace().unwrap(), &mut *session).unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let own = Arc::clone(&count);
        let driver = DriverLayer::new(null, move || Refusing(Arc::clone(&own)));
        let options = ConnectOptions::default();
        let trial = Trial {
            stop: Stop { requests: Some(3_000), ..Stop::default() },
            threads: Some(threads),
            ..Trial::new(&driver, &options, &cell, &work, &info.operations[0])
        };
        let error = trial.run(&state, &mut *session).err().unwrap_or_else(|| panic!("it is refused")).error;
        assert!(error.to_string().contains("did not answer"), "{error}");
        // Those that connected at a time.
        let connected = count.load(Ordering::Relaxed);
        assert!((1..=64).contains(&connected), "{threads:?}: {connected}");
    }
}
