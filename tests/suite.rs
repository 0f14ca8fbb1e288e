//! Suites of several runs: what they record, the table, shared servers, targets that cannot be used, Ctrl-C.

use crate::restarts::watch;
use crate::support::{Answer, Place, signal};
use kurabe_testbed::testing;
use serde_json::Value;
use std::path::PathBuf;

/// Keys above the runs, for the shortest runs.
const BRIEF: &str = "rounds = 1\nduration = '20ms'\nrecords = 50\n";
/// The length of the time of day with the date in a run's name, to the second.
const SECOND: usize = "20261125-094616".len();

/// A suite file in the user's home.
fn suite(place: &Place, text: &str) -> String {
    place.file("small.toml", text)
}

fn run(place: &Place, text: &str, options: &[&str]) -> Answer {
    let path = suite(place, text);
    place.run(&[&["run", "-f", &path, "--no-html"], options].concat())
}

/// The table that a suite prints as JSON, with the answer.
fn table(place: &Place, text: &str, options: &[&str]) -> (Answer, Value) {
    let answer = run(place, text, &[&["--export-json", "-"], options].concat());
    let table = answer.json();
    (answer, table)
}

/// The states of a run, by the names of the columns.
fn states(table: &Value, run: &str) -> Vec<(String, String)> {
    let targets = table["targets"].as_array().unwrap();
    let runs = table["runs"].as_array().unwrap();
    let run = runs.iter().find(|row| row["name"] == run).unwrap();
    let cells = run["cells"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    cells
        .iter()
        .map(|cell| (text(&targets[cell["target"].as_u64().unwrap() as usize]), text(&cell["state"])))
        .collect()
}

fn recorded(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path()).unwrap().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join("run.jsonl").exists()).collect()
}

#[test]
fn runs_are_recorded_in_order_and_one_table_has_them_all() {
    let place = Place::new();
    let text = format!(
        "targets = ['sqlite:', 'up:tcp']\n{BRIEF}[[run]]\nexperiment = 'kv'\naxes = {{ clients = 1 }}\n\
         [[run]]\nname = 'network'\nexperiment = 'net'\naxes = {{ buffer = '64KiB', write-size = '8KiB' }}\n\
         [[run]]\nexperiment = 'footprint'\ntargets = ['sqlite:']\naxes = {{ connections = 2, state = ['idle', 'active'] }}\n"
    );
    let (markdown, json) = (place.home().join("table.md"), place.home().join("table.json"));
    let files = ["--export-markdown", markdown.to_str().unwrap(), "--export-json", json.to_str().unwrap()];
    let answer = run(&place, &text, &files).success();
    let table: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let pair = |target: &str, state: &str| (target.to_owned(), state.to_owned());
    assert_eq!(states(&table, "kv"), [pair("sqlite", "measured"), pair("tcp", "not-available")]);
    assert_eq!(states(&table, "network"), [pair("sqlite", "not-available"), pair("tcp", "measured")]);
    assert_eq!(states(&table, "footprint").len(), 1);
    let names: Vec<&str> =
        table["runs"].as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap()).collect();
    assert_eq!(recorded(&place).len(), 3);
    for (name, experiment) in names.iter().zip(["kv", "net", "footprint"]) {
        let report = place.run(&["report", name, "--format", "json"]).json();
        assert_eq!((&report["spec"]["experiment"], &report["complete"]), (&experiment.into(), &true.into()));
        assert_eq!(report["origin"]["suite"], "small");
    }
    // Two runs may begin in the same second; then their experiments follow in the names.
    let begins: Vec<&str> = names.iter().map(|name| &name[..SECOND]).collect();
    assert!(begins.is_sorted(), "{names:?}");
    // The reports come first, the table last.
    let (reports, shown) = answer.out.split_once("\nsmall · 3 runs on 2 targets: ").unwrap();
    assert!(reports.contains("ops/s"), "{answer:?}");
    let rows: Vec<&str> = shown.lines().filter(|line| line.starts_with("network ")).collect();
    assert!(rows.len() == 1 && rows[0].contains("n/a [") && rows[0].contains("measured"), "{shown}");
    let text = std::fs::read_to_string(markdown).unwrap();
    assert!(text.starts_with("# small · 3 runs") && text.contains("| network | n/a"), "{text}");
    for number in ["run 1 of 3: kv", "run 3 of 3: footprint"] {
        assert!(answer.err.contains(number), "{answer:?}");
    }
}

#[test]
fn target_that_cannot_be_used_is_left_out_and_the_others_are_measured() {
    let place = Place::new();
    let text = format!(
        "targets = ['sqlite:', 'redis://127.0.0.1:1', 'up:memcached']\n{BRIEF}[[run]]\nexperiment = 'kv'\n\
         axes = {{ clients = 1 }}\n[[run]]\nexperiment = 'point-read'\ntargets = ['null:', 'redis://127.0.0.1:1']\n"
    );
    let path = suite(&place, &text);
    let mut command = place.command(&["run", "-f", &path, "--no-html", "--export-json", "-"]);
    // No server is installed.
    let answer = Answer::of(&command.env("KURABE_SERVER_PATH", place.home()).output().unwrap()).exit_code(4);
    let table = answer.json();
    let of = |run: &str| states(&table, run).into_iter().map(|(_, state)| state).collect::<Vec<_>>();
    assert_eq!(of("kv"), ["measured", "failed", "not-available"]);
    assert_eq!(of("point-read"), ["measured", "failed"]);
    let reasons = &table["runs"][0]["cells"];
    assert!(reasons[1]["reasons"][0].as_str().unwrap().contains("redis://127.0.0.1:1"), "{table:#}");
    assert!(reasons[2]["reasons"][0].as_str().unwrap().contains("memcached"), "{table:#}");
    assert!(answer.err.contains("left out of kv"), "{answer:?}");
    // The run file has the targets that were measured.
    let name = table["runs"][0]["run"].as_str().unwrap();
    let report = place.run(&["report", name, "--format", "json"]).json();
    assert_eq!(report["spec"]["targets"], serde_json::json!(["sqlite:"]));
}

#[test]
fn run_without_any_result_does_not_end_the_suite() {
    let place = Place::new();
    let text = format!(
        "targets = ['sqlite:']\n{BRIEF}[[run]]\nexperiment = 'net'\n[[run]]\nexperiment = 'point-read'\n\
         targets = ['redis://127.0.0.1:1']\n[[run]]\nexperiment = 'kv'\naxes = {{ clients = 1 }}\n"
    );
    let (answer, table) = table(&place, &text, &[]);
    assert_eq!(answer.code, Some(4), "{answer:?}");
    let of = |run: &str| states(&table, run)[0].1.clone();
    assert_eq!([of("net"), of("point-read"), of("kv")], ["not-available", "failed", "measured"]);
    assert_eq!(table["runs"][0]["run"], Value::Null);
    assert_eq!((recorded(&place).len(), &table["complete"]), (1, &true.into()));
}

/// Runs a suite of two runs on memcached. Returns the table and the number of servers that there were.
fn on_memcached(place: &Place, servers: &str, first: &str) -> (Answer, Value, usize) {
    let text = format!(
        "servers = '{servers}'\ntargets = ['up:memcached']\n{BRIEF}interleave = 'off'\n[[run]]\n{first}\n\
         [[run]]\nname = 'second'\nexperiment = 'point-read'\naxes = {{ clients = 1 }}\n"
    );
    let path = suite(place, &text);
    let args = ["run", "-f", &path, "--no-html", "--export-json", "-"];
    let (answer, ever, most) = watch(place.spawn(&args), "memcached");
    assert_eq!((answer.code, most), (Some(0), 2), "{answer:?}");
    let table = answer.json();
    (answer, table, ever.len())
}

#[test]
fn shared_server_is_started_once_and_later_runs_say_so() {
    if testing::server("memcached").is_none() {
        return;
    }
    for (servers, starts) in [("shared", 1), ("per-run", 2)] {
        let place = Place::that_starts_servers();
        let first = "experiment = 'kv'\naxes = { clients = 1 }";
        let (answer, table, ever) = on_memcached(&place, servers, first);
        // Each has a second instance for the A/A control.
        assert_eq!(ever, 2 * starts, "{servers}");
        assert_eq!(answer.err.matches("starting throwaway memcached").count(), starts, "{answer:?}");
        let note = |run: usize| {
            let name = table["runs"][run]["run"].as_str().unwrap();
            place.run(&["report", name, "--format", "json"]).out.contains("an earlier run of the suite")
        };
        assert_eq!((note(0), note(1)), (false, servers == "shared"));
    }
}

#[test]
fn server_that_was_restricted_to_processors_is_restarted_for_the_next_run() {
    if testing::server("memcached").is_none() {
        return;
    }
    let place = Place::that_starts_servers();
    let first = "experiment = 'cpus'\naxes = { cpus = 1, cpu-placement = 'shared', clients = 1 }";
    let (answer, _, ever) = on_memcached(&place, "shared", first);
    assert_eq!(answer.err.matches("starting throwaway memcached").count(), 1, "{answer:?}");
    assert_eq!(ever, 4, "{answer:?}");
}

#[test]
fn dry_run_of_a_suite_starts_and_records_nothing() {
    let place = Place::new();
    let text = format!(
        "servers = 'shared'\ntargets = ['sqlite:', 'up:tcp']\n{BRIEF}[[run]]\nexperiment = 'kv'\n[[run]]\nexperiment = 'net'\n"
    );
    let answer = run(&place, &text, &["--dry-run"]).success();
    assert!(answer.out.contains("\nsmall · 2 runs on 2 targets: 2 planned, 2 not available\n"), "{answer:?}");
    assert!(answer.out.contains("kv on sqlite, tcp: ") && !answer.err.contains("starting"), "{answer:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn only_the_named_runs_are_made() {
    let place = Place::new();
    let text = format!(
        "targets = ['null:']\n{BRIEF}[[run]]\nexperiment = 'kv'\naxes = {{ clients = 1 }}\n[[run]]\nname = 'b'\nexperiment = 'kv'\n\
         axes = {{ clients = 2 }}\n"
    );
    let (answer, table) = table(&place, &text, &["--only", "b"]);
    assert_eq!((answer.code, table["runs"].as_array().unwrap().len()), (Some(0), 1), "{answer:?}");
    assert_eq!(states(&table, "b")[0].1, "measured");
}

#[test]
fn interrupt_keeps_what_was_measured_and_says_how_to_make_the_rest() {
    let place = Place::new();
    let path = suite(
        &place,
        "targets = ['null:']\nrecords = 50\ninterleave = 'off'\n[[run]]\nexperiment = 'point-read'\nrounds = 200\n\
         duration = '100ms'\n[[run]]\nname = 'never'\nexperiment = 'kv'\n",
    );
    let (child, _) = place.spawn_to_trial(&["run", "-f", &path, "--no-html"], 3);
    place.go_on(3);
    signal(&child, "-INT");
    let answer = Answer::at_end_of(child).exit_code(130);
    assert!(answer.out.contains("2 runs on 1 target: 2 stopped"), "{answer:?}");
    let name = recorded(&place)[0].file_name().unwrap().to_string_lossy().into_owned();
    let rest = format!("'kurabe run --resume {name}', then 'kurabe run -f {path} --only never'");
    assert!(answer.err.contains(&rest), "{rest}: {answer:?}");
    assert!(place.run(&["report", &name]).out.contains("point-read"));
}

#[test]
fn mistake_in_the_last_run_is_found_before_anything_starts() {
    let place = Place::new();
    let head = "targets = ['up:memcached']\n[[run]]\nexperiment = 'kv'\n[[run]]\n";
    for (text, parts) in [
        ("experiment = 'kvv'", ["small.toml: line 5: ", "'kv'"]),
        ("experiment = 'kv'", ["line 4: two runs are named 'kv'", "give one of them a name"]),
        ("experiment = 'point-read'\ntargets = ['up:memcache']", ["line 6: ", "up:memcached"]),
        // Known only from the plan: no file has this name.
        (
            "experiment = 'webapp'\naxes = { postal-codes = '/nosuch.csv' }",
            ["line 4: run 'webapp'", "/nosuch.csv"],
        ),
    ] {
        let answer = run(&place, &format!("{head}{text}"), &[]).exit_code(2);
        assert!(parts.iter().all(|part| answer.err.contains(part)), "{text}: {answer:?}");
        assert!(!answer.err.contains("starting throwaway"), "{answer:?}");
    }
    run(&place, "experiment = 'kv'", &["--only", "kv"]).exit_code(2).err_has("several runs");
    let path = suite(&place, &format!("{head}experiment = 'point-read'"));
    place.run(&["run", "-f", &path, "--against", "last"]).exit_code(2).err_has("has several runs");
}
