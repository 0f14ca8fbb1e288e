//! Pipelines: gates and their exit codes, labels, the folder of runs, progress as JSON, settings, and the script of CI
//! servers.

use crate::support::{Answer, Place};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A suite on `null:` whose results do not depend on a server.
fn suite(place: &Place, more: &str) -> PathBuf {
    let file = place.home().join("small.toml");
    let text = "experiment = 'point-read'\ntargets = ['null:']\nrounds = 4\nrequests = 2000\nrecords = 100\n";
    std::fs::write(&file, format!("{text}{more}")).unwrap();
    file
}

/// Runs a suite with these options.
fn run(place: &Place, suite: &Path, options: &[&str]) -> Answer {
    let words = ["run", "-f", suite.to_str().unwrap(), "--no-html"];
    place.run(&[&words, options].concat())
}

fn listed(place: &Place, options: &[&str]) -> Vec<Value> {
    let answer = place.run(&[&["runs", "ls", "--json"], options].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
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
    let file = place.home().join("slowed.jsonl");
    std::fs::write(&file, out).unwrap();
    let answer = place.run(&["runs", "import", file.to_str().unwrap()]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.out.trim().to_owned()
}

/// The checksum of a run file's lines: CRC-32 as in zlib.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}

#[test]
fn exit_code_of_comparison_says_what_the_gate_decided() {
    let place = Place::new();
    let suite = suite(&place, "");
    assert_eq!(run(&place, &suite, &[]).code, Some(0));
    let base = listed(&place, &[])[0]["run"].as_str().unwrap().to_owned();
    let (base, slower) = (slowed(&place, &base, 1.0), slowed(&place, &base, 1_000.0));
    let [junit, markdown, json] = ["a.xml", "a.md", "a.json"].map(|name| place.home().join(name));
    let files = [
        "--junit",
        junit.to_str().unwrap(),
        "--markdown",
        markdown.to_str().unwrap(),
        "--json",
        json.to_str().unwrap(),
    ];
    let compare = |a: &str, b: &str, options: &[&str]| place.run(&[&["compare", a, b], options].concat());
    let answer = compare(&base, &slower, &[&["--fail-on", "slower:50%"][..], &files].concat());
    assert_eq!(answer.code, Some(6), "{answer:?}");
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
    assert!(answer.code == Some(7) && answer.out.contains("inconclusive"), "{answer:?}");
    for options in [&["--fail-on", "quicker"][..], &["--fail-on", "slower:0%"], &["--junit", "x.xml"]] {
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
    let suite = suite.to_str().unwrap();
    let gate =
        |base: &str| command(&["gate", suite, "--against", base, "--fail-on", "slower:99%", "--no-html"]);
    // Nothing is measured without a base.
    let answer = gate("trunk");
    assert!(answer.code == Some(5) && answer.err.contains("'trunk' is neither"), "{answer:?}");
    assert!(listed(&place, &[]).is_empty());
    assert_eq!(command(&["run", "-f", suite, "--no-html", "--label", "v1"]).code, Some(0));
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
    let answer = command(&["gate", other.to_str().unwrap(), "--against", "v1"]);
    assert_eq!(answer.code, Some(5), "{answer:?}");
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
    let archive = place.home().join("runs.tar.gz");
    let names: Vec<String> =
        listed(&place, &[]).iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect();
    let words = ["runs", "export", &names[0], &names[1], "-o", archive.to_str().unwrap()];
    assert_eq!(place.run(&words).code, Some(0));
    let answer = place.run(&["runs", "rm", &names[0], &names[1]]);
    assert!(answer.code == Some(0) && listed(&place, &[]).is_empty(), "{answer:?}");
    assert_eq!(place.run(&["runs", "rm", "last"]).code, Some(5));
    assert_eq!(place.run(&["runs", "import", archive.to_str().unwrap()]).code, Some(0));
    assert_eq!(listed(&place, &["--label", "b"])[0]["note"], "a note\u{1b}[31m");
    assert_eq!(listed(&place, &[]).len(), 2);
    assert_eq!(place.run(&["runs", "import", suite.to_str().unwrap()]).code, Some(5));
}

#[test]
fn progress_is_one_json_object_per_line() {
    let place = Place::new();
    let answer = run(&place, &suite(&place, ""), &["--json-progress"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
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
        &["run", "point-read", "postgres://127.0.0.1:1/x", "--json-progress", "--requests", "1"],
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
        let answer = Answer::of(&command.output().unwrap());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        place.report()["spec"]["rounds"].as_u64().unwrap()
    };
    let own = ["run", "point-read", "null:", "--requests", "100", "--records", "100", "--no-html"];
    settings("[run]\nrounds = 3\n");
    assert_eq!(rounds(&own, None), 3);
    assert_eq!(rounds(&own, Some("4")), 4);
    assert_eq!(rounds(&[&own[..], &["--rounds", "5"]].concat(), Some("4")), 5);
    // The suite says 4.
    let file = suite(&place, "");
    let of_suite = ["run", "-f", file.to_str().unwrap(), "--no-html"];
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
    let answer = place.run(&own);
    assert!(
        answer.code == Some(2) && answer.err.contains("config.toml") && answer.err.contains("'rounds'"),
        "{answer:?}"
    );
    let mut command = place.command(&own);
    command.env("KURABE_CONFIG", "").env("KURABE_RUN_UNTIL", "dawn");
    let answer = Answer::of(&command.output().unwrap());
    assert!(answer.code == Some(2) && answer.err.contains("environment variable"), "{answer:?}");
}

#[test]
fn script_of_ci_servers_keeps_the_base_and_passes_on_the_gate() {
    let place = Place::new();
    let file = suite(&place, "");
    let script = format!("{}/../../ci/gate.sh", env!("CARGO_MANIFEST_DIR"));
    let ci = |set: &[(&str, &str)]| {
        let mut command = Command::new(&script);
        place.configure(&mut command);
        command.env("KURABE", crate::support::KURABE).env("SUITE", &file).env("FAIL_ON", "slower:99%");
        command.env("INCONCLUSIVE", "pass").envs(set.iter().copied()).current_dir(place.home());
        Answer::of(&command.output().unwrap())
    };
    let answer = ci(&[]);
    assert!(answer.code == Some(0) && answer.err.contains("no run of main yet"), "{answer:?}");
    let answer = ci(&[("IS_BASE", "true")]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    // The next pipeline has the archive only.
    std::fs::remove_dir_all(place.home().join(".kurabe/runs")).unwrap();
    let summary = place.home().join("summary.md");
    let answer = ci(&[("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())]);
    // Between the two runs the machine may have become busy.
    assert!(matches!(answer.code, Some(0 | 6)), "{answer:?}");
    assert!(answer.out.contains("The gate "), "{answer:?}");
    assert!(std::fs::read_to_string(summary).unwrap().contains("Kurabe"));
    assert!(
        std::fs::read_to_string(place.home().join(".kurabe/gate.junit.xml")).unwrap().contains("<testcase")
    );
}
