//! A relay modifies one reply in each trial, between the program and real servers: no such trial may have results.

use crate::support::Place;
use kurabe_attack::relay::lie::Lie;
use kurabe_attack::relay::{Plan, Relay};
use kurabe_attack::runfile::{self, Trial};
use kurabe_testbed::testing;

/// A short run of many trials.
const BRIEF: [&str; 9] =
    ["--rounds", "1", "--requests", "60", "--records", "50", "--seed", "17", "--no-html"];
/// Five cells and the A/A control: a cell that failed once is not measured again.
const READ: [&str; 4] = ["run", "point-read", "--clients", "1,2,3,4,5"];
const ADD: [&str; 8] = [
    "run",
    "session",
    "--operation",
    "write",
    "--layout",
    "blob",
    "--compress=none",
    "--payload=1000,1016,1032,1048,1064",
];

/// Runs through the relay, and returns for each trial its record and whether a reply was modified.
fn through(url: &str, port: u16, lie: Option<Lie>, args: &[&str]) -> (Vec<Trial>, Vec<usize>) {
    let place = Place::new();
    let scheme = url.split(':').next().unwrap().to_owned();
    let plan = Plan { scheme, port, lie, seed: 5, ..Plan::default() };
    let relay = Relay::start(plan, place.path()).unwrap();
    let url = url.replacen(&format!(":{port}"), &format!(":{}", relay.port()), 1);
    let answer = place.run(&[args, &[url.as_str()], &BRIEF].concat());
    // Modified metadata of collections is possible too: no result depends on it.
    let is_metadata = |what: &str| what.contains(" FROM mysql.") || what.contains("information_schema");
    let of_records =
        |what: &str| (what.contains("point_read") || what.contains("session")) && !is_metadata(what);
    let told =
        relay.told().into_iter().filter(|told| of_records(&told.what)).map(|told| told.trial).collect();
    assert!(matches!(answer.code, Some(0 | 4)), "{answer:?}");
    (runfile::trials(place.path()), told)
}

/// Checks that every trial succeeds without modification, and that each modified one fails.
fn assert_caught(engine: &str, lies: &[Lie], args: &[&str]) {
    let Some(server) = testing::server(engine) else { return };
    let (trials, _) = through(server.url(), server.port(), None, args);
    assert!(trials.len() >= 6, "{engine}: {trials:?}");
    assert!(trials.iter().all(|trial| *trial == Trial::Measured), "{engine}: {trials:?}");
    for lie in lies {
        let (trials, told) = through(server.url(), server.port(), Some(*lie), args);
        assert!(told.len() >= 3, "{engine} {lie:?}: too few lies: {told:?}");
        for at in told {
            let caught = matches!(trials.get(at), Some(Trial::Failed(_)));
            assert!(caught, "{engine}: trial {at} was lied to by {lie:?}: {trials:?}");
        }
    }
}

const OF_READS: [Lie; 4] = [Lie::OtherKey, Lie::FlipAnswer, Lie::Twice, Lie::AnswerTwice];
const OF_WRITES: [Lie; 2] = [Lie::Drop, Lie::Late];

#[test]
fn lies_about_reads_fail_their_trials_on_key_value_stores() {
    assert_caught("redis", &OF_READS, &READ);
    assert_caught("memcached", &OF_READS, &READ);
}

#[test]
fn lies_about_reads_fail_their_trials_on_sql_engines() {
    for engine in ["postgres", "mariadb"] {
        assert_caught(engine, &OF_READS, &READ);
    }
}

#[test]
fn lies_about_reads_fail_their_trials_on_document_stores() {
    assert_caught("mongodb", &OF_READS, &READ);
    assert_caught("couchdb", &OF_READS[..3], &READ);
}

#[test]
fn acknowledged_records_that_are_missing_fail_their_trials() {
    for engine in ["postgres", "mariadb", "memcached"] {
        assert_caught(engine, &OF_WRITES, &ADD);
    }
}

#[test]
fn failed_trial_is_named_although_another_target_is_interleaved_with_it() {
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let plan = Plan {
        scheme: "redis".to_owned(),
        port: server.port(),
        lie: Some(Lie::FlipAnswer),
        seed: 5,
        ..Plan::default()
    };
    let relay = Relay::start(plan, place.path()).unwrap();
    let honest = server.url();
    let lying = honest.replacen(&format!(":{}", server.port()), &format!(":{}", relay.port()), 1);
    let brief =
        ["--clients", "1,2,3,4", "--duration", "200ms", "--rounds", "1", "--records", "50", "--no-html"];
    let answer = place.run(&[&["run", "point-read", honest, &lying], &brief[..]].concat());
    let failed: Vec<&str> = answer.err.lines().filter(|line| line.contains("failed: round")).collect();
    assert!(failed.len() >= 2, "{answer:?}");
    assert!(failed.iter().all(|line| line.contains(&format!("redis :{} read", relay.port()))), "{failed:#?}");
}
