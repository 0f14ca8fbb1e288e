//! Passwords: right ones let in wherever they come from, wrong ones are one clear error, and none is seen anywhere.

use super::common::{BRIEF, SQL, assert_all_verified, by, session, superuser, with};
use crate::support::{Answer, Place, eventually, piped};
use kurabe_testbed::{Server, testing};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;

const PASSWORD: &str = "xyzzy-Plugh:17";
const WRONG: &str = "frotz-Waldo-23";
/// As URLs have it.
const ENCODED: &str = "xyzzy-Plugh%3A17";

/// That neither password is in the text.
fn assert_silent(what: &str, text: &str) {
    for secret in [PASSWORD, ENCODED, WRONG] {
        assert!(!text.contains(secret), "{what} holds a password: {text}");
    }
}

/// That no file in the folder holds a password.
fn assert_folder_silent(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_folder_silent(&path);
        } else {
            assert_silent(&path.display().to_string(), &String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
}

fn assert_nothing_told(place: &Place, answer: &Answer) {
    assert_silent("standard output", &answer.out);
    assert_silent("standard error", &answer.err);
    assert_folder_silent(place.path());
}

fn guarded(engine: &str) -> Option<Server> {
    testing::server_with(engine, |options| options.with_password(PASSWORD))
}

#[test]
fn a_wrong_password_is_one_clear_error_that_holds_no_password() {
    for engine in SQL {
        let Some(server) = guarded(engine) else { continue };
        for client in ["client=lean", "client=driver"] {
            let place = Place::new();
            let user = superuser(engine);
            let shown = with(&by(&server, user, "kurabe"), client);
            for given in [user.to_owned(), format!("{user}:{WRONG}")] {
                let url = with(&by(&server, &given, "kurabe"), client);
                for args in [session(&[&url], &BRIEF), vec!["doctor", &url]] {
                    let answer = place.run(&args);
                    assert_eq!(answer.code, Some(3), "{answer:?}");
                    assert_eq!(answer.err.matches("kurabe: ").count(), 1, "{answer:?}");
                    assert!(answer.err.contains(&shown), "{answer:?}");
                    assert!(answer.err.contains("password"), "{answer:?}");
                    assert_nothing_told(&place, &answer);
                }
            }
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn the_password_of_a_url_is_in_no_output_no_record_and_no_report() {
    for engine in SQL {
        let Some(server) = guarded(engine) else { continue };
        let place = Place::new();
        let url = by(&server, &format!("{}:{ENCODED}", superuser(engine)), "kurabe");
        let answer = place.run(&session(&[&url], &BRIEF));
        assert_all_verified(&place, &answer);
        assert_nothing_told(&place, &answer);
        for format in ["md", "csv", "json", "html"] {
            let answer = place.run(&["report", "--format", format, "--output", "-"]);
            assert_eq!(answer.code, Some(0), "{answer:?}");
            assert_silent(format, &answer.out);
        }
        // The run file cannot hold it, so that a rerun without it is refused, and one with it goes on.
        let answer = place.run(&["rerun", "last"]);
        assert_eq!(answer.code, Some(3), "{answer:?}");
        assert_nothing_told(&place, &answer);
        let answer = place.run(&["rerun", "last", &url]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_nothing_told(&place, &answer);
    }
}

/// Runs without a password in the URL, and looks at the command lines of the program and of all that it starts.
fn runs_in_silence(place: &Place, url: &str, environment: Option<&str>) {
    let mut command = place.command(&session(&[url], &BRIEF));
    command.envs(environment.map(|name| (name, PASSWORD)));
    let mut child = piped(&mut command);
    let _ = eventually(60, || {
        for line in command_lines(&child) {
            assert_silent("a command line", &line);
        }
        child.try_wait().unwrap()
    });
    let answer = Answer::of(&child.wait_with_output().unwrap());
    assert_all_verified(place, &answer);
    assert_nothing_told(place, &answer);
}

/// The command lines of a process, its children and its threads' children.
fn command_lines(child: &Child) -> Vec<String> {
    let mut all = vec![child.id().to_string()];
    let children = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    for task in children {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(list.split_whitespace().map(str::to_owned));
    }
    let read = |pid: String| fs::read(format!("/proc/{pid}/cmdline")).ok();
    all.into_iter().filter_map(read).map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
}

#[test]
fn a_password_from_the_environment_lets_in_and_is_seen_nowhere() {
    for engine in SQL {
        let Some(server) = guarded(engine) else { continue };
        let variable = if engine == "postgres" { "PGPASSWORD" } else { "MYSQL_PWD" };
        runs_in_silence(&Place::new(), &by(&server, superuser(engine), "kurabe"), Some(variable));
    }
}

#[test]
fn a_password_from_the_engines_own_file_lets_in_and_is_seen_nowhere() {
    for engine in SQL {
        let Some(server) = guarded(engine) else { continue };
        let place = Place::new();
        let (name, text) = if engine == "postgres" {
            let port = server.port();
            (".pgpass", format!("127.0.0.1:{port}:*:kurabe:{}\n", PASSWORD.replace(':', "\\:")))
        } else {
            (".my.cnf", format!("[client]\nuser = root\npassword = \"{PASSWORD}\"\n"))
        };
        let file = place.home().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        // MySQL's file names the user too.
        let user = if engine == "postgres" { "kurabe" } else { "" };
        runs_in_silence(&place, &by(&server, user, "kurabe"), None);
    }
}
