//! Valid and invalid suites.

use super::*;
use kurabe_core::axis::AxisValue;

fn parse(text: &str, custom: Option<CustomWorkload>) -> Result<Request> {
    super::parse(text, custom, Settings::default())
}

#[test]
fn suite_has_defaults_for_missing_keys() {
    let request = parse(
        "experiment = 'session'\ntargets = ['sqlite:']\nrounds = 3\ndurability = 'os-cache'\nrequests = { write = 10, read = '1k' }\n\
         [axes]\npayload = ['1k', 2000]\nlayout = 'blob'\n",
        None,
    )
    .unwrap();
    let spec = request.spec().unwrap();
    assert_eq!(spec.axes["payload"], [AxisValue::Number(1_000), AxisValue::Number(2_000)]);
    assert_eq!((spec.requests["write"], spec.requests["read"], spec.rounds), (10, 1_000, 3));
    assert_eq!(spec.durability, Some(DurabilityClass::OsCache));
    assert_eq!(spec.budget_ns, None);
    assert_eq!(spec.axes["clients"], [AxisValue::Number(1)]);
}

#[test]
fn misspelt_key_is_rejected_with_suggestion() {
    for (text, near) in [
        ("experiment = 'session'\ntarget = 'sqlite:'", "'targets'"),
        ("experiment = 'sesion'", "'session'"),
        ("experiment = 'session'\n[axes]\npaylod = 1", "'payload'"),
        ("experiment = 'session'\noperations = ['raed']", "'read'"),
        ("experiment = 'session'\ndurability = 'os-cash'", "'os-cache'"),
    ] {
        let error = parse(text, None).unwrap_err().to_string();
        assert!(error.contains("did you mean") && error.contains(near), "{error}");
    }
    let error = parse("experiment = 'session'\nrounds = = 3", None).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn invalid_values_are_rejected() {
    for text in [
        "experiment = 'session'\nrounds = 0",
        "experiment = 'session'\nrequests = 0",
        "experiment = 'session'\nduration = '1s'\nbudget = '1s'",
        "experiment = 'session'\n[axes]\npayload = '1x'",
        "experiment = 'session'\n[axes]\nclients = 0",
        "experiment = 'session'\n[axes]\npayload = '10t'",
    ] {
        assert!(parse(text, None).and_then(|request| request.spec()).is_err(), "{text}");
    }
}

#[test]
fn budget_option_replaces_duration_of_suite_and_vice_versa() {
    let read = |suite: &str, options: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, format!("experiment = 'session'\n{suite}")).unwrap();
        let words =
            ["kurabe", "run", "-f", path.to_str().unwrap()].into_iter().chain(options.iter().copied());
        let matches = crate::cli::command().try_get_matches_from(words).unwrap();
        let (_, matches) = matches.subcommand().unwrap();
        Request::of_suite(&path, &RunOptions::of(matches)).and_then(|request| request.spec())
    };
    let second = 1_000_000_000;
    let spec = read("duration = '1s'", &["--budget", "20s"]).unwrap();
    assert_eq!((spec.duration_ns, spec.budget_ns), (None, Some(20 * second)));
    let spec = read("requests = 100", &["--budget", "20s"]).unwrap();
    assert!(spec.budget_ns == Some(20 * second) && spec.requests["read"] != 100, "{spec:?}");
    let spec = read("budget = '20s'", &["--duration", "1s"]).unwrap();
    assert_eq!((spec.duration_ns, spec.budget_ns), (Some(second), None));
    assert!(read("", &["--duration", "1s", "--budget", "20s"]).is_err());
    // With --until the two can be combined: the length of a trial, and of the run.
    let spec = read("duration = '1s'\nuntil = 'conclusive'", &["--budget", "20s"]).unwrap();
    assert_eq!(spec.duration_ns, Some(second));
    assert_eq!(spec.until.unwrap().budget_ns, Some(20 * second));
}

#[test]
fn several_applications_are_one_target() {
    for (given, one) in [
        ("http://a:1,http://b:2", "http://a:1,b:2"),
        ("http://a:1/,http://b:2/", "http://a:1,b:2"),
        ("http://a:1/x,http://b:2/x", "http://a:1,b:2/x"),
        ("http://a:1/x", "http://a:1/x"),
        ("http://a:1,b:2", "http://a:1,b:2"),
        ("https://a:1,https://b:2", "https://a:1,b:2"),
        ("sqlite:", "sqlite:"),
    ] {
        assert_eq!(split_targets(given).unwrap(), [one]);
    }
    assert!(split_targets("http://a:1/x,http://b:2").unwrap_err().to_string().contains("the same path"));
}

#[test]
fn named_axis_values_are_never_dropped() {
    let free = |text| parse(text, None).unwrap().free().unwrap();
    let all = free("experiment = 'session'");
    assert!(all.rounds && all.axes.iter().any(|axis| axis == "payload"));
    let some = free("experiment = 'session'\nrounds = 5\n[axes]\npayload = ['1k', '4k']");
    assert!(!some.rounds && !some.axes.iter().any(|axis| axis == "payload"));
    assert!(some.axes.iter().any(|axis| axis == "layout"));
}

#[test]
fn rounds_fill_blocks_between_restarts_or_are_rejected() {
    let spec = |text: &str| parse(&format!("experiment = 'point-read'\n{text}"), None).unwrap().spec();
    let on = "targets = ['up:redis', 'sqlite:']";
    let made = |text: &str| spec(&format!("{on}\n{text}")).map(|spec| (spec.restarts, spec.rounds)).unwrap();
    // If trials are interleaved, the first round of each block is one of continuous trials.
    assert_eq!(made(""), (0, 6));
    assert_eq!(made("restarts = 0\nrounds = 5"), (0, 5));
    assert_eq!(made("restarts = 1"), (1, 6));
    assert_eq!(made("restarts = 4"), (4, 15));
    assert_eq!(made("restarts = 2\ninterleave = 'off'"), (2, 6));
    assert_eq!(made("restarts = 2\nrounds = 12"), (2, 12));
    assert_eq!(made("restarts = 2\nrounds = 6\naxes = { rate = '100' }"), (2, 6));
    for (text, part, hint) in [
        ("restarts = 2\nrounds = 6", "6 rounds cannot be divided into 3 blocks", "--rounds 9"),
        ("restarts = 2\nrounds = 5\ninterleave = 'off'", "5 rounds cannot be", "--rounds 6"),
        ("restarts = 1\nrounds = 2", "of at least 2 rounds", "--rounds 4"),
        ("restarts = 1001", "out of range", "from 0 to 1000"),
    ] {
        let error = spec(&format!("{on}\n{text}")).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(hint), "{text}: {error}");
    }
    let error = spec("restarts = 1\ntargets = ['sqlite:', 'null:']").unwrap_err().to_string();
    assert!(error.contains("no target is a throwaway server"), "{error}");
}

/// The request of `kurabe run pgbench` with these options.
fn pgbench(words: &[&str]) -> Result<Request> {
    let words = [&["kurabe", "run", "pgbench", "sqlite:"], words].concat();
    let matches = crate::cli::command().try_get_matches_from(words).unwrap();
    let run = matches.subcommand_matches("run").unwrap();
    Request::of_pgbench(&RunOptions::of(run.subcommand_matches("pgbench").unwrap()))
}

#[test]
fn options_of_pgbench_are_those_of_its_manual() {
    let spec = pgbench(&["-c", "8", "-j", "2", "-t", "10", "-M", "extended"]).unwrap().spec().unwrap();
    assert_eq!(spec.axes["clients"], [AxisValue::Number(8)]);
    assert_eq!(spec.axes["statement"], [AxisValue::Word("per-request".to_owned())]);
    assert_eq!((spec.threads, spec.requests["transaction"]), (Some(ClientThreads::Count(2)), 80));
    let spec = pgbench(&["-T", "5", "-R", "100"]).unwrap().spec().unwrap();
    assert_eq!((spec.duration_ns, spec.arrivals), (Some(5_000_000_000), Some(Arrivals::Poisson)));
    assert_eq!(
        (&spec.axes["rate"][..], &spec.axes["clients"][..]),
        (&[AxisValue::Number(100)][..], &[AxisValue::Number(1)][..])
    );
    assert_eq!(pgbench(&["-T", "0.3"]).unwrap().spec().unwrap().duration_ns, Some(300_000_000));
    for words in [["-c", "1,5"], ["-c", "1.5"], ["-t", "0.5"]] {
        assert!(pgbench(&words).is_err(), "{words:?}");
    }
}

#[test]
fn option_of_pgbench_beside_its_equivalent_is_refused() {
    for words in [&["-c", "8", "--clients", "4"][..], &["-T", "5", "--duration", "4s"]] {
        assert_eq!(pgbench(words).unwrap_err().kind(), kurabe_core::ErrorKind::Usage, "{words:?}");
    }
    assert!(pgbench(&["--clients", "1,2", "-t", "10"]).is_err());
}
