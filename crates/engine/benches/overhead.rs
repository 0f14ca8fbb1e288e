//! The tool's own cost per operation: the session experiment's reads on `null:`, one client, with histogram, clock
//! and verification. `cargo bench -p kurabe-engine` prints nanoseconds per operation; the limit is 150 for a read of
//! 1 kB. It also prints the time to find and copy the record in `null:`'s store (`answer`), to check one
//! reply with its clock read, and for a pair of clock reads.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::{Client, Dataset, Recorder, Stop};
use kurabe_core::planned::PlannedCell;
use kurabe_core::target::TargetUrl;
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::trial::Trial;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const RUNS: usize = 7;

fn main() {
    println!("{:<24} {:>10} {:>10} {:>10} {:>10}", "ns per operation", "min", "median", "check", "answer");
    println!("{:<24} {:>10.1}", "a pair of system clock reads", pair(Instant::now));
    println!("{:<24} {:>10.1}", "a pair of cycle counter reads", pair(quanta::Instant::now));
    for payload in ["1k", "10k", "100k", "1m"] {
        for operation in ["read", "write"] {
            row(payload, operation);
        }
    }
}

fn row(payload: &str, operation: &str) {
    let experiment = kurabe_experiments::registry::find("session").unwrap();
    let info = experiment.info;
    let operation = info.operations.iter().find(|known| known.name == operation).unwrap();
    let cell = info.baseline(&[("payload", payload)]).unwrap();
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse("null:").unwrap()).unwrap();
    let facts = driver.describe().unwrap();
    let target = Target::new("null", driver, facts);
    let cell = (experiment.plan)(&cell, &Dataset { seed: 1, records: None, slot: 0 }).unwrap();
    let work = cell.trial_work();
    let mut fixture = Fixture::open(&target, 0, 1, "bench").unwrap();
    let cancel = AtomicBool::new(false);
    fixture.load(&cell, &cancel, |namespace, session| work.load(namespace, session)).unwrap();
    let mut figures: Vec<(f64, f64)> = (0..RUNS)
        .map(|run| {
            fixture.before(&cell, operation.name, &cancel, |trial| work.before(trial)).unwrap();
            let (state, session) = fixture.lend(&cell).unwrap();
            let options = ConnectOptions::default();
            let trial = Trial {
                number: run as u64 + 1,
                // Writes are kept in memory, so few that memory does not affect the result.
                stop: Stop {
                    requests: operation.writes.then_some(2_000),
                    duration: Some(Duration::from_millis(200)),
                    min: None,
                },
                seed: run as u64,
                ..Trial::new(&*target.driver, &options, &cell, &work, operation)
            };
            let measured = trial.run(state, session).unwrap();
            (1e9 / measured.ops_per_second(), measured.verify_ns_per_op)
        })
        .collect();
    figures.sort_by(|a, b| a.0.total_cmp(&b.0));
    let answer = if operation.writes { f64::NAN } else { answer(&target, &mut fixture, &cell) };
    println!(
        "{:<24} {:>10.1} {:>10.1} {:>10.1} {answer:>10.1}",
        format!("{} {payload}", operation.name),
        figures[0].0,
        figures[RUNS / 2].0,
        figures[RUNS / 2].1
    );
}

/// The time of a read in `null:` itself: the transaction without the loop, and without checks.
fn answer(target: &Target, fixture: &mut Fixture, cell: &PlannedCell) -> f64 {
    const READS: u32 = 20_000;
    let mut session = target.driver.connect(&ConnectOptions::default()).unwrap();
    let (state, _) = fixture.lend(cell).unwrap();
    let mut transaction = cell
        .workload()
        .unwrap()
        .transaction("read", state, Client { index: 0, count: 1, seed: 5, trial: 1 })
        .unwrap();
    transaction.attach(&mut *session).unwrap();
    let (mut best, mut recorder) = (f64::MAX, Recorder::default());
    for _ in 0..RUNS {
        let began = Instant::now();
        for _ in 0..READS {
            transaction.prepare_input();
            transaction.run(&mut *session, &mut recorder).unwrap();
        }
        let with = began.elapsed();
        let began = Instant::now();
        for _ in 0..READS {
            transaction.prepare_input();
        }
        best = best.min((with.saturating_sub(began.elapsed())).as_nanos() as f64 / f64::from(READS));
    }
    best
}

fn pair<T>(now: impl Fn() -> T) -> f64 {
    const PAIRS: u32 = 1_000_000;
    let began = Instant::now();
    for _ in 0..PAIRS {
        black_box((now(), now()));
    }
    began.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}
