//! Caches that hold keys of others: none is evicted, and nothing of Kurabe's stays, even if the server forgot whose it is.

use crate::support::{Answer, Place};
use kurabe_testbed::{Server, testing};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// Bytes of a value of others.
const THEIRS: usize = 10_000;
/// Values of others: they leave more than 10 MB.
const MANY: usize = 4_500;

/// A cache and a way to look into it that shares nothing with the program's drivers.
pub(super) struct Cache {
    engine: &'static str,
    server: testing::Lease,
}

impl Cache {
    pub(super) fn start(engine: &'static str) -> Option<Self> {
        let choose = move |options: kurabe_testbed::StartOptions| match engine {
            "memcached" => options.set("m", 64),
            _ => options.set("maxmemory", "60mb").set("maxmemory-policy", "allkeys-lru").set("save", ""),
        };
        testing::server_with(engine, choose).map(|server| Self { engine, server })
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    fn connect(&self) -> (TcpStream, BufReader<TcpStream>) {
        let stream = testing::connected(self.server()).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        (stream, reader)
    }

    /// Stores the values of others.
    pub(super) fn fill(&self) {
        let (mut stream, mut reader) = self.connect();
        let value = "t".repeat(THEIRS);
        for at in 0..MANY {
            let request = match self.engine {
                "memcached" => format!("set theirs:{at} 0 0 {THEIRS}\r\n{value}\r\n"),
                _ => format!("SET theirs:{at} {value}\r\n"),
            };
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            reader.read_line(&mut answer).unwrap();
            assert!(["+OK\r\n", "STORED\r\n"].contains(&&*answer), "{answer}");
        }
        assert_eq!(self.evicted(), 0);
    }

    /// The number of values of others that are still there.
    pub(super) fn theirs(&self) -> usize {
        let (mut stream, mut reader) = self.connect();
        let is_there = |at: &usize| {
            let (request, there) = match self.engine {
                "memcached" => (format!("mg theirs:{at}\r\n"), "HD\r\n"),
                _ => (format!("EXISTS theirs:{at}\r\n"), ":1\r\n"),
            };
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            reader.read_line(&mut answer).unwrap();
            answer == there
        };
        (0..MANY).filter(is_there).count()
    }

    /// What the server answers to a request, until it closes the connection.
    pub(super) fn ask(&self, request: &str) -> String {
        let (mut stream, mut reader) = self.connect();
        if request.starts_with("lru_crawler") {
            // While it lists keys it reads no other request.
            stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
            let lines = reader.lines().map(Result::unwrap).take_while(|line| line != "END");
            return lines.collect::<Vec<_>>().join("\n");
        }
        let quit = if self.engine == "memcached" { "quit" } else { "QUIT" };
        stream.write_all(format!("{request}\r\n{quit}\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        reader.read_to_string(&mut answer).unwrap();
        answer
    }

    fn evicted(&self) -> u64 {
        let (request, name) = match self.engine {
            "memcached" => ("stats", "STAT evictions "),
            _ => ("INFO stats", "evicted_keys:"),
        };
        let answer = self.ask(request);
        answer.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    }

    /// The keys of Kurabe's rows.
    fn rows(&self) -> usize {
        let request = match self.engine {
            "memcached" => "lru_crawler metadump hash",
            _ => "KEYS kurabe_*~*",
        };
        let answer = self.ask(request);
        assert!(!answer.contains("BUSY"), "{answer}");
        answer.lines().filter(|line| line.contains("kurabe_") && line.contains("_kv_")).count()
    }

    fn forget_ownership(&self) {
        for key in ["kurabe_marker", "kurabe_claim"] {
            let answer = match self.engine {
                "memcached" => self.ask(&format!("delete {key}")),
                _ => self.ask(&format!("DEL {key}")),
            };
            assert!(answer.starts_with("DELETED") || answer.starts_with(":1"), "{key}: {answer}");
        }
    }
}

fn run(place: &Place, cache: &Cache, rest: &str) -> Answer {
    let all = format!("run session {} --compress none --layout blob {rest}", cache.server().url());
    place.run(&all.split(' ').collect::<Vec<_>>())
}

fn keeps_others(engine: &'static str) {
    let Some(cache) = Cache::start(engine) else { return };
    cache.fill();
    let place = Place::new();
    // What is loaded does not fit.
    let large = run(&place, &cache, "--payload 100k --records 300 --requests 20 --rounds 1");
    assert!(large.code != Some(0), "{large:?}");
    for part in ["the run needs about", "keys of others", "--allow-eviction", "--records"] {
        assert!(large.err.contains(part), "{part}: {large:?}");
    }
    assert_eq!((cache.theirs(), cache.evicted()), (MANY, 0));
    // What is loaded fits, and what the clients add in their time would not: trials end before the memory is full.
    let grows = "--payload 10k --records 20 --operation write --duration 60s --rounds 1 --clients 2";
    let ended = run(&place, &cache, grows).success();
    assert_eq!((cache.theirs(), cache.evicted()), (MANY, 0), "{ended:?}");
    // What fits runs as ever.
    run(&place, &cache, "--payload 1k --records 20 --requests 40 --rounds 1").success();
    assert_eq!((cache.theirs(), cache.evicted()), (MANY, 0));
    // Who allows it gets it.
    let allowed = "--payload 100k --records 300 --requests 20 --rounds 1 --allow-eviction";
    let allowed = run(&place, &cache, allowed);
    assert!(!allowed.err.contains("keys of others"), "{allowed:?}");
    assert!(cache.evicted() > 0, "{allowed:?}");
    // memcached evicts values of about the same size first, which are Kurabe's own.
    assert!(engine == "memcached" || cache.theirs() < MANY, "{allowed:?}");
}

#[test]
fn run_that_has_a_cache_to_itself_adds_no_more_than_fits() {
    for engine in ["redis", "memcached"] {
        let Some(cache) = Cache::start(engine) else { continue };
        let place = Place::new();
        let grows = "--payload 100k --records 300 --operation write --duration 5s --rounds 1 --clients 2";
        run(&place, &cache, grows).success();
        assert_eq!(cache.evicted(), 0, "{engine}");
        // memcached gives the pages of values that are gone back to all sizes.
        run(&place, &cache, "--payload 1k,100k --records 200 --requests 40 --rounds 1").success();
        assert_eq!(cache.evicted(), 0, "{engine}");
    }
}

#[test]
fn run_adds_no_more_than_fits_to_a_throwaway_server() {
    for (engine, url) in [("memcached", "up:memcached?m=64"), ("redis", "up:redis?maxmemory=60mb")] {
        if testing::server(engine).is_none() {
            continue;
        }
        // All that clients could add in this time is some times the memory.
        let args = format!(
            "run session {url} --compress none --layout blob --payload 1k,100k --records 100 --operation write \
             --duration 2s --rounds 3 --clients 2 --no-html"
        );
        let ended = Place::new().run(&args.split_whitespace().collect::<Vec<_>>()).success();
        assert!(ended.out.contains("ended early: the server has memory for"), "{engine}: {ended:?}");
    }
}

#[test]
fn redis_at_its_limit_keeps_all_keys_of_others() {
    keeps_others("redis");
}

#[test]
fn valkey_at_its_limit_keeps_all_keys_of_others() {
    keeps_others("valkey");
}

#[test]
fn memcached_at_its_limit_keeps_all_keys_of_others() {
    keeps_others("memcached");
}

#[test]
fn rows_are_removed_although_the_server_forgot_whose_they_are() {
    for engine in ["redis", "memcached"] {
        let Some(server) = testing::server(engine) else { continue };
        let cache = Cache { engine, server };
        let theirs = if engine == "memcached" { "set kurabe_notes 0 0 1\r\n7" } else { "SET kurabe_notes 7" };
        cache.ask(theirs);
        let place = Place::new();
        let kv = |requests: &'static str| {
            let url = cache.server().url();
            ["run", "kv", url, "--clients", "1", "--records", "500", "--rounds", "1", "--requests", requests]
        };
        let (mut child, _) = place.spawn_to_trial(&kv("50"), 1);
        assert!(cache.rows() >= 500, "{engine}: {}", cache.rows());
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        // As after an eviction.
        cache.forget_ownership();
        Place::new().run(&kv("50")).success();
        assert_eq!(cache.rows(), 0, "{engine}");
        let notes = cache.ask(if engine == "memcached" { "get kurabe_notes" } else { "GET kurabe_notes" });
        assert!(notes.contains('7'), "{engine}: {notes}");
    }
}

#[test]
fn run_leaves_nothing_although_its_ownership_table_was_evicted_meanwhile() {
    for engine in ["redis", "memcached"] {
        let Some(server) = testing::server(engine) else { continue };
        let cache = Cache { engine, server };
        let place = Place::new();
        let url = cache.server().url();
        let kv =
            ["run", "kv", url, "--clients", "1", "--records", "500", "--rounds", "2", "--requests", "50"];
        let (child, _) = place.spawn_to_trial(&kv, 1);
        cache.forget_ownership();
        place.go_on(1);
        let output = child.wait_with_output().unwrap();
        let _ = Answer::of(&output);
        assert_eq!(cache.rows(), 0, "{engine}");
        Place::new().run(&kv).success();
        assert_eq!(cache.rows(), 0, "{engine}");
    }
}
