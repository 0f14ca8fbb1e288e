//! What reading and writing one row by its key costs the client, on all targets named, in turns, so that whatever
//! else the machine does meets all of them alike: CPU time of the client's thread and time on the clock.
//!
//! `cargo bench -p kurabe-drivers --bench point_read -- postgres://u@h/d 'postgres://u@h/d?client=driver'`

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

mod prelude;

use prelude::*;

const ROUNDS: usize = 25;

/// Bytes of a row's value, rows, reads per round, writes per round.
const SIZES: [(usize, usize, usize, usize); 3] =
    [(100, 10_000, 4_000, 0), (100_000, 200, 200, 20), (1_000_000, 40, 40, 5)];

struct Client {
    fixture: Fixture,
    session: Box<dyn Session>,
    get: Prepared,
    out: Reply,
}

fn main() {
    let urls = arguments();
    for (bytes, rows, reads, writes) in SIZES {
        let data: Vec<u8> = (0..bytes).map(|i| b'a' + (i * 7 % 26) as u8).collect();
        let mut clients: Vec<Client> =
            urls.iter().enumerate().map(|(n, url)| client(url, n, rows, &data)).collect();
        let mut found = vec![(Vec::new(), Vec::new()); clients.len()];
        for round in 0..=ROUNDS {
            for (Client { fixture, session, get, out }, (read, write)) in clients.iter_mut().zip(&mut found) {
                let read_cost = cost(ClockId::ThreadCPUTime, reads, || {
                    for n in 0..reads {
                        session.execute(get, &[Value::Int((n * 7_919 % rows) as i64)], out).unwrap();
                        assert_eq!(out.field_bytes(0, 0).map(<[u8]>::len), Some(bytes));
                    }
                });
                let collection = Arc::clone(&fixture.collection);
                let update = session.prepare(&Operation::Update { collection, fields: vec![1] }).unwrap();
                let write_cost = cost(ClockId::ThreadCPUTime, writes, || {
                    for n in 0..writes {
                        let row = [Value::Bytes(&data), Value::Int((n % rows) as i64)];
                        session.execute(&update, &row, out).unwrap();
                    }
                });
                session.release(update).unwrap();
                // The first round warms up.
                if round > 0 {
                    read.push(read_cost);
                    write.push(write_cost);
                }
            }
        }
        for (url, (read, write)) in urls.iter().zip(&found) {
            let ((cpu, wall), (write, write_least)) = (middle(read), (middle(write).0, least(write)));
            let cpu_least = least(read);
            let address = TargetUrl::parse(url).unwrap();
            let client = address.option("client").unwrap_or("lean");
            let way = if address.option("socket").is_some() { "socket" } else { "TCP" };
            println!(
                "{:>8} B {:<9} {client:<7} {way:<7} read: CPU {cpu:>8.2} µs (least {cpu_least:>7.2}), clock {wall:>8.2} µs; \
                 write: CPU {write:>8.2} µs (least {write_least:>7.2})",
                bytes, address.scheme
            );
        }
        for client in clients {
            client.session.close().unwrap();
            client.fixture.remove();
        }
    }
}

/// The least CPU: other programs only ever add to it.
fn least(costs: &[Cost]) -> f64 {
    sorted(costs.iter().map(|cost| cost.0))[0]
}

fn client(url: &str, n: usize, rows: usize, data: &[u8]) -> Client {
    let name = format!("kurabe_point_{n}");
    let fixture = Fixture::new(url, collection(&name, FieldType::Int, FieldType::LongBytes));
    let (mut session, insert) = fixture.worker(&fixture.insert());
    let mut out = Reply::new();
    once(&mut *session, &Operation::Begin, &[]);
    for id in 0..rows {
        session.execute(&insert, &[Value::Int(id as i64), Value::Bytes(data)], &mut out).unwrap();
    }
    once(&mut *session, &Operation::Commit, &[]);
    let get = session.prepare(&fixture.get()).unwrap();
    Client { fixture, session, get, out }
}
