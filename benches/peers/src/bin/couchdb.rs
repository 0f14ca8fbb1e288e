//! What reading one document costs the client, through the driver and through the crate `ureq` as an application would
//! use it plainly (a request, its body as a `serde_json::Value`, the field as text), in turns, with 1 and 16 clients: CPU
//! time of the process.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin couchdb -- couchdb://127.0.0.1:5984`

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../../crates/drivers/benches/prelude/mod.rs"]
mod prelude;

use prelude::*;
use std::sync::atomic::AtomicUsize;

const ROUNDS: usize = 11;
const ROWS: usize = 1_000;
/// Reads of all clients together, in one round.
const READS: usize = 1_600;

fn main() {
    let url = arguments().into_iter().next().expect("the URL of a CouchDB");
    let fixture =
        Fixture::new(&url, collection("kurabe_bench", FieldType::Int, FieldType::Text { max: 100 }));
    let data = "x".repeat(100);
    let rows: Vec<Value<'_>> = (0..ROWS as i64).flat_map(|n| [Value::Int(n), Value::Text(&data)]).collect();
    let load = Operation::InsertEach { collection: fixture.collection.clone(), rows: ROWS };
    once(&mut *fixture.session(), &load, &rows);

    let target = TargetUrl::parse(&url).unwrap();
    let port = target.port.unwrap_or(5984);
    let base = format!("http://{}:{port}/kurabe_bench/%21", target.host.as_deref().unwrap_or("127.0.0.1"));
    for clients in [1, 16] {
        let next = AtomicUsize::new(0);
        let found = in_turns(ROUNDS, |way| {
            let worker = |_| {
                let mut work = if way == 0 { through_the_driver(&fixture) } else { plainly(&base) };
                // Connects.
                work(0);
                work
            };
            together((0..clients).map(worker).collect(), READS, &next)
        });
        let [ours, plain] = [&found[0], &found[1]].map(|costs| middle(costs).0);
        let ratio = ratios(&found)[ROUNDS / 2];
        println!(
            "{clients:>2} clients: driver {ours:.1} µs, ureq plainly {plain:.1} µs of CPU per read; ratio {ratio:.2}"
        );
    }
    fixture.remove();
}

/// The id of the row that call `n` reads.
fn id(n: usize) -> i64 {
    (n * 7_919 % ROWS) as i64
}

fn through_the_driver(fixture: &Fixture) -> Work {
    let (mut session, get) = fixture.worker(&fixture.get());
    let mut out = Reply::new();
    Box::new(move |n| {
        session.execute(&get, &[Value::Int(id(n))], &mut out).unwrap();
        assert_eq!(out.field_bytes(0, 0).map(<[u8]>::len), Some(100));
    })
}

fn plainly(base: &str) -> Work {
    let agent = ureq::Agent::config_builder().proxy(None).build().new_agent();
    let base = base.to_owned();
    Box::new(move |n| {
        let mut response = agent.get(format!("{base}{:016x}", id(n) as u64 ^ 1 << 63)).call().unwrap();
        let body = response.body_mut().read_to_vec().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(document["data"].as_str().unwrap().len(), 100);
    })
}
