//! Interleaved trials (`--interleave`): correct, paired, and stoppable.

use crate::support::{Answer, Place, signal, trials};
use kurabe_testbed::testing;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Short trials in short slices.
const BRIEF: [&str; 7] = ["--interleave=5ms", "--duration", "40ms", "--rounds", "4", "--records", "20000"];

/// The trials of the only run that count, with their rounds and metrics.
fn measured(place: &Place) -> Vec<(u64, Value)> {
    by_cell(place).into_iter().map(|((round, ..), measured)| (round, measured)).collect()
}

/// The same by round, cell and operation; the last of each counts.
fn by_cell(place: &Place) -> BTreeMap<(u64, u64, String), Value> {
    let run = fs::read_dir(place.path()).unwrap().flatten().next().unwrap().path();
    let text = fs::read_to_string(run.join("run.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let trial = |line: &Value| {
        let trial = line.get("trial").unwrap_or(line);
        let measured = trial.pointer("/outcome/measured")?.clone();
        let operation = trial["operation"].as_str()?.to_owned();
        Some(((trial["round"].as_u64()?, trial["cell"].as_u64()?, operation), measured))
    };
    lines.iter().filter_map(trial).collect()
}

fn run(place: &Place, what: &[&str]) -> Answer {
    place.run(&[&["run"], what, &BRIEF[..], &["--verbose"]].concat())
}

#[test]
fn first_round_is_observed_and_the_others_are_interleaved() {
    for (experiment, operation) in [("point-read", "read"), ("point-write", "write")] {
        let place = Place::new();
        let fast = "sqlite:?synchronous=off";
        let answer = run(&place, &[experiment, fast, fast]).success();
        let said = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(
                "the first of each block with continuous trials, in which limits are observed, the others interleaved in \
                 slices of 5 ms, which give rates and ratios"
            ) && said.contains("4 rounds (rates and ratios: 3 interleaved; limits: 1 continuous)"),
            "{answer:?}"
        );
        let all = measured(&place);
        // Some trials of the first round may be reruns.
        assert!(all.len() >= 12, "{}", all.len());
        for (round, figures) in &all {
            let slices = figures["slices"].as_u64().unwrap_or(0);
            let observed = ["observed", "observed_group"].map(|name| !figures[name].is_null());
            if *round == 0 {
                assert_eq!((slices, observed), (0, [true, false]), "round {round}: {figures:#}");
            } else {
                assert_eq!((slices >= 8, observed), (true, [false, true]), "round {round}: {figures:#}");
                assert!(figures["elapsed_ns"].as_u64().unwrap() >= 8 * 5_000_000, "{figures:#}");
            }
        }
        let report = place.report();
        for cell in report["cells"].as_array().unwrap() {
            assert_eq!(
                (&cell["status"], cell["operation"].as_str()),
                (&Value::from("ok"), Some(operation)),
                "{cell:#}"
            );
            let verified = cell["verified"].clone();
            assert!(
                verified["answers"].as_u64().unwrap() + verified["writes"].as_u64().unwrap() > 0,
                "{cell:#}"
            );
        }
        assert_eq!(report["verdicts"][0]["rounds"], 3, "{:#}", report["verdicts"]);
        assert_rows_are_of_their_trials(&report, &place);
    }
}

/// Whether each row has the rate, the times and the CPU time of the interleaved trials of its cell, and the bottleneck of its
/// continuous one; and whether the quotient of two rates is their ratio.
fn assert_rows_are_of_their_trials(report: &Value, place: &Place) {
    let number = |value: &Value| value.as_f64().unwrap();
    let (trials, cells) = (by_cell(place), report["cells"].as_array().unwrap());
    for (index, cell) in (0..).zip(cells) {
        let of = |observed: bool| {
            let here = trials.iter().filter(|((round, of, _), _)| *of == index && (*round == 0) == observed);
            here.map(|(_, trial)| trial).collect::<Vec<_>>()
        };
        let (compared, alone) = (of(false), of(true));
        assert_eq!((&cell["rounds"], &cell["interleaved"]), (&compared.len().into(), &compared.len().into()));
        let rate = |trial: &&Value| number(&trial["completed"]) * 1e9 / number(&trial["elapsed_ns"]);
        let mean = compared.iter().map(&rate).sum::<f64>() / compared.len() as f64;
        let shown = number(&cell["ops_per_second"]["mean"]);
        assert!((mean / shown - 1.0).abs() < 1e-6, "{cell:#}");
        assert!((rate(&alone[0]) / number(&cell["alone_per_second"]) - 1.0).abs() < 1e-6, "{cell:#}");
        let sum = |name: &str| compared.iter().map(|trial| number(&trial[name])).sum::<f64>();
        let cpu = sum("client_cpu_ns") / sum("completed") / 1e3;
        assert!((cpu / number(&cell["client_cpu_us_per_op"]) - 1.0).abs() < 1e-6, "{cell:#}");
        let max = compared.iter().map(|trial| number(&trial["service"]["max"]) / 1e3).fold(0.0, f64::max);
        assert!((number(&cell["latency_us"]["max"]) / max - 1.0).abs() < 1e-6, "{cell:#}");
        assert_eq!(cell["observed"][0]["wall_ns"], alone[0]["observed"]["wall_ns"]);
        assert_eq!(cell["attribution"]["of_trials"], 1, "{cell:#}");
    }
    for verdict in report["verdicts"].as_array().unwrap().iter().filter(|one| one["primary"] == true) {
        let [a, b] = [0, 1].map(|side| {
            let at = verdict["cells"][side].as_u64().unwrap() as usize;
            number(&cells[at]["ops_per_second"]["mean"])
        });
        assert!((a / b / number(&verdict["ratio"]) - 1.0).abs() < 1e-6, "{verdict:#}");
        assert!(number(&verdict["low"]) <= a / b && a / b <= number(&verdict["high"]), "{verdict:#}");
    }
}

#[test]
fn throwaway_servers_use_no_processor_of_clients() {
    let Some(_) = testing::server("redis") else { return };
    let place = Place::that_starts_servers();
    run(&place, &["point-read", "up:redis"]).success();
    let report = place.report();
    let cpus: u64 = report["machine"]["cpus"].as_u64().unwrap();
    // Known from the first round, which is observed.
    assert!(report["cells"][0]["server_cpu_us_per_op"].as_f64() > Some(0.0), "{report:#}");
    assert_rows_are_of_their_trials(&report, &place);
    for (_, figures) in measured(&place).iter().filter(|(round, _)| *round == 0) {
        let servers = figures.pointer("/observed/server/seen/cpus").unwrap().as_array().unwrap();
        let half = cpus - cpus / 2;
        assert!(cpus < 2 || servers.len() as u64 <= half, "{servers:?} of {cpus}");
    }
}

#[test]
fn killed_server_does_not_block_others() {
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let long = ["--interleave=2ms", "--duration", "60ms", "--rounds", "30", "--records", "200"];
    let args = [&["run", "point-read", "sqlite:", server.url()][..], &long].concat();
    let (child, _) = place.spawn_to_trial(&args, 8);
    place.go_on(8);
    server.kill_hard().unwrap();
    Answer::at_end_of(child).exit_code(4);
    let report = place.report();
    for cell in report["cells"].as_array().unwrap() {
        let wanted = if cell["target"] == "sqlite" { "ok" } else { "failed" };
        assert_eq!(cell["status"], wanted, "{cell:#}");
    }
    // The other cell and its A/A control were measured to the end.
    let interleaved =
        measured(&place).iter().filter(|(round, trial)| *round > 0 && trial["slices"].is_u64()).count();
    assert!(interleaved >= 29 + 3, "{interleaved}");
}

#[test]
fn ctrl_c_stops_interleaved_trials_and_resume_continues() {
    let place = Place::new();
    let long = ["--interleave=2ms", "--duration", "60ms", "--rounds", "12", "--records", "200"];
    let (child, file) =
        place.spawn_to_trial(&[&["run", "point-read", "sqlite:", "sqlite:"][..], &long].concat(), 8);
    place.go_on(8);
    signal(&child, "-INT");
    Answer::at_end_of(child).exit_code(130);
    let made = trials(Path::new(&file));
    assert!((8..30).contains(&made), "{made} trials were made");
    let answer = place.run(&["run", "--resume", "last"]).success();
    let report = place.report();
    // Two cells in twelve rounds, and their A/A controls in three.
    assert_eq!(
        (&report["complete"], trials(Path::new(&file))),
        (&Value::Bool(true), 2 * (12 + 3)),
        "{answer:?}"
    );
}

#[test]
fn two_builds_of_a_server_are_two_targets_of_one_run() {
    let programs = testing::server("memcached").map(|server| server.program().to_owned());
    let Some(program) = programs else { return };
    let place = Place::new();
    let folder = place.home().join("build");
    fs::create_dir(&folder).unwrap();
    let wrapper = folder.join("memcached");
    // As another build would be: a program of its own, with something to recognise it by.
    let seen = place.at("started");
    let script = format!("#!/bin/sh\necho \"$0\" >>'{}'\nexec '{}' \"$@\"\n", seen, program.display());
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // The server's user is another one than root.
    for folder in [place.home().parent().unwrap(), place.home(), &folder] {
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    }
    let other = format!("up:memcached@1:{}", folder.display());
    run(&place, &["point-read", "up:memcached", &other]).success();
    assert!(fs::read_to_string(&seen).unwrap().contains("build/memcached"), "the wrapper was started");
    let report = place.report();
    let targets: Vec<&Value> =
        report["cells"].as_array().unwrap().iter().map(|cell| &cell["target"]).collect();
    assert!(targets.contains(&&Value::from("memcached")), "{targets:?}");
    assert!(targets.iter().any(|name| **name != "memcached"), "{targets:?}");
    let slices = measured(&place)
        .iter()
        .filter(|(round, trial)| *round > 0 && trial["slices"].as_u64() > Some(4))
        .count();
    assert!(slices >= 6, "{slices} interleaved trials");
    let missing =
        place.run(&["run", "point-read", &format!("up:memcached?programs={}", place.path().display())]);
    assert_ne!(missing.code, Some(0), "{missing:?}");
    assert!(missing.err.contains("memcached"), "{missing:?}");
    let other = place.run(&["run", "point-read", &format!("up:memcached@0.9:{}", folder.display())]);
    assert!(other.code == Some(2) && other.err.contains("not 0.9"), "{other:?}");
}
