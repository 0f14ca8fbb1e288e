//! Transfers of many rows on a database that loses, doubles or changes one row: the trial fails.

use crate::common::{self, open};
use kurabe_core::facts::Limit;
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::planned::Demand;
use kurabe_core::run::{CellRecord, Measurement, Outcome, RunSpec};
use kurabe_core::transfer::{Fetch, RowSink, Transfer};
use kurabe_core::value::Value;
use kurabe_core::verification::Proof;
use kurabe_core::{ErrorKind, Result};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: u64 = 1_000;
/// The key of the wrong row.
const WRONG: i64 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    LosesRead,
    DoublesRead,
    ChangesRead,
    /// A row that was never written.
    InventsRead,
    LosesWrite,
    ChangesWrite,
}

struct Faulty {
    fault: Fault,
    /// Rows are loaded before the first trial; only later ones are wrong.
    loaded: Arc<AtomicBool>,
}

fn is(fields: &[Value<'_>], key: i64) -> bool {
    fields.first() == Some(&Value::Int(key))
}

/// The row with another last byte of its text.
fn changed(fields: &[Value<'_>], row: &mut RowSink<'_>) -> Result<()> {
    let (Value::Text(_) | Value::Bytes(_)) = fields[1] else { panic!("{fields:?}") };
    let mut bytes = match fields[1] {
        Value::Text(text) => text.as_bytes().to_vec(),
        Value::Bytes(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    };
    *bytes.last_mut().unwrap() ^= 1;
    match fields[1] {
        Value::Text(_) => row(&[fields[0], Value::Text(std::str::from_utf8(&bytes).unwrap())]),
        _ => row(&[fields[0], Value::Bytes(&bytes)]),
    }
}

impl Interceptor for Faulty {
    fn read_row(&mut self, fields: &[Value<'_>], row: &mut RowSink<'_>) -> Result<()> {
        match self.fault {
            Fault::LosesRead if is(fields, WRONG) => Ok(()),
            Fault::ChangesRead if is(fields, WRONG) => changed(fields, row),
            Fault::DoublesRead if is(fields, WRONG) => row(fields).and_then(|()| row(fields)),
            Fault::InventsRead if is(fields, WRONG) => row(&[Value::Int(ROWS as i64 + 1), fields[1]]),
            _ => row(fields),
        }
    }

    fn write_row(&mut self, fields: &[Value<'_>], put: &mut RowSink<'_>) -> Result<()> {
        let measured = self.loaded.load(Ordering::Relaxed);
        match self.fault {
            Fault::LosesWrite if measured && is(fields, WRONG) => Ok(()),
            Fault::ChangesWrite if measured && is(fields, WRONG) => changed(fields, put),
            _ => {
                if is(fields, ROWS as i64) {
                    self.loaded.store(true, Ordering::Relaxed);
                }
                put(fields)
            }
        }
    }
}

fn target(fault: Fault) -> Target {
    let loaded = Arc::new(AtomicBool::new(false));
    let faulty = move || Faulty { fault, loaded: Arc::clone(&loaded) };
    common::target("sqlite", Box::new(DriverLayer::new(open("sqlite:"), faulty)))
}

fn spec(operation: &str, fetch: &[&str]) -> RunSpec {
    let experiment = common::experiment("bulk");
    let info = experiment.info;
    let mut axes = info.baseline(&[("rows", "1000"), ("row-bytes", "100")]).unwrap().alone();
    let of_fetch = info.axes.iter().find(|axis| axis.name == "fetch").unwrap();
    axes.insert("fetch".to_owned(), fetch.iter().map(|value| of_fetch.parse(value).unwrap()).collect());
    let operations = match operation {
        "" => info.operation_names(),
        one => vec![one.to_owned()],
    };
    RunSpec { axes, operations, ..RunSpec::new("bulk", ["sqlite:"]) }
}

fn plan(targets: &[Target], operation: &str, fetch: &[&str]) -> Plan {
    let experiment = common::experiment("bulk");
    let mut plan = Plan::new(experiment, &spec(operation, fetch), targets).unwrap();
    plan.retain(|cell| !cell.aa_control);
    plan.spec.rounds = 1;
    plan
}

fn outcome(fault: Fault, operation: &str) -> Outcome {
    let mut targets = [target(fault)];
    let plan = plan(&targets, operation, &["whole"]);
    let mut trials = common::trials(plan, &mut targets);
    assert_eq!(trials.len(), 1);
    trials.remove(0).outcome
}

#[test]
fn correct_rows_are_measured_and_every_one_is_compared() {
    for operation in ["read", "write"] {
        let Outcome::Measured(measured) = outcome(Fault::None, operation) else { panic!("{operation}") };
        let Measurement { completed, verified, metrics, .. } = *measured;
        let verified = verified.unwrap();
        assert_eq!(completed, ROWS);
        let value = |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value);
        assert_eq!(value("bytes"), Some(100_000.0));
        assert!(value("data per second").unwrap() > 0.0 && value("client CPU per MB").unwrap() > 0.0);
        if operation == "read" {
            assert_eq!((verified.how(), verified.answers), (Proof::Compared, ROWS));
        } else {
            assert_eq!((verified.how(), verified.writes), (Proof::ReadBackAll, ROWS));
            assert_eq!((verified.counted, verified.read_back), (ROWS, ROWS));
        }
    }
}

#[test]
fn one_wrong_row_fails_the_trial() {
    for (fault, operation, why) in [
        (Fault::LosesRead, "read", "row 500 is missing"),
        (Fault::DoublesRead, "read", "row 500 was returned twice"),
        (Fault::ChangesRead, "read", "row 500 was returned with the right length"),
        (Fault::InventsRead, "read", "row 1001 was returned and never written"),
        (Fault::LosesWrite, "write", "acknowledged 999 of 1000 written rows"),
        (Fault::ChangesWrite, "write", "read back: row 500 was returned with the right length"),
    ] {
        match outcome(fault, operation) {
            Outcome::Failed { kind: ErrorKind::Mismatch, reason, .. } => {
                assert!(reason.contains(why), "{fault:?}: {reason}");
            }
            other => panic!("{fault:?}: {other:?}"),
        }
    }
}

#[test]
fn operation_that_its_target_cannot_do_is_unavailable_and_the_other_is_measured() {
    let mut targets = [target(Fault::None)];
    let plan = plan(&targets, "", &["100", "whole"]);
    let cells = plan.records();
    let of = |fetch: usize| -> &CellRecord { &cells[fetch] };
    // SQLite has no round trips to fetch several rows in, but inserts of many rows.
    assert_eq!(of(0).unavailable, None);
    assert!(of(0).refusal("read").unwrap().contains("round trips") && of(0).refusal("write").is_none());
    assert!(of(1).refusal("read").is_none() && of(1).refusal("write").is_none());
    let trials = common::trials(plan, &mut targets);
    let mut made: Vec<(usize, &str)> =
        trials.iter().map(|trial| (trial.cell, trial.operation.as_str())).collect();
    made.sort_unstable();
    assert_eq!(made, [(0, "write"), (1, "read"), (1, "write")]);
    assert!(trials.iter().all(|trial| matches!(trial.outcome, Outcome::Measured(_))), "{trials:?}");
    // A cell without any operation that its target can do is unavailable as a whole.
    let reads = self::plan(&targets, "read", &["100", "whole"]);
    assert!(reads.cells[0].record.unavailable.as_deref().unwrap().contains("round trips"));
    assert!(reads.cells[0].record.unavailable_operations.contains_key("read"));
}

#[test]
fn limit_is_the_reason_where_one_way_is_not_supported_and_another_is_too_large() {
    let mut target = target(Fault::None);
    target.facts.limits.request_bytes = Some(Limit::new(1_000, "max_allowed_packet"));
    let reads = |fetch| Demand { transfers: vec![Transfer::Read(fetch)], ..Demand::default() };
    let unsupported = || reads(Fetch::Rows(100));
    let by = |bytes| Demand { request_bytes: bytes, ..reads(Fetch::Whole) };
    let refusal = |first: Demand, instead| target.refusal(&Demand { instead: vec![instead], ..first });
    for (first, instead) in [(unsupported(), by(2_000)), (by(2_000), unsupported())] {
        assert!(refusal(first, instead).unwrap().contains("max_allowed_packet"));
    }
    assert_eq!(refusal(unsupported(), by(1_000)), None);
    assert!(refusal(unsupported(), unsupported()).unwrap().contains("round trips"));
}
