//! What the program makes of targets: secrets that it does not show, the environment, files that stay as they are, and
//! names of one server.

use crate::support::{Answer, Place, piped, with};
use kurabe_testbed::testing;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn secret_in_an_unreadable_target_is_in_no_output() {
    let place = Place::new();
    let suite =
        place.file("suite.toml", "[[run]]\nexperiment = 'kv'\ntargets = ['host=h password=SECRET']\n");
    let script = place.file("one.sql", "SELECT 1;");
    let custom = place.file("one.toml", "[transaction.a]\nsteps = [ { sql = \"SELECT 1\" } ]\n");
    for target in [
        "host=h password=SECRET dbname=d",
        "Server=h;Database=d;Uid=u;Pwd=SECRET",
        "jdbc:postgresql://h/d?user=u&password=SECRET",
        "postgresql+psycopg2://u:SECRET@h/d",
        "postgres:/u:SECRET@h/d",
        "u:SECRET@tcp(h:3306)/d",
        "up:postgres://u:SECRET@h/d",
    ] {
        for line in [
            &["run", "kv", "sqlite:", target][..],
            &["run", "kv", "sqlite:", target, "--log-format", "json"],
            &["run", target],
            &["run", "cache-aside", "sqlite:", "--cache", target],
            &["run", "kv", &format!("--remote={target}")],
            &["doctor", target],
            &["claims", "s6", "--target", target],
            &["copy", target, "sqlite:x.db"],
            &["copy", "sqlite:x.db", target],
            &["wire", target],
            &["capture", target, "-o", "x.capture"],
            &["serve", target],
            &["up", target],
            &["up", "app", target],
            &["run", "kv", "up:postgres", "--setup", &format!("copy:{target}")],
            &["compare", target],
            &["report", target],
            &[target],
            &["run", "kv", "sqlite:", "--payload", target],
            &["run", "kv", "sqlite:", target, "--lang", "ja"],
            &["run", "kv", "--via", target],
            #[cfg(feature = "full")]
            &["run", "kv", "sqlite:", "--fleet", target],
            &["run", "pgbench", "--init", "sqlite:", target],
            &["run", "-f", &custom, target, "--log-format", "json"],
            &["gate", &script, "sqlite:", target],
            &["claims", "s6", "--target", target, "--log-format", "json"],
            &["copy", target, "sqlite:x.db", "--log-format", "json"],
            &["doctor", "--via", target],
        ] {
            let Answer { code, out, err, .. } = place.run(line);
            assert_ne!(code, Some(0), "{line:?}");
            assert!(!out.contains("SECRET") && !err.contains("SECRET"), "{line:?}: {out}{err}");
        }
    }
    let answer = place.run(&["run", "--suite", &suite]);
    assert!(!answer.err.contains("SECRET") && !answer.out.contains("SECRET"), "{answer:?}");
}

#[test]
fn environment_never_reaches_a_throwaway_server() {
    let place = Place::new();
    let service = place.file("services", "[shop]\noptions=-c work_mem=9MB\n");
    place.file(".my.cnf", "[client]\nssl-mode=REQUIRED\nuser=nobody\n");
    let variables = [
        ("PGSERVICE", "shop"),
        ("PGSERVICEFILE", service.as_str()),
        ("PGHOSTADDR", "127.0.0.9"),
        ("PGPORT", "1"),
        ("PGTARGETSESSIONATTRS", "standby"),
        ("PGSSLMODE", "require"),
        ("PGCHANNELBINDING", "require"),
        ("PGOPTIONS", "-c work_mem=7MB"),
        ("PGPASSWORD", "wrong"),
        ("MYSQL_PWD", "wrong"),
        ("REDISCLI_AUTH", "wrong"),
        ("COUCHDB_USER", "nobody"),
        ("COUCHDB_PASSWORD", "wrong"),
    ];
    for engine in ["postgres", "mariadb", "redis", "couchdb"] {
        if testing::server(engine).is_none() {
            continue;
        }
        let target = format!("up:{engine}");
        let mut command = place.command(&["doctor", &target]);
        command.envs(variables);
        let answer = Answer::of(&command.output().unwrap()).success();
        if engine == "postgres" {
            assert!(answer.out.contains("work_mem = 4MB"), "{answer:?}");
        }
    }
}

/// Runs a statement by SQLite's own program; `None`, with a message, if it is missing.
#[expect(clippy::print_stderr, reason = "the test harness shows it")]
fn sqlite3(file: &Path, sql: &str) -> Option<String> {
    let Ok(output) = Command::new("sqlite3").arg(file).arg(sql).output() else {
        eprintln!("skipped: there is no program sqlite3");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What of a database's file a reader must not change: its bytes, when it was changed, and the files beside it.
fn state(file: &Path) -> (Vec<u8>, std::time::SystemTime, Vec<String>) {
    let beside = fs::read_dir(file.parent().unwrap()).unwrap().flatten();
    let mut beside: Vec<_> = beside.map(|entry| entry.file_name().into_string().unwrap()).collect();
    beside.sort();
    (fs::read(file).unwrap(), fs::metadata(file).unwrap().modified().unwrap(), beside)
}

#[test]
fn sqlite_file_keeps_its_bytes_unless_the_run_writes() {
    let place = Place::new();
    let script = place.file("read.sql", "SELECT n FROM theirs WHERE id = 1;\n");
    for mode in ["delete", "wal"] {
        let file = place.home().join(mode).join("theirs.db");
        fs::create_dir(file.parent().unwrap()).unwrap();
        let made = format!(
            "PRAGMA journal_mode={mode}; PRAGMA user_version=7; CREATE TABLE theirs (id INTEGER PRIMARY KEY, n); INSERT INTO \
             theirs VALUES (1, 5)"
        );
        let Some(_) = sqlite3(&file, &made) else { return };
        let before = state(&file);
        let target = format!("sqlite:{}", file.display());
        let answer = place.run(&["doctor", &target]).success();
        assert_eq!(
            answer.out.contains("a run that writes changes it to wal"),
            mode == "delete",
            "{answer:?}"
        );
        assert_eq!(state(&file), before, "doctor, {mode}");
        let reads =
            ["run", "pgbench", &target, "-f", &script, "--requests", "40", "--rounds", "1", "--no-html"];
        let answer = place.run(&reads).success();
        assert_eq!(state(&file), before, "a run that reads, {mode}: {answer:?}");
        let copied = format!("sqlite:{}", place.at(&format!("copied-{mode}.db")));
        place.run(&["copy", &target, &copied]).success();
        assert_eq!(state(&file), before, "copy, {mode}");
        // What writes may change it, and leaves nothing beside it.
        place
            .run(&[
                "run", "kv", &target, "--clients", "1", "--records", "20", "--requests", "40", "--rounds",
                "1", "--no-html",
            ])
            .success();
        assert_eq!(sqlite3(&file, "PRAGMA journal_mode").unwrap(), "wal");
        assert_eq!(state(&file).2, ["theirs.db"], "{mode}");
        let unnamed = place.home().join(mode).join("typo.db");
        let answer = place.run(&["doctor", &format!("sqlite:{}", unnamed.display())]).success();
        assert!(answer.out.contains("no such file yet"), "{answer:?}");
        let read = place.run(&["run", "pgbench", &format!("sqlite:{}", unnamed.display()), "-f", &script]);
        assert!(read.code != Some(0) && read.err.contains("no such file"), "{read:?}");
        assert!(!unnamed.exists());
    }
}

#[test]
fn two_names_of_one_server_are_refused_and_databases_of_one_server_are_told() {
    let place = Place::new();
    let run = |targets: [&str; 2]| {
        let options = ["--clients", "1", "--records", "20", "--requests", "40", "--rounds", "1", "--no-html"];
        place.run(&[&["run", "kv"][..], &targets, &options].concat())
    };
    for engine in ["postgres", "mariadb", "redis", "memcached", "couchdb"] {
        let Some(server) = testing::server(engine) else { continue };
        let url = server.url();
        let other = url.replace("127.0.0.1", "localhost");
        assert_ne!(url, other);
        let answer = run([url, &other]);
        assert!(
            answer.code != Some(0) && answer.err.contains("one database of one server"),
            "{engine}: {answer:?}"
        );
        let schemes = [("postgres", "postgresql"), ("mariadb", "mysql"), ("redis", "valkey")];
        if let Some((one, other)) = schemes.iter().find(|(one, _)| *one == engine) {
            let named = url.replacen(one, other, 1);
            run([url, &named]).exit_code(2).err_has("one database of one server");
        }
        // A run against itself, and another way to the same server.
        run([url, url]).success();
        if engine == "postgres" {
            let socket = format!("{}", server.socket().unwrap().display());
            run([url, &with(url, &format!("socket={socket}"))]).success().err_has("same server");
        }
        if engine == "redis" {
            run([url, &format!("{url}/1")]).success().err_has("on the same server");
        }
    }
    let file = place.at("x.db");
    let Some(_) = sqlite3(Path::new(&file), "CREATE TABLE t (a)") else { return };
    std::os::unix::fs::symlink(&file, place.at("y.db")).unwrap();
    let answer = run([&format!("sqlite:{file}"), &format!("sqlite:{}", place.at("y.db"))]);
    assert!(answer.code != Some(0) && answer.err.contains("one database of one server"), "{answer:?}");
    run([&format!("sqlite:{file}"), &format!("sqlite:{file}?synchronous=off")]).success();
}

/// Everybody on this machine can read arguments, and a URL may have a password.
#[test]
fn target_of_every_command_may_be_a_line_of_standard_input() {
    let place = Place::new();
    let with_input = |args: &[&str], input: &str| {
        let mut child = piped(place.command(args).stdin(Stdio::piped()));
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Answer::at_end_of(child)
    };
    let file = place.at("a.capture");
    for args in [
        &["doctor", "-"][..],
        &["run", "kv", "-"],
        &["copy", "-", "sqlite:"],
        &["capture", "-", "-o", &file, "--", "true"],
        &["wire", "-", "--", "true"],
        &["up", "app", "-", "--experiment", "kv"],
        &["up", "stack", "php", "--db", "-"],
    ] {
        let answer = with_input(args, "nosuch://kurabe@127.0.0.1/a\n");
        assert!(answer.code != Some(0) && answer.err.contains("nosuch"), "{args:?}: {answer:?}");
    }
    let Some(server) = testing::server("redis") else { return };
    // The rest is of the command that is started.
    let answer = with_input(&["wire", "-", "--", "cat"], &format!("{}\nthe rest\n", server.url()));
    assert!(answer.code == Some(0) && answer.err.contains("the rest"), "{answer:?}");
    // No password of a file's URL is shown.
    let data = with_input(
        &["run", "query", "up:postgres", "-c", "SELECT 1", "-c", "SELECT 2", "--setup", "-"],
        "postgres://u:secret@127.0.0.1/d\n",
    );
    assert!(data.code == Some(2) && !data.err.contains("secret"), "{data:?}");
}
