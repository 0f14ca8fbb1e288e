//! MySQL 5.5, the server of published figures. Nothing requires it.

use crate::support::Place;
use kurabe_testbed::testing;

#[test]
fn mysql_5_5_measures_what_needs_no_microseconds() {
    if let Some(Err(missing)) = kurabe_testbed::installed("mysql@5.5") {
        return testing::skipped(&format!("{}: {}", missing.what, missing.how()));
    }
    let place = Place::new();
    place.run(&["run", "kv", "up:mysql@5.5", "--clients", "2", "--dry-run"]).success();
    let runs: [&[&str]; 4] = [
        &["kv", "--records", "100", "--clients", "2"],
        &["estimate", "--records", "300", "--data", "uniform", "--state", "fresh"],
        &["reload", "--rows", "200", "--order", "key", "--tool", "kurabe"],
        &["bulk", "--rows", "200", "--fetch", "100"],
    ];
    for run in runs {
        let few = ["up:mysql@5.5", "--rounds", "1", "--duration", "50ms", "--no-html"];
        place.run(&[&["run"], run, &few].concat()).success();
        let report = place.report();
        let versions = report["targets"].to_string();
        assert!(versions.contains("5.5."), "{versions}");
    }
    let answer = place.run(&["run", "webapp", "up:mysql@5.5", "--rounds", "1", "--duration", "50ms"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.err.contains("MySQL 5.5 stores times without microseconds"), "{answer:?}");
}
