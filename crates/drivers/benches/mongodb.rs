//! What reading and adding one document costs the client, by this driver and by its crate as everybody uses it (the
//! blocking API, `Collection<Document>`, `find_one` and `insert_one`), in turns, so that whatever else the machine does
//! meets both alike. CPU time is the whole process's: the crate works in threads of its own.
//!
//! `cargo bench -p kurabe-drivers --bench mongodb -- mongodb://127.0.0.1:27017/kurabe`

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use mongodb::options::ClientOptions;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const ROUNDS: usize = 15;
const ROWS: usize = 500;
const BYTES: usize = 1_000;

/// Reads or inserts once; given a number that no other call has.
type Work = Box<dyn FnMut(usize) + Send>;

struct Ours {
    driver: Box<dyn Driver>,
    collection: Arc<Collection>,
}

fn main() {
    let url = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).expect("the URL of a server");
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse(&url).unwrap()).unwrap();
    let fields = vec![
        Field { name: "id", kind: FieldType::Text { max: 40 } },
        Field { name: "data", kind: FieldType::LongBytes },
    ];
    let collection = Arc::new(Collection::new("kurabe_bench_mongodb", fields, vec![0]));
    let mut namespace = driver.namespace().unwrap();
    namespace.create(&collection).unwrap();
    let ours = Ours { driver, collection };
    let next = AtomicUsize::new(0);
    for n in 0..ROWS {
        ours.insert()(n);
    }
    next.store(ROWS, Ordering::Relaxed);
    for clients in [1, 16] {
        let mut options = ClientOptions::parse(&url).run().unwrap();
        options.max_pool_size = Some(64);
        let plain = mongodb::sync::Client::with_options(options).unwrap();
        let plain = plain.database(TargetUrl::parse(&url).unwrap().path.as_str());
        let plain = plain.collection::<Document>("kurabe_bench_mongodb");
        for read in [true, false] {
            let mut found = [Vec::new(), Vec::new()];
            for round in 0..=ROUNDS {
                for (way, costs) in found.iter_mut().enumerate() {
                    let workers: Vec<Work> = (0..clients)
                        .map(|_| match (way, read) {
                            (0, true) => ours.get(),
                            (0, false) => ours.insert(),
                            (_, true) => plain_get(&plain),
                            (_, false) => plain_insert(&plain),
                        })
                        .collect();
                    let cost = cost(workers, if read { 2_000 } else { 500 }, &next);
                    // The first round warms up.
                    if round > 0 {
                        costs.push(cost);
                    }
                }
            }
            let mut ratios: Vec<f64> = found[0].iter().zip(&found[1]).map(|(a, b)| a.0 / b.0).collect();
            ratios.sort_by(f64::total_cmp);
            let [ours, plain] = found.map(|costs| {
                let middle = |mut values: Vec<f64>| {
                    values.sort_by(f64::total_cmp);
                    values[values.len() / 2]
                };
                (middle(costs.iter().map(|c| c.0).collect()), middle(costs.iter().map(|c| c.1).collect()))
            });
            println!(
                "{clients:>2} clients, {}: CPU {:>6.1} µs (crate used plainly {:>6.1}; ratio {:.2}, from {:.2} to {:.2}), \
                 clock {:>6.1} µs ({:>6.1})",
                if read { "read  " } else { "insert" },
                ours.0,
                plain.0,
                ratios[ratios.len() / 2],
                ratios[0],
                ratios[ratios.len() - 1],
                ours.1,
                plain.1
            );
        }
    }
    namespace.remove("kurabe_bench_mongodb").unwrap();
    namespace.finish().unwrap();
}

impl Ours {
    fn get(&self) -> Work {
        let mut session = self.driver.connect(&ConnectOptions::default()).unwrap();
        let get = Operation::Get { collection: Arc::clone(&self.collection), fields: vec![1] };
        let get = session.prepare(&get).unwrap();
        let mut out = Reply::new();
        Box::new(move |n| {
            let id = format!("id {}", n * 7_919 % ROWS);
            session.execute(&get, &[Value::Text(&id)], &mut out).unwrap();
            assert_eq!(out.field_bytes(0, 0).map(<[u8]>::len), Some(BYTES));
        })
    }

    fn insert(&self) -> Work {
        let mut session = self.driver.connect(&ConnectOptions::default()).unwrap();
        let insert = Operation::Insert { collection: Arc::clone(&self.collection) };
        let insert = session.prepare(&insert).unwrap();
        let mut out = Reply::new();
        let data = vec![7; BYTES];
        Box::new(move |n| {
            let id = format!("id {n}");
            session.execute(&insert, &[Value::Text(&id), Value::Bytes(&data)], &mut out).unwrap();
        })
    }
}

fn plain_get(collection: &mongodb::sync::Collection<Document>) -> Work {
    let collection = collection.clone();
    Box::new(move |n| {
        let id = format!("id {}", n * 7_919 % ROWS);
        let found = collection.find_one(doc! { "_id": id }).run().unwrap().unwrap();
        assert_eq!(found.get_binary_generic("data").map(Vec::len).ok(), Some(BYTES));
    })
}

fn plain_insert(collection: &mongodb::sync::Collection<Document>) -> Work {
    let collection = collection.clone();
    Box::new(move |n| {
        let data = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; BYTES] };
        collection.insert_one(doc! { "_id": format!("id {n}"), "data": data }).run().unwrap();
    })
}

/// Microseconds of the process's CPU, and of the clock, per call of all workers together.
fn cost(workers: Vec<Work>, calls: usize, next: &AtomicUsize) -> (f64, f64) {
    let cpu = || {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
    };
    let share = calls / workers.len();
    let total = (share * workers.len()) as f64;
    let (began, cpu_began) = (Instant::now(), cpu());
    std::thread::scope(|scope| {
        for mut work in workers {
            scope.spawn(move || (0..share).for_each(|_| work(next.fetch_add(1, Ordering::Relaxed))));
        }
    });
    ((cpu() - cpu_began) / total, began.elapsed().as_secs_f64() * 1e6 / total)
}
