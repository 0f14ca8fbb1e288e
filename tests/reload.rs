//! Experiment reload: dumps and restores on real servers, verified, stopped, killed, and on a full disk.

use crate::servers::common::{cells, skip, sql, tables, tell};
use crate::support::{Answer, Place, eventually, metric, signal};
use kurabe_testbed::testing;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engines whose programs dump and restore, with the names of these programs.
const ENGINES: [(&str, &[&str]); 3] = [
    ("mariadb", &["mariadb-dump", "mariadb"]),
    ("mysql", &["mysqldump", "mysql"]),
    ("postgres", &["pg_dump", "psql"]),
];

/// `kurabe run reload`, with all orders and tools unless `rest` names some.
fn reload<'a>(target: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let order = if rest.contains(&"--order") { &[][..] } else { &["--order", "key,index,random"] };
    let tool = if rest.contains(&"--tool") { &[][..] } else { &["--tool", "engine,kurabe"] };
    [&["run", "reload", target, "--no-html"], rest, order, tool].concat()
}

fn on_path(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

/// Checks that a run of all orders and tools was measured and verified.
fn assert_measured(place: &Place, answer: &Answer, rows: u64) {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    assert_eq!(cells(&report).len(), 6 + 1, "{report:#}");
    for cell in cells(&report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["verified"]["how"], "read-back-all", "{cell:#}");
        assert_eq!(cell["verified"]["counted"].as_u64().unwrap() % rows, 0, "{cell:#}");
        for name in ["dump", "restore", "rows restored per second", "table size"] {
            assert!(metric(cell, name).unwrap() > 0.0, "{name}: {cell:#}");
        }
        // A row of two numbers of eight bytes in a table and an index.
        assert!(metric(cell, "table size").unwrap() > 20.0 * rows as f64, "{cell:#}");
        assert_eq!(metric(cell, "dump size").is_some(), cell["axes"]["tool"] == "engine", "{cell:#}");
    }
}

#[test]
fn table_is_restored_the_same_in_every_order_by_both_tools() {
    for (engine, programs) in ENGINES {
        if !programs.iter().all(|program| on_path(program)) {
            skip(&format!("there are no programs {}", programs.join(" and ")));
            continue;
        }
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let answer = place.run(&reload(server.url(), &["--rows", "3k", "--rounds", "1"]));
        assert_measured(&place, &answer, 3_000);
        for cell in cells(&place.report()) {
            let log = metric(cell, "log bytes per row").or_else(|| metric(cell, "file bytes per row"));
            assert!(log.is_some_and(|bytes| bytes > 10.0), "{engine}: {cell:#}");
        }
        // Nothing of ours is left on the server.
        assert_eq!(tables(&server).unwrap_or_default(), "", "{engine}");
    }
}

#[test]
fn sqlite_table_is_restored_by_its_program_and_by_a_session() {
    if !on_path("sqlite3") {
        skip("there is no program sqlite3");
        return;
    }
    let place = Place::new();
    let file = place.at("shop.db");
    let target = format!("sqlite:{file}?synchronous=off");
    let answer = place.run(&reload(&target, &["--rows", "3k", "--rounds", "1"]));
    assert_measured(&place, &answer, 3_000);
    let page = place.run(&["report", "--format", "html", "--published", "--output", "-"]).out;
    assert!(page.contains("MySQL 5.5.20"), "{page}");
    assert!(page.contains("the factor between the orders is unknown"), "{page}");
}

#[test]
fn target_without_programs_is_not_available_and_a_session_of_ours_is_measured() {
    let place = Place::new();
    let mut command = place.command(&reload("sqlite:?synchronous=off", &["--rows", "1k", "--rounds", "1"]));
    Answer::of(&command.env("KURABE_SERVER_PATH", "/nonexistent").output().unwrap()).success();
    let report = place.report();
    for cell in cells(&report) {
        if cell["axes"]["tool"] == "engine" {
            assert_eq!(cell["status"], "unavailable", "{cell:#}");
            assert!(cell["reason"].as_str().unwrap().contains("no program sqlite3"), "{cell:#}");
        } else {
            assert_eq!(cell["status"], "ok", "{cell:#}");
        }
    }
    let answer = place.run(&reload("null:", &["--rows", "1k", "--rounds", "1", "--tool", "engine"]));
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.err.contains("knows no programs"), "{answer:?}");
}

/// The processes of dump programs whose parent is this process.
fn children(parent: u32) -> Vec<PathBuf> {
    let output = Command::new("ps").args(["-o", "pid=", "--ppid", &parent.to_string()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = ["mariadb", "mariadb-dump", "mysql", "mysqldump", "psql", "pg_dump"];
    text.split_whitespace()
        .filter_map(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).ok())
        .filter(|exe| exe.file_name().is_some_and(|name| names.contains(&name.to_str().unwrap_or_default())))
        .collect()
}

/// Files that a run of ours left in its folder of temporary files.
fn left(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn killed_server_and_ctrl_c_end_the_programs_and_leave_nothing() {
    if !["mariadb-dump", "mariadb"].iter().all(|program| on_path(program)) {
        skip("there are no programs mariadb-dump and mariadb");
        return;
    }
    for end in ["server", "-INT"] {
        let Some(server) = testing::server("mariadb") else { return };
        let place = Place::new();
        let temporary = tempfile::tempdir().unwrap();
        let long = ["--rows", "60k", "--rounds", "50", "--tool", "engine", "--order", "random"];
        let mut command = place.command(&reload(server.url(), &long));
        let child = crate::support::piped(command.env("KURABE_TMP", temporary.path()));
        // Programs that only tell their version run before.
        place.wait_for_trials(0);
        let running = || (!children(child.id()).is_empty()).then_some(());
        eventually(120, running).expect("no program of the engine was started");
        if end == "server" {
            server.kill_hard().unwrap();
        } else {
            signal(&child, end);
        }
        let program = child.id();
        let answer = Answer::at_end_of(child);
        assert_eq!(children(program), Vec::<PathBuf>::new());
        assert_eq!(left(temporary.path()), Vec::<PathBuf>::new(), "{end}");
        if end == "-INT" {
            assert_eq!(answer.code, Some(130), "{answer:?}");
            assert_eq!(tables(&server).unwrap_or_default(), "", "{answer:?}");
            continue;
        }
        assert_eq!(answer.code, Some(4), "{answer:?}");
        for cell in cells(&place.report()) {
            assert_eq!(cell["status"], "failed", "{cell:#}");
            let reason = cell["reason"].as_str().unwrap();
            let known = ["failed: ", "closed the connection", "nothing listens", "connection"];
            assert!(known.iter().any(|part| reason.contains(part)), "{reason}");
        }
    }
}

#[test]
fn full_disk_fails_the_trial_with_the_folder_and_what_to_do() {
    if !["mariadb-dump", "mariadb"].iter().all(|program| on_path(program)) {
        skip("there are no programs mariadb-dump and mariadb");
        return;
    }
    let Some(server) = testing::server("mariadb") else { return };
    let place = Place::new();
    let small = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=64k tmpfs {}", small.path().display());
    // In a mount namespace of its own, so that nothing stays mounted.
    let args =
        reload(server.url(), &["--rows", "20k", "--rounds", "1", "--tool", "engine", "--order", "key"]);
    let mut command = Command::new("unshare");
    let script = format!("{mount} || exit 99; exec \"$0\" \"$@\"");
    command.args(["--mount", "sh", "-c", &script, crate::support::KURABE]).args(args);
    place.configure(&mut command);
    let answer = Answer::of(&command.env("KURABE_TMP", small.path()).output().unwrap());
    if answer.code == Some(99) || answer.err.contains("unshare failed") {
        tell("a small disk cannot be made here: that takes root");
        return;
    }
    assert_eq!(answer.code, Some(4), "{answer:?}");
    for cell in cells(&place.report()) {
        let reason = cell["reason"].as_str().unwrap();
        assert!(reason.contains("full") && reason.contains("KURABE_TMP names another folder"), "{reason}");
    }
    assert_eq!(tables(&server).unwrap_or_default(), "", "{answer:?}");
}

#[test]
fn password_is_in_no_command_line_of_a_program() {
    if !on_path("mariadb-dump") {
        skip("there is no program mariadb-dump");
        return;
    }
    let Some(server) = testing::server_with("mariadb", |options| options.with_password("hunter2-of-root"))
    else {
        return;
    };
    let place = Place::new();
    let seen = place.home().join("seen");
    // A program that records its arguments, and then is the real one.
    let folder = place.home().join("bin");
    std::fs::create_dir(&folder).unwrap();
    for program in ["mariadb-dump", "mariadb"] {
        let script =
            format!("#!/bin/sh\necho \"$@\" >> {}\nexec /usr/bin/{program} \"$@\"\n", seen.display());
        let path = folder.join(program);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    if !Path::new("/usr/bin/mariadb-dump").exists() {
        tell("the programs are not where this test looks for them");
        return;
    }
    let brief = ["--rows", "1k", "--rounds", "1", "--tool", "engine", "--order", "key"];
    let mut command = place.command(&reload(server.url(), &brief));
    command.env("KURABE_SERVER_PATH", &folder).env("MYSQL_PWD", "hunter2-of-root");
    Answer::of(&command.output().unwrap()).success();
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.contains("--where=1 ORDER BY") && !seen.contains("hunter2"), "{seen}");
    assert!(sql(&server, "hunter2-of-root", "SELECT 1").is_some());
}
