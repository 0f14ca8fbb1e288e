//! The faults of the original experiments, injected: each must fail its trials, without results.
//!
//! An interceptor between the engine and `null:` misbehaves as the scripts and servers of the published experiments
//! did. The same run without it must pass: otherwise the tests would prove nothing.

use kurabe_core::axis::AxisValue;
use kurabe_core::collection::Collection;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::run::{Outcome, RunSpec, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::verification::{Proof, Verification};
use kurabe_core::{ErrorKind, Result};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::run::runner::Runner;
use kurabe_experiments::registry;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
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

struct Saboteur {
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
    fn new(lie: Lie, first_table: &Arc<Mutex<Option<Arc<Collection>>>>) -> Self {
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

/// A small run of the session experiment through the interceptor.
fn run(lie: Lie, layout: &str, operations: &[&str]) -> Vec<TrialRecord> {
    let experiment = registry::find("session").unwrap();
    let axes: BTreeMap<String, Vec<AxisValue>> = experiment
        .info()
        .axes
        .iter()
        .map(|axis| {
            let texts = match axis.name {
                "payload" => vec!["1k", "10k"],
                "layout" => vec![if layout == "expiring" { "blob" } else { layout }],
                "clients" => vec!["2"],
                "expiry" if layout == "expiring" => vec!["database"],
                _ => vec![axis.default[0]],
            };
            (axis.name.to_owned(), texts.into_iter().map(|text| axis.parse(text).unwrap()).collect())
        })
        .collect();
    let spec = RunSpec {
        axes,
        operations: operations.iter().map(|name| (*name).to_owned()).collect(),
        requests: operations.iter().map(|name| ((*name).to_owned(), 200)).collect(),
        // A session that expires is waited for.
        rounds: if layout == "expiring" { 1 } else { 2 },
        seed: 11,
        records: Some(50),
        ..RunSpec::new("session", ["null:"])
    };
    let inner = kurabe_drivers::registry::open(&TargetUrl::parse("null:").unwrap()).unwrap();
    let facts = inner.describe().unwrap();
    let first_table = Arc::default();
    let driver = Box::new(DriverLayer::new(inner, move || Saboteur::new(lie, &first_table)));
    let targets = [Target::new("null", driver, facts)];
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    Runner::new(&plan, "sabotage", &targets).trials().unwrap()
}

/// Every trial of the run must have failed by a mismatch, with a reason that contains `part`.
fn caught(lie: Lie, layout: &str, operations: &[&str], part: &str) {
    for trial in run(lie, layout, operations) {
        let Outcome::Failed { kind, reason, .. } = &trial.outcome else {
            panic!("{lie:?} was not detected: {trial:?}");
        };
        assert_eq!(*kind, ErrorKind::Mismatch, "{lie:?}: {reason}");
        assert!(reason.contains(part), "{lie:?}: {reason}");
    }
}

#[test]
fn without_fault_every_trial_has_results() {
    for layout in ["blob", "rows"] {
        let trials = run(Lie::Truth, layout, &["write", "read", "request"]);
        // Two payloads and the A/A control, three operations, two rounds.
        assert_eq!(trials.len(), 18);
        for trial in trials {
            let Outcome::Measured(figures) = &trial.outcome else { panic!("{trial:?}") };
            assert_eq!((figures.offered, figures.completed, figures.failed), (200, 200, 0));
            let warmup = 10;
            assert_eq!(figures.warmup, warmup);
            let verified = figures.verified.unwrap();
            if trial.operation == "read" {
                assert_eq!(verified, Verification { answers: 200 + warmup, ..Verification::default() });
            } else if trial.operation == "request" {
                assert_eq!(verified.how(), Proof::ReadBackLast, "{verified:?}");
                assert_eq!(verified.writes, 200 + warmup);
            } else {
                assert_eq!(verified.how(), Proof::ReadBackAll, "{verified:?}");
                assert_eq!((verified.writes, verified.counted), (200 + warmup, 200 + warmup));
            }
        }
    }
}

#[test]
fn dropped_last_piece_is_detected() {
    caught(Lie::DropsLastPiece, "rows", &["write"], "rows, but acknowledged");
}

#[test]
fn bytes_of_other_session_are_detected() {
    for layout in ["blob", "rows"] {
        caught(Lie::AnotherSession, layout, &["read"], "wrong content");
    }
}

#[test]
fn truncated_value_is_detected() {
    caught(Lie::Truncates, "blob", &["read"], "bytes instead of");
    caught(Lie::Truncates, "rows", &["read"], "bytes instead of");
}

#[test]
fn evicted_session_is_detected() {
    caught(Lie::Evicts, "blob", &["write"], "rows, but acknowledged");
}

#[test]
fn expired_session_that_comes_back_and_lost_change_are_detected() {
    for layout in ["blob", "rows", "expiring"] {
        caught(Lie::KeepsExpired, layout, &["request"], "had expired, and is served");
    }
    assert!(
        run(Lie::Truth, "expiring", &["request"])
            .iter()
            .all(|trial| matches!(trial.outcome, Outcome::Measured(_)))
    );
    caught(Lie::KeepsOld, "blob", &["request"], "wrong content");
}

#[test]
fn operation_that_is_never_sent_is_detected() {
    caught(Lie::NeverWrites, "blob", &["write"], "rows, but acknowledged");
    caught(Lie::NeverReads, "blob", &["read"], "is missing");
    caught(Lie::NeverReads, "rows", &["read"], "is missing");
}

#[test]
fn writes_reordered_after_reads_are_detected() {
    caught(Lie::WritesLater, "blob", &["read"], "the server counts");
}

#[test]
fn one_table_for_every_payload_is_detected() {
    let trials = run(Lie::OneTableForAll, "blob", &["read"]);
    let failed = trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Failed { .. })).count();
    assert!(failed > 0, "reads of two payloads from one table were not detected");
}

#[test]
fn panic_fails_only_its_trial() {
    // In a client's thread for reads; in the check after the trial for writes, which are read back.
    for trial in run(Lie::Panics, "blob", &["read", "write"]) {
        let Outcome::Failed { kind, reason, .. } = &trial.outcome else { panic!("{trial:?}") };
        assert_eq!(*kind, ErrorKind::Internal);
        assert!(reason.contains("planted"), "{reason}");
    }
}
