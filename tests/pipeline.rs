//! Pipelines: gates and their exit codes, labels, the folder of runs, progress as JSON, settings, and the script of CI
//! servers.

use crate::support::{Answer, Place};
use kurabe_testbed::testing;
use serde_json::Value;
use std::fmt::Write as _;
use std::process::Command;

/// A suite on `null:` whose results do not depend on a server.
fn suite(place: &Place, more: &str) -> String {
    let text = "experiment = 'point-read'\ntargets = ['null:']\nrounds = 4\nrequests = 2000\nrecords = 100\n";
    place.file("small.toml", format!("{text}{more}"))
}

/// Runs a suite with these options.
fn run(place: &Place, suite: &str, options: &[&str]) -> Answer {
    let words = ["run", "-f", suite, "--no-html"];
    place.run(&[&words, options].concat())
}

fn listed(place: &Place, options: &[&str]) -> Vec<Value> {
    let answer = place.run(&[&["runs", "ls", "--format", "json"], options].concat()).success();
    answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A copy of a run in which each trial took this many times as long, imported under another name. It has no observations:
/// the client of `null:` is always saturated, and its results would be lower bounds.
fn slowed(place: &Place, run: &str, factor: f64) -> String {
    let runs = listed(place, &[]);
    let source = runs.iter().find(|one| one["run"] == run).unwrap()["file"].as_str().unwrap();
    let text = std::fs::read_to_string(source).unwrap();
    let mut before = String::new();
    let mut out = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("crc");
        if line.get("kurabe-run").is_some() {
            line["run"] = format!("slowed-{factor}").into();
        }
        if let Some(elapsed) = line.pointer_mut("/trial/outcome/measured/elapsed_ns") {
            *elapsed = ((elapsed.as_u64().unwrap() as f64 * factor) as u64).into();
        }
        if let Some(measured) = line.pointer_mut("/trial/outcome/measured") {
            measured.as_object_mut().unwrap().remove("observed");
        }
        let object = line.to_string();
        let body = format!("{},\"crc\":\"", &object[..object.len() - 1]);
        let digits = format!("{:08x}", crc32(format!("{before}{body}").as_bytes()));
        let _ = writeln!(out, "{body}{digits}\"}}");
        before = digits;
    }
    let file = place.file("slowed.jsonl", out);
    let answer = place.run(&["runs", "import", &file]).success();
    answer.out.trim().to_owned()
}

/// The checksum of a run file's lines: CRC-32 as in zlib.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}

#[test]
fn exit_code_of_comparison_says_what_the_gate_decided() {
    let Some(_) = testing::server("memcached") else { return };
    let place = Place::new();
    let of = |target: &str| {
        let is_of = |run: &&Value| run["targets"].to_string().contains(target);
        listed(&place, &[]).iter().find(is_of).unwrap()["run"].as_str().unwrap().to_owned()
    };
    // Servers as they ran: what changes between two runs was not sampled.
    assert_eq!(run(&place, &suite(&place, ""), &[]).code, Some(0));
    let once = of("null");
    let answer = place.run(&["compare", &once, &slowed(&place, &once, 500.0), "--fail-on", "slower:50%"]);
    assert!(answer.code == Some(7) && answer.out.contains("Nothing is decided"), "{answer:?}");
    let text = "experiment = 'point-read'\ntargets = ['up:memcached']\nrestarts = 3\nrounds = 8\ninterleave = 'off'\n\
                requests = 200\nrecords = 100\n";
    let suite = place.file("restarted.toml", text);
    assert_eq!(run(&place, &suite, &[]).code, Some(0));
    let base = of("memcached");
    let (base, slower) = (slowed(&place, &base, 1.0), slowed(&place, &base, 1_000.0));
    let [junit, markdown, json] = ["a.xml", "a.md", "a.json"].map(|name| place.at(name));
    let files = ["--export-junit", &junit, "--export-markdown", &markdown, "--export-json", &json];
    let compare = |a: &str, b: &str, options: &[&str]| place.run(&[&["compare", a, b], options].concat());
    let answer = compare(&base, &slower, &[&["--fail-on", "slower:50%"][..], &files].concat()).exit_code(6);
    assert!(answer.out.contains("gate failed"), "{answer:?}");
    let [junit, markdown, json] = [junit, markdown, json].map(|file| std::fs::read_to_string(file).unwrap());
    assert!(junit.contains("<failure ") && markdown.contains("gate failed"), "{junit}\n{markdown}");
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["gate"]["decision"], "failed");
    // Without a criterion the code says nothing of the results.
    assert_eq!(compare(&base, &slower, &[]).code, Some(0));
    // The other way round it is faster.
    assert_eq!(compare(&slower, &base, &["--fail-on", "slower:50%"]).code, Some(0));
    // An interval that is wider than the margin.
    let answer = compare(&base, &slowed(&place, &base, 1.001), &["--fail-on", "slower:0.000001%"]);
    assert!(answer.code == Some(7) && answer.out.contains("undecided"), "{answer:?}");
    for options in [&["--fail-on", "quicker"][..], &["--fail-on", "slower:0%"], &["--export-junit", "x.xml"]]
    {
        assert_eq!(compare(&base, &slower, options).code, Some(2), "{options:?}");
    }
    assert_eq!(compare(&base, &base, &["--fail-on", "slower"]).code, Some(2));
}

#[test]
fn gate_compares_with_the_newest_run_of_label_or_branch() {
    let place = Place::new();
    let suite = suite(&place, "");
    let repository = place.home().join("repository");
    std::fs::create_dir(&repository).unwrap();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=trunk"];
        let output = git.args(who).args(args).current_dir(&repository).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "a"]);
    let command = |words: &[&str]| {
        let mut command = place.command(words);
        for name in
            ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_BRANCH", "CI_COMMIT_REF_NAME", "GIT_DIR"]
        {
            command.env_remove(name);
        }
        Answer::of(&command.current_dir(&repository).output().unwrap())
    };
    let gate = |base: &str| {
        command(&["run", "-f", &suite, "--against", base, "--fail-on", "slower:99%", "--no-html"])
    };
    // Nothing is measured without a base.
    gate("trunk").exit_code(5).err_has("'trunk' is neither");
    assert!(listed(&place, &[]).is_empty());
    assert_eq!(command(&["run", "-f", &suite, "--no-html", "--label", "v1"]).code, Some(0));
    let first = listed(&place, &[]).remove(0);
    assert_eq!(first["origin"]["suite"], "small");
    assert_eq!(first["origin"]["git"]["commit"], git(&["rev-parse", "HEAD"]));
    assert_eq!(
        (&first["origin"]["git"]["branch"], &first["origin"]["git"]["dirty"]),
        (&"trunk".into(), &false.into())
    );
    for base in ["v1", "trunk", "last", first["run"].as_str().unwrap()] {
        let answer = gate(base);
        assert!(matches!(answer.code, Some(0 | 6 | 7)), "{base}: {answer:?}");
        assert!(answer.err.contains("comparing with ") && answer.out.contains("The gate "), "{answer:?}");
    }
    // The gate's runs have the base's seed.
    let seeds: Vec<Value> = listed(&place, &[])
        .iter()
        .map(|run| {
            place.run(&["report", run["run"].as_str().unwrap(), "--format", "json"]).json()["seed"].clone()
        })
        .collect();
    assert!(seeds.iter().all(|seed| *seed == seeds[0]), "{seeds:?}");
    assert_eq!(listed(&place, &["--label", "v1"]).len(), 1);
    // Another suite has no such run.
    let other = place.home().join("other.toml");
    std::fs::copy(suite, &other).unwrap();
    command(&["run", "-f", other.to_str().unwrap(), "--against", "v1"]).exit_code(5);
}

#[test]
fn runs_are_listed_removed_annotated_and_carried_over() {
    let place = Place::new();
    let suite = suite(&place, "");
    for label in ["a", "b"] {
        assert_eq!(run(&place, &suite, &["--label", label]).code, Some(0));
    }
    assert_eq!(run(&place, &suite, &["--label", "not a label"]).code, Some(2));
    assert_eq!(place.run(&["runs", "note", "last", "a note\u{1b}[31m"]).code, Some(0));
    let text = place.run(&["runs", "ls"]).out;
    assert!(text.contains("label b") && text.contains("a note\\u{1b}[31m"), "{text}");
    assert_eq!(listed(&place, &["--label", "b"])[0]["note"], "a note\u{1b}[31m");
    let archive = place.at("runs.tar.gz");
    let names: Vec<String> =
        listed(&place, &[]).iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect();
    let words = ["runs", "export", &names[0], &names[1], "-o", &archive];
    assert_eq!(place.run(&words).code, Some(0));
    let answer = place.run(&["runs", "rm", &names[0], &names[1]]);
    assert!(answer.code == Some(0) && listed(&place, &[]).is_empty(), "{answer:?}");
    assert_eq!(place.run(&["runs", "rm", "last"]).code, Some(5));
    assert_eq!(place.run(&["runs", "import", &archive]).code, Some(0));
    assert_eq!(listed(&place, &["--label", "b"])[0]["note"], "a note\u{1b}[31m");
    assert_eq!(listed(&place, &[]).len(), 2);
    assert_eq!(place.run(&["runs", "import", &suite]).code, Some(5));
}

#[test]
fn progress_is_one_json_object_per_line() {
    let place = Place::new();
    let answer = run(&place, &suite(&place, ""), &["--log-format=json"]).success();
    let events: Vec<Value> = answer
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    let run = place.report();
    let planned = events.iter().find_map(|event| event["planned"].as_u64()).unwrap();
    assert!(planned > 0 && of("trial-begins") > 0 && of("trial-ends") as u64 >= planned, "{events:?}");
    let last = events.last().unwrap();
    assert_eq!(
        (&last["event"], &last["run"], &last["complete"]),
        (&"run-ends".into(), &run["run"], &true.into())
    );
    // Errors are events too.
    let answer = run_of(
        &place,
        &["run", "point-read", "postgres://127.0.0.1:1/x", "--log-format=json", "--requests", "1"],
    );
    let error: Value = serde_json::from_str(answer.err.lines().last().unwrap()).unwrap();
    assert!(answer.code == Some(3) && error["event"] == "error", "{answer:?}");
}

fn run_of(place: &Place, words: &[&str]) -> Answer {
    place.run(words)
}

#[test]
fn settings_come_from_command_line_environment_suite_and_file_in_this_order() {
    let place = Place::new();
    let folder = place.home().join(".config/kurabe");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = |text: &str| std::fs::write(folder.join("config.toml"), text).unwrap();
    let rounds = |words: &[&str], env: Option<&str>| {
        let mut command = place.command(words);
        command.envs(env.map(|value| ("KURABE_RUN_ROUNDS", value)));
        Answer::of(&command.output().unwrap()).success();
        place.report()["spec"]["rounds"].as_u64().unwrap()
    };
    let own = ["run", "point-read", "null:", "--requests", "100", "--records", "100", "--no-html"];
    settings("[run]\nrounds = 3\n");
    assert_eq!(rounds(&own, None), 3);
    assert_eq!(rounds(&own, Some("4")), 4);
    assert_eq!(rounds(&[&own[..], &["--rounds", "5"]].concat(), Some("4")), 5);
    // The suite says 4.
    let file = suite(&place, "");
    let of_suite = ["run", "-f", &file, "--no-html"];
    assert_eq!(rounds(&of_suite, None), 4);
    assert_eq!(rounds(&of_suite, Some("6")), 6);
    // Targets of the settings are for runs that name none.
    settings(
        "[run]\ntarget = ['null:', 'sqlite:']\nrequests = 100\nrecords = 100\nrounds = 1\nno-html = true\n",
    );
    let targets = |words: &[&str]| {
        assert_eq!(place.run(words).code, Some(0));
        place.report()["targets"].as_array().unwrap().len()
    };
    assert_eq!(targets(&["run", "point-read"]), 2);
    assert_eq!(targets(&["run", "point-read", "null:"]), 1);
    assert_eq!(targets(&of_suite), 1);
    settings("[run]\nround = 3\n");
    place.run(&own).exit_code(2).err_has("config.toml").err_has("'rounds'");
    let mut command = place.command(&own);
    command.env("KURABE_CONFIG", "").env("KURABE_RUN_UNTIL", "dawn");
    Answer::of(&command.output().unwrap()).exit_code(2).err_has("environment variable");
}

/// Two builds of the program, each in a folder of its own: the first is the program, and so is the second, unless it is to
/// open a connection to its database for each request.
fn builds(place: &Place, slow: bool) -> [String; 2] {
    ["base", "head"].map(|name| {
        let folder = place.home().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let build = folder.join("kurabe");
        let _ = std::fs::remove_file(&build);
        if slow && name == "head" {
            let text =
                format!("#!/bin/sh\nexec {} \"$@\" --connection per-request\n", crate::support::KURABE);
            std::fs::write(&build, text).unwrap();
            std::fs::set_permissions(&build, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        } else {
            std::os::unix::fs::symlink(crate::support::KURABE, &build).unwrap();
        }
        format!(
            "{} up app up:postgres --experiment kv --records 200 --seed 7 --listen 127.0.0.1:0",
            build.display()
        )
    })
}

#[test]
fn gate_of_ci_servers_finds_a_planted_slowdown_between_two_builds_and_none_between_equal_ones() {
    if testing::server("postgres").is_none() {
        return;
    }
    let place = Place::new();
    let text =
        "experiment = 'kv'\noperations = ['read']\nrounds = 6\nduration = '150ms'\n[axes]\nclients = [1]\n";
    let file = place.file("kv.toml", text);
    let script = format!("{}/../../ci/gate.sh", env!("CARGO_MANIFEST_DIR"));
    let summary = place.home().join("summary.md");
    let ci = |builds: [String; 2]| {
        let mut command = Command::new(&script);
        place.configure(&mut command);
        let set = [("BASE", &builds[0]), ("HEAD", &builds[1])];
        command
            .env("KURABE", crate::support::KURABE)
            .env("SUITE", &file)
            .envs(set)
            .env("FAIL_ON", "slower:30%");
        command.env("GITHUB_STEP_SUMMARY", &summary).current_dir(place.home());
        Answer::of(&command.output().unwrap())
    };
    let results = || {
        let of = |name: &str| std::fs::read_to_string(place.home().join(".kurabe").join(name)).unwrap();
        let compared: Value = serde_json::from_str(&of("gate.json")).unwrap();
        (compared["rows"][0]["gate"].as_str().unwrap().to_owned(), of("gate.junit.xml"))
    };
    let equal = ci(builds(&place, false));
    // A busy machine may leave it open. It must not be called slower.
    assert!(matches!(equal.code, Some(0 | 7)), "{equal:?}");
    let (judged, junit) = results();
    assert!(matches!(judged.as_str(), "passed" | "undecided" | "not-judged"), "{judged}: {equal:?}");
    assert!(junit.contains("<testcase") && !junit.contains("<failure"), "{junit}");
    let slower = ci(builds(&place, true));
    let (judged, junit) = results();
    if slower.code == Some(7) {
        // A machine that is very busy widens the interval; one that excludes the margin fails the gate, whatever the load.
        let compared = std::fs::read_to_string(place.home().join(".kurabe/gate.json")).unwrap();
        let compared: Value = serde_json::from_str(&compared).unwrap();
        let high = compared["rows"][0]["high"].as_f64();
        assert!(judged == "undecided" && high.is_some_and(|high| high >= 1.0 / 1.3), "{compared:#}");
    } else {
        assert!(slower.code == Some(6) && slower.out.contains("The gate failed"), "{slower:?}");
        assert!(judged == "slower" && junit.contains("<failure"), "{judged}: {junit}");
        assert!(std::fs::read_to_string(summary).unwrap().contains("gate failed"));
    }
    let page = std::fs::read_to_string(place.home().join(".kurabe/gate.html")).unwrap();
    assert!(page.contains("The gate ") && page.contains("Content-Security-Policy"), "{page}");
    // Both were measured in one run each, and nothing that the script started is left.
    assert_eq!(std::fs::read_dir(place.home().join(".kurabe/runs")).unwrap().count(), 2);
    let left = Command::new("pgrep").args(["-f", &place.at("base/kurabe")]).output();
    assert!(left.unwrap().stdout.is_empty(), "the base build is still running");
}

#[test]
fn gate_of_a_migration_names_the_plan_that_changed_and_the_rows_that_it_examines() {
    if testing::server("postgres").is_none() {
        return;
    }
    let place = Place::new();
    let rows = "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL);\n\
                INSERT INTO orders SELECT n, n % 2000 FROM generate_series(1, 20000) n;\n";
    let index = "CREATE INDEX by_customer ON orders (customer);\n";
    let [main, branch] = [("main.sql", index), ("branch.sql", "")]
        .map(|(name, index)| format!("up:postgres?setup={}", place.file(name, format!("{rows}{index}"))));
    let script =
        place.file("browse.sql", "\\set c random(0, 1999)\nSELECT id FROM orders WHERE customer = :c;\n");
    let [page, junit, json] = ["gate.html", "gate.xml", "gate.json"].map(|name| place.at(name));
    let files = ["--export-html", &page, "--export-junit", &junit, "--export-json", &json];
    let words = ["gate", &script, &main, &branch, "--requests", "150", "--rounds", "10", "--no-html"];
    let answer = place.run(&[&words[..], &files].concat()).exit_code(6);
    let text = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("The plan of “browse” changed: ") && text.contains("Seq Scan on orders"), "{text}");
    assert!(text.contains("Rows examined per transaction: 1"), "{text}");
    assert!(text.contains("Worst is ") && answer.out.lines().count() <= 20, "{answer:?}");
    let compared: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let rows = compared["rows"].as_array().unwrap();
    let of = |metric: &str| rows.iter().find(|row| row["metric"] == metric).unwrap();
    // One direction: second ÷ first of the figures.
    for (metric, is_more) in [("throughput", false), ("service p99", true)] {
        let row = of(metric);
        let [first, second] = ["first", "second"].map(|side| row[side]["value"].as_f64().unwrap());
        let ratio = row["ratio"].as_f64().unwrap();
        assert_eq!((second > first, ratio > 1.0), (is_more, is_more), "{row:#}");
    }
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("second ÷ first is 0.") && junit.contains("), worse"), "{junit}");
    answer.err_has("gate.html");
    assert!(std::fs::read_to_string(page).unwrap().contains("The plan of “browse” changed"));
}

#[test]
fn build_that_does_not_start_ends_the_script_with_its_output() {
    let place = Place::new();
    let script = format!("{}/../../ci/gate.sh", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(&script);
    place.configure(&mut command);
    command.env("SUITE", "none.toml").env("BASE", "null:").env("HEAD", "sh -c 'echo broken >&2; exit 1'");
    Answer::of(&command.current_dir(place.home()).output().unwrap()).exit_code(3).err_has("broken");
}

#[test]
fn run_of_two_targets_is_judged_by_itself_and_any_run_is_exported() {
    let place = Place::new();
    let suite = suite(&place, "");
    let of = |more: &[&str]| place.run(&[&["run", "-f", &suite, "--no-html"], more].concat());
    let answer = of(&["null:", "null:", "--fail-on", "slower:99%", "--export-json", "-"]);
    assert!(matches!(answer.code, Some(0 | 7)), "{answer:?}");
    let compared = answer.json();
    assert_ne!(compared["first"], compared["second"]);
    assert_eq!((&compared["rows"][0]["primary"], &compared["gate"]["slower"]), (&true.into(), &0.into()));
    // One target, or three, have no second that is judged against the first.
    for targets in [&["null:"][..], &["null:", "null:", "null:"]] {
        of(&[targets, &["--fail-on", "slower"]].concat()).exit_code(2).err_has("--against");
    }
    let [json, markdown] = ["r.json", "r.md"].map(|name| place.at(name));
    let files = ["--export-json", &json, "--export-markdown", &markdown];
    of(&files).success().out_has("point-read");
    let exported: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(exported, place.report());
    assert!(std::fs::read_to_string(&markdown).unwrap().starts_with("# "));
}

#[test]
fn recorded_run_has_its_own_settings() {
    let place = Place::new();
    let suite = suite(&place, "");
    assert_eq!(run(&place, &suite, &[]).code, Some(0));
    place.run(&["run", "--again", "last", "--rounds", "9"]).exit_code(2).err_has("rounds");
    // Without a name it is the newest.
    assert_eq!(place.run(&["run", "--again", "--no-html"]).code, Some(0));
    assert_eq!(listed(&place, &[]).len(), 2);
}
