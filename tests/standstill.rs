//! A trial in which Kurabe itself was stopped does not count: it is rerun.

use crate::support::{Answer, Place, eventually, signal, trials};
use serde_json::Value;
use std::process::Child;
use std::time::Duration;

/// How long the program is stopped.
const STOPPED: Duration = Duration::from_millis(1_500);

/// The trials of the only run, as its file has them.
fn records(place: &Place) -> Vec<Value> {
    let file = place.wait_for_trials(0);
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line.get("trial").cloned()).collect()
}

/// Stops the program once in each of some trials, in the middle of its measured phase unless the machine is very
/// busy.
fn stop_in_trials(child: &Child, place: &Place, times: usize) {
    let file = place.wait_for_trials(1);
    for _ in 0..times {
        let before = trials(&file);
        std::thread::sleep(Duration::from_millis(700));
        signal(child, "-STOP");
        std::thread::sleep(STOPPED);
        signal(child, "-CONT");
        // The next trial has begun.
        eventually(60, || (trials(&file) > before).then_some(()));
    }
}

fn assert_made_again(rest: &[&str]) {
    let place = Place::new();
    let args = ["run", "point-read", "null:", "--records", "100", "--duration", "1200ms", "--no-html"];
    let child = place.spawn(&[&args[..], rest].concat());
    stop_in_trials(&child, &place, 3);
    let answer = Answer::of(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(0), "{rest:?}: {answer:?}");
    let records = records(&place);
    let stood_still = |trial: &Value| trial["outcome"]["measured"]["stood_still_ns"].as_u64().unwrap_or(0);
    let disturbed: Vec<usize> = (0..records.len()).filter(|at| stood_still(&records[*at]) > 0).collect();
    assert!(!disturbed.is_empty(), "{rest:?}: no standstill was detected: {answer:?}");
    for at in disturbed {
        let trial = &records[at];
        assert!(stood_still(trial) >= STOPPED.as_nanos() as u64 / 2, "{trial}");
        let same =
            |other: &&Value| ["round", "cell", "operation"].iter().all(|name| other[*name] == trial[*name]);
        let last = records[at + 1..].iter().rfind(same);
        let last = last.unwrap_or_else(|| panic!("{rest:?}: it was not rerun: {trial}"));
        assert!(last["rerun_reason"].as_str().unwrap().contains("stood still for"), "{last}");
        assert_eq!(stood_still(last), 0, "{last}");
    }
}

#[test]
fn stopped_trial_is_rerun() {
    assert_made_again(&["--rounds", "3"]);
}

#[test]
fn stopped_open_loop_trial_is_rerun() {
    assert_made_again(&["--rounds", "3", "--rate", "500"]);
}

#[test]
fn stopped_interleaved_trials_are_rerun() {
    assert_made_again(&["--rounds", "4", "--interleave"]);
}
