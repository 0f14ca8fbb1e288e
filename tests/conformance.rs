//! The conformance checks of all drivers: values round-trip, unsupported operations are reported, and only Kurabe's
//! own data is changed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod estimates;
mod ranges;
mod rows;
mod rules;
mod subject;

use crate::support::with;
use kurabe_testbed::testing;
use subject::Subject;

/// All checks of a driver.
fn conforms(url: &str) {
    let subject = Subject::open(url);
    rules::facts_are_sane(&subject);
    rules::what_is_not_supported_is_refused_and_nothing_else(&subject);
    rows::every_value_comes_back(&subject);
    rows::different_keys_are_different_rows(&subject);
    rows::a_second_row_of_a_key_is_refused(&subject);
    rows::absent_rows_are_no_error_and_affected_rows_are_counted(&subject);
    rows::many_rows_go_in_together_or_not_at_all(&subject);
    rows::many_rows_of_wide_fields_come_back(&subject);
    rows::each_row_of_a_request_goes_in_or_is_refused(&subject);
    rows::rows_of_a_part_of_the_key_come_in_order(&subject);
    ranges::a_range_holds_every_row_of_it_in_order_and_none_else(&subject);
    estimates::estimate_is_near_the_rows_or_refused(&subject);
    rules::preparing_a_thousand_times_leaves_nothing_behind(&subject);
    rules::a_wrong_call_is_an_error_and_the_session_goes_on(&subject);
    rules::two_sessions_see_each_other(&subject);
    rules::pipeline_answers_are_in_order(&subject);
    rules::a_rollback_takes_back(&subject);
    rules::the_namespace_keeps_its_rules(&subject);
    rules::foreign_collection_is_unchanged(&subject);
    rules::a_claim_keeps_others_out(&subject);
    subject.leave_nothing_behind();
}

/// All checks of an engine's driver, with this option.
fn throwaway(engine: &str, option: &str) {
    if let Some(server) = testing::server(engine) {
        conforms(&with(server.url(), option));
    }
}

#[test]
fn null() {
    conforms("null:");
}

#[test]
fn sqlite_in_a_temporary_file() {
    conforms("sqlite:");
}

#[test]
fn sqlite_in_a_named_file_with_other_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a file.db");
    let path = path.to_str().unwrap();
    conforms(&format!(
        "sqlite:{path}?journal_mode=delete&synchronous=off&page_size=16KiB&mmap_size=64m&cache_size=1m"
    ));
    // The file is now a database, and its page size is fixed.
    conforms(&format!("sqlite:{path}"));
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a file.db"]);
}

#[cfg(feature = "full")]
#[test]
fn lmdb() {
    conforms("lmdb:");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a file.db");
    conforms(&format!("lmdb:{}?sync=off&map_size=1g", path.display()));
    // The file is now a database.
    conforms(&format!("lmdb:{}", path.display()));
    assert!(path.is_file() && !folder.path().join("a file.db-kurabe.lock").exists());
}

#[test]
fn memcached() {
    throwaway("memcached", "");
}

#[test]
fn memcached_over_a_unix_socket() {
    if let Some(server) = testing::server_with("memcached", kurabe_testbed::StartOptions::on_socket_only) {
        conforms(server.url());
    }
}

#[test]
fn redis() {
    if let Some(server) = testing::server("redis") {
        conforms(server.url());
        // Another database of the same server, and rows that expire.
        conforms(&format!("{}/3?ttl=600", server.url()));
        let socket = server.socket().unwrap().display();
        conforms(&format!("redis://{}@localhost?socket={socket}", testing::login(&server)));
    }
}

#[test]
fn redis_with_a_password_and_tls() {
    let choose = |options: kurabe_testbed::StartOptions| options.with_password("pass word").with_tls();
    if let Some(server) = testing::server_with("redis", choose) {
        let host = server.url().replacen("redis://", "rediss://default:pass%20word@", 1);
        conforms(&format!("{host}?ca={}", server.ca().unwrap().display()));
        let socket = server.socket().unwrap().display();
        conforms(&format!("redis://:pass%20word@localhost?socket={socket}"));
    }
}

#[test]
fn valkey() {
    if let Some(server) = testing::server("valkey") {
        conforms(server.url());
        let socket = server.socket().unwrap().display();
        conforms(&format!("valkey://{}@localhost?socket={socket}", testing::login(&server)));
    }
}

#[test]
fn mongodb() {
    if let Some(server) = testing::server("mongodb") {
        conforms(server.url());
        let socket = server.socket().unwrap().display();
        conforms(&format!("{}&socket={socket}&w=1&journal=true&readConcernLevel=local", server.url()));
    }
}

#[test]
fn mysql() {
    throwaway("mysql", "");
}

#[test]
fn mariadb() {
    throwaway("mariadb", "");
}

#[test]
fn storage_engines_without_transactions() {
    throwaway("mysql", "engine=MyISAM");
    throwaway("mariadb", "engine=aria");
}

#[test]
fn postgres() {
    throwaway("postgres", "");
}

#[test]
fn couchdb() {
    if let Some(server) = testing::server("couchdb") {
        conforms(server.url());
        // Its databases can have their own names, distinct from those of another run.
        conforms(&format!("{}/test/part_", server.url()));
    }
}

/// There is no throwaway Oracle server; a user can name a server (docs/oracle.md).
#[test]
fn oracle_if_named() {
    match std::env::var("KURABE_ORACLE") {
        Ok(url) if !url.is_empty() => conforms(&url),
        _ => {
            testing::skipped("KURABE_ORACLE is not set, and there is no throwaway Oracle server");
        }
    }
}
