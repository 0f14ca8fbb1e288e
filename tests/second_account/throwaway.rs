//! Throwaway servers of `up`, `run`, `gate` and `replay`.

use super::accounts::{Account, Accounts, User};
use super::holes::{assert_none, holes};
use super::logins::opens;
use super::running::Running;
use super::scene::{CommandLines, has_password};
use crate::servers::common::{has, tell};
use std::fs;
use std::path::{Path, PathBuf};

/// Every server that can be started.
const ENGINES: [&str; 8] =
    ["postgres", "mysql", "mariadb", "redis", "valkey", "memcached", "mongodb", "couchdb"];
const GATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/gate.sh");
const BRIEF: [&str; 9] =
    ["--requests", "40", "--records", "20", "--clients", "2", "--rounds", "1", "--no-html"];

pub(super) fn engines() -> Vec<&'static str> {
    ENGINES.into_iter().filter(|engine| has(engine)).collect()
}

/// What is in the folder of a user's throwaway servers.
pub(super) fn server_folders(user: &User) -> Vec<PathBuf> {
    fs::read_dir(user.servers()).unwrap().flatten().map(|entry| entry.path()).collect()
}

/// The password in a URL.
fn password(url: &str) -> Option<&str> {
    let (login, _) = url.split_once("://")?.1.rsplit_once('@')?;
    login.split_once(':').map(|(_, password)| password).filter(|password| !password.is_empty())
}

fn up_is_its_users_alone(make_user: impl FnOnce(&std::sync::Arc<Accounts>) -> User) {
    let Some(accounts) = Accounts::get() else { return };
    let (user, lines) = (make_user(&accounts), CommandLines::watch());
    let engines = engines();
    let mut servers: Vec<Running> =
        engines.iter().map(|engine| Running::start(&mut user.run(&["up", engine]))).collect();
    let urls: Vec<String> = servers.iter_mut().map(Running::first_line).collect();
    let mut found = Vec::new();
    for ((engine, url), server) in engines.iter().zip(&urls).zip(&mut servers) {
        assert!(url.contains("://"), "up {engine}: {url}: {:?}", server.end());
        // Whom it was started for can use it, and the attacks below meet a server that works.
        if opens(&user.account, url) == Some(false) {
            found.push(format!("{engine}: its own user does not log in with the URL that 'up' printed"));
        }
    }
    let pids: Vec<u32> = servers.iter().map(Running::id).collect();
    found.extend(holes(&accounts, &pids, &server_folders(&user)));
    let secrets: Vec<&str> = urls.iter().filter_map(|url| password(url)).collect();
    found.extend(lines.passwords(&user.programs(), &secrets));
    assert_none(&format!("up of {}", user.account.name), &found);
}

#[test]
fn servers_that_root_starts_serve_no_other_account() {
    up_is_its_users_alone(|accounts| accounts.user(&Account::root()));
}

#[test]
fn servers_that_a_user_starts_serve_no_other_account() {
    up_is_its_users_alone(|accounts| accounts.user(&accounts.owner));
}

#[test]
fn applications_and_listeners_serve_no_other_account() {
    let Some(accounts) = Accounts::get() else { return };
    let app = ["up", "app", "sqlite:", "--experiment", "kv", "--records", "20", "--listen", "127.0.0.1:0"];
    let stack = ["up", "stack", "php", "--db", "up:mariadb", "--records", "20"];
    let has_stack = kurabe_testbed::installed_stack("php").is_some_and(|found| found.is_ok());
    let mut all = vec![("http://", &app[..]), ("tcp://", &["up", "tcp", "127.0.0.1:0"])];
    // Stacks belong to the full tier, whose set-up installs their languages.
    if !has_stack {
        tell("no php-fpm and nginx");
    } else if has("mariadb") {
        all.push(("http://kurabe:", &stack));
    }
    for user in accounts.users() {
        for (begin, args) in &all {
            let lines = CommandLines::watch();
            let mut application = Running::start(&mut user.run(args));
            let url = application.first_line();
            assert!(url.starts_with(begin), "{url}: {:?}", application.end());
            let folders = [server_folders(&user), vec![user.home().to_owned()]].concat();
            let mut found = holes(&accounts, &[application.id()], &folders);
            let secrets: Vec<&str> = password(&url).into_iter().collect();
            found.extend(lines.passwords(&user.programs(), &secrets));
            assert_none(&format!("{args:?} of {}", user.account.name), &found);
        }
    }
}

#[test]
fn servers_and_files_of_a_run_are_its_users_alone() {
    let Some(accounts) = Accounts::get() else { return };
    let (user, lines) = (accounts.user(&accounts.owner), CommandLines::watch());
    let targets: Vec<String> = engines().iter().map(|engine| format!("up:{engine}")).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let run = user.run(&[&["run", "kv"], &targets[..], &BRIEF].concat());
    let run = Running::start_to_pause(&user, run);
    let mut folders = server_folders(&user);
    folders.push(user.home().to_owned());
    let found = holes(&accounts, &[run.id()], &folders);
    let answer = run.finish();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = user.run(&["report", "--format", "json"]).output().unwrap();
    assert!(report.status.success(), "{report:?}");
    let left = holes(&accounts, &[], &[user.home().to_owned()]);
    assert_none("run", &[found, left, lines.passwords(&user.programs(), &[])].concat());
}

/// Pairs of engines, so that each is in a gate, by turns of root and of a user.
#[test]
fn gate_of_two_throwaway_servers_tells_nobody_their_passwords() {
    let Some(accounts) = Accounts::get() else { return };
    let users = accounts.users();
    for (pair, user) in engines().chunks(2).zip(users.iter().cycle()) {
        let lines = CommandLines::watch();
        let suite = user.input(
            "gate.toml",
            "experiment = \"kv\"\nrecords = 20\nrequests = 40\nrounds = 6\n[axes]\nclients = [2]\n",
        );
        let script = user.input("gate.sh", &fs::read_to_string(GATE).unwrap());
        let up = |engine: &str| format!("{} up {engine}", user.path().display());
        let mut gate = user.program(Path::new(&script), &[]);
        gate.env("KURABE", user.path()).env("SUITE", &suite);
        gate.env("BASE", up(pair[0])).env("HEAD", up(pair.last().unwrap()));
        let gate = Running::start_to_pause(user, gate);
        let folders = [server_folders(user), vec![user.home().join(".kurabe/runs")]].concat();
        let mut found = holes(&accounts, &[gate.id()], &folders);
        let answer = gate.finish();
        assert!(matches!(answer.code, Some(0 | 6 | 7)), "{pair:?}: {answer:?}");
        found.extend(lines.passwords(&user.programs(), &[]));
        if has_password(&answer.err) || has_password(&answer.out) {
            found.push(format!("a password is in the output, which CI servers show: {}", answer.err));
        }
        for file in fs::read_dir(user.home().join(".kurabe")).unwrap().flatten() {
            let text = fs::read(file.path()).unwrap_or_default();
            if has_password(&String::from_utf8_lossy(&text)) {
                found.push(format!("a password is in {}", file.path().display()));
            }
        }
        assert_none(&format!("gate of {pair:?} of {}", user.account.name), &found);
    }
}

/// What writes and reads something through a relay before each engine; that of MongoDB has no program for it.
const CLIENTS: [(&str, &str); 7] = [
    ("postgres", "psql -XAtqc 'SELECT 4711'"),
    ("mysql", MYSQL),
    ("mariadb", MYSQL),
    ("redis", "redis-cli -u \"$KURABE_URL\" SET a 4711"),
    ("valkey", "redis-cli -u \"$(echo \"$KURABE_URL\" | sed 's/^valkey/redis/')\" SET a 4711"),
    (
        "memcached",
        "exec 3<>\"/dev/tcp/$KURABE_HOST/$KURABE_PORT\"; login=\"kurabe $MEMCACHED_PASSWORD\"; \
                   printf 'set auth 0 0 %s\\r\\n%s\\r\\nset a 0 0 1\\r\\nx\\r\\n' ${#login} \"$login\" >&3; read -r a <&3; read -r b <&3",
    ),
    ("couchdb", "curl -sS -u \"kurabe:$COUCHDB_PASSWORD\" -X PUT \"http://$KURABE_HOST:$KURABE_PORT/made\""),
];
const MYSQL: &str = "mysql --no-defaults --protocol=tcp --user=\"$MYSQL_USER\" -e 'SELECT 4711' kurabe";

#[test]
fn capture_and_replay_on_throwaway_servers_are_their_users_alone() {
    let Some(accounts) = Accounts::get() else { return };
    let (user, lines) = (accounts.user(&accounts.owner), CommandLines::watch());
    let mut captures = Vec::new();
    for (engine, script) in CLIENTS.into_iter().filter(|(engine, _)| has(engine)) {
        let (file, target) = (user.at(&format!("{engine}.capture")), format!("up:{engine}"));
        let capture =
            user.run(&["capture", &target, "-o", &file, "--", "bash", "-ec", script]).output().unwrap();
        assert!(capture.status.success(), "{engine}: {capture:?}");
        captures.push((engine, file));
    }
    if let Some(server) = kurabe_testbed::testing::server("mongodb") {
        let place = crate::support::Place::new();
        let path = crate::replay::mongodb::recorded(&place, "mongodb.capture", &server, |address| {
            let mut client = crate::replay::mongodb::Client::connect(&server, address);
            client.ask("find", &"items".into(), &serde_json::json!({"filter": {}}));
        });
        let file = user.input("mongodb.capture", "");
        fs::copy(path, &file).unwrap();
        captures.push(("mongodb", file));
    }
    for (engine, file) in captures {
        let target = format!("up:{engine}");
        let replay = user.run(&["run", "replay", &file, &target, "--rounds", "1", "--no-html", "--write"]);
        let replay = Running::start_to_pause(&user, replay);
        let folders = [server_folders(&user), vec![user.home().to_owned()]].concat();
        let mut found = holes(&accounts, &[replay.id()], &folders);
        let answer = replay.finish();
        assert_eq!(answer.code, Some(0), "{engine}: {answer:?}");
        found.extend(lines.passwords(&user.programs(), &[]));
        assert_none(&format!("replay on {engine}"), &found);
    }
}

/// The targets are lines of standard input, since everybody reads arguments.
#[test]
fn copies_to_servers_tell_nobody_their_passwords() {
    let Some(accounts) = Accounts::get() else { return };
    let (user, lines) = (accounts.user(&accounts.owner), CommandLines::watch());
    let source = user.signals().join("shop.db").display().to_string();
    if !super::files::shop(&user, &source) {
        return;
    }
    let sql: Vec<&str> =
        engines().into_iter().filter(|engine| ["postgres", "mysql", "mariadb"].contains(engine)).collect();
    let mut servers: Vec<Running> =
        sql.iter().map(|engine| Running::start(&mut user.run(&["up", engine]))).collect();
    let urls: Vec<String> = servers.iter_mut().map(Running::first_line).collect();
    let (rejected, leftovers) = (user.at("rejected"), user.at("leftovers"));
    let accept = ["--accept", "nul-character=refuse,view", "--reject", &rejected, "--leftovers", &leftovers];
    let mut found = Vec::new();
    for (engine, url) in sql.iter().zip(&urls) {
        for file in [&rejected, &leftovers] {
            let _ = fs::remove_file(file);
        }
        let mut copy = user.run(&[&["copy", &format!("sqlite:{source}"), "-"][..], &accept].concat());
        let mut copy = crate::support::piped(copy.stdin(std::process::Stdio::piped()));
        std::io::Write::write_all(&mut copy.stdin.take().unwrap(), format!("{url}\n").as_bytes()).unwrap();
        let answer = crate::support::Answer::at_end_of(copy);
        // PostgreSQL stores no NUL.
        assert!(matches!(answer.code, Some(0 | 4)), "{engine}: {answer:?}");
        if has_password(&answer.err) || has_password(&answer.out) {
            found.push(format!("a password is in what a copy to {engine} prints: {answer:?}"));
        }
        let pids: Vec<u32> = servers.iter().map(Running::id).collect();
        found.extend(holes(&accounts, &pids, &[user.home().to_owned()]));
    }
    let secrets: Vec<&str> = urls.iter().filter_map(|url| password(url)).collect();
    found.extend(lines.passwords(&user.programs(), &secrets));
    assert_none("copy", &found);
}
