//! What reading one row by its key costs the client, by Kurabe's client and by the crate `mysql` or `postgres` used
//! plainly (a prepared statement, the field as bytes), in turns: CPU time of the client's thread and time on the clock.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin point_read -- postgres://u@h/d mysql://u@h/d`

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../../crates/drivers/benches/prelude/mod.rs"]
mod prelude;

use mysql::prelude::Queryable as _;
use prelude::*;

const ROUNDS: usize = 25;
const TABLE: &str = "kurabe_bench_point";

/// Bytes of a row's value, rows, reads per round.
const SIZES: [(usize, usize, usize); 3] = [(100, 10_000, 4_000), (100_000, 200, 200), (1_000_000, 40, 40)];

/// Reads the row with this id, and gives the length of its value.
type Read = Box<dyn FnMut(i64) -> usize>;

fn main() {
    for url in arguments() {
        for (bytes, rows, reads) in SIZES {
            let fixture = Fixture::new(&url, collection(TABLE, FieldType::Int, FieldType::LongBytes));
            fill(&fixture, rows, &vec![7; bytes]);
            let mut ways = [ours(&fixture), plainly(&url)];
            let found = in_turns(ROUNDS, |way| {
                cost(ClockId::ThreadCPUTime, reads, || {
                    for n in 0..reads {
                        assert_eq!(ways[way]((n * 7_919 % rows) as i64), bytes);
                    }
                })
            });
            let [ours, plain] = [&found[0], &found[1]].map(|costs| middle(costs));
            let ratios = ratios(&found);
            let scheme = TargetUrl::parse(&url).unwrap().scheme;
            println!(
                "{bytes:>8} B {scheme:<9}: CPU {:>7.2} µs (crate used plainly {:>7.2}; ratio {:.2}, from {:.2} to {:.2}), \
                 clock {:>7.2} µs ({:>7.2})",
                ours.0,
                plain.0,
                ratios[ratios.len() / 2],
                ratios[0],
                ratios[ratios.len() - 1],
                ours.1,
                plain.1
            );
            drop(ways);
            fixture.remove();
        }
    }
}

fn fill(fixture: &Fixture, rows: usize, data: &[u8]) {
    let (mut session, insert) = fixture.worker(&fixture.insert());
    let mut out = Reply::new();
    once(&mut *session, &Operation::Begin, &[]);
    for id in 0..rows {
        session.execute(&insert, &[Value::Int(id as i64), Value::Bytes(data)], &mut out).unwrap();
    }
    once(&mut *session, &Operation::Commit, &[]);
}

fn ours(fixture: &Fixture) -> Read {
    let (mut session, get) = fixture.worker(&fixture.get());
    let mut out = Reply::new();
    Box::new(move |id| {
        session.execute(&get, &[Value::Int(id)], &mut out).unwrap();
        out.field_bytes(0, 0).unwrap().len()
    })
}

fn plainly(url: &str) -> Read {
    let (scheme, rest) = url.split_once(':').expect("the URL of a server");
    if scheme.starts_with("postgres") {
        let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
        let get = client.prepare(&format!("SELECT data FROM {TABLE} WHERE id = $1")).unwrap();
        return Box::new(move |id| client.query_one(&get, &[&id]).unwrap().get::<_, &[u8]>(0).len());
    }
    let options = mysql::Opts::from_url(&format!("mysql:{rest}")).unwrap();
    // Otherwise the crate replaces a connection to a local port by one to the Unix socket.
    let mut connection = mysql::Conn::new(mysql::OptsBuilder::from_opts(options).prefer_socket(false)).unwrap();
    let get = connection.prep(format!("SELECT data FROM {TABLE} WHERE id = ?")).unwrap();
    Box::new(move |id| connection.exec_first::<Vec<u8>, _, _>(&get, (id,)).unwrap().unwrap().len())
}
