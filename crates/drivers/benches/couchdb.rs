//! What reading one document costs the client, through the driver and through the crate `ureq` as an application would
//! use it plainly (a request, its body as a `serde_json::Value`, the field as text), in turns, with 1 and 16 clients: CPU
//! time of the clients' threads.
//!
//! `cargo bench -p kurabe-drivers --bench couchdb -- couchdb://127.0.0.1:5984`

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::thread;

const ROUNDS: usize = 11;
const ROWS: i64 = 1_000;
/// Reads of all clients together, in one round.
const READS: usize = 1_600;

fn main() {
    let url = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).expect("the URL of a CouchDB");
    let target = TargetUrl::parse(&url).unwrap();
    let driver = kurabe_drivers::registry::open(&target).unwrap();
    let fields = vec![
        Field { name: "id", kind: FieldType::Int },
        Field { name: "data", kind: FieldType::Text { max: 100 } },
    ];
    let collection = Arc::new(Collection::new("kurabe_bench", fields, vec![0]));
    let mut namespace = driver.namespace().unwrap();
    namespace.create(&collection).unwrap();
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let data = "x".repeat(100);
    let rows: Vec<Value<'_>> = (0..ROWS).flat_map(|n| [Value::Int(n), Value::Text(&data)]).collect();
    let load = Operation::InsertEach { collection: collection.clone(), rows: ROWS as usize };
    let load = session.prepare(&load).unwrap();
    session.execute(&load, &rows, &mut Reply::new()).unwrap();

    let port = target.port.unwrap_or(5984);
    let base = format!("http://{}:{port}/kurabe_bench/%21", target.host.as_deref().unwrap_or("127.0.0.1"));
    for clients in [1, 16] {
        let [mut ours, mut plain, mut ratios] = [const { Vec::new() }; 3];
        for round in 0..=ROUNDS {
            // The first goes first every other time.
            let mut cost = [0.0; 2];
            for turn in [round % 2, 1 - round % 2] {
                cost[turn] = if turn == 0 {
                    together(clients, |reads| through_the_driver(driver.as_ref(), &collection, reads))
                } else {
                    together(clients, |reads| plainly(&base, reads))
                };
            }
            // The first round warms up.
            if round > 0 {
                ours.push(cost[0]);
                plain.push(cost[1]);
                ratios.push(cost[0] / cost[1]);
            }
        }
        let [ours, plain, ratio] = [ours, plain, ratios].map(middle);
        println!(
            "{clients:>2} clients: driver {ours:.1} µs, ureq plainly {plain:.1} µs of CPU per read; ratio {ratio:.2}"
        );
    }
    namespace.remove("kurabe_bench").unwrap();
    namespace.finish().unwrap();
}

/// Microseconds of CPU per read, of all clients' threads.
fn together(clients: usize, read: impl Fn(usize) -> f64 + Sync) -> f64 {
    let sum: f64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(|| read(READS / clients))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    sum / clients as f64
}

fn through_the_driver(driver: &dyn Driver, collection: &Arc<Collection>, reads: usize) -> f64 {
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let get = Operation::Get { collection: collection.clone(), fields: vec![1] };
    let get = session.prepare(&get).unwrap();
    let mut out = Reply::new();
    cost(reads, |n| {
        session.execute(&get, &[Value::Int(n)], &mut out).unwrap();
        assert_eq!(out.field_bytes(0, 0).map(<[u8]>::len), Some(100));
    })
}

fn plainly(base: &str, reads: usize) -> f64 {
    let agent = ureq::Agent::config_builder().proxy(None).build().new_agent();
    cost(reads, |n| {
        let mut response = agent.get(format!("{base}{:016x}", n as u64 ^ 1 << 63)).call().unwrap();
        let body = response.body_mut().read_to_vec().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(document["data"].as_str().unwrap().len(), 100);
    })
}

/// Microseconds of CPU per operation. The connection is made before.
fn cost(count: usize, mut operation: impl FnMut(i64)) -> f64 {
    let cpu = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
    };
    operation(0);
    let began = cpu();
    (0..count as i64).for_each(|n| operation(n * 7_919 % ROWS));
    (cpu() - began) / count as f64
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
