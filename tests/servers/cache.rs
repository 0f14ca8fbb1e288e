//! A cache in front of a store: `cache-aside` on real stores behind real caches.

use super::common::{ask_line, assert_verified, by, cells, left, tell};
use crate::support::{Answer, Place, beside_each_other, metric};
use kurabe_testbed::testing;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

fn run(place: &Place, target: &str, rest: &str) -> Answer {
    let rest: Vec<&str> = rest.split(' ').collect();
    place.run(&[&["run", "cache-aside", target, "--rounds", "1", "--no-html"], &rest[..]].concat())
}

/// The verified cells of a run, without A/A controls.
fn verified(place: &Place, answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    let all = cells(&report).iter().filter(|cell| cell["aa_control"] == false).cloned();
    all.inspect(|cell| {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["verified"]["mismatches"], 0, "{cell:#}");
        assert!(cell["verified"]["answers"].as_u64().unwrap() > 0, "{cell:#}");
    })
    .collect()
}

fn has(target: &str) -> bool {
    target == "sqlite:" || super::common::has(target.trim_start_matches("up:"))
}

#[test]
fn hit_ratio_follows_cache_size_and_matches_server_count() {
    for (store, cache) in [("sqlite:", "up:memcached"), ("up:mysql", "up:redis")] {
        if !has(store) || !has(cache) {
            continue;
        }
        let place = Place::new();
        // With equal popularity and one write in a hundred requests, the hit ratio is the cached share.
        let rest = format!(
            "--cache {cache} --requests 4000 --records 10k --zipf 0 --write-share 1 --cache-size none,100,50,10"
        );
        let found = verified(&place, &run(&place, store, &rest));
        assert_eq!(found.len(), 4, "{store} {cache}");
        for cell in &found {
            assert_verified(cell);
            let Some(percent) = cell["axes"]["cache-size"].as_f64() else {
                assert_eq!(metric(cell, "hit ratio"), None, "{cell:#}");
                assert_eq!(metric(cell, "stale"), Some(0.0), "the store itself is never stale: {cell:#}");
                continue;
            };
            let of = |name: &str| metric(cell, name).unwrap_or_else(|| panic!("no {name}: {cell:#}"));
            let ratio = of("hit ratio");
            assert!((ratio - percent / 100.0).abs() < 0.1, "{store} {cache}: {cell:#}");
            assert!((ratio - of("server-reported")).abs() < 1e-9, "{store} {cache}: {cell:#}");
            assert_eq!(of("evictions") > 1_000.0, percent < 100.0, "{store} {cache}: {cell:#}");
            assert!((of("cached") / 10_000.0 - percent / 100.0).abs() < 0.1, "{store} {cache}: {cell:#}");
            // A read that misses asks the cache, the store, and the cache again.
            assert!(of("miss") > 0.0 && of("hit") > 0.0 && of("then cache") > 0.0, "{cell:#}");
        }
        let engine = if cache == "up:redis" { "Redis 7" } else { "memcached 1" };
        let settings = &place.report()["targets"][0]["settings"];
        assert!(settings["cache 50"].as_str().is_some_and(|text| text.starts_with(engine)), "{settings:#}");
        let md = place.run(&["report", "--format", "md"]).out;
        assert!(md.contains("## Requests, more metrics"), "{md}");
        assert!(md.contains(&format!("in front of it is {engine}")), "{md}");
    }
}

#[test]
fn stale_copies_are_counted_and_rare_with_invalidation() {
    if !has("up:memcached") {
        return;
    }
    let place = Place::new();
    // A reader that the scheduler suspends between store and cache leaves a stale copy until the next write of that
    // record. With equal popularity some six reads see it. Hundreds would see one of a popular record whose writer has
    // done its share of the requests.
    let rest = "--cache up:memcached --requests 4000 --cache-size 100 --write-share 20 --records 500 --zipf 0 \
                --after-write invalidate,replace,nothing";
    let found = verified(&place, &run(&place, "sqlite:", rest));
    let stale = |how: &str| {
        let cell = found.iter().find(|cell| cell["axes"]["after-write"] == how).unwrap();
        (metric(cell, "stale").unwrap(), metric(cell, "then cache").is_some())
    };
    let (left, dealt) = stale("nothing");
    assert!(left > 300.0 && !dealt, "{left}");
    for how in ["invalidate", "replace"] {
        let (few, dealt) = stale(how);
        assert!(few < left / 10.0 && dealt, "{how}: {few} of {left}");
    }
}

#[test]
fn expired_copies_are_read_from_the_store_again() {
    beside_each_other(["up:memcached?ttl=1", "up:redis?ttl=1"], |cache| {
        if !has(cache.split('?').next().unwrap()) {
            return;
        }
        let place = Place::new();
        let rest = format!(
            "--cache {cache} --duration 3s --cache-size 100 --write-share 0 --records 200 --rate 400 --clients 2"
        );
        let found = verified(&place, &run(&place, "sqlite:", &rest));
        // 200 popular and unpopular records, requested 1,200 times in three seconds, each cached for one second.
        let ratio = metric(&found[0], "hit ratio").unwrap();
        assert!((0.2..0.93).contains(&ratio), "{cache}: {ratio}");
        assert_eq!(metric(&found[0], "stale"), Some(0.0));
    });
}

#[test]
fn wrong_byte_in_cache_fails_trial_and_foreign_keys_are_untouched() {
    let Some(server) = testing::server_with("redis", |options| options.with_password("s3cr-et")) else {
        return;
    };
    let place = Place::new();
    let url = by(&server, ":s3cr-et", "");
    let ask = |request: &str| {
        use std::io::{BufRead, BufReader, Write};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.write_all(format!("AUTH s3cr-et\r\n{request}\r\n").as_bytes()).unwrap();
        BufReader::new(stream).lines().nth(1).unwrap().unwrap()
    };
    assert_eq!(ask("SET mine 1"), "+OK");
    let rest = format!("--cache {url} --requests 2000 --cache-size none,as-is --records 300");
    let answer = run(&place, "sqlite:", &rest);
    let found = verified(&place, &answer);
    assert_eq!(found.len(), 2);
    assert!(metric(&found[1], "hit ratio").unwrap() > 0.5, "{:#}", found[1]);
    assert_eq!((ask("DBSIZE"), ask("GET mine")), (":1".to_owned(), "$1".to_owned()));
    for entry in std::fs::read_dir(place.path()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path().join("run.jsonl")).unwrap();
        assert!(!text.contains("s3cr-et"), "the password is recorded");
        assert!(text.contains("\"cache\":\"redis://"), "{}", text.lines().next().unwrap());
    }
    // Another client changes the copies meanwhile.
    let spoil = "EVAL \"for n=1,50 do local k=redis.call('RANDOMKEY') if k and string.find(k,'_copies') then \
                 redis.call('SETRANGE',k,300,'WRONG') end end return 1\" 0";
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                ask(spoil);
            }
        });
        let answer = run(&place, "sqlite:", &rest.replace("2000", "20000"));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(answer.code, Some(4), "{answer:?}");
        let said: Vec<&str> = answer.out.split_whitespace().collect();
        assert!(said.join(" ").contains("and wrong content from byte"), "{answer:?}");
    });
    assert_eq!(ask("DBSIZE"), ":1", "records of a failed trial are removed too");
}

#[test]
fn invalid_caches_and_cache_sizes_are_rejected_with_reason() {
    let place = Place::new();
    place.run(&["run", "session", "--cache", "up:memcached"]).exit_code(2);
    // The cell without a cache uses the store alone.
    let answer = run(&place, "sqlite:", "--requests 100 --records 50 --cache-size none,50,as-is").success();
    assert!(answer.err.contains("which --cache up:memcached or up:redis starts"), "{answer:?}");
    assert!(answer.err.contains("--cache-size as-is needs --cache"), "{answer:?}");
    let Some(server) = testing::server("memcached") else {
        tell("memcached is not installed");
        return;
    };
    let answer = run(&place, "sqlite:", &format!("--cache {} --cache-size 50 --requests 100", server.url()));
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.err.contains("only for a throwaway cache"), "{answer:?}");
    // Two stores share one cache, and neither reads the other's copies.
    let rest = format!(
        "sqlite:?synchronous=off --cache {} --cache-size as-is --requests 500 --records 100",
        server.url()
    );
    let found = verified(&place, &run(&place, "sqlite:", &rest));
    assert_eq!(found.len(), 2);
    let mut again = place.command(&["run", "--again", "last", "--no-html"]);
    again.env("MEMCACHED_PASSWORD", server.password().unwrap());
    Answer::of(&again.output().unwrap()).success();
    assert_eq!(left("memcached", &server), "");
    assert_eq!(ask_line(&server, "get kurabe_marker"), "END");
}
