//! Load on real servers: many clients in one process, rates, stalls and pipelines.

use super::common::{assert_all_verified, cells};
use crate::support::{Answer, Place, eventually, piped};
use kurabe_testbed::Server;
use kurabe_testbed::testing::{self, Lease};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

/// The maximum memory of the program with a thousand clients, in kilobytes.
const MAX: u64 = 150_000;

/// `kurabe run point-read` on these targets.
fn point_read<'a>(targets: &[&'a str], rest: &'a str) -> Vec<&'a str> {
    [&["run", "point-read"], targets, &rest.split(' ').collect::<Vec<_>>()].concat()
}

/// Reads that memcached has answered so far.
fn answered(server: &Server) -> u64 {
    let mut stream = testing::connected(server).unwrap();
    stream.write_all(b"stats\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    lines.find_map(|line| line.strip_prefix("STAT cmd_get ")?.parse().ok()).unwrap()
}

fn number(cell: &Value, path: &str) -> f64 {
    cell.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {cell:#}"))
}

#[test]
fn thousand_clients_fit_into_150_megabytes() {
    for (engine, setting) in [("mysql", "max_connections"), ("memcached", "c")] {
        let Some(server) = testing::server_with(engine, |options| options.set(setting, "1100")) else {
            continue;
        };
        let place = Place::new();
        let args = point_read(
            &[server.url()],
            "--clients 1000 --threads per-client --records 1000 --requests 10000 --rounds 1",
        );
        let mut child = piped(&mut place.command(&args));
        let (mut most, mut threads) = (0, 0);
        let ended = eventually(120, || {
            most = status(child.id(), "VmHWM:").unwrap_or(0).max(most);
            threads = status(child.id(), "Threads:").unwrap_or(0).max(threads);
            child.try_wait().unwrap()
        });
        assert!(ended.is_some(), "{engine}: no end");
        let answer = Answer::at_end_of(child);
        assert_all_verified(&place, &answer);
        println!("{engine}: {threads} threads, at most {} MB", most / 1_000);
        assert!(threads > 1_000, "{engine}: the clients were not seen: {threads} threads");
        assert!(most <= MAX, "{engine}: {most} kB");
    }
}

/// A number of a process's `status` file; `None` once it has ended.
fn status(pid: u32, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn one_second_stall_shows_in_response_times() {
    let Some(server) = testing::server("memcached") else { return };
    let place = Place::new();
    let args = point_read(&[server.url()], "--rate 500 --duration 6s --records 100 --rounds 1");
    let child = piped(&mut place.command(&args));
    // Loading and checking run at full speed, and warm-up takes at most a tenth of a trial's time: about that rate
    // for a second means that a measurement is running.
    let mut steady = 0;
    let mut last = answered(&server);
    let under_way = eventually(60, || {
        std::thread::sleep(Duration::from_millis(200));
        let now = answered(&server);
        steady = if (30..300).contains(&(now - last)) { steady + 1 } else { 0 };
        last = now;
        (steady == 5).then_some(())
    });
    assert!(under_way.is_some(), "no load came");
    server.pause().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    server.resume().unwrap();
    let answer = Answer::at_end_of(child);
    let report = assert_all_verified(&place, &answer);
    // The cell is measured twice, and the stall is in one of the two.
    let p99 = |cell: &Value| number(cell, "/open_loop/response_us/p99");
    let cell = cells(&report).iter().max_by(|a, b| p99(a).total_cmp(&p99(b))).unwrap();
    assert_eq!(cell["open_loop"]["dropped"], 0, "{cell:#}");
    // A sixth of the transactions was scheduled during the stall, evenly over that second: of all, a hundredth waited
    // longer than nine tenths of it, and a tenth longer than four tenths.
    assert!(p99(cell) >= 850_000.0, "{cell:#}");
    let response = number(cell, "/open_loop/response_us/p90");
    assert!(response > 350_000.0, "{cell:#}");
    // For the clients that waited it was one slow reply each, one transaction in two hundred: service times alone
    // would have hidden it. On a busy machine a few more are slow, but never a tenth.
    let service = number(cell, "/latency_us/p90");
    assert!(service < response / 4.0, "{cell:#}");
}

#[test]
fn rate_is_offered_in_full_and_served() {
    let engines = ["memcached", "postgres"];
    let servers: Vec<Lease> = engines.into_iter().filter_map(testing::server).collect();
    let urls: Vec<&str> = servers.iter().map(|server| server.url()).collect();
    let place = Place::new();
    let rest = "--rate 200,400 --duration 500ms --records 100 --rounds 2";
    let report = assert_all_verified(&place, &place.run(&point_read(&urls, rest)));
    for cell in cells(&report) {
        // Two rounds of half a second: exactly the scheduled number, also on a busy machine.
        let offered = number(cell, "/open_loop/due_per_second");
        assert_eq!(cell["open_loop"]["offered"], offered as u64, "{cell:#}");
        // What was served in time was served at that rate; a late one is reported.
        let late = offered - number(cell, "/ops_per_second/mean");
        let slowest = number(cell, "/open_loop/response_us/max") / 1e6;
        if cell["open_loop"]["kept_up"] == true {
            assert!(late <= offered * (0.03 + slowest), "{late} of {offered} were late: {cell:#}");
        }
    }
}

#[test]
fn highest_rate_is_found_and_meets_its_objective() {
    let Some(server) = testing::server("memcached") else { return };
    let place = Place::new();
    let answer = place
        .run(&point_read(&[server.url()], "--rate max --slo 250ms --duration 1s --records 100 --rounds 1"));
    let report = assert_all_verified(&place, &answer);
    let cell = &cells(&report)[0];
    assert!(number(cell, "/open_loop/response_us/p99") <= 250_000.0, "{cell:#}");
    // Any server is faster than this; a search that ended at its first step would not have reached it.
    assert!(number(cell, "/open_loop/due_per_second") > 1_000.0, "{cell:#}");
}

#[test]
fn pipelines_are_verified_if_the_protocol_has_them() {
    let engines = ["postgres", "memcached", "redis", "mysql"];
    let servers: Vec<Lease> = engines.into_iter().filter_map(testing::server).collect();
    let urls: Vec<&str> = servers.iter().map(|server| server.url()).collect();
    for experiment in ["point-read", "point-write"] {
        let place = Place::new();
        let rest = "--pipeline 1,16 --clients 2 --records 1000 --requests 640 --rounds 1";
        let args = [&["run", experiment], &urls[..], &rest.split(' ').collect::<Vec<_>>()].concat();
        let answer = place.run(&args);
        assert!(matches!(answer.code, Some(0)), "{answer:?}");
        let report = place.report();
        for cell in cells(&report) {
            let without = cell["target"] == "mysql" && cell["axes"]["pipeline"] == 16;
            assert_eq!(cell["status"], if without { "unavailable" } else { "ok" }, "{cell:#}");
            assert_eq!(cell["verified"]["mismatches"], 0, "{cell:#}");
        }
    }
}
