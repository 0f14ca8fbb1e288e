//! What the tool itself costs per operation: the session experiment's reads on `null:`, one client, with histogram,
//! clock and verification. `cargo bench -p kurabe-engine` prints nanoseconds per operation, of which the requirement
//! is at most 150 at 1 kB; beside it, what the pair of clock reads costs on this machine, which nobody can save.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use kurabe_core::axis::Cell;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::{Dataset, Stop};
use kurabe_core::target::TargetUrl;
use kurabe_engine::plan::Target;
use kurabe_engine::runner::House;
use kurabe_engine::trial::Trial;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

const RUNS: usize = 7;

fn main() {
    println!("{:<28} {:>10} {:>10} {:>10}", "ns per operation", "min", "median", "verify");
    println!("{:<28} {:>10.1}", "a pair of clock reads", clock_pair());
    for payload in ["1k", "10k", "100k", "1m"] {
        for operation in ["read", "write"] {
            row(payload, operation);
        }
    }
}

fn row(payload: &str, operation: &str) {
    let experiment = kurabe_experiments::registry::find("session").unwrap();
    let info = experiment.info();
    let operation = info.operations.iter().find(|known| known.name == operation).unwrap();
    let cell = Cell::new(info.axes.iter().map(|axis| {
        let text = if axis.name == "payload" { payload } else { axis.default[0] };
        (axis.name.to_owned(), axis.parse(text).unwrap())
    }));
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse("null:").unwrap()).unwrap();
    let facts = driver.describe().unwrap();
    let target = Target { name: "null".to_owned(), driver, facts, claims: true };
    let workload = experiment.workload(&cell, &Dataset { seed: 1, records: None, slot: 0 }).unwrap();
    let mut house = House::open(&target, 0, 1, "bench").unwrap();
    workload.load(&mut *house.namespace, &mut *house.session).unwrap();
    let mut figures: Vec<(f64, f64)> = (0..RUNS)
        .map(|run| {
            workload.before(operation.name, &mut *house.namespace, &mut *house.session).unwrap();
            let trial = Trial {
                driver: &*target.driver,
                options: &ConnectOptions::default(),
                workload: &*workload,
                operation,
                // Writes are kept: not so many that memory is what is measured.
                stop: Stop {
                    requests: operation.writes.then_some(2_000),
                    duration: Some(Duration::from_millis(200)),
                },
                seed: run as u64,
                cancel: &AtomicBool::new(false),
                progress: &AtomicU64::new(0),
            };
            let measured =
                trial.run(|done| workload.after(operation.name, &mut *house.session, done)).unwrap();
            (1e9 / measured.ops_per_second(), measured.verify_ns_per_op)
        })
        .collect();
    figures.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!(
        "{:<28} {:>10.1} {:>10.1} {:>10.1}",
        format!("{} {payload}", operation.name),
        figures[0].0,
        figures[RUNS / 2].0,
        figures[RUNS / 2].1
    );
}

fn clock_pair() -> f64 {
    const PAIRS: u32 = 1_000_000;
    let began = Instant::now();
    for _ in 0..PAIRS {
        black_box((Instant::now(), Instant::now()));
    }
    began.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}
