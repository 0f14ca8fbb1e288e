//! Interleaved trials: the limits of servers are those of a group together, and all trials are observed.

use crate::common::{self, null, target};
use kurabe_core::axis::AxisValue;
use kurabe_core::driver::{Driver, Prepared, Session};
use kurabe_core::facts::Limit;
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::observation::{Endpoint, MonitorGuard, Observation, Observer};
use kurabe_core::operation::Operation;
use kurabe_core::run::{Measurement, Outcome, RunSpec, TrialRecord};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::Conditions;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that refuses more sessions at a time than it has room for, and keeps the largest number.
#[derive(Default)]
struct Capacity {
    sessions: AtomicU64,
    most: AtomicU64,
}

/// A session, from its first statement until it is dropped.
struct CountedSession(Option<Arc<Capacity>>, Arc<Capacity>, u64);

impl Interceptor for CountedSession {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        if self.0.is_none() {
            let room = self.0.insert(Arc::clone(&self.1));
            let now = 1 + room.sessions.fetch_add(1, Ordering::SeqCst);
            room.most.fetch_max(now, Ordering::SeqCst);
            if now > self.2 {
                return Err(Error::new(ErrorKind::Limit, "too many clients already"));
            }
        }
        inner.prepare(operation)
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        if let Some(room) = self.0.take() {
            room.sessions.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Two cells of eight clients each, interleaved in three rounds.
fn spec() -> RunSpec {
    let mut spec = common::spec("point-read", &[("clients", "8")], "read", 400);
    let statements = ["once", "per-request"].map(|word| AxisValue::Word(word.to_owned()));
    spec.axes.insert("statement".to_owned(), statements.into());
    RunSpec { rounds: 3, slice_ns: Some(1_000_000), ..spec }
}

fn measured(trials: &[TrialRecord]) -> Vec<&Measurement> {
    let measured = trials.iter().map(|trial| match &trial.outcome {
        Outcome::Measured(measured) => &**measured,
        Outcome::Failed { reason, .. } => panic!("{reason}: {trial:?}"),
    });
    measured.collect()
}

#[test]
fn group_has_no_more_clients_than_the_server_has_room_for() {
    for (most, statements, at_once) in
        [(16, u64::MAX, 8), (32, u64::MAX, 24), (100, 20, 16), (100, u64::MAX, 24)]
    {
        let room = Arc::new(Capacity::default());
        let own = Arc::clone(&room);
        let driver = DriverLayer::new(null(), move || CountedSession(None, Arc::clone(&own), most));
        let mut facts = driver.describe().unwrap();
        facts.limits.connections = Some(Limit::new(most, "max_connections"));
        facts.limits.prepared_statements = Some(Limit::new(statements, "max_prepared_stmt_count"));
        let mut targets = [Target::new("small", Box::new(driver), facts)];
        let experiment = common::experiment("point-read");
        let plan = Plan::new(experiment, &spec(), &targets).unwrap();
        let trials = common::trials(plan, &mut targets);
        // Two cells and the A/A control, three rounds.
        assert_eq!(measured(&trials).len(), 9);
        let interleaved = measured(&trials).iter().filter(|trial| trial.slices > 0).count();
        assert_eq!(
            interleaved,
            match at_once {
                8 => 0,
                16 => 4,
                _ => 6,
            },
            "{most}, {statements}"
        );
        let clients = room.most.load(Ordering::SeqCst);
        // Besides those that load and check.
        assert!((at_once..=at_once + 5).contains(&clients) && clients <= most, "{clients} of {most}");
    }
}

/// The slices of trials that write, in the rounds that are interleaved: of this many targets, with these values of an axis.
fn slices_of_writers(experiment: &str, targets: usize, axis: &str, values: [&str; 2]) -> Vec<u64> {
    let mut spec = common::spec(experiment, &[("clients", "1")], "write", 40);
    spec.axes.insert(axis.to_owned(), values.map(|word| AxisValue::Word(word.to_owned())).into());
    let urls = vec!["null:".to_owned(); targets];
    let spec = RunSpec { targets: urls, rounds: 3, slice_ns: Some(1_000_000), ..spec };
    let mut targets: Vec<Target> =
        (0..targets).map(|number| target(format!("null#{number}"), null())).collect();
    let plan = Plan::new(common::experiment(experiment), &spec, &targets).unwrap();
    let trials = common::trials(plan, &mut targets);
    let all = trials.iter().zip(measured(&trials)).filter(|(trial, _)| trial.round > 0);
    all.map(|(_, measured)| measured.slices).collect()
}

#[test]
fn writers_of_different_data_are_interleaved_and_those_of_the_same_are_not() {
    // Two layouts have collections of their own. In each of two rounds: both, and the A/A control.
    let layouts = slices_of_writers("session", 1, "layout", ["blob", "rows"]);
    assert!(layouts.len() == 6 && layouts.iter().all(|slices| *slices > 0), "{layouts:?}");
    // Two ways to prepare a statement write to the same records.
    let statements = slices_of_writers("point-write", 1, "statement", ["once", "per-request"]);
    assert_eq!(statements.iter().filter(|slices| **slices == 0).count(), 2, "{statements:?}");
    // Each is interleaved with that of another target.
    let statements = slices_of_writers("point-write", 2, "statement", ["once", "per-request"]);
    assert!(statements.len() == 12 && statements.iter().all(|slices| *slices > 0), "{statements:?}");
}

/// Sees servers of this many endpoints at a time.
struct CountingObserver(AtomicU64);

struct NoMonitor;

impl Observer for CountingObserver {
    fn begin(&self, _: &Endpoint, _: Option<u16>) -> Box<dyn MonitorGuard> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::new(NoMonitor)
    }
}

impl MonitorGuard for NoMonitor {
    fn end(self: Box<Self>) -> Observation {
        Observation { wall_ns: 1, ..Observation::default() }
    }
}

/// All interleaved trials that were observed are disturbed.
fn interleaved(trial: &Measurement) -> Option<String> {
    let observed = trial.slices > 0 && trial.observed_group.is_some();
    observed.then(|| "other processes used 40 % of the machine's CPU".to_owned())
}

#[test]
fn interleaved_trials_are_observed_together_and_made_again_if_disturbed() {
    let mut targets = [target("null", null())];
    let experiment = common::experiment("point-read");
    // Enough time of undisturbed trials that some of the others are made again.
    let spec = RunSpec { rounds: 12, ..spec() };
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    let counting = CountingObserver(AtomicU64::new(0));
    let (observer, check) = (Some(&counting as &dyn Observer), Some(interleaved as _));
    let conditions = Conditions { observer, interference_check: check, ..Conditions::default() };
    let trials = common::trials_under(plan, &mut targets, &conditions);
    for trial in measured(&trials) {
        let sliced = trial.slices > 0;
        assert_eq!((trial.observed.is_some(), trial.observed_group.is_some()), (!sliced, sliced));
    }
    let again: Vec<&TrialRecord> = trials.iter().filter(|trial| trial.rerun_reason.is_some()).collect();
    assert!(!again.is_empty() && again.iter().all(|trial| trial.round > 0), "{again:?}");
    // Three continuous trials, and each group of three once.
    let groups = trials.iter().filter(|trial| trial.round > 0).count() as u64 / 3;
    assert_eq!(counting.0.load(Ordering::Relaxed), 3 + groups);
}

/// How long a connection of a cold server is slow at first: longer than the tenth of its time that each trial warms up.
const COLD: Duration = Duration::from_millis(250);
/// What its first request takes more.
const COLDEST: Duration = Duration::from_millis(2);

/// The number of requests of a connection, and how long those took that were slower, by their numbers.
#[derive(Default)]
struct Slower(u64, Vec<(u64, Duration)>);

/// A connection whose requests take longer until it is warm, by less and less.
struct Cold(Option<Instant>, Slower, Arc<Mutex<Vec<Slower>>>);

impl Interceptor for Cold {
    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let now = Instant::now();
        let age = now - *self.0.get_or_insert(now);
        if let Some(left) = COLD.checked_sub(age) {
            std::thread::sleep(COLDEST.mul_f64(left.as_secs_f64() / COLD.as_secs_f64()));
            self.1.1.push((self.1.0, now.elapsed()));
        }
        self.1.0 += 1;
        inner.execute(prepared, parameters, out)
    }
}

impl Drop for Cold {
    fn drop(&mut self) {
        self.2.lock().unwrap().push(std::mem::take(&mut self.1));
    }
}

#[test]
fn slices_do_not_contain_the_time_in_which_a_server_is_slow_at_first() {
    let ended: Arc<Mutex<Vec<Slower>>> = Arc::default();
    let own = Arc::clone(&ended);
    let driver = DriverLayer::new(null(), move || Cold(None, Slower::default(), Arc::clone(&own)));
    let mut targets = [target("cold", Box::new(driver))];
    let experiment = common::experiment("point-read");
    let one = experiment.info.baseline(&[("clients", "1")]).unwrap().alone();
    let second = Some(1_000_000_000);
    let requests = BTreeMap::from([("read".to_owned(), u64::MAX / 4)]);
    let spec = RunSpec { axes: one, duration_ns: second, requests, slice_ns: Some(10_000_000), ..spec() };
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    let trials = common::trials(plan, &mut targets);
    let connections = ended.lock().unwrap();
    let (mut measured_slow, mut slow, mut sliced) = (Duration::ZERO, Duration::ZERO, 0);
    for trial in measured(&trials).into_iter().filter(|trial| trial.slices > 0) {
        let made = trial.warmup + trial.completed;
        let Slower(_, slower) = connections.iter().find(|one| one.0 == made).expect("its connection");
        let sum = |from: u64| -> Duration {
            slower.iter().filter(|(at, _)| *at >= from).map(|(_, took)| *took).sum()
        };
        measured_slow += sum(trial.warmup);
        slow += sum(0);
        sliced += 1;
    }
    assert!(slow > COLD / 2 * sliced, "{slow:?} in {sliced} trials");
    assert!(measured_slow < slow / 10, "{measured_slow:?} of {slow:?} was measured");
}
