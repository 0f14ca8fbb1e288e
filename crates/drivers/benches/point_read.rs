//! What reading and writing one row by its key costs the client, on all targets named, in turns, so that whatever
//! else the machine does meets all of them alike: CPU time of the client's thread and time on the clock.
//!
//! `cargo bench -p kurabe-drivers --bench point_read -- postgres://u@h/d 'postgres://u@h/d?client=driver'`

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Namespace, Prepared, Session};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 25;

/// Bytes of a row's value, rows, reads per round, writes per round.
const SIZES: [(usize, usize, usize, usize); 3] =
    [(100, 10_000, 4_000, 0), (100_000, 200, 200, 20), (1_000_000, 40, 40, 5)];

struct Client {
    session: Box<dyn Session>,
    namespace: Box<dyn Namespace>,
    collection: Arc<Collection>,
    get: Prepared,
    out: Reply,
}

fn main() {
    let urls: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    for (bytes, rows, reads, writes) in SIZES {
        let data: Vec<u8> = (0..bytes).map(|i| b'a' + (i * 7 % 26) as u8).collect();
        let mut clients: Vec<Client> =
            urls.iter().enumerate().map(|(n, url)| client(url, n, rows, &data)).collect();
        let mut found = vec![(Vec::new(), Vec::new(), Vec::new()); clients.len()];
        for round in 0..=ROUNDS {
            for (client, (cpu, wall, write)) in clients.iter_mut().zip(&mut found) {
                let read_cost = cost(reads, |n| {
                    let id = (n * 7_919 % rows) as i64;
                    client.session.execute(&client.get, &[Value::Int(id)], &mut client.out).unwrap();
                    assert_eq!(client.out.field_bytes(0, 0).map(<[u8]>::len), Some(bytes));
                });
                let update =
                    Operation::Update { collection: Arc::clone(&client.collection), fields: vec![1] };
                let update = client.session.prepare(&update).unwrap();
                let write_cost = cost(writes, |n| {
                    let row = [Value::Bytes(&data), Value::Int((n % rows) as i64)];
                    client.session.execute(&update, &row, &mut client.out).unwrap();
                });
                client.session.release(update).unwrap();
                // The first round warms up.
                if round > 0 {
                    cpu.push(read_cost.0);
                    wall.push(read_cost.1);
                    write.push(write_cost.0);
                }
            }
        }
        for (url, (cpu, wall, write)) in urls.iter().zip(&mut found) {
            let [cpu, wall, write] = [cpu, wall, write].map(middle);
            // Other programs only ever add to it.
            let least = |values: &Vec<f64>| values.first().copied().unwrap_or(f64::NAN);
            let (cpu_least, write_least) = (least(cpu), least(write));
            let [cpu, wall, write] = [cpu, wall, write].map(|values| values[values.len() / 2]);
            let address = TargetUrl::parse(url).unwrap();
            let client = address.option("client").unwrap_or("lean");
            let way = if address.option("socket").is_some() { "socket" } else { "TCP" };
            println!(
                "{:>8} B {:<9} {client:<7} {way:<7} read: CPU {cpu:>8.2} µs (least {cpu_least:>7.2}), clock {wall:>8.2} µs; \
                 write: CPU {write:>8.2} µs (least {write_least:>7.2})",
                bytes, address.scheme
            );
        }
        for (n, mut client) in clients.into_iter().enumerate() {
            client.session.close().unwrap();
            client.namespace.remove(&format!("kurabe_point_{n}")).unwrap();
        }
    }
}

fn client(url: &str, n: usize, rows: usize, data: &[u8]) -> Client {
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
    let fields =
        vec![Field { name: "id", kind: FieldType::Int }, Field { name: "data", kind: FieldType::LongBytes }];
    let collection = Arc::new(Collection::new(format!("kurabe_point_{n}"), fields, vec![0]));
    let mut namespace = driver.namespace().unwrap();
    namespace.create(&collection).unwrap();
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let mut out = Reply::new();
    let insert = session.prepare(&Operation::Insert { collection: collection.clone() }).unwrap();
    let begin = session.prepare(&Operation::Begin).unwrap();
    let commit = session.prepare(&Operation::Commit).unwrap();
    session.execute(&begin, &[], &mut out).unwrap();
    for id in 0..rows {
        session.execute(&insert, &[Value::Int(id as i64), Value::Bytes(data)], &mut out).unwrap();
    }
    session.execute(&commit, &[], &mut out).unwrap();
    let get = Operation::Get { collection: collection.clone(), fields: vec![1] };
    let get = session.prepare(&get).unwrap();
    Client { session, namespace, collection, get, out }
}

/// Microseconds of CPU and of the clock per operation.
fn cost(count: usize, mut operation: impl FnMut(usize)) -> (f64, f64) {
    let cpu = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
    };
    let (began, cpu_began) = (Instant::now(), cpu());
    (0..count).for_each(&mut operation);
    let count = count.max(1) as f64;
    ((cpu() - cpu_began) / count, began.elapsed().as_secs_f64() * 1e6 / count)
}

/// Puts the middle one in the middle.
fn middle(values: &mut Vec<f64>) -> &Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}
