//! The measuring loop does not allocate memory per operation.

use crate::common::{self, null, target};
use allocation_counter::measure;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::{Before, Client, Dataset, Recorder};
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_stats::Histogram;
use std::time::Instant;

/// Allocations of this many session reads, after a warm-up of thousands.
fn allocations_of(reads: u64, experiment: &str, axes: &[(&str, &str)]) -> u64 {
    let experiment = common::experiment(experiment);
    let cell = experiment.info.baseline(axes).unwrap();
    let target = target("null", null());
    let cell = (experiment.plan)(&cell, &Dataset { seed: 1, records: None, slot: 0 }).unwrap();
    let workload = cell.workload().unwrap();
    let mut fixture = Fixture::open(&target, 0, 1, "test").unwrap();
    let (namespace, session) = fixture.connections().unwrap();
    let mut state = workload.load(namespace, session).unwrap();
    workload.before(Before { operation: "read", state: &mut state, namespace, session }).unwrap();
    let mut session = target.driver.connect(&ConnectOptions::default()).unwrap();
    let mut transaction =
        workload.transaction("read", &state, Client { index: 0, count: 1, seed: 3, trial: 1 }).unwrap();
    transaction.attach(&mut *session).unwrap();
    let (mut histogram, mut recorder) = (Histogram::new(), Recorder::default());
    let mut work = |times: u64| {
        for _ in 0..times {
            transaction.prepare_input();
            let began = Instant::now();
            transaction.run(&mut *session, &mut recorder).unwrap();
            histogram.record(began.elapsed().as_nanos() as u64);
            transaction.check(&mut recorder).unwrap();
        }
    };
    // Buffers reach their size, and `null:` takes its snapshot of the store, which has no more writes.
    work(5_000);
    measure(|| work(reads)).count_total
}

#[test]
fn thousand_reads_allocate_nothing() {
    assert_eq!(allocations_of(1_000, "session", &[]), 0);
    assert_eq!(allocations_of(1_000, "session", &[("compress", "zstd")]), 0);
    assert_eq!(allocations_of(1_000, "point-read", &[]), 0);
    assert_eq!(allocations_of(1_000, "point-read", &[("pipeline", "16")]), 0);
}
