//! One wrong record among many: a server that loses, changes or reverts a single write or loaded record fails the
//! trial.

use crate::common::{self, null, target};
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::run::{Measurement, Outcome, RunSpec};
use kurabe_core::value::{Reply, Value};
use kurabe_core::verification::Proof;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::plan::Plan;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The fault of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// None, as a control.
    None,
    /// One write of the trial is acknowledged and not made.
    DropsWrite,
    /// One write of the trial is made with a different last byte.
    FlipsWrite,
    /// One update of the trial is reverted: the record has its older version.
    Restores,
    /// One loaded record has a different last byte.
    FlipsLoad,
    /// One loaded record is acknowledged and missing, and the server cannot count.
    SkipsLoad,
}

/// The number of the wrong write: in the middle, so that a check of the first and the last would miss it.
const WRITE: u64 = 1_018;
/// The number of the wrong loaded record.
const LOADED: u64 = 8;

struct Shared {
    lie: Lie,
    loading: AtomicBool,
    loaded: AtomicU64,
    writes: AtomicU64,
}

struct Liar {
    shared: Arc<Shared>,
    operations: HashMap<usize, Operation>,
}

/// The bytes of the last text or binary value, with a different last byte.
fn flipped(values: &[Value<'_>]) -> Option<(usize, Vec<u8>)> {
    let at = values.iter().rposition(|value| matches!(value, Value::Text(_) | Value::Bytes(_)))?;
    let mut bytes = match values[at] {
        Value::Text(text) => text.as_bytes().to_vec(),
        Value::Bytes(bytes) => bytes.to_vec(),
        _ => return None,
    };
    *bytes.last_mut()? ^= 1;
    Some((at, bytes))
}

/// These values with the one at this position replaced.
fn replaced<'v>(values: &[Value<'v>], at: usize, bytes: &'v [u8]) -> Vec<Value<'v>> {
    let mut values = values.to_vec();
    values[at] = match values[at] {
        Value::Text(_) => Value::Text(std::str::from_utf8(bytes).unwrap()),
        _ => Value::Bytes(bytes),
    };
    values
}

impl Liar {
    /// Executes a request that loads rows, one of them wrong.
    fn load(
        &self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        (operation, rows): (&Operation, u64),
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let before = self.shared.loaded.fetch_add(rows, Ordering::Relaxed);
        let collection = operation.collection().unwrap();
        let width = collection.fields.len();
        let Some(row) = (LOADED - 1).checked_sub(before).filter(|row| *row < rows) else {
            return inner.execute(prepared, parameters, out);
        };
        let fields = row as usize * width..(row as usize + 1) * width;
        if self.shared.lie == Lie::FlipsLoad {
            let (at, bytes) = flipped(&parameters[fields.clone()]).unwrap();
            return inner.execute(prepared, &replaced(parameters, fields.start + at, &bytes), out);
        }
        inner.execute(prepared, parameters, out)?;
        let key: Vec<Value<'_>> =
            collection.key.iter().map(|field| parameters[fields.start + field]).collect();
        let delete = inner.prepare(&Operation::Delete { collection: Arc::clone(collection) })?;
        inner.execute(&delete, &key, &mut Reply::new())?;
        inner.release(delete)
    }

    fn write(
        &self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        (operation, rows): (&Operation, u64),
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        if self.shared.writes.fetch_add(1, Ordering::Relaxed) + 1 != WRITE {
            return inner.execute(prepared, parameters, out);
        }
        match (self.shared.lie, operation) {
            (Lie::DropsWrite, _) => {
                out.clear();
                out.set_affected(rows);
                Ok(())
            }
            (Lie::FlipsWrite, _) => {
                let data = match operation {
                    // The key is last.
                    Operation::Update { fields, .. } => fields.len(),
                    _ => parameters.len(),
                };
                let (at, bytes) = flipped(&parameters[..data]).unwrap();
                inner.execute(prepared, &replaced(parameters, at, &bytes), out)
            }
            (Lie::Restores, Operation::Update { collection, fields }) => {
                let get = Operation::Get { collection: Arc::clone(collection), fields: fields.clone() };
                let get = inner.prepare(&get)?;
                let mut old = Reply::new();
                inner.execute(&get, &parameters[fields.len()..], &mut old)?;
                inner.release(get)?;
                inner.execute(prepared, parameters, out)?;
                let mut values: Vec<Value<'_>> = (0..fields.len())
                    .map(|field| match (old.field(0, field).unwrap(), parameters[field]) {
                        (Value::Bytes(bytes), Value::Text(_)) => {
                            Value::Text(std::str::from_utf8(bytes).unwrap())
                        }
                        (value, _) => value,
                    })
                    .collect();
                values.extend(&parameters[fields.len()..]);
                inner.execute(prepared, &values, &mut Reply::new())
            }
            _ => inner.execute(prepared, parameters, out),
        }
    }
}

impl Interceptor for Liar {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        if self.shared.lie == Lie::SkipsLoad && matches!(operation, Operation::Count { .. }) {
            return Err(Error::unsupported("this server does not count"));
        }
        let prepared = inner.prepare(operation)?;
        self.operations.insert(prepared.0, operation.clone());
        Ok(prepared)
    }

    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let operation = self.operations[&prepared.0].clone();
        let rows = match &operation {
            Operation::Insert { .. } | Operation::Update { .. } => 1,
            Operation::InsertMany { rows, .. } | Operation::InsertEach { rows, .. } => *rows as u64,
            _ => return inner.execute(prepared, parameters, out),
        };
        let loading = self.shared.loading.load(Ordering::Relaxed);
        match self.shared.lie {
            Lie::FlipsLoad | Lie::SkipsLoad if loading => {
                self.load(inner, prepared, (&operation, rows), parameters, out)
            }
            _ if loading => inner.execute(prepared, parameters, out),
            _ => self.write(inner, prepared, (&operation, rows), parameters, out),
        }
    }
}

/// One trial of one cell on `null:` with a faulty server.
fn trial(name: &str, lie: Lie, given: &[(&str, &str)], requests: u64, records: u64) -> Outcome {
    let experiment = common::experiment(name);
    let info = experiment.info;
    // Sessions that are written find an empty store.
    let reads = name == "session" && matches!(lie, Lie::FlipsLoad | Lie::SkipsLoad);
    let operation = info.operations.iter().find(|operation| operation.writes != reads).unwrap().name;
    let mut spec = RunSpec {
        duration_ns: (requests == 0).then_some(60_000_000_000),
        records: Some(records),
        seed: 6,
        ..common::spec(name, given, operation, requests)
    };
    spec.requests.retain(|_, requests| *requests > 0);
    let shared = Arc::new(Shared {
        lie,
        loading: AtomicBool::new(true),
        loaded: AtomicU64::new(0),
        writes: AtomicU64::new(0),
    });
    let first = AtomicBool::new(true);
    let driver = DriverLayer::new(null(), move || {
        // The first session loads; the clients connect after that.
        shared.loading.store(first.swap(false, Ordering::Relaxed), Ordering::Relaxed);
        Liar { shared: Arc::clone(&shared), operations: HashMap::new() }
    });
    let mut targets = [target("null", Box::new(driver))];
    // Without the A/A control: a single trial.
    let mut plan = Plan::new(experiment, &spec, &targets).unwrap();
    plan.retain(|cell| !cell.aa_control);
    assert_eq!(plan.cells[0].record.unavailable, None);
    let mut trials = common::trials(plan, &mut targets);
    assert_eq!(trials.len(), 1, "{trials:?}");
    trials.remove(0).outcome
}

/// Each experiment that writes, with its ways of writing.
const CASES: [(&str, &[(&str, &str)]); 7] = [
    ("point-write", &[("clients", "3")]),
    ("point-write", &[("clients", "3"), ("statement", "per-request")]),
    ("kv", &[("clients", "3")]),
    ("session", &[("payload", "10k"), ("clients", "3")]),
    ("session", &[("payload", "10k"), ("layout", "rows"), ("compress", "zstd"), ("clients", "3")]),
    ("webapp", &[("clients", "3")]),
    // One client, so that the same record is wrong in each run: one that is not changed again.
    ("cache-aside", &[("write-share", "90"), ("zipf", "0"), ("clients", "1")]),
];

/// Requests and records: enough that a sample would miss one record, and few enough to be fast.
fn size(name: &str) -> (u64, u64) {
    match name {
        "session" => (1_200, 1_500),
        // Few of its records are changed twice.
        "cache-aside" => (2_400, 50_000),
        _ => (4_000, 5_000),
    }
}

fn measured(name: &str, given: &[(&str, &str)], requests: u64, records: u64) -> Measurement {
    match trial(name, Lie::None, given, requests, records) {
        Outcome::Measured(measured) => *measured,
        Outcome::Failed { reason, .. } => panic!("{name} {given:?}: {reason}"),
    }
}

#[test]
fn correct_server_has_results_and_each_write_is_read_back() {
    for (name, given) in CASES {
        let (requests, records) = size(name);
        let measured = measured(name, given, requests, records);
        let verified = measured.verified.unwrap();
        let made = measured.completed + measured.warmup;
        // If records are changed more than once, the last version of each is read back.
        let how = if name == "cache-aside" { Proof::ReadBackLast } else { Proof::ReadBackAll };
        assert_eq!(verified.how(), how, "{name} {given:?}: {verified:?}");
        match name {
            "cache-aside" => assert_eq!(verified.writes + verified.answers, made),
            "webapp" => assert!(verified.writes > made && verified.answers == made, "{verified:?}"),
            _ => assert_eq!((verified.writes, verified.answers), (made, 0), "{name}"),
        }
        let inserts = if matches!(name, "point-write" | "cache-aside") { 0 } else { made };
        assert_eq!(verified.counted, inserts, "{name}: updates are not counted");
    }
}

#[test]
fn one_wrong_record_of_many_fails_the_trial() {
    for (name, given) in CASES {
        let updates = matches!(name, "point-write" | "cache-aside");
        for lie in [Lie::DropsWrite, Lie::FlipsWrite, Lie::Restores, Lie::FlipsLoad, Lie::SkipsLoad] {
            if lie == Lie::Restores && !updates {
                continue;
            }
            let (requests, records) = size(name);
            match trial(name, lie, given, requests, records) {
                Outcome::Measured(measured) => {
                    panic!("{name} {given:?} {lie:?} passed: {:?}", measured.verified)
                }
                Outcome::Failed { kind, reason, .. } => {
                    assert_eq!(kind, ErrorKind::Mismatch, "{name} {given:?} {lie:?}: {reason}");
                    let of_load = matches!(lie, Lie::FlipsLoad | Lie::SkipsLoad);
                    assert_eq!(
                        reason.contains("after loading"),
                        of_load,
                        "{name} {given:?} {lie:?}: {reason}"
                    );
                }
            }
        }
    }
}

#[test]
fn trial_ends_when_each_record_was_changed_once() {
    // Without a number of requests, a trial makes as many as it can.
    let exhausted = measured("point-write", &[("clients", "3")], 0, 1_000);
    assert_eq!(exhausted.exhausted, Some(1_000));
    let made = exhausted.completed + exhausted.warmup;
    // All clients end when the first one has no records left.
    assert!((300..=1_000).contains(&made), "{made}");
    assert_eq!(exhausted.verified.map(|verified| verified.read_back), Some(made));
    let enough = measured("point-write", &[("clients", "3")], 900, 1_000);
    assert_eq!((enough.exhausted, enough.completed), (None, 900));
}

#[test]
fn store_is_enlarged_for_known_requests_and_too_small_one_is_unavailable() {
    let targets = [target("null", null())];
    for (name, given, requests, needed) in [
        // Each client warms up with a twentieth of its requests.
        ("point-write", &[("clients", "4")][..], 400_000, Some(420_000)),
        ("point-write", &[("clients", "3"), ("pipeline", "16")], 1_000, None),
        // One request in twenty changes a user.
        ("webapp", &[("clients", "2")], 4_000_000, Some(210_000)),
        ("kv", &[("clients", "2")], 4_000_000, None),
    ] {
        let experiment = common::experiment(name);
        let operation = experiment.info.operations.iter().find(|operation| operation.writes).unwrap().name;
        let spec = RunSpec { records: None, ..common::spec(name, given, operation, requests) };
        let mut plan = Plan::draft(experiment, spec.clone(), &[false]).unwrap();
        assert_eq!(plan.enlarge_stores(&targets).unwrap(), needed, "{name}");
        plan.complete(&targets).unwrap();
        assert_eq!(plan.cells[0].record.unavailable, None, "{name}: they are enough");
        let Some(needed) = needed else { continue };
        let unavailable = |records| {
            let spec = RunSpec { records: Some(records), ..spec.clone() };
            Plan::new(experiment, &spec, &targets).unwrap().cells[0].record.unavailable.clone()
        };
        assert_eq!(unavailable(needed), None, "{name}");
        let why = unavailable(needed - 1).unwrap();
        assert!(why.contains(&format!("give --records {needed}")), "{why}");
    }
}
