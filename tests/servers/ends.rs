//! Interruptions: of a server, and of the program by Ctrl-C or kill -9. Checks messages and clean-up.

use super::common::{
    BRIEF, SERVERS, SQL, assert_all_verified, assert_verified, cells, has, installed, session,
};
use crate::support::{Answer, Place, eventually, piped, signal};
use kurabe_testbed::testing::{self, Lease};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A server that runs as another user, and one that does not, stand for all.
const FEW: [&str; 2] = ["postgres", "redis"];
/// A run of many short trials.
const LONG: [&str; 12] = [
    "--compress", "none,lz4", "--layout", "blob", "--payload", "1k", "--requests", "60", "--records", "20",
    "--rounds", "8",
];

#[test]
fn killed_server_fails_only_its_cells_with_reason() {
    let servers: Vec<Lease> = SERVERS.into_iter().filter_map(testing::server).collect();
    let urls = servers.iter().map(|server| server.url());
    // This target must continue, and need not wait for the disk.
    let targets: Vec<&str> = std::iter::once("sqlite:?synchronous=off").chain(urls).collect();
    let place = Place::new();
    // A third of the first round.
    let made = 2 * targets.len();
    let (child, _) = place.spawn_to_trial(&session(&targets, &LONG), made);
    place.go_on(made);
    for server in &servers {
        server.kill_hard().unwrap();
    }
    let killed = Instant::now();
    let answer = Answer::at_end_of(child);
    assert!(killed.elapsed() < Duration::from_secs(120), "it took {:?}", killed.elapsed());
    assert_eq!(answer.code, Some(4), "{answer:?}");
    let report = place.report();
    assert_eq!(report["complete"], true, "{report:#}");
    let mut failed = BTreeSet::new();
    for cell in cells(&report) {
        let target = cell["target"].as_str().unwrap();
        if target == "sqlite" {
            assert_verified(cell);
            // Its rounds, and a continuous trial where those are interleaved.
            let alone = u64::from(!cell["alone_per_second"].is_null());
            // A control is in three of the seven interleaved rounds.
            let rounds = if cell["aa_control"] == true { 3 } else { 8 };
            assert_eq!(cell["rounds"].as_u64().map(|made| made + alone), Some(rounds), "{cell:#}");
        } else {
            assert_eq!(cell["status"], "failed", "{cell:#}");
            let reason = cell["reason"].as_str().unwrap();
            let known = ["closed the connection", "nothing listens", "connection", "Connection"];
            assert!(known.iter().any(|part| reason.contains(part)), "{target}: {reason}");
            assert!(cell["ops_per_second"].is_null(), "{cell:#}");
            failed.insert(target);
        }
    }
    assert_eq!(failed.len(), servers.len(), "{failed:?}");
}

/// The folders of throwaway servers in a folder.
fn folders(base: &Path) -> Vec<PathBuf> {
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("kurabe-up-");
    fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path()).filter(named).collect()
}

/// The processes that live in a directory: servers, by their working directory.
fn inhabitants(base: &Path) -> Vec<String> {
    let pids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let inside = |pid: &PathBuf| fs::read_link(pid.join("cwd")).is_ok_and(|cwd| cwd.starts_with(base));
    pids.filter(inside)
        .map(|pid| {
            let line = fs::read(pid.join("cmdline")).unwrap_or_default();
            format!("{}: {}", pid.display(), String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// Checks that servers and their directories are soon removed.
fn assert_vanishes(base: &Path, what: &str) {
    let gone = || (folders(base).is_empty() && inhabitants(base).is_empty()).then_some(());
    let left = || format!("{:?} {:?}", folders(base), inhabitants(base));
    eventually(60, gone).unwrap_or_else(|| panic!("{what}: {}", left()));
}

#[test]
fn throwaway_servers_end_after_run_ctrl_c_or_kill_9() {
    let ups: Vec<String> = installed().iter().map(|engine| format!("up:{engine}")).collect();
    let all: Vec<&str> = ups.iter().map(String::as_str).collect();
    // A supervisor ends each engine in its own way, whatever ends the program.
    let few: Vec<&str> = all.iter().copied().filter(|up| FEW.contains(&&up[3..])).collect();
    for (end, targets) in [("none", &few), ("-INT", &few), ("-TERM", &few), ("-KILL", &all)] {
        let place = Place::that_starts_servers();
        let base = tempfile::tempdir().unwrap();
        // Servers may run as another user, who needs access.
        fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let base = base.path().canonicalize().unwrap();
        let rest: &[&str] = if end == "none" { &BRIEF } else { &LONG };
        let args = session(targets, rest);
        let mut command = if end == "none" { place.command(&args) } else { place.pausing(&args, &[1]) };
        let child = piped(command.env("KURABE_TMP", &base));
        if end == "none" {
            let answer = Answer::at_end_of(child);
            assert_all_verified(&place, &answer);
            assert_eq!(folders(&base).len(), 0, "there must be none when the program has ended");
            assert_vanishes(&base, end);
            continue;
        }
        place.wait_for_trials(1);
        // Each has a second instance.
        assert_eq!(folders(&base).len(), 2 * targets.len());
        assert!(inhabitants(&base).len() >= 2 * targets.len(), "{:?}", inhabitants(&base));
        signal(&child, end);
        let answer = Answer::at_end_of(child);
        assert_eq!(answer.code, (end != "-KILL").then_some(130), "{end}: {answer:?}");
        assert_vanishes(&base, end);
        if end == "-INT" {
            assert!(answer.err.contains("kurabe run --resume"), "{answer:?}");
        }
        // Results are kept in all cases.
        assert_eq!(place.run(&["report", "last"]).code, Some(0));
    }
}

#[test]
fn up_server_serves_other_processes_until_stopped() {
    for engine in installed().into_iter().filter(|engine| FEW.contains(engine)) {
        let place = Place::that_starts_servers();
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let base = base.path().canonicalize().unwrap();
        let mut child = piped(place.command(&["up", engine]).env("KURABE_TMP", &base));
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        out.read_line(&mut url).unwrap();
        let url = url.trim();
        assert!(url.starts_with(&format!("{engine}://")), "{url}");
        let answer = place.run(&session(&[url], &BRIEF));
        assert_all_verified(&place, &answer);
        signal(&child, "-INT");
        let answer = Answer::at_end_of(child);
        assert_eq!(answer.code, Some(0), "{engine}: {answer:?}");
        assert_vanishes(&base, engine);
        place.run(&["doctor", url]).exit_code(3);
    }
}

#[test]
fn throwaway_server_accepts_settings_by_its_own_names() {
    let place = Place::that_starts_servers();
    for (engine, code, said) in [
        ("redis", 3, "no_such_setting"),
        ("mongodb", 3, "no_such_setting"),
        ("couchdb", 2, "write section.no_such_setting=value"),
        ("memcached", 3, "no_such_setting"),
    ] {
        if !has(engine) {
            continue;
        }
        let answer = place.run(&["doctor", &format!("up:{engine}?no_such_setting=1")]);
        assert!(answer.err.contains(said), "{answer:?}");
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert!(answer.err.lines().count() < 8, "the server's message is too long: {answer:?}");
    }
    for engine in installed().into_iter().filter(|engine| SQL.contains(engine)) {
        let answer = place.run(&["doctor", &format!("up:{engine}?max_connections=17")]).success();
        assert!(answer.out.contains("max_connections = 17"), "{answer:?}");
        let answer = place.run(&["doctor", &format!("up:{engine}?no_such_setting=1")]);
        assert!(answer.err.contains("no_such_setting"), "{answer:?}");
        assert_eq!(answer.code, Some(3), "{answer:?}");
    }
}
