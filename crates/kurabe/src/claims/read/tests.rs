//! Valid and invalid claims.

use super::*;
use kurabe_core::axis::AxisValue;
use std::time::Duration;

fn workload() -> WorkloadOptions {
    let matches = crate::cli::command().try_get_matches_from(["kurabe", "claims"]).unwrap();
    WorkloadOptions::of(matches.subcommand().unwrap().1)
}

fn read(text: &str) -> Result<Vec<Definition>> {
    claims(text, "ours", Path::new("."), &workload())
}

/// The lines of a claim that is valid; each test changes one of them.
const VALID: [&str; 8] = [
    "[ours]",
    "claim = 'Rows are slower than a blob'",
    "experiment = 'session'",
    "targets = ['sqlite:', 'up:postgres']",
    "operations = ['write']",
    "axes = { payload = ['1k', '10k'], layout = ['blob', 'rows'] }",
    "tolerance = '5%'",
    "test = { subject = { layout = 'rows' }, baseline = { layout = 'blob' }, at-most = 0.9 }",
];

/// The valid claim with another line.
fn with(line: usize, text: &str) -> String {
    let mut lines = VALID.map(str::to_owned);
    text.clone_into(&mut lines[line - 1]);
    lines.join("\n")
}

#[test]
fn every_claim_that_ships_is_valid_and_says_where_it_is_from() {
    let all = super::super::shipped(&workload()).unwrap();
    let mut ids: Vec<&str> = all.iter().map(|one| one.about.id.as_str()).collect();
    assert_eq!(ids.len(), 38);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 38, "two claims have one name");
    for one in &all {
        assert!(one.about.year.is_some() && one.about.source.is_some(), "{}", one.about.id);
        assert_eq!((one.suite.as_str(), one.held), ("claims", false), "{}", one.about.id);
    }
    let works = all.iter().filter(|one| one.work.is_ok()).count();
    // The others say why nothing can test them.
    assert_eq!(works, 33);
}

#[test]
fn claim_has_defaults_for_missing_keys() {
    let found = read(&VALID.join("\n")).unwrap();
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(one.label(false), "claim/ours");
    let work = one.work.as_ref().unwrap();
    let spec = work.request.spec().unwrap();
    // The cheapest way: one value of each other axis, and rounds until it is decided.
    assert_eq!(spec.axes["compress"], [AxisValue::Word("none".to_owned())]);
    assert_eq!((spec.axes["payload"].len(), spec.operations.len()), (2, 1));
    assert!(spec.until.is_some() && work.request.budget == Some(Duration::from_secs(60)));
    let [test] = work.tests.as_slice() else { panic!("{:?}", work.tests) };
    assert_eq!((test.metric.as_str(), test.operation.as_ref()), ("throughput", None));
    assert!((test.claimed.tolerance - 0.05).abs() < 1e-9);
    assert_eq!(test.subject.axes["layout"], AxisValue::Word("rows".to_owned()));
}

#[test]
fn equality_has_a_tolerance_of_its_own() {
    let tolerance = |claim: &str, range: &str| {
        let test = format!(
            "test = {{ subject = {{ layout = 'rows' }}, baseline = {{ layout = 'blob' }}, {range} }}"
        );
        let file = [&VALID[..6], &[claim, &test]].concat().join("\n");
        read(&file).unwrap()[0].work.as_ref().unwrap().tests[0].claimed.tolerance
    };
    for (claim, range, expected) in [
        ("", "at-least = 1, at-most = 1", 0.05),
        ("", "at-least = 1, at-most = 1, tolerance = '2%'", 0.02),
        ("tolerance = '10%'", "at-least = 1, at-most = 1", 0.1),
        ("", "at-least = 1, at-most = 2", 0.0),
    ] {
        let found = tolerance(claim, range);
        assert!((found - expected).abs() < 1e-9, "{claim} {range}: {found}");
    }
}

#[test]
fn each_mistake_is_an_error_with_its_line() {
    for (line, text, part) in [
        (1, "[our claim]", "line 1"),
        (1, "['our claim']", "not a name of a claim"),
        (2, "clam = 'x'", "unknown key 'clam'; did you mean 'claim'"),
        (2, "claim = 3.5\nyear = 'long ago'", "line 3: 'year' is not a year"),
        (2, "claim = ''", "'claim' is not a text"),
        (2, "claim = 'x'\nheld = 'yes'", "line 3: 'held' is neither true nor false"),
        (3, "experiment = 'sesion'", "line 3: unknown experiment 'sesion'"),
        (4, "targets = ['sqlite']", "line 4: 'sqlite' is not a target"),
        (4, "targets = ['up:mysqll']", "line 4: up: cannot start 'mysqll'; did you mean up:mysql"),
        (4, "targets = ['sqlte:']", "line 4: no driver for 'sqlte:'"),
        (4, "targets = ['mysql://h/d?charst=x']", "line 4: mysql"),
        (5, "operations = ['raed']", "line 5: unknown operation 'raed'"),
        (6, "axes = { paylod = 1, layout = ['blob', 'rows'] }", "line 6: unknown axis 'paylod'"),
        (6, "axes = { payload = '1x', layout = ['blob', 'rows'] }", "line 6"),
        (6, "axes.layout = ['blob', 'rows']\naxes.payload = '10t'", "line 7"),
        (6, "rounds = 0\naxes = { layout = ['blob', 'rows'] }", "line 6: --rounds 0 is out of range"),
        (6, "axes = { layout = 'rows' }", "line 8: layout blob is not measured"),
        (7, "tolerance = 'much'", "line 7"),
        (8, "", "ours has no test"),
        (8, "test = 3", "line 8: 'test' is not a table"),
        (8, "test = { subject = { layout = 'rows' } }", "line 8: the test claims nothing"),
        (8, "test = { subject = { layout = 'rows' }, at-least = 'x' }", "line 8: at-least"),
        (8, "test = { subject = { layout = 'rows' }, at-least = -1 }", "'at-least' is not a positive number"),
        (8, "test = { at-least = 3, at-most = 2 }", "'at-least' is greater than 'at-most'"),
        (
            8,
            "test = { metric = 'troughput', at-least = 2 }",
            "unknown metric 'troughput'; did you mean 'throughput'",
        ),
        (8, "test = { operation = 'read', at-least = 2 }", "line 8: unknown operation 'read'"),
        (8, "test = { subject = { layot = 'rows' }, at-least = 2 }", "line 8: unknown axis 'layot'"),
        (8, "test = { subject = { layout = 'lob' }, at-least = 2 }", "line 8: --layout: 'lob'"),
        (
            8,
            "test = { subject = { target = 'up:mysql' }, at-least = 2 }",
            "line 8: unknown target 'up:mysql'",
        ),
        (
            8,
            "test = { subject = { layout = 'rows' }, baseline = { payload = '1k' }, at-least = 2 }",
            "do not name the same axes",
        ),
        (
            8,
            "test = { subject = { layout = 'rows' }, baseline = { layout = 'rows' }, at-least = 2 }",
            "are the same cell",
        ),
        (8, "[[ours.test]]\nsubject = { layout = 'rows' }\nat-leest = 2", "line 10: unknown key 'at-leest'"),
        (8, "not-testable = 'no'", "so that it has no"),
        (8, "suite = 'nowhere.toml'", "the suite ./nowhere.toml cannot be read"),
    ] {
        let text = with(line, text);
        let error = read(&text).expect_err(&text).to_string();
        assert!(error.contains(part), "{text}\n{error}");
        assert!(error.contains("line "), "{text}\n{error}");
    }
    assert!(read("").unwrap_err().to_string().contains("there is no claim"));
}

#[test]
fn bounds_have_the_unit_of_their_metric() {
    let of = |test: &str| {
        let found = read(&with(8, test)).unwrap();
        found[0].work.as_ref().unwrap().tests[0].claimed
    };
    let value = |range: Range| range.at_most.unwrap();
    assert!((value(of("test = { metric = 'service p99', at-most = '3ms' }")) - 3e6).abs() < 1e-6);
    assert!((value(of("test = { metric = 'data per second', at-most = '12.5MB' }")) - 12.5e6).abs() < 1e-6);
    assert!((value(of("test = { at-most = '10k' }")) - 10_000.0).abs() < 1e-6);
    assert!((value(of("test = { metric = 'log bytes per byte stored', at-most = 2.5 }")) - 2.5).abs() < 1e-9);
}

#[test]
fn servers_of_the_claims_time_stand_in_the_order_of_its_targets() {
    let text = with(7, "then = 'up:mysql@5.5'");
    assert_eq!(read(&text).unwrap()[0].work.as_ref().unwrap().then, ["up:mysql@5.5"]);
    let sides =
        "test = { subject = { target = 'sqlite:' }, baseline = { target = 'up:postgres' }, at-least = 2 }";
    let text = format!("{}\n{sides}", VALID[..6].join("\n"));
    let named = read(&text).unwrap();
    let first = &named[0].work.as_ref().unwrap().tests[0];
    assert_eq!((first.subject.target, first.baseline.as_ref().unwrap().target), (Some(0), Some(1)));
    let error = read(&text.replace("[ours]", "[ours]\nthen = ['up:mysql@5.5']")).unwrap_err().to_string();
    assert!(error.contains("line 2: 'then' needs a target for each of 'targets'"), "{error}");
}

#[test]
fn suite_file_is_measured_as_a_custom_workload() {
    let folder = tempfile::tempdir().unwrap();
    let suite = "targets = ['sqlite:']\n[collection.users]\nrows = 100\nkey = 'id'\n\
                 [collection.users.fields]\nid = 'int'\nvisits = { type = 'int', value = 0 }\n\
                 [transaction.find]\ndraw.id = { row = 'users' }\n\
                 steps = [{ get = 'users', key = ':id', fields = ['visits'] }]\n";
    std::fs::write(folder.path().join("own.toml"), suite).unwrap();
    let text = "[own]\nclaim = 'x'\nsuite = 'own.toml'\ntest = { at-least = 2 }";
    let found = claims(text, "ours", folder.path(), &workload()).unwrap();
    let work = found[0].work.as_ref().unwrap();
    assert_eq!(work.targets, ["sqlite:"]);
    assert!(work.request.spec().unwrap().custom.is_some());
    // A mistake in it is shown with its own file.
    std::fs::write(folder.path().join("own.toml"), suite.replace("rows = 100", "rows = -1")).unwrap();
    let error = claims(text, "ours", folder.path(), &workload()).unwrap_err().to_string();
    assert!(error.contains("own.toml"), "{error}");
}
