//! What `SET` and `GET` of 100 bytes cost the client, with redis-benchmark and with ours, both as processes of their
//! own, in turns, on the same server: CPU time of the whole process, as the kernel counts it for ended children.
//! Setting up is made negligible by the number of requests, and is within both figures.
//!
//! `cargo bench -p kurabe-drivers --bench redis_peer -- redis://127.0.0.1:6379 [requests [rounds]]`
//!
//! `redis-benchmark` is in Debian's package redis-tools. It runs in one thread, without pipelining, with connections
//! kept, and draws from 100,000 keys; so does ours, with a thread per client.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

mod prelude;

use prelude::*;
use std::process::{Command, Stdio};
use std::time::Instant;

const KEYS: u64 = 100_000;
const BYTES: usize = 100;

fn main() {
    let arguments = arguments();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ours", url, verb, clients, requests] => {
            ours(url, verb, clients.parse().unwrap(), requests.parse().unwrap());
        }
        [url, rest @ ..] => {
            let number = |n: usize, default| rest.get(n).map_or(default, |text| text.parse().unwrap());
            compare(url, number(0, 200_000), number(1, 5) as usize);
        }
        [] => println!("redis_peer: name a server, as redis://127.0.0.1:6379"),
    }
}

fn compare(url: &str, requests: u64, rounds: usize) {
    let address = TargetUrl::parse(url).unwrap();
    let fixture = Fixture::new(url, rows());
    let itself = std::env::current_exe().unwrap();
    for verb in ["set", "get"] {
        for clients in ["1", "16"] {
            let mut peer = Command::new("redis-benchmark");
            peer.args(["-h", address.host.as_deref().unwrap_or("127.0.0.1")]);
            peer.args(["-p", &address.port.unwrap_or(6379).to_string(), "-c", clients, "-t", verb, "-q"]);
            peer.args(["-n", &requests.to_string(), "-d", &BYTES.to_string(), "-r", &KEYS.to_string()]);
            let mut own = Command::new(&itself);
            own.args(["ours", url, verb, clients, &requests.to_string()]);
            let found =
                in_turns(rounds, |way| cost_of(if way == 0 { &mut own } else { &mut peer }, requests));
            let [(own_cpu, own_rate), (peer_cpu, peer_rate)] =
                [&found[0], &found[1]].map(|costs| middle(costs));
            let ratio = ratios(&found)[rounds / 2];
            println!(
                "{verb} {clients:>2} clients: redis-benchmark {peer_cpu:>6.2} µs CPU/op, {peer_rate:>7.0}/s; kurabe \
                 {own_cpu:>6.2} µs, {own_rate:>7.0}/s; CPU ratio {ratio:.2} (median of {rounds} pairs)"
            );
        }
    }
    fixture.remove();
}

/// Microseconds of CPU for a request, and requests per second, of a program that is run to its end.
fn cost_of(command: &mut Command, requests: u64) -> Cost {
    let before = of_children();
    let began = Instant::now();
    let status = command.stdout(Stdio::null()).status().expect("redis-benchmark is in package redis-tools");
    assert!(status.success());
    let seconds = began.elapsed().as_secs_f64();
    ((of_children() - before) * 1e6 / requests as f64, requests as f64 / seconds)
}

/// Seconds of CPU that ended children have used: `cutime` and `cstime` of proc(5), in hundredths.
fn of_children() -> f64 {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<u64> =
        line.rsplit_once(')').unwrap().1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    (fields[13] + fields[14]) as f64 / 100.0
}

fn rows() -> Arc<Collection> {
    collection("kurabe_peer", FieldType::Int, FieldType::LongBytes)
}

fn ours(url: &str, verb: &str, clients: u64, requests: u64) {
    let driver = open(url);
    let driver: &dyn Driver = &*driver;
    std::thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || one(driver, verb == "set", client, requests / clients));
        }
    });
}

fn one(driver: &dyn Driver, sets: bool, seed: u64, requests: u64) {
    let collection = rows();
    let operation =
        if sets { Operation::Put { collection } } else { Operation::Get { collection, fields: vec![1] } };
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let prepared = session.prepare(&operation).unwrap();
    let data = [b'x'; BYTES];
    let mut out = Reply::new();
    // Any generator will do: this one is Knuth's.
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for _ in 0..requests {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = Value::Int(((state >> 33) % KEYS) as i64);
        let row = [key, Value::Bytes(&data)];
        session.execute(&prepared, if sets { &row } else { &row[..1] }, &mut out).unwrap();
    }
    session.close().unwrap();
}
