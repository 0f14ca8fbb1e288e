//! What is proposed beside indexes.

use kurabe_advise::clients;
use kurabe_advise::settings::settings;
use kurabe_advise::{KINDS, Kind};
use kurabe_core::target::TargetUrl;
use kurabe_experiments::replay::Reports;

#[test]
fn setting_that_changes_what_a_write_survives_is_tried_only_if_asked_for() {
    let url = TargetUrl::parse("up:postgres?jit=off&work_mem=1MB").unwrap();
    let names = |durability| -> Vec<String> {
        let all = settings("postgres", &url, durability).unwrap();
        all.iter().map(|one| one.change.label()).collect()
    };
    assert_eq!(names(true), ["synchronous_commit = off"]);
    let usual = names(false).join(" ");
    assert!(usual.contains("work_mem") && !usual.contains("synchronous_commit"), "{usual}");
    assert!(!usual.contains("jit"), "the unchanged server has it: {usual}");
    assert!(settings("mysql", &url, false).unwrap().len() > 2);
}

#[test]
fn clients_that_do_so_already_are_not_told_to_keep_prepare_or_cache() {
    let reports = |connections, unprepared, repeated| Reports {
        mean: "",
        halves: ["", ""],
        requests: 100,
        statements: Vec::new(),
        hits: "",
        connections,
        unprepared,
        repeated,
    };
    let kinds = KINDS.map(|(_, kind)| kind);
    let count = |reports: &Reports, kinds: &[Kind]| clients::proposals(reports, kinds).len();
    assert_eq!(count(&reports([8, 8], 5, 5), &kinds), 0);
    assert_eq!(count(&reports([60, 2], 100, 40), &kinds), 3);
    assert_eq!(count(&reports([60, 2], 100, 40), &[Kind::Indexes, Kind::Pool]), 1);
    let pool = &clients::proposals(&reports([60, 2], 0, 0), &kinds)[0];
    assert_eq!(pool.change.label(), "keep connections open, in a pool of 2");
    assert_eq!(pool.reason, "60 connections are opened, at most 2 at once");
}
