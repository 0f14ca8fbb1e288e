//! A disk that becomes full while a run is recorded.

use super::common::{BRIEF, has, has_program, session, tell};
use crate::support::{Answer, KURABE, Place};
use std::path::Path;
use std::process::Command;

/// A run whose file grows with every trial.
const GROWING: [&str; 12] = [
    "--payload", "1k", "--layout", "blob", "--requests", "200", "--rounds", "400", "--records", "20",
    "--operation", "write,read",
];

/// Checks that recording failed with one clear error, which gives this advice, and that earlier records are intact.
fn assert_kept(place: &Place, answer: &Answer, runs: &Path, advice: &str) {
    assert_eq!(answer.code, Some(5), "{answer:?}");
    assert_eq!(answer.errors().len(), 1, "{answer:?}");
    for part in ["cannot record a trial", "run.jsonl", "are kept", advice, "resume"] {
        assert!(answer.err.contains(part), "'{part}' is not in: {answer:?}");
    }
    let folder = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    // On a busy machine some are of trials that were rerun.
    let recorded = std::fs::read_to_string(folder.join("run.jsonl")).unwrap();
    let kept = recorded.lines().filter(|line| line.contains(",\"trial\":{")).count();
    assert!(kept > 0 && answer.err.contains(&format!("the {kept} trials")), "{kept}: {answer:?}");
    place.run(&["report", "last"]).success().out_has("not complete");
}

#[test]
fn file_size_limit_keeps_recorded_trials_and_is_reported() {
    let place = Place::new();
    // In blocks of 512 bytes. The signal of the limit would end the program.
    let answer = place.command_after("ulimit -f 60", &session(&["null:"], &GROWING)).output().unwrap();
    assert_kept(&place, &Answer::of(&answer), place.path(), "which is 30720 bytes here (ulimit -f)");
}

#[test]
fn file_size_limit_of_copies_and_throwaway_servers_is_named() {
    let place = Place::that_starts_servers();
    if has_program("sqlite3") {
        let made = "CREATE TABLE a (id INTEGER PRIMARY KEY, data TEXT); \
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) \
                    INSERT INTO a SELECT i, hex(zeroblob(50)) FROM n;";
        let source = place.at("source.db");
        assert!(Command::new("sqlite3").args([&source, made]).status().unwrap().success());
        let urls = [format!("sqlite:{source}"), format!("sqlite:{}", place.at("copy.db"))];
        let copy = ["copy", &urls[0], &urls[1]];
        let answer = Answer::of(&place.command_after("ulimit -f 200", &copy).output().unwrap());
        assert!(answer.code != Some(0) && answer.err.contains("(ulimit -f)"), "{answer:?}");
        // What was copied is gone on with.
        place.run(&copy).success();
    }
    for engine in ["postgres", "mariadb"].into_iter().filter(|engine| has(engine)) {
        let up = format!("up:{engine}");
        let run = session(&[&up], &BRIEF);
        let answer = Answer::of(&place.command_after("ulimit -f 2000", &run).output().unwrap());
        assert!(answer.code != Some(0) && answer.err.contains("which is 1024000 bytes here"), "{answer:?}");
    }
}

#[test]
fn run_whose_header_cannot_be_written_is_an_error() {
    let place = Place::new();
    let mut command = place.command_after("trap '' XFSZ && ulimit -f 0", &session(&["null:"], &BRIEF));
    let answer = Answer::of(&command.output().unwrap()).exit_code(5);
    assert_eq!(answer.errors().len(), 1, "{answer:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{answer:?}");
}

#[test]
fn full_disk_keeps_recorded_trials_and_is_reported() {
    let place = Place::new();
    let script = "mount -t tmpfs -o size=64k none \"$KURABE_RUNS\" || exit 99
                  \"$0\" \"$@\"; code=$?
                  cp -r \"$KURABE_RUNS\"/* \"$HOME\" || exit 98
                  exit $code";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script, KURABE]);
    command.args(session(&["null:"], &GROWING));
    place.configure(&mut command);
    let answer = command.output().map(|output| Answer::of(&output));
    // Users cannot mount everywhere, even if servers are required.
    let Some(answer) =
        answer.ok().filter(|answer| answer.code != Some(99) && !answer.err.contains("unshare: "))
    else {
        tell("a file system cannot be mounted here (it takes unshare and permission to use it)");
        return;
    };
    // The copy is on a disk that is not full.
    for entry in std::fs::read_dir(place.home()).unwrap().flatten() {
        std::fs::rename(entry.path(), place.path().join(entry.file_name())).unwrap();
    }
    assert_kept(&place, &answer, place.path(), "free disk space");
}
