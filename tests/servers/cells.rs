//! Sizes, layouts, connections and statements on every engine, all verified.

use super::common::{BRIEF, SERVERS, SQL, assert_all_verified, assert_verified, cells, installed, session};
use crate::support::Place;
use kurabe_testbed::testing::{self, Lease};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};

/// The default durability class of an engine, or of its substitute.
fn class(report: &Value, target: &str) -> &'static str {
    let targets = report["targets"].as_array().unwrap();
    let target = targets.iter().find(|known| known["name"] == target).unwrap();
    match target["engine"].as_str().unwrap() {
        "memcached" | "Redis" => "memory",
        "FerretDB" | "PouchDB Server" => "os-cache",
        "MongoDB" => "periodic-sync",
        _ => "synced",
    }
}

/// Why an engine does not insert several rows atomically; `None` if it does.
fn several_rows(target: &str) -> Option<&'static str> {
    match target {
        "memcached" => Some("several values"),
        "mongodb" => Some("inserted atomically only within a transaction"),
        "couchdb" => Some("separately, not atomically"),
        _ => None,
    }
}

#[test]
fn one_run_verifies_large_sessions_on_every_engine() {
    let engines = installed();
    let servers: Vec<Lease> = engines.iter().filter_map(|engine| testing::server(engine)).collect();
    let urls = servers.iter().map(|server| server.url());
    let targets: Vec<&str> = std::iter::once("sqlite:").chain(urls).collect();
    let place = Place::new();
    let rest = "--payload 1m --layout blob,rows --compress none --requests 10 --records 10 --rounds 1";
    let rest: Vec<&str> = rest.split(' ').collect();
    place.run(&session(&targets, &rest)).success();
    let report = place.report();
    // Two layouts, two operations; and each target's A/A control.
    assert_eq!(cells(&report).len(), targets.len() * 6);
    for cell in cells(&report) {
        let target = cell["target"].as_str().unwrap();
        assert!(!cell["version"].as_str().unwrap().is_empty(), "{cell:#}");
        assert_eq!(cell["durability"], class(&report, target), "{cell:#}");
        match several_rows(target).filter(|_| cell["axes"]["layout"] == "rows") {
            Some(reason) => {
                assert_eq!(cell["status"], "unavailable", "{cell:#}");
                assert!(cell["reason"].as_str().unwrap().contains(reason), "{cell:#}");
            }
            None => assert_verified(cell),
        }
    }
    for engine in engines {
        assert!(cells(&report).iter().any(|cell| cell["target"] == engine), "{engine} was not measured");
    }
}

#[test]
fn payload_over_server_limit_makes_its_cell_unavailable() {
    for (engine, settings, setting) in [
        ("mysql", &[("max_allowed_packet", "1M")][..], "max_allowed_packet"),
        ("mariadb", &[("max_allowed_packet", "1M")], "max_allowed_packet"),
        ("memcached", &[], "item size"),
        ("redis", &[("proto-max-bulk-len", "1mb")], "proto-max-bulk-len"),
        ("couchdb", &[("couchdb.max_document_size", "1500000")], "max_document_size"),
    ] {
        let chosen = |options| {
            settings.iter().fold(options, |options: kurabe_testbed::StartOptions, (name, value)| {
                options.set(*name, *value)
            })
        };
        let Some(server) = testing::server_with(engine, chosen) else { continue };
        let place = Place::new();
        let mut args = session(&[server.url()], &BRIEF);
        args.extend(["--payload", "2m"]);
        let answer = place.run(&args).success();
        assert!(answer.err.contains(setting), "not reported before the run: {answer:?}");
        let report = place.report();
        let (large, small): (Vec<_>, Vec<_>) =
            cells(&report).iter().partition(|cell| cell["axes"]["payload"] == 2_000_000);
        assert_eq!((large.len(), small.len()), (2, 4), "{report:#}");
        small.into_iter().for_each(assert_verified);
        for cell in large {
            assert_eq!(cell["status"], "unavailable", "{cell:#}");
            assert!(cell["reason"].as_str().unwrap().contains(setting), "{cell:#}");
        }
    }
}

#[test]
fn per_request_connections_and_statements_are_verified_on_every_engine() {
    let axes = "--connection kept,per-request --statement once,per-request --clients 8";
    let axes: Vec<&str> = axes.split(' ').chain(BRIEF).collect();
    for engine in SERVERS {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        place.run(&session(&[server.url()], &axes)).success();
        let report = place.report();
        assert_eq!(cells(&report).len(), 4 * 2 + 2);
        for cell in cells(&report) {
            if !SQL.contains(&engine) && cell["axes"]["statement"] == "per-request" {
                assert_eq!(cell["status"], "unavailable", "{cell:#}");
                assert!(cell["reason"].as_str().unwrap().contains("no statements"), "{cell:#}");
            } else {
                assert_verified(cell);
            }
        }
    }
    let place = Place::new();
    let answer = place.run(&session(&["sqlite:"], &axes));
    assert_all_verified(&place, &answer);
}

/// How many keys Redis has removed because their time had come, by its own count.
fn expired(server: &Lease) -> u64 {
    let mut stream = BufReader::new(testing::connected(server).unwrap());
    stream.get_mut().write_all(b"INFO stats\r\n").unwrap();
    let mut lines = stream.lines().map_while(Result::ok);
    lines.find_map(|line| line.strip_prefix("expired_keys:")?.parse().ok()).unwrap()
}

#[test]
fn expired_sessions_are_removed_by_the_engine_and_not_served() {
    let engines = installed();
    let servers: Vec<Lease> = engines.iter().filter_map(|engine| testing::server(engine)).collect();
    let redis = servers.iter().find(|server| server.url().starts_with("redis"));
    let before = redis.map(expired);
    let urls = servers.iter().map(|server| server.url());
    let targets: Vec<&str> = ["sqlite:", "null:"].into_iter().chain(urls).collect();
    let place = Place::new();
    let rest = "--operation request --expiry database --layout blob --payload 1k --requests 400 --records 100 --rounds 1 \
                --clients 2";
    let rest: Vec<&str> = rest.split_whitespace().collect();
    let answer = place.run(&session(&targets, &rest));
    // Without a result are targets of two engines, if they are there.
    assert!(matches!(answer.code, Some(0 | 4)), "{answer:?}");
    let report = place.report();
    for target in targets {
        let engine = target.split(':').next().unwrap();
        let cell = cells(&report).iter().find(|cell| cell["target"] == engine).unwrap();
        let reason = cell["reason"].as_str().unwrap_or_default();
        match engine {
            "mongodb" => assert!(reason.contains("a TTL index reads dates"), "{cell:#}"),
            "http" | "couchdb" => assert!(reason.contains("does not remove rows by their time"), "{cell:#}"),
            _ => assert_verified(cell),
        }
    }
    if let (Some(redis), Some(before)) = (redis, before) {
        let removed = expired(redis) - before;
        assert!(removed >= 10, "Redis removed {removed} keys whose time had come");
    }
}
