//! Passwords: right ones work from every source, wrong ones give one clear error, and none is leaked: in no output,
//! artefact, error or temporary file, and not in the arguments or the environment of child processes.

use super::common::{assert_all_verified, by, session, with};
use super::watch::{Needles, Seen};
use crate::support::{Answer, Place, eventually, piped};
use kurabe_testbed::Server;
use kurabe_testbed::testing::{self, Lease};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};
use tempfile::TempDir;

/// The options of a run with few requests: what they take does not matter here.
const FEW: [&str; 12] = [
    "--compress", "none", "--layout", "blob", "--payload", "1k", "--requests", "4", "--records", "4",
    "--rounds", "1",
];
const PASSWORD: &str = "xyzzy-Plugh:17";
const WRONG: &str = "frotz-Waldo-23";
/// As in URLs.
const ENCODED: &str = "xyzzy-Plugh%3A17";

/// An engine with passwords, and the sources of a password besides the URL.
struct Guarded {
    engine: &'static str,
    /// The user that the testbed makes.
    user: &'static str,
    /// The part of the URL after the port.
    database: &'static str,
    /// The variable that holds a password.
    variable: &'static str,
    /// The engine's own file in the user's home.
    file: Option<CustomFile>,
}

/// Its name, its content, and the user of a URL that relies on it.
type CustomFile = (&'static str, fn(&Server) -> String, &'static str);

/// One line, or a few, for each engine with passwords.
const GUARDED: [Guarded; 5] = [
    Guarded {
        engine: "mysql",
        user: "kurabe",
        database: "kurabe",
        variable: "MYSQL_PWD",
        file: Some((".my.cnf", my_cnf, "")),
    },
    Guarded {
        engine: "mariadb",
        user: "kurabe",
        database: "kurabe",
        variable: "MYSQL_PWD",
        file: Some((".my.cnf", my_cnf, "")),
    },
    Guarded {
        engine: "postgres",
        user: "kurabe",
        database: "kurabe",
        variable: "PGPASSWORD",
        file: Some((".pgpass", pgpass, "kurabe")),
    },
    Guarded { engine: "redis", user: "", database: "", variable: "REDISCLI_AUTH", file: None },
    Guarded { engine: "couchdb", user: "kurabe", database: "", variable: "COUCHDB_PASSWORD", file: None },
];

/// MySQL's file names the user too.
fn my_cnf(_: &Server) -> String {
    format!("[client]\nuser = kurabe\npassword = \"{PASSWORD}\"\n")
}

fn pgpass(server: &Server) -> String {
    format!("127.0.0.1:{}:*:kurabe:{}\n", server.port(), PASSWORD.replace(':', "\\:"))
}

impl Guarded {
    fn start(&self) -> Option<Lease> {
        testing::server_with(self.engine, |options| options.with_password(PASSWORD))
    }

    fn url(&self, server: &Server, user: &str) -> String {
        by(server, user, self.database)
    }

    /// The URL with the password in it.
    fn full(&self, server: &Server) -> String {
        self.url(server, &format!("{}:{ENCODED}", self.user))
    }
}

fn needles() -> Needles {
    Needles::of(&[PASSWORD, WRONG])
}

/// Checks that neither the output nor the record contains a password.
fn assert_no_password(place: &Place, answer: &Answer) {
    let needles = needles();
    needles.assert_absent("standard output", &answer.out);
    needles.assert_absent("standard error", &answer.err);
    needles.assert_absent_below(place.path());
}

/// Runs the program and checks that its output leaks nothing; returns it. What it left in files is searched by
/// [`assert_no_password`] after the last such run.
fn run_without_leak(place: &Place, args: &[&str]) -> Answer {
    let answer = place.run(args);
    needles().assert_absent("standard output", &answer.out);
    needles().assert_absent("standard error", &answer.err);
    answer
}

/// A directory for temporary files that throwaway servers, which run as other users, can enter.
fn temporary() -> TempDir {
    let folder = tempfile::Builder::new().prefix("kurabe-secrets-").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Monitors everything that the program starts, until it ends: every process below it, and the temporary files of
/// all. It waits after its first trial, until its servers were searched.
fn watched(place: &Place, mut command: Command, itself: bool) -> (Answer, Seen) {
    let (folder, needles) = (temporary(), needles());
    command.env("TMPDIR", folder.path());
    let mut child: Child = piped(&mut command);
    let mut seen = Seen::default();
    let (mut looks, mut waits) = (0, true);
    let ended = eventually(250, || {
        looks += 1;
        let pauses = waits && place.is_paused(1);
        if pauses || looks % 5 == 1 {
            seen.look(&child, itself, &needles);
        }
        if pauses {
            needles.assert_absent_below(folder.path());
            place.go_on(1);
            waits = false;
        }
        child.try_wait().unwrap()
    });
    assert!(!waits, "the run did not come to its first trial");
    assert!(ended.is_some(), "it did not end");
    let answer = Answer::at_end_of(child);
    needles.assert_absent_below(folder.path());
    (answer, seen)
}

/// Runs on servers with a chosen password and on throwaway ones of these engines, monitored. Clients of the throwaway servers
/// use the random password, and ignore the engine's passwords in the user's environment and files.
fn runs_without_leak(place: &Place, urls: &[String], engines: &[&str], variables: &[&str], itself: bool) {
    let ups: Vec<String> = engines.iter().map(|engine| format!("up:{engine}")).collect();
    let targets: Vec<&str> = urls.iter().chain(&ups).map(String::as_str).collect();
    let mut command = place.pausing(&session(&targets, &FEW), &[1]);
    command.envs(variables.iter().map(|name| (name, PASSWORD)));
    let (answer, seen) = watched(place, command, itself);
    assert_all_verified(place, &answer);
    assert_no_password(place, &answer);
    // The supervisor is this program, and a server is below each.
    assert!(
        seen.programs.len() > engines.len(),
        "{engines:?}: not all servers were seen: {:?}",
        seen.programs
    );
}

/// The engines with passwords that can be started here, each with a password-protected server.
type Servers = [(&'static Guarded, Lease)];

#[test]
fn passwords_work_from_every_source_and_are_leaked_nowhere() {
    let servers: Vec<_> = GUARDED.iter().filter_map(|guarded| Some((guarded, guarded.start()?))).collect();
    if servers.is_empty() {
        return;
    }
    wrong_password_is_one_error_without_the_password(&servers);
    url_password_is_in_no_output_record_or_report(&servers);
    password_from_environment_works_and_is_not_leaked(&servers);
    password_from_engine_file_works_and_is_not_leaked(&servers);
    killed_server_error_does_not_leak_password(&servers);
}

fn wrong_password_is_one_error_without_the_password(servers: &Servers) {
    for (guarded, server) in servers {
        let place = Place::new();
        let shown = guarded.url(server, guarded.user);
        for given in [guarded.user.to_owned(), format!("{}:{WRONG}", guarded.user)] {
            let url = guarded.url(server, &given);
            for args in [session(&[&url], &FEW), vec!["doctor", &url]] {
                let answer = run_without_leak(&place, &args).exit_code(3);
                assert_eq!(answer.errors().len(), 1, "{answer:?}");
                assert!(answer.err.contains(&shown), "{answer:?}");
                assert!(answer.err.contains("password"), "{answer:?}");
            }
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        needles()
            .assert_absent("the server's log", &fs::read_to_string(server.log_path()).unwrap_or_default());
    }
}

fn url_password_is_in_no_output_record_or_report(servers: &Servers) {
    let place = Place::that_starts_servers();
    let urls: Vec<String> = servers.iter().map(|(guarded, server)| guarded.full(server)).collect();
    // The password is in no variable and no file, of which each engine has its own: one throwaway server is enough.
    let left_out = servers[0].0.engine;
    runs_without_leak(&place, &urls, &[left_out], &[], false);
    let targets: Vec<&str> = urls.iter().map(String::as_str).collect();
    for args in [
        &["report", "--format", "html"][..],
        &["report", "--format", "md"],
        &["report", "--format", "csv"],
        &["report", "--format", "json"],
        &["report", "--format", "openmetrics"],
        &["report", "--format", "html", "--output", "-"],
        &["report", "--format", "json", "--anonymise"],
        &["report", "--format", "md", "--leave-out", left_out],
        &["runs", "ls"],
        &["report", "last", "--color", "always"],
        &["compare", "last", "last"],
        &["list"],
        &["run", "--resume", "last"],
        &["completions", "bash"],
        &["completions", "fish"],
        &session(&targets, &["--dry-run"]),
    ] {
        let answer = run_without_leak(&place, args);
        assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
    }
    // The run file cannot contain it, so that a rerun without it is rejected, and one with it works.
    let alone = run_without_leak(&place, &session(&targets, &FEW));
    assert_all_verified(&place, &alone);
    assert_eq!(run_without_leak(&place, &["run", "--again", "last"]).code, Some(3));
    let again = [&["run", "--again", "last"], &targets[..]].concat();
    assert_eq!(run_without_leak(&place, &again).code, Some(0));
    needles().assert_absent_below(place.path());
    for ((_, server), url) in servers.iter().zip(&targets) {
        assert_eq!(run_without_leak(&place, &["doctor", url]).code, Some(0));
        for pid in [server.supervisor_pid(), server.pid()] {
            for file in ["cmdline", "environ"] {
                let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap();
                needles().assert_absent("the guarded server", &String::from_utf8_lossy(&bytes));
            }
        }
        needles()
            .assert_absent("the server's log", &fs::read_to_string(server.log_path()).unwrap_or_default());
    }
}

fn password_from_environment_works_and_is_not_leaked(servers: &Servers) {
    let urls: Vec<String> =
        servers.iter().map(|(guarded, server)| guarded.url(server, guarded.user)).collect();
    // One throwaway server of MySQL's family is enough; the other one is tried with its file.
    let engines = servers.iter().map(|(guarded, _)| guarded.engine);
    let engines: Vec<&str> = engines.filter(|engine| *engine != "mariadb").collect();
    let variables: Vec<&str> = servers.iter().map(|(guarded, _)| guarded.variable).collect();
    runs_without_leak(&Place::that_starts_servers(), &urls, &engines, &variables, true);
}

fn password_from_engine_file_works_and_is_not_leaked(servers: &Servers) {
    let (mut urls, mut engines) = (Vec::new(), Vec::new());
    let place = Place::that_starts_servers();
    for (guarded, server) in servers {
        let Some((name, text, user)) = guarded.file else { continue };
        // The file of MySQL is that of MariaDB.
        let file = place.file(name, text(server));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        urls.push(guarded.url(server, user));
        engines.extend(Some(guarded.engine).filter(|engine| *engine != "mysql"));
    }
    runs_without_leak(&place, &urls, &engines, &[], true);
}

#[test]
fn no_error_repeats_a_password() {
    let place = Place::new();
    let scheme = "mysql";
    let good = format!("{scheme}://root:{ENCODED}@127.0.0.1:1/kurabe");
    for (url, code) in [
        (good.clone(), 3),
        (format!("{scheme}://root:{PASSWORD}@127.0.0.1:1/kurabe"), 3),
        (format!("{scheme}://root:{ENCODED}@127.0.0.1:99999/kurabe"), 2),
        (format!("{scheme}://root:{ENCODED}@[::1/kurabe"), 2),
        (format!("{scheme}://root:{ENCODED}@no-such-host.invalid/kurabe"), 3),
        (format!("{scheme}x://root:{ENCODED}@127.0.0.1/kurabe"), 2),
        (format!("{scheme}:root:{ENCODED}@127.0.0.1/kurabe"), 2),
        (format!("root:{ENCODED}@127.0.0.1/kurabe"), 2),
        (with(&good, "chraset=statement"), 2),
        (with(&good, "charset=latin1"), 2),
    ] {
        for args in [session(&[&url], &FEW), vec!["doctor", &url]] {
            let answer = run_without_leak(&place, &args);
            assert_eq!(answer.code, Some(code), "{args:?}: {answer:?}");
        }
    }
    needles().assert_absent_below(place.path());
    let option = format!("--target={good}");
    for (args, code) in [
        (&[&good[..]][..], 2),
        (&["run", &good], 2),
        (&["run", "session", &good, "--blub"], 2),
        (&["run", "session", &option, "--rounds", "0"], 2),
        (&["up", &good], 2),
        (&["completions", &good], 2),
        (&["report", "--format", &good], 2),
        (&["report", &good], 5),
        (&["report", &good], 5),
        (&["run", "--resume", &good], 5),
        (&["compare", &good, "last"], 5),
    ] {
        let answer = run_without_leak(&place, args);
        assert_eq!(answer.code, Some(code), "{args:?}: {answer:?}");
    }
}

#[test]
fn password_in_suite_url_is_not_leaked() {
    let place = Place::new();
    let suite = place.at("mine.toml");
    let url = format!("postgres://kurabe:{ENCODED}@127.0.0.1:1/kurabe");
    for (text, code) in [
        (format!("experiment = 'session'\ntargets = ['{url}']\n"), 3),
        (format!("experiment = 'session'\ntragets = ['{url}']\n"), 2),
        (format!("experiment = 'session'\ntargets = '{url}\n"), 2),
    ] {
        fs::write(&suite, text).unwrap();
        let answer = run_without_leak(&place, &["run", "-f", &suite]);
        assert_eq!(answer.code, Some(code), "{answer:?}");
    }
    needles().assert_absent_below(place.path());
}

fn killed_server_error_does_not_leak_password(servers: &Servers) {
    let place = Place::new();
    let urls: Vec<String> = servers.iter().map(|(guarded, server)| guarded.full(server)).collect();
    let targets: Vec<&str> = urls.iter().map(String::as_str).collect();
    let long = ["--payload", "1k", "--requests", "300", "--records", "20", "--rounds", "8"];
    let (child, _) = place.spawn_to_trial(&session(&targets, &long), 4);
    place.go_on(4);
    for (_, server) in servers {
        server.kill_hard().unwrap();
    }
    let answer = Answer::at_end_of(child);
    assert_no_password(&place, &answer);
    assert_eq!(answer.code, Some(4), "{answer:?}");
    let doctors = targets.iter().map(|url| vec!["doctor", url]);
    let again = [&["run", "--again", "last"], &targets[..]].concat();
    let reports = [vec!["report", "--format", "json"], vec!["report", "last"], again];
    for args in reports.into_iter().chain(doctors) {
        run_without_leak(&place, &args);
    }
    needles().assert_absent_below(place.path());
}
