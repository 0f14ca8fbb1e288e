//! What somebody meets who uses the program for the first time, and mistakes on the command line.

use crate::recorded::short;
use crate::servers::common::has;
use crate::support::{Answer, Place};
use kurabe_core::run::{Outcome, TrialRecord};
use kurabe_record::{RunPath, Store};
use kurabe_stats::rng::Rng;
use std::net::TcpListener;

const SMALL: [&str; 9] =
    ["run", "point-read", "sqlite:", "--records", "100", "--requests", "100", "--rounds", "2"];

/// Asserts that the answer is a usage error in one message with all these parts.
fn refused(answer: &Answer, parts: &[&str]) {
    assert_eq!(answer.code, Some(2), "{answer:?}");
    for part in parts {
        assert!(answer.err.contains(part), "'{part}' is not in: {answer:?}");
    }
    assert!(!answer.err.contains("starting throwaway"), "{answer:?}");
}

#[test]
fn answer_is_short_and_the_rest_is_behind_verbose() {
    let place = Place::new();
    let args = [
        "run", "session", "sqlite:", "--payload", "1k,4k", "--layout", "blob", "--compress", "none",
        "--requests", "60", "--records", "20", "--rounds", "2",
    ];
    let answer = place.run(&args).success();
    let lines: Vec<&str> = answer.out.lines().collect();
    assert!(lines[0].contains("ops/s") && lines.len() <= 20, "{answer:?}");
    // An embedded database has no server that could report anything.
    for part in ["Reported by the server", "\nBasis\n", "Machine: "] {
        assert!(!answer.out.contains(part), "{part}: {}", answer.out);
    }
    assert!(lines.last().is_some_and(|line| line.ends_with("--verbose")), "{}", answer.out);
    let whole = place.run(&["report", "last", "--verbose"]);
    for part in ["Verdict", "Reported by the server", "\nBasis\n", "Machine: "] {
        assert!(whole.out.contains(part), "{part}: {}", whole.out);
    }
    assert!(whole.out.lines().count() > lines.len(), "{}", whole.out);
}

#[test]
fn answers_and_messages_fit_a_terminal_of_forty_columns() {
    let (place, _) = short();
    let run = ["run", "session", "null:", "--payload", "1k", "--requests", "20", "--rounds", "1"];
    let nobody = ["doctor", "postgres://127.0.0.1:1/shop"];
    for (args, code, speaks) in [
        (&["report"][..], 0, false),
        (&["report", "--verbose"], 0, false),
        (&["runs", "ls"], 0, false),
        (&["doctor"], 0, false),
        (&["list"], 0, false),
        (&run, 0, true),
        (&nobody, 3, true),
    ] {
        let answer = Answer::of(&place.command(args).env("COLUMNS", "40").output().unwrap());
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert!(!speaks || answer.err.lines().count() > 1, "{answer:?}");
        let lines = answer.out.lines().chain(answer.err.lines());
        let wide: Vec<&str> = lines.filter(|line| line.chars().count() > 40).collect();
        // What has no space is not broken: it could not be copied.
        let breakable: Vec<&&str> = wide.iter().filter(|line| line.trim().contains(' ')).collect();
        assert!(breakable.is_empty(), "{args:?}: {breakable:#?}");
    }
}

#[test]
fn width_of_pipes_is_that_of_the_environment_and_missing_columns_are_named() {
    let (place, _) = short();
    let shown = |columns: &str| {
        let answer = Answer::of(
            &place.command(&["report", "last", "--verbose"]).env("COLUMNS", columns).output().unwrap(),
        );
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.out
    };
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    let (narrow, wide) = (shown("80"), shown("200"));
    assert!(widest(&narrow) <= 80 && widest(&wide) > 110, "{narrow}\n{wide}");
    for text in [&narrow, &wide] {
        let heads = text.lines().find(|line| line.contains("ops/s")).unwrap();
        assert!(heads.contains("p99") && heads.contains("limited by"), "{text}");
    }
    assert!(!wide.contains("Not shown in"), "{wide}");
    let narrowest = shown("60");
    assert!(narrowest.contains("Not shown in 60 columns: "), "{narrowest}");
    // Nonsense is ignored.
    assert_eq!(shown("many"), shown("0"));
}

/// Records the newest run again under the name `long`, with copies of its last round until it has this many. Their times
/// differ by a few per cent, as those of real rounds do.
fn with_more_rounds(place: &Place, rounds: u32) {
    let folder = std::fs::read_dir(place.path()).unwrap().flatten().next().unwrap().path();
    let mut run = kurabe_record::read(&RunPath::in_folder(&folder)).unwrap().run;
    let last = run.header.spec.rounds - 1;
    run.header.spec.rounds = rounds;
    "long".clone_into(&mut run.header.run);
    let mut writer = Store::open(place.path()).unwrap().create(&run.header).unwrap();
    run.trials.iter().for_each(|trial| writer.trial(trial).unwrap());
    let mut rng = Rng::new(16);
    for round in last + 1..rounds {
        for trial in run.trials.iter().filter(|trial| trial.round == last) {
            let mut trial = TrialRecord { round, ..trial.clone() };
            if let Outcome::Measured(measured) = &mut trial.outcome {
                measured.elapsed_ns += measured.elapsed_ns * rng.below(50) / 1_000;
            }
            writer.trial(&trial).unwrap();
        }
    }
    writer.end(run.end.as_ref().unwrap()).unwrap();
}

#[test]
fn repetition_has_the_times_of_its_run_and_not_those_of_its_budget() {
    let place = Place::new();
    let first = ["run", "point-read", "null:", "--rounds", "2", "--budget", "2s", "--no-html"];
    place.run(&first).success();
    // As if the run had been fitted otherwise: by another version, or to another machine.
    let folder = std::fs::read_dir(place.path()).unwrap().flatten().next().unwrap().path();
    let mut run = kurabe_record::read(&RunPath::in_folder(&folder)).unwrap().run;
    assert!(run.header.spec.budget_ns.is_some() && run.header.spec.duration_ns != Some(7_000_000));
    run.header.spec.duration_ns = Some(7_000_000);
    "fitted".clone_into(&mut run.header.run);
    let mut writer = Store::open(place.path()).unwrap().create(&run.header).unwrap();
    writer.end(run.end.as_ref().unwrap()).unwrap();
    drop(writer);
    place.run(&["run", "--again", "fitted", "--no-html"]).success();
    let report = place.run(&["report", "last", "--format", "json"]).json();
    assert_ne!(report["run"], "fitted");
    assert_eq!((&report["spec"]["duration_ns"], &report["spec"]["rounds"]), (&7_000_000.into(), &2.into()));
}

#[test]
fn page_of_the_default_run_is_within_its_budget() {
    let place = Place::new();
    // All cells of the axes' default values, in shorter trials. Where there is time for more rounds, runs have fewer of them.
    let answer = place.run(&[
        "run", "session", "sqlite:", "--rounds", "2", "--duration", "10ms", "--records", "8", "--no-html",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    with_more_rounds(&place, 16);
    let report = place.run(&["report", "long", "--format", "json"]).json();
    assert_eq!(report["rounds"], 16);
    let cells = report["cells"].as_array().unwrap();
    for (axis, values) in report["spec"]["axes"].as_object().unwrap() {
        assert!(
            values
                .as_array()
                .unwrap()
                .iter()
                .all(|value| cells.iter().any(|cell| cell["axes"][axis] == *value)),
            "{axis}"
        );
    }
    assert!(cells.iter().all(|cell| cell["status"] == "ok"), "{answer:?}");
    let page = place.run(&["report", "long", "--format", "html"]).out;
    let size = std::fs::metadata(page.trim()).unwrap().len();
    assert!(size < 300_000, "{size} bytes of {} cells", cells.len());
}

#[test]
fn messages_that_nobody_reads_do_not_end_the_run() {
    let place = Place::new();
    let mut child = place.spawn(&SMALL);
    drop(child.stderr.take());
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.report()["complete"], true);
}

#[test]
fn doctor_without_a_target_examines_the_default_target() {
    Place::new().run(&["doctor"]).success().out_has("SQLite");
}

#[test]
fn dry_run_prints_its_plan_and_starts_no_server() {
    let place = Place::new();
    let mut targets = vec!["sqlite:".to_owned()];
    // A server that is not installed is an error before a run too.
    let found = kurabe_testbed::available().into_iter().filter(|(_, found)| found.is_ok());
    // A listener holds no sessions.
    let found = found.filter(|(engine, _)| *engine != "tcp");
    targets.extend(found.map(|(engine, _)| format!("up:{engine}")));
    // Nothing is named, so that what fits into a server's memory would be asked of it.
    let mut args = vec!["run", "session", "--dry-run"];
    args.extend(targets.iter().map(String::as_str));
    let answer = place.run(&args).success();
    assert!(answer.out.starts_with("session on sqlite"), "{answer:?}");
    assert!(!answer.err.contains("starting"), "{answer:?}");
    for target in &targets {
        let name = target.trim_start_matches("up:").trim_end_matches(':');
        let cell = format!("\n  {name} 1 kB");
        assert!(answer.out.contains(&cell), "{name}: {answer:?}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn values_that_no_target_can_measure_take_no_place_in_a_budget() {
    // SQLite has no statement of so many parameters as inserts of 50,000 rows need.
    let place = Place::new();
    let answer = place.run(&["run", "bulk", "sqlite:", "--budget", "6s", "--dry-run"]).success();
    assert!(answer.out.contains("left out"), "{answer:?}");
    let of_target = answer.out.lines().filter(|line| line.starts_with("  sqlite"));
    assert!(of_target.filter(|line| !line.contains("A/A")).count() >= 2, "{answer:?}");
}

#[test]
fn dry_run_says_what_is_compared_and_has_nothing_that_cannot_matter() {
    let place = Place::new();
    let plan = |args: &[&str]| {
        let answer = place.run(&[args, &["--dry-run"]].concat()).success();
        answer.out
    };
    let pools = plan(&["run", "connect", "sqlite:", "--pool", "8,16", "--clients", "4"]);
    // The size of a pool matters where there is one.
    let cells: Vec<&str> = pools.lines().filter(|line| line.starts_with("  sqlite")).collect();
    let with = |part: &str| cells.iter().filter(|line| line.contains(part)).count();
    assert_eq!(
        (with(" kept 8 "), with(" kept 16 "), with(" pool 8 "), with(" pool 16 ")),
        (2, 0, 1, 1),
        "{pools}"
    );
    for (more, question) in [
        (&["session", "sqlite:"][..], "each value of layout with the first, at each value of payload"),
        (&["session", "sqlite:", "sqlite:"], "targets with each other, at each value of payload"),
        (
            &["session", "sqlite:", "sqlite:", "--clients", "1,4"],
            // The default payloads give way to one.
            "targets with each other, at each value of clients",
        ),
        (
            &["session", "sqlite:", "--clients", "1,4"],
            "each value of clients with the first, at each value of payload",
        ),
        (
            &["session", "sqlite:", "sqlite:", "--compare", "layout"],
            "each value of layout with the first, at each value of payload",
        ),
        // What a chart has along it is compared if nothing else is.
        (&["point-read", "sqlite:", "--clients", "1,4"], "each value of clients with the first"),
        // Only a throwaway cache can be given a size.
        (&["cache-aside", "sqlite:"], "nothing"),
    ] {
        let text = plan(&[&["run"], more].concat());
        assert!(text.lines().any(|line| line == format!("compares {question}")), "{question}: {text}");
    }
}

#[test]
fn used_address_is_refused_before_data_is_loaded() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let answer = Place::new().run(&["up", "app", "sqlite:", "--listen", &address]).exit_code(3);
    assert!(answer.err.contains(&format!("cannot listen at {address}")), "{answer:?}");
    assert!(!answer.err.contains("loading"), "{answer:?}");
}

#[test]
fn missing_tables_of_pgbench_are_an_error_that_names_init() {
    let place = Place::new();
    for extra in [&[][..], &["-D", "scale=1"]] {
        let args = ["run", "pgbench", "sqlite:", "--requests", "10", "--rounds", "1"];
        let answer = place.run(&[&args[..], extra].concat());
        assert_ne!(answer.code, Some(0), "{answer:?}");
        assert!((answer.out + &answer.err).contains("--init"), "{extra:?}: {}", answer.err);
    }
}

#[test]
fn statement_may_change_tables_of_throwaway_targets_only() {
    let place = Place::new();
    let script = place.file("a.sql", "CREATE TABLE IF NOT EXISTS mine (n INTEGER);\n");
    let made = place.file("mine.db", "");
    let run = |target: &str| {
        place.run(&[
            "run", "pgbench", "-f", &script, target, "--requests", "4", "--rounds", "1", "--clients", "1",
        ])
    };
    assert_eq!(run("sqlite:").code, Some(0));
    refused(&run(&format!("sqlite:{made}")), &["a.sql", "may change data", "--write"]);
}

#[test]
fn help_of_run_shows_the_axes_of_every_experiment() {
    let help = Place::new().run(&["run", "--help"]);
    for part in ["--clients <LIST>", "--rate <LIST>"] {
        assert!(help.out.contains(part), "{}", help.out);
    }
}

#[test]
fn list_of_runs_has_date_length_and_verdict() {
    let place = Place::new();
    assert_eq!(place.run(&SMALL).code, Some(0));
    let listed = place.run(&["runs", "ls"]);
    let lines: Vec<&str> = listed.out.lines().collect();
    let [head, verdict] = lines[..] else { panic!("{listed:?}") };
    assert!(head.contains(" UTC, point-read on sqlite:, complete after ") && head.contains("s, "), "{head}");
    assert!(verdict.starts_with("    ") && verdict.ends_with('.'), "{verdict}");
}

#[test]
fn comparison_of_a_run_with_itself_says_so() {
    let (place, _) = short();
    let same = "both names are those of the same run";
    place.run(&["compare", "last", "last"]).success().err_has(same);
    refused(&place.run(&["compare", "last", "last", "--fail-on", "slower"]), &[same]);
}

/// What is planned, and what the plan says.
const PLANS: [(&str, &[&str]); 7] = [
    (
        "session null: --layout blob,rows --compress none,lz4 --payload 1k --rounds 3",
        &["4 combinations", "3 rounds"],
    ),
    ("copy sqlite: --where second", &["plain", "types", "out", "into"]),
    ("net up:tcp --buffer 64KiB --write-size 8KiB", &["stream, round-trip", "buffer 65.5 kB"]),
    ("reload sqlite: --order key,index,random --tool engine,kurabe", &["key", "index", "random", "kurabe"]),
    (
        "link up:mariadb --way federated --where second",
        &["mariadb federated", "its limits are not checked: mariadb"],
    ),
    ("reload up:mariadb --order key --tool engine", &["mariadb key", "its limits are not checked: mariadb"]),
    // A margin is in per cent, and a budget in seconds.
    ("point-read sqlite: --until conclusive --margin 5 --budget 5", &["at ±5 %"]),
];

#[test]
fn dry_run_plans_each_kind_of_run_and_measures_nothing() {
    let place = Place::new();
    for (run, parts) in PLANS {
        if run.contains("up:mariadb") && !has("mariadb") {
            continue;
        }
        let words: Vec<&str> = ["run"].into_iter().chain(run.split(' ')).chain(["--dry-run"]).collect();
        let answer = place.run(&words).success();
        let said = format!("{}{}", answer.out, answer.err);
        for part in parts {
            assert!(said.contains(part), "{run}: '{part}' is not in: {said}");
        }
        assert!(!said.contains("not available") && !said.contains("starting"), "{said}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn target_without_results_is_exit_4() {
    let answer = Place::new().run(&[
        "run", "point-read", "sqlite:", "null:", "--durability", "synced", "--records", "50", "--requests",
        "50", "--rounds", "1",
    ]);
    assert_eq!(answer.code, Some(4), "{answer:?}");
    assert!(answer.out.contains("not available"), "{answer:?}");
}

const WORKLOAD: &str = "[variables]\nusers = 10\n[collection.people]\nrows = \":users\"\nkey = \"id\"\nfields.id = \"int\"\n\
     [transaction.one]\ndraw.id = \"random(1, :users)\"\nsteps = [ { get = \"people\", key = \":id\", fields = [\"id\"] } ]\n";

#[test]
fn empty_ranges_are_found_before_anything_starts_with_file_and_place() {
    let place = Place::new();
    let script = place.file("a.sql", "\n\\set id random(5, 1)\nSELECT :id;\n");
    let answer = place.run(&["run", "pgbench", "-f", &script, "up:postgres"]);
    refused(&answer, &["a.sql", "line 2", "from 5 to 1 is empty"]);
    let workload = place.file("b.toml", WORKLOAD);
    for (value, part) in [("-5", "-5 is not a valid number of rows"), ("many", "rows")] {
        let answer = place.run(&["run", "-f", &workload, "up:postgres", "-D", &format!("users={value}")]);
        refused(&answer, &["b.toml", "line ", part]);
    }
    let reversed = place.file("c.toml", WORKLOAD.replace("random(1, :users)", "random(5, 1)"));
    let answer = place.run(&["run", "-f", &reversed, "up:postgres"]);
    refused(&answer, &["c.toml", "line ", "from 5 to 1 is empty"]);
}

#[test]
fn errors_of_the_operating_system_have_no_numbers() {
    let place = Place::new();
    let text = place.file("text.db", "no database\n".repeat(500));
    for args in [
        &["run", "-f", "/nowhere/a.toml"][..],
        &["run", "pgbench", "-f", "/nowhere/a.sql"],
        &["doctor", &format!("sqlite:{text}")],
        &["doctor", "sqlite:/nowhere/a.db"],
        &["doctor", "postgres://127.0.0.1:1/x"],
        &["run", "point-read", "sqlite:", "--runs-dir", "/proc/x"],
        &["report", "nosuch"],
    ] {
        let answer = place.run(args);
        assert_ne!(answer.code, Some(0), "{answer:?}");
        assert!(!answer.err.contains("os error") && !answer.err.contains("[26]"), "{answer:?}");
        assert!(!answer.errors().is_empty(), "{answer:?}");
    }
}

#[test]
fn options_override_axes_and_variables_of_a_suite() {
    let place = Place::new();
    let workload = place.file(
        "b.toml",
        format!("[axes]\nclients = [1, 2]\n{WORKLOAD}")
            .replacen("[axes]\nclients = [1, 2]\n", "axes.clients = [1, 2]\n", 1),
    );
    let args = [
        "run", "-f", &workload, "sqlite:", "--clients", "4", "-D", "users=30", "--requests", "40",
        "--rounds", "1",
    ];
    place.run(&args).success();
    let report = place.report();
    assert_eq!(report["spec"]["axes"]["clients"], serde_json::json!([4]), "{}", report["spec"]);
    assert_eq!(report["spec"]["custom"]["define"]["users"], "30", "{}", report["spec"]);
    let suite = place.file("s.toml", "experiment = 'point-read'\naxes.clients = [1, 8]\n");
    let answer = place.run(&["run", "-f", &suite, "--dry-run", "--clients", "3"]);
    assert!(answer.code == Some(0) && answer.out.contains("3 clients"), "{answer:?}");
    assert!(!answer.out.contains("8 clients"), "{answer:?}");
    refused(&place.run(&["run", "-f", &suite, "--payload", "1k"]), &["point-read", "unknown axis 'payload'"]);
    refused(&place.run(&["run", "-f", &suite, "-D", "users=1"]), &["no variables"]);
    let one = place.run(&["run", "webapp", "sqlite:", "--dry-run", "--clients", "1,5"]);
    assert!(one.code == Some(0) && !one.out.contains("1 clients"), "{one:?}");
}
