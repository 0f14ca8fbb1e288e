//! Many rows at once: `bulk` on every engine that can, its memory, and its ends.

use super::common::{cells, installed, left};
use crate::support::{Answer, Place, metric, signal};
use kurabe_testbed::StartOptions;
use kurabe_testbed::testing::{self, Lease};
use serde_json::Value;

/// The shortest run of all ways.
const BRIEF: [&str; 13] = [
    "--rows", "600", "--row-bytes", "200", "--fetch", "7,1k,whole", "--content", "random", "--rounds", "1",
    "--requests", "1", "--no-html",
];

fn value(cell: &Value, name: &str) -> f64 {
    metric(cell, name).unwrap_or_else(|| panic!("no {name}: {cell:#}"))
}

fn assert_verified(cell: &Value, rows: u64) {
    assert_eq!(cell["status"], "ok", "{cell:#}");
    let (verified, of_all) = (&cell["verified"], |value: &Value| value.as_u64().unwrap() >= rows);
    assert_eq!(verified["mismatches"], 0, "{cell:#}");
    if cell["operation"] == "read" {
        assert!(verified["how"] == "compared" && of_all(&verified["answers"]), "{cell:#}");
    } else {
        assert!(verified["how"] == "read-back-all" && of_all(&verified["read_back"]), "{cell:#}");
    }
}

/// What an engine cannot do, and a part of the reason.
fn refusal(target: &str, fetch: &Value, operation: &str) -> Option<&'static str> {
    match (target, operation, fetch == "whole") {
        ("sqlite", "read", false) => Some("without round trips"),
        ("mysql", "write", true) => Some("local_infile"),
        ("couchdb", "read", true) => Some("holds a JSON answer whole"),
        ("couchdb", "write", true) => Some("_bulk_docs"),
        ("redis" | "valkey", "read", true) => Some("no cursor over values"),
        ("memcached", "read", true) => Some("does not give the values"),
        ("memcached", "write", true) => Some("one value by a request"),
        ("memcached", "write", false) => Some("no request that stores several values"),
        ("redis" | "valkey", "write", true) => Some("no bulk write"),
        _ => None,
    }
}

#[test]
fn every_row_is_moved_and_verified_or_the_engine_says_why_not() {
    let servers: Vec<Lease> = installed().into_iter().filter_map(testing::server).collect();
    let urls = servers.iter().map(|server| server.url());
    let targets: Vec<&str> = std::iter::once("sqlite:").chain(urls).collect();
    let place = Place::new();
    let answer = place.run(&[&["run", "bulk"], &targets[..], &BRIEF].concat()).success();
    let report = place.report();
    assert!(cells(&report).len() >= targets.len() * 6, "{answer:?}");
    for cell in cells(&report) {
        let (target, operation) = (cell["target"].as_str().unwrap(), cell["operation"].as_str().unwrap());
        let fetch = &cell["axes"]["fetch"];
        if let Some(reason) = refusal(target, fetch, operation) {
            assert_eq!(cell["status"], "unavailable", "{cell:#}");
            assert!(cell["reason"].as_str().unwrap().contains(reason), "{cell:#}");
            continue;
        }
        assert_verified(cell, 600);
        assert!((value(cell, "bytes") - 120_000.0).abs() < 1.0, "{cell:#}");
        if !["postgres", "mysql", "mariadb"].contains(&target) {
            continue;
        }
        // Text crosses the wire as it is, with a few bytes around each field; a key may be some digits instead of 8 bytes.
        let on_wire = value(cell, "wire bytes per byte");
        assert!((0.95..1.5).contains(&on_wire), "{cell:#}");
        // A mean over rounds is not a whole number to the last bit.
        let trips = value(cell, "round trips").round();
        match fetch.as_u64() {
            Some(each) => {
                let least = (600 / each) as f64;
                assert!(trips >= least && trips <= least + 5.0, "{cell:#}");
            }
            None => assert!(trips <= 3.0, "{cell:#}"),
        }
    }
}

fn with_local_files(options: StartOptions) -> StartOptions {
    options.set("local_infile", 1)
}

#[test]
fn mysql_loads_rows_from_memory_if_the_server_allows_it() {
    let Some(server) = testing::server_with("mysql", with_local_files) else { return };
    let place = Place::new();
    place.run(&[&["run", "bulk", server.url(), "--operation", "write"], &BRIEF[..]].concat()).success();
    let report = place.report();
    let whole = cells(&report).iter().filter(|cell| cell["axes"]["fetch"] == "whole");
    assert_eq!(whole.inspect(|cell| assert_verified(cell, 600)).count(), 1);
}

#[test]
fn compressed_rows_are_verified_and_need_fewer_bytes_where_the_server_offers_it() {
    let engines = installed().into_iter().filter(|engine| ["mysql", "mariadb", "postgres"].contains(engine));
    let start = |engine| match engine {
        "mysql" => testing::server_with(engine, with_local_files),
        other => testing::server(other),
    };
    let servers: Vec<Lease> = engines.filter_map(start).collect();
    let targets: Vec<&str> = servers.iter().map(|server| server.url()).collect();
    let place = Place::new();
    let rest = [
        "--rows", "600", "--row-bytes", "2000", "--fetch", "50,whole", "--wire-compression", "off,zlib,zstd",
    ];
    let brief = ["--content", "equal,random", "--rounds", "1", "--requests", "1", "--no-html"];
    let answer = place.run(&[&["run", "bulk"], &targets[..], &rest, &brief].concat()).success();
    let report = place.report();
    let mut compressed = 0;
    for cell in cells(&report) {
        let axis = |name: &str| cell["axes"][name].as_str().unwrap_or_default();
        let (target, compression) = (cell["target"].as_str().unwrap(), axis("wire-compression"));
        let refused = match (target.starts_with("postgres"), target.starts_with("mariadb"), compression) {
            (true, _, "zlib" | "zstd") => Some("no compression"),
            (_, true, "zstd") => Some("does not offer compression by zstd"),
            _ => None,
        };
        if let Some(reason) = refused {
            assert_eq!(cell["status"], "unavailable", "{cell:#}");
            assert!(cell["reason"].as_str().unwrap().contains(reason), "{cell:#}");
            continue;
        }
        assert_verified(cell, 600);
        let on_wire = value(cell, "wire bytes per byte");
        let expected = match (compression, axis("content")) {
            // A key of LOAD DATA is some digits, and 8 bytes are counted for it.
            ("off", _) => 0.95..1.2,
            (_, "equal") => 0.0..0.2,
            _ => 0.7..1.0,
        };
        assert!(expected.contains(&on_wire), "{on_wire} instead of {expected:?}: {cell:#}");
        // The network's own rate is measured beside each.
        assert!(value(cell, "loopback") > 1e6 && value(cell, "share of loopback") > 0.0, "{cell:#}");
        compressed += usize::from(compression != "off");
    }
    assert!(compressed >= 8 * targets.len().saturating_sub(1), "{answer:?}");
}

#[test]
fn peak_memory_of_a_read_does_not_grow_with_the_rows() {
    for engine in ["postgres", "mariadb", "mysql"] {
        let Some(server) = testing::server(engine) else { continue };
        let peak = |rows: &str| {
            let place = Place::new();
            let rest = ["--rows", rows, "--fetch", "1k,whole", "--operation", "read", "--rounds", "1"];
            let rest = [&rest[..], &["--content", "random", "--requests", "1", "--no-html"]].concat();
            place.run(&[&["run", "bulk", server.url()], &rest[..]].concat()).success();
            let report = place.report();
            let peaks: Vec<f64> = cells(&report).iter().map(|cell| value(cell, "peak memory")).collect();
            peaks.into_iter().fold(0.0, f64::max)
        };
        // 1 MB and 20 MB of rows.
        let (few, many) = (peak("1k"), peak("20k"));
        assert!(many < few + 10e6, "{engine}: {few} and {many} bytes");
    }
}

#[test]
fn server_killed_during_a_transfer_fails_its_trials_with_reason() {
    let servers: Vec<Lease> = ["postgres", "mariadb"].into_iter().filter_map(testing::server).collect();
    let place = Place::new();
    // A round trip for each row lasts long enough to be interrupted.
    let rest = ["--rows", "10k", "--row-bytes", "100", "--fetch", "1", "--rounds", "8", "--requests", "1"];
    let urls: Vec<&str> = servers.iter().map(|server| server.url()).collect();
    let run = ["run", "bulk", "sqlite:?synchronous=off", "--no-html"];
    let child = place.spawn(&[&run[..], &urls, &rest].concat());
    place.wait_for_trials(3);
    for server in &servers {
        server.kill_hard().unwrap();
    }
    Answer::at_end_of(child).exit_code(4);
    let report = place.report();
    for cell in cells(&report) {
        match (cell["target"].as_str().unwrap(), cell["operation"].as_str().unwrap()) {
            ("sqlite", "read") => assert_eq!(cell["status"], "unavailable", "{cell:#}"),
            ("sqlite", _) => assert_verified(cell, 10_000),
            _ => {
                assert_eq!(cell["status"], "failed", "{cell:#}");
                let reason = cell["reason"].as_str().unwrap();
                let known = ["closed the connection", "nothing listens", "connection", "Connection"];
                assert!(known.iter().any(|part| reason.contains(part)), "{cell:#}");
            }
        }
    }
}

#[test]
fn ctrl_c_during_a_transfer_keeps_results_and_leaves_no_table() {
    for engine in ["postgres", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let rest = ["--rows", "20k", "--row-bytes", "100", "--fetch", "1", "--rounds", "8"];
        let child = place
            .spawn(&[&["run", "bulk", server.url(), "--requests", "1", "--no-html"], &rest[..]].concat());
        place.wait_for_trials(2);
        signal(&child, "-INT");
        let answer = Answer::at_end_of(child);
        assert_eq!(answer.code, Some(130), "{engine}: {answer:?}");
        let report = place.report();
        let measured = cells(&report).iter().filter(|cell| cell["status"] == "ok").count();
        assert!(report["complete"] == false && measured >= 1, "{report:#}");
        assert_eq!(left(engine, &server), "", "{engine}");
    }
}
