//! A failed load leaves nothing in the database, even if its transaction is still open.

use crate::common::{self, experiment, spec, target};
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::run::Outcome;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::plan::Plan;

/// Loads rows in a transaction that is never committed.
#[derive(Default)]
struct NeverCommits {
    loads: Vec<usize>,
}

impl Interceptor for NeverCommits {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let prepared = inner.prepare(operation)?;
        if matches!(operation, Operation::InsertMany { .. } | Operation::InsertEach { .. }) {
            self.loads.push(prepared.0);
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
        if !self.loads.contains(&prepared.0) {
            return inner.execute(prepared, parameters, out);
        }
        let begin = inner.prepare(&Operation::Begin)?;
        // The loader may have begun the transaction itself.
        let _ = inner.execute(&begin, &[], &mut Reply::new());
        inner.execute(prepared, parameters, out)?;
        Err(Error::new(ErrorKind::Timeout, "the answer to the load came late"))
    }
}

#[test]
fn failed_load_with_open_transaction_leaves_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("data.db").display());
    let open = || common::open(&url);
    let mut targets = [target("sqlite", Box::new(DriverLayer::new(open(), NeverCommits::default)))];
    let spec = spec("point-read", &[], "read", 10);
    let plan = Plan::new(experiment("point-read"), &spec, &targets).unwrap();
    let trials = common::trials(plan, &mut targets);
    let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { kind: ErrorKind::Timeout, .. });
    assert!(trials.iter().all(|trial| failed(&trial.outcome)), "{trials:?}");
    assert_eq!(open().namespace().unwrap().list().unwrap(), Vec::<String>::new());
}
