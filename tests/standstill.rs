//! A trial in which Kurabe itself was stopped does not count: it is rerun. Of interleaved trials only the slice does not.

use crate::support::{Answer, Place, eventually, recorded_trials, signal};
use serde_json::Value;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// How long the program is stopped.
const STOPPED: Duration = Duration::from_millis(800);

/// How long a trial measures.
const TRIAL: Duration = Duration::from_millis(600);

/// Times to stop the program at most. On a busy machine a stop may miss the measured phase of a trial.
const ATTEMPTS: u32 = 25;

fn stood_still(trial: &Value) -> u64 {
    trial["outcome"]["measured"]["stood_still_ns"].as_u64().unwrap_or(0)
}

/// Whether the program stood still in a trial for as long as this test stopped it. A machine that is paused, or gives
/// its processors to others, may cause shorter standstills at any time.
fn was_stopped(trial: &Value) -> bool {
    stood_still(trial) >= STOPPED.as_nanos() as u64 / 2
}

/// Stops the program until a trial has recorded it. Returns the position of that trial in the file.
fn stop_in_a_trial(child: &Child, file: &Path) -> Option<usize> {
    let longer_than = |trials: usize| eventually(60, || (recorded_trials(file).len() > trials).then_some(()));
    for attempt in 0..ATTEMPTS {
        let before = recorded_trials(file).len();
        // The next trial begins when one was recorded. In different phases of it.
        longer_than(before)?;
        std::thread::sleep(TRIAL / 4 + TRIAL / 8 * (attempt % 5));
        signal(child, "-STOP");
        std::thread::sleep(STOPPED);
        signal(child, "-CONT");
        longer_than(before + 1)?;
        let stopped = recorded_trials(file).iter().skip(before).position(was_stopped);
        if let Some(at) = stopped {
            return Some(before + at);
        }
    }
    None
}

/// The reruns of the trial at this position, once the last of them was undisturbed.
fn reruns(file: &Path, at: usize) -> Option<Vec<Value>> {
    let same = |trial: &Value, other: &Value| {
        ["round", "cell", "operation"].iter().all(|name| other[*name] == trial[*name])
    };
    eventually(120, || {
        let all = recorded_trials(file);
        let reruns: Vec<Value> =
            all[at + 1..].iter().filter(|other| same(&all[at], other)).cloned().collect();
        reruns.last().is_some_and(|last| stood_still(last) == 0).then_some(reruns)
    })
}

fn assert_made_again(rest: &[&str]) {
    let place = Place::new();
    let args = ["run", "point-read", "null:", "--records", "100", "--duration", "600ms", "--no-html"];
    let child = place.spawn(&[&args[..], &["--rounds", "100"], rest].concat());
    let file = place.wait_for_trials(1);
    let at = stop_in_a_trial(&child, &file);
    let reruns = at.and_then(|at| reruns(&file, at));
    signal(&child, "-INT");
    let answer = Answer::at_end_of(child);
    assert!(at.is_some(), "{rest:?}: no standstill was detected: {answer:?}");
    let Some(reruns) = reruns else { panic!("{rest:?}: it was not rerun: {answer:?}") };
    for rerun in &reruns {
        assert!(rerun["rerun_reason"].as_str().unwrap().contains("stood still for"), "{rerun}");
        assert!(rerun["outcome"].get("measured").is_some(), "{rerun}");
    }
}

#[test]
fn stopped_trial_is_rerun() {
    assert_made_again(&["--interleave=off"]);
}

#[test]
fn stopped_open_loop_trial_is_rerun() {
    assert_made_again(&["--rate", "500"]);
}

#[test]
fn stopped_slice_is_void_and_its_trial_counts() {
    let place = Place::new();
    let args = ["run", "point-read", "null:", "--records", "100", "--duration", "200ms", "--no-html"];
    let child = place.spawn(&[&args[..], &["--interleave", "--rounds", "500"]].concat());
    let file = place.wait_for_trials(2);
    let number = |trial: &Value, name: &str| trial["outcome"]["measured"][name].as_u64().unwrap_or(0);
    let void = |trial: &Value| number(trial, "slices") > 0 && number(trial, "void_slices") > 0;
    let mut found = None;
    for _ in 0..4 * ATTEMPTS {
        signal(&child, "-STOP");
        std::thread::sleep(Duration::from_millis(200));
        signal(&child, "-CONT");
        std::thread::sleep(Duration::from_millis(500));
        found = recorded_trials(&file).into_iter().find(void);
        if found.is_some() {
            break;
        }
    }
    let after = recorded_trials(&file).len();
    eventually(60, || (recorded_trials(&file).len() > after + 6).then_some(()));
    signal(&child, "-INT");
    let answer = Answer::at_end_of(child);
    let Some(found) = found else { panic!("no slice is void: {answer:?}") };
    assert!(number(&found, "slices") > number(&found, "void_slices"), "{found:#}");
    assert_eq!(stood_still(&found), 0, "the rest of the trial counts: {found:#}");
    let same = |trial: &&Value| ["round", "cell"].iter().all(|name| trial[*name] == found[*name]);
    assert_eq!(recorded_trials(&file).iter().filter(same).count(), 1, "it is not made again");
    assert!(
        recorded_trials(&file).iter().all(|trial| trial["outcome"].get("measured").is_some()),
        "{answer:?}"
    );
}
