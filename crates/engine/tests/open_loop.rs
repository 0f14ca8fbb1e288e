//! The open loop: due transactions start on time, waiting shows in response times, and dropped transactions are
//! counted.

use crate::common::{self, null, target};
use kurabe_core::driver::{ConnectOptions, Prepared, Session};
use kurabe_core::experiment::{Client, Dataset, DatasetState, Recorder, Stop, Transaction, Workload};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::load::Arrivals;
use kurabe_core::planned::TrialWork;
use kurabe_core::run::Measurement;
use kurabe_core::threads::ClientThreads;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{ErrorKind, Result};
use kurabe_engine::Conditions;
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::trial::{Failure, LoadModel, Trial};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A slow server: a delay for every reply, or one for all sessions; and the threads of its clients.
#[derive(Clone, Copy, Default)]
struct Delays {
    each: Duration,
    /// The number of the reply at which the whole server stands still, and for how long.
    stall: Option<(u64, Duration)>,
    threads: Option<ClientThreads>,
    /// How long each client is held back when the measured phase begins.
    held: Duration,
}

/// Reads points, by clients that do not begin at once.
struct Held {
    inner: Arc<dyn Workload>,
    late: Duration,
    /// Set when all clients have warmed up.
    begins: Arc<AtomicBool>,
}

struct HeldTransaction {
    inner: Box<dyn Transaction>,
    late: Duration,
    begins: Arc<AtomicBool>,
}

impl Workload for Held {
    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>> {
        let inner = self.inner.transaction(operation, state, client)?;
        Ok(Box::new(HeldTransaction { inner, late: self.late, begins: Arc::clone(&self.begins) }))
    }
}

impl Transaction for HeldTransaction {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.inner.attach(session)
    }

    fn prepare_input(&mut self) {
        if self.begins.load(Ordering::Relaxed) {
            sleep(std::mem::take(&mut self.late));
        }
        self.inner.prepare_input();
    }

    fn run(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()> {
        self.inner.run(session, recorder)
    }

    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        self.inner.check(recorder)
    }
}

struct Slow {
    delays: Delays,
    answers: Arc<AtomicU64>,
    stalled: Arc<Mutex<()>>,
}

impl Interceptor for Slow {
    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let answer = self.answers.fetch_add(1, Ordering::Relaxed);
        {
            let _guard = self.stalled.lock().unwrap();
            if let Some((at, time)) = self.delays.stall
                && at == answer
            {
                sleep(time);
            }
        }
        if !self.delays.each.is_zero() {
            kurabe_reactor::sleep(self.delays.each);
        }
        inner.execute(prepared, parameters, out)
    }
}

/// Reads points for a time, or until a number of requests.
fn measure(delays: Delays, clients: u64, load_model: LoadModel, stop: Stop) -> Result<Measurement, Failure> {
    measure_until(delays, clients, load_model, stop, &AtomicBool::new(false))
}

fn measure_until(
    delays: Delays,
    clients: u64,
    load_model: LoadModel,
    stop: Stop,
    cancel: &AtomicBool,
) -> Result<Measurement, Failure> {
    measure_of("point-read", delays, clients, load_model, stop, cancel)
}

/// As [`measure`], for this experiment, on 100 records.
fn measure_of(
    name: &str,
    delays: Delays,
    clients: u64,
    load_model: LoadModel,
    stop: Stop,
    cancel: &AtomicBool,
) -> Result<Measurement, Failure> {
    let experiment = common::experiment(name);
    let info = experiment.info;
    let cell = info.baseline(&[("clients", &clients.to_string())]).unwrap();
    let fast = target("null", null());
    let cell = (experiment.plan)(&cell, &Dataset { seed: 1, records: Some(100), slot: 0 }).unwrap();
    let workload = cell.workload().unwrap();
    let mut fixture = Fixture::open(&fast, 0, 1, "open loop").unwrap();
    fixture.load(&cell, cancel, |namespace, session| workload.load(namespace, session)).unwrap();
    let (answers, stalled) = (Arc::default(), Arc::default());
    let driver = DriverLayer::new(fast.driver, move || Slow {
        delays,
        answers: Arc::clone(&answers),
        stalled: Arc::clone(&stalled),
    });
    let begins = Arc::default();
    let held = Held { inner: Arc::clone(&workload), late: delays.held, begins: Arc::clone(&begins) };
    let connected = || {
        begins.store(true, Ordering::Relaxed);
        Ok(())
    };
    let options = ConnectOptions::default();
    let workload: Arc<dyn Workload> = if delays.held.is_zero() { workload } else { Arc::new(held) };
    let work = TrialWork::Loop(workload);
    let trial = Trial {
        stop,
        load_model,
        seed: 3,
        conditions: Conditions { cancel, ..Conditions::default() },
        connected: Some(&connected),
        threads: delays.threads,
        ..Trial::new(&driver, &options, &cell, &work, &info.operations[0])
    };
    let (state, session) = fixture.lend(&cell).unwrap();
    trial.run(state, session)
}

fn open(rate: f64) -> LoadModel {
    LoadModel::Open { rate, arrivals: Arrivals::Even }
}

fn for_(ms: u64) -> Stop {
    Stop { duration: Some(Duration::from_millis(ms)), ..Stop::default() }
}

#[test]
fn all_due_transactions_are_served_over_the_time_of_the_load() {
    let figures = measure(Delays::default(), 4, open(2_000.0), for_(500)).unwrap();
    assert_eq!((figures.offered, figures.completed, figures.dropped), (1_000, 1_000, 0));
    assert!(figures.elapsed_ns >= 500_000_000, "{}", figures.elapsed_ns);
    let open = figures.open.unwrap();
    assert_eq!(open.response.count(), 1_000);
    assert!(open.lag.count() > 0, "no client was ever ready in time");
    assert!((figures.service.sum()) <= open.response.sum());
}

#[test]
fn client_that_begins_late_shows_it_in_every_response_time() {
    let delays = Delays { held: Duration::from_millis(60), ..Delays::default() };
    // One client, and several of which each is late.
    for clients in [1, 4] {
        let figures = measure(delays, clients, open(1_000.0), for_(200)).unwrap();
        let open = figures.open.unwrap();
        assert_eq!(open.response.count(), 200);
        // Clients may begin 2.1 ms after the gate opens: what was due before 50 ms waited for at least 7.
        let [upper_quarter, max] = [open.response.quantile(0.75), open.response.max()];
        assert!(upper_quarter >= Some(7_000_000), "{upper_quarter:?}");
        assert!(max >= Some(57_000_000), "{max:?}");
    }
}

#[test]
fn requests_or_time_end_open_loop() {
    let stop = Stop { requests: Some(300), duration: Some(Duration::from_secs(60)), min: None };
    let figures = measure(Delays::default(), 2, open(3_000.0), stop).unwrap();
    assert_eq!(figures.completed, 300);
    let figures =
        measure(Delays::default(), 2, open(3_000.0), Stop { requests: Some(300), ..Stop::default() })
            .unwrap();
    assert_eq!(figures.completed, 300);
}

#[test]
fn poisson_arrivals_come_at_the_rate_on_average() {
    let load_model = LoadModel::Open { rate: 4_000.0, arrivals: Arrivals::Poisson };
    let figures = measure(Delays::default(), 4, load_model, for_(500)).unwrap();
    // 2,000 expected, with a standard deviation of 45.
    assert!(figures.completed.abs_diff(2_000) < 270, "{}", figures.completed);
    assert_eq!(figures.completed + figures.dropped, figures.offered);
}

#[test]
fn warm_up_keeps_the_rate_of_the_trial() {
    let figures = measure(Delays::default(), 4, open(200.0), for_(1_000)).unwrap();
    // A tenth of a second. At full speed, there would be thousands.
    assert!((1..=20).contains(&figures.warmup), "{}", figures.warmup);
}

#[test]
fn warm_up_reaches_every_client() {
    let figures = measure(Delays::default(), 16, open(100.0), for_(1_000)).unwrap();
    assert!((10..=16).contains(&figures.warmup), "{}", figures.warmup);
}

#[test]
fn warm_up_leaves_records_for_measured_phase() {
    // A tenth of the time would change each of the 100 records.
    let cancel = AtomicBool::new(false);
    let figures = measure_of("point-write", Delays::default(), 1, open(200.0), for_(5_000), &cancel).unwrap();
    assert!(figures.warmup > 0 && figures.completed > figures.warmup, "{figures:?}");
    assert!(figures.completed + figures.warmup <= 100, "{figures:?}");
}

#[test]
fn warm_up_leaves_no_backlog_for_measured_phase() {
    // Ten times the capacity of two clients, so that most of the warm-up still waits when it ends.
    let delays = Delays { each: Duration::from_millis(20), ..Delays::default() };
    let figures = measure(delays, 2, open(1_000.0), for_(500)).unwrap();
    assert!(figures.warmup <= 12, "{}", figures.warmup);
    assert_eq!(figures.offered, 500);
}

#[test]
fn poisson_arrivals_at_an_idle_server_make_no_backlog() {
    let load_model = LoadModel::Open { rate: 2_000.0, arrivals: Arrivals::Poisson };
    let figures = measure(Delays::default(), 16, load_model, for_(1_000)).unwrap();
    assert_eq!(figures.open.unwrap().backlog, 0);
}

#[test]
fn stalled_server_increases_response_times() {
    let stall = Duration::from_millis(400);
    let delays = Delays { stall: Some((300, stall)), ..Delays::default() };
    // A number of requests, so that warm-up is short and the stall comes after it.
    let stop = Stop { requests: Some(1_000), ..Stop::default() };
    let figures = measure(delays, 4, open(1_000.0), stop).unwrap();
    assert_eq!((figures.offered, figures.dropped), (1_000, 0), "nothing is left out");
    let open = figures.open.as_ref().unwrap();
    // Transactions due in the four tenths of a second waited, the first ones nearly all that time.
    assert!(open.response.quantile(0.99).unwrap() > 350_000_000);
    assert!(open.response.quantile(0.75).unwrap() > 50_000_000);
    assert!(open.backlog > 300, "{}", open.backlog);
    // In a closed loop, only the few requests in progress would show the stall.
    assert!(figures.service.quantile(0.9).unwrap() < 50_000_000);
}

#[test]
fn unserved_transactions_are_dropped_and_counted_with_their_wait() {
    let delays = Delays { each: Duration::from_millis(10), ..Delays::default() };
    let figures = measure(delays, 2, open(5_000.0), for_(200)).unwrap();
    assert_eq!(figures.offered, 1_000);
    assert_eq!(figures.completed + figures.dropped, 1_000);
    assert!(figures.dropped > 500 && !figures.kept_up(), "{}", figures.dropped);
    let open = figures.open.unwrap();
    assert_eq!(open.response.count(), 1_000, "a dropped one counts with its waiting time");
    assert!(open.response.quantile(0.9).unwrap() > 900_000_000);
}

#[test]
fn user_can_stop_open_loop_before_a_distant_arrival() {
    let cancel = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let failure = std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(200));
            cancel.store(true, Ordering::Relaxed);
        });
        // One arrival in ten seconds.
        measure_until(Delays::default(), 2, open(0.1), for_(60_000), &cancel).unwrap_err()
    });
    assert_eq!(failure.error.kind(), ErrorKind::Interrupted);
    assert!(began.elapsed() < Duration::from_secs(20), "clients did not wake up");
}

#[test]
fn clients_that_share_threads_serve_drop_and_stop_as_others_do() {
    for threads in [1, 3] {
        let shared = Delays { threads: Some(ClientThreads::Count(threads)), ..Delays::default() };
        let figures = measure(shared, 16, open(2_000.0), for_(500)).unwrap();
        assert_eq!((figures.offered, figures.completed, figures.dropped), (1_000, 1_000, 0));
        assert_eq!((figures.threads, figures.clients), (threads, 16));
        assert!(figures.open.unwrap().lag.count() > 0, "no client was ever ready in time");
        assert!(figures.metrics.iter().any(|metric| metric.name == "queue p99"));

        // Sixteen clients that wait for 10 ms each can do 1,600 requests in a second, though they share a thread.
        let slow = Delays { each: Duration::from_millis(10), ..shared };
        let figures = measure(slow, 16, open(5_000.0), for_(200)).unwrap();
        assert_eq!((figures.offered, figures.completed + figures.dropped), (1_000, 1_000));
        let alone = measure(Delays { threads: None, ..slow }, 1, open(5_000.0), for_(200)).unwrap();
        assert!(figures.completed > 4 * alone.completed, "{} {}", figures.completed, alone.completed);

        let cancel = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let failure = std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(Duration::from_millis(100));
                cancel.store(true, Ordering::Relaxed);
            });
            measure_until(shared, 16, open(0.1), for_(60_000), &cancel).unwrap_err()
        });
        assert_eq!(failure.error.kind(), ErrorKind::Interrupted);
        assert!(began.elapsed() < Duration::from_secs(20), "clients did not wake up");
    }
}

#[test]
fn closed_loop_of_shared_threads_makes_the_requests_and_verifies_them() {
    let shared = Delays { threads: Some(ClientThreads::Count(2)), ..Delays::default() };
    let stop = Stop { requests: Some(3_000), ..Stop::default() };
    let figures = measure(shared, 100, LoadModel::Closed, stop).unwrap();
    assert_eq!((figures.offered, figures.completed, figures.threads), (3_000, 3_000, 2));
    assert_eq!(figures.verified.unwrap().answers, figures.completed + figures.warmup);
}
