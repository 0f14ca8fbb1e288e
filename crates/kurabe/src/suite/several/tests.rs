//! Suites of several runs, and mistakes in them.

use super::*;
use kurabe_core::axis::AxisValue;

/// Reads a suite with options, beside the files `one.toml`, `custom.toml` and `several.toml`.
fn read(text: &str, options: &[&str]) -> Result<Several> {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        (
            "one.toml",
            "experiment = 'kv'\ntargets = ['null:']\nrounds = 9\nduration = '9s'\n[axes]\nclients = 9",
        ),
        (
            "custom.toml",
            "name = 'mine'\ntargets = ['sqlite:']\n[variables]\nrows = 5\n[collection.a]\nrows = ':rows'\nkey = 'id'\n\
             fields.id = 'int'\n[transaction.t]\nsteps = [{ sql = 'SELECT count(*) FROM {a}', rows = 1 }]",
        ),
        ("several.toml", "[[run]]\nexperiment = 'kv'"),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().join("suite.toml");
    std::fs::write(&path, text).unwrap();
    let words = ["kurabe", "run", "-f", path.to_str().unwrap()].into_iter().chain(options.iter().copied());
    let matches = crate::cli::command().try_get_matches_from(words).unwrap();
    let (_, matches) = matches.subcommand().unwrap();
    Several::read(&path, &RunOptions::of(matches)).map(|suite| suite.expect("several runs"))
}

fn names(suite: &Several) -> Vec<&str> {
    suite.runs.iter().map(|run| run.name.as_str()).collect()
}

const TWO: &str = "targets = ['sqlite:', 'null:']\nrounds = 2\nduration = '50ms'\nrecords = 10\n\
                   [[run]]\nexperiment = 'kv'\naxes = { clients = 1 }\n\
                   [[run]]\nname = 'second'\nexperiment = 'net'\ntargets = ['up:tcp']\nrounds = 3\n";

#[test]
fn keys_above_runs_hold_for_all_and_those_of_a_run_precede_them() {
    let suite = read(TWO, &[]).unwrap();
    assert_eq!(names(&suite), ["kv", "second"]);
    assert!(!suite.shares_servers);
    let specs: Vec<_> = suite.runs.iter().map(|run| run.request.spec().unwrap()).collect();
    assert_eq!((specs[0].rounds, specs[1].rounds), (2, 3));
    assert_eq!(specs[0].targets, ["sqlite:", "null:"]);
    assert_eq!(specs[1].targets, ["up:tcp"]);
    assert_eq!(specs[1].duration_ns, Some(50_000_000));
    assert_eq!(specs[0].records, Some(10));
    assert!(
        read("servers = 'shared'\n[[run]]\nexperiment = 'kv'\ntargets = 'null:'", &[])
            .unwrap()
            .shares_servers
    );
}

#[test]
fn options_override_runs_except_for_their_own_targets() {
    let options = ["null:", "--rounds", "4", "--duration", "1s", "--clients", "3", "--write-size", "1k"];
    let suite = read(TWO, &options).unwrap();
    let specs: Vec<_> = suite.runs.iter().map(|run| run.request.spec().unwrap()).collect();
    assert_eq!((specs[0].rounds, specs[1].rounds), (4, 4));
    assert_eq!((specs[0].targets[0].as_str(), specs[1].targets[0].as_str()), ("null:", "up:tcp"));
    assert_eq!(specs[0].axes["clients"], specs[1].axes["clients"]);
    assert!(specs[1].axes.contains_key("write-size") && !specs[0].axes.contains_key("write-size"));
    // A budget replaces the duration.
    let suite = read(TWO, &["--budget", "20s"]).unwrap();
    let spec = suite.runs[0].request.spec().unwrap();
    assert_eq!((spec.duration_ns, spec.budget_ns), (None, Some(20_000_000_000)));
    let error = read(TWO, &["--payload", "1k"]).unwrap_err().to_string();
    assert!(error.contains("--payload: no run of the suite has this axis"), "{error}");
    let error = read(TWO, &["-D", "rows=1"]).unwrap_err().to_string();
    assert!(error.contains("--define: no run has variables"), "{error}");
}

#[test]
fn only_chooses_runs_in_the_order_of_the_file() {
    assert_eq!(names(&read(TWO, &["--only", "second,kv"]).unwrap()), ["kv", "second"]);
    assert_eq!(names(&read(TWO, &["--only", "second"]).unwrap()), ["second"]);
    let error = read(TWO, &["--only", "secnod"]).unwrap_err().to_string();
    assert!(error.contains("--only") && error.contains("'second'"), "{error}");
}

#[test]
fn file_of_a_run_is_overridden_by_the_suite() {
    let suite = read("rounds = 2\n[[run]]\nfile = 'one.toml'\nduration = '1s'", &[]).unwrap();
    let spec = suite.runs[0].request.spec().unwrap();
    assert_eq!((names(&suite)[0], spec.experiment.as_str(), spec.rounds), ("one", "kv", 2));
    assert_eq!((spec.targets[0].as_str(), spec.duration_ns), ("null:", Some(1_000_000_000)));
    assert_eq!(spec.axes["clients"], [AxisValue::Number(9)]);
    let common = read("targets = 'sqlite:'\n[[run]]\nfile = 'one.toml'", &[]).unwrap();
    assert_eq!(common.runs[0].request.spec().unwrap().targets, ["sqlite:"]);
}

#[test]
fn custom_workload_has_variables_of_the_run_and_then_of_options() {
    let text = "[[run]]\nname = 'small'\nfile = 'custom.toml'\ndefine = { rows = 7 }";
    let custom = |options: &[&str]| {
        read(text, options).unwrap().runs.remove(0).request.spec().unwrap().custom.unwrap()
    };
    assert_eq!(custom(&[]).define["rows"], "7");
    assert_eq!(custom(&["-D", "rows=8"]).define["rows"], "8");
    // A temporary file holds nothing of the user's.
    assert!(custom(&[]).write);
}

#[test]
fn statements_may_change_tables_of_the_run_s_own_targets_only_if_these_are_throwaway() {
    let text = "[[run]]\nfile = 'custom.toml'\ntargets = ['postgres://app@db.example/shop']";
    let write = |options: &[&str]| read(text, options).unwrap().runs.remove(0).request.custom.unwrap().write;
    // The command line's targets are not those of this run.
    assert!(!write(&["sqlite:"]));
    assert!(write(&["--write"]));
}

#[test]
fn mistakes_are_refused_with_file_line_and_remedy() {
    let head = "targets = ['sqlite:']\n";
    for (text, line, parts) in [
        ("[[run]]\nexperiment = 'sesion'", 3, ["'sesion'", "'session'"]),
        ("[[run]]\nname = 'a'", 2, ["no experiment", "write experiment ="]),
        ("[[run]]\nexperiment = 'kv'\nfile = 'one.toml'", 4, ["an experiment and a file", "leave one"]),
        (
            "[[run]]\nexperiment = 'kv'\n[[run]]\nexperiment = 'kv'",
            4,
            ["two runs are named 'kv'", "in line 2"],
        ),
        (
            "[[run]]\nname = 'a'\nexperiment = 'kv'\n[[run]]\nname = 'a'\nexperiment = 'net'",
            5,
            ["two runs are named 'a'", "give another name"],
        ),
        ("[[run]]\nname = 'a b'\nexperiment = 'kv'", 3, ["'a b' is not a name", "use letters"]),
        ("[[run]]\nexperiment = 'kv'\nrouns = 2", 4, ["run 'kv'", "'rounds'"]),
        ("[[run]]\nexperiment = 'kv'\nseed = 1\nrounds = 'x'", 5, ["rounds", "x"]),
        ("[[run]]\nexperiment = 'kv'\n\n[run.axes]\nclient = 2", 6, ["'client'", "'clients'"]),
        ("[[run]]\nexperiment = 'kv'\n[run.axes]\nclients = 0", 5, ["clients", ""]),
        (
            "[[run]]\nexperiment = 'session'\n[run.axes]\npayload = '1k'\nclients = 'x'\nlayout = 'zz'",
            7,
            ["layout", "'zz'"],
        ),
        (
            "[[run]]\nexperiment = 'session'\nrounds = 3\nmargin = '5%'\nmax-rounds = 10",
            5,
            ["--margin", "--until"],
        ),
        (
            "[[run]]\nexperiment = 'kv' # é\n\n[[run]]\nname = 'b'\nexperiment = 'kv'\naxes = { clients = 0 }",
            8,
            ["'b'", ""],
        ),
        ("[[run]]\nname = 2024-01-01\nexperiment = 'kv'", 3, ["'name'", "neither"]),
        ("[[run]]\nexperiment = 'kv'\ntargets = []", 4, ["no targets", "write targets ="]),
        ("[[run]]\nexperiment = 'kv'\ntargets = ['up:postgre']", 4, ["'postgre'", "up:postgres"]),
        ("[[run]]\nexperiment = 'kv'\ntargets = ['nothing']", 4, ["this is not a target", ""]),
        ("[[run]]\nexperiment = 'kv'\ndefine = { a = 1 }", 4, ["'define'", "custom workload"]),
        ("[[run]]\nfile = 'nosuch.toml'", 3, ["nosuch.toml", "cannot be read"]),
        ("[[run]]\nfile = 'several.toml'", 3, ["several.toml", "several runs itself"]),
        ("[[run]]\nfile = 'one.toml'\ndefine = { a = 1 }", 4, ["no variables", "leave out"]),
        (
            "[[run]]\nexperiment = 'kv'\nbudget = '1s'\nduration = '1s'",
            2,
            ["--budget cannot be combined", ""],
        ),
        ("run = 3", 2, ["not a list of runs", "write [[run]]"]),
        ("run = []", 2, ["not a list of runs", "write [[run]]"]),
        ("servers = 'some'\n[[run]]\nexperiment = 'kv'", 2, ["'some'", "'shared'"]),
        (
            "axes = { clients = 1 }\n[[run]]\nexperiment = 'kv'",
            2,
            ["'axes' cannot hold", "below the [[run]]"],
        ),
        ("round = 1\n[[run]]\nexperiment = 'kv'", 2, ["'round'", "'rounds'"]),
    ] {
        let error = read(&format!("{head}{text}"), &[]).unwrap_err();
        let shown = error.to_string();
        assert_eq!(error.kind(), kurabe_core::ErrorKind::Usage, "{text}: {shown}");
        assert!(shown.contains(&format!("suite.toml: line {line}: ")), "{text}: line {line}: {shown}");
        assert!(parts.iter().all(|part| shown.contains(part)), "{text}: {parts:?}: {shown}");
    }
}

#[test]
fn run_without_targets_is_refused() {
    let error = read("[[run]]\nexperiment = 'kv'", &[]).unwrap_err().to_string();
    assert!(error.contains("line 1: run 'kv': the run has no targets"), "{error}");
    assert!(read("[[run]]\nexperiment = 'kv'", &["sqlite:"]).is_ok());
}

#[test]
fn suite_of_one_run_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.toml");
    std::fs::write(&path, "experiment = 'kv'").unwrap();
    let matches = crate::cli::command().try_get_matches_from(["kurabe", "run", "-f", "x"]).unwrap();
    let (_, matches) = matches.subcommand().unwrap();
    assert!(Several::read(&path, &RunOptions::of(matches)).unwrap().is_none());
}
