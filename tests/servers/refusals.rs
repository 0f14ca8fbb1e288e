//! Refusals before any measurement, with one clear error and the right exit code.

use super::common::{BRIEF, SQL, assert_all_verified, by, session, sql, tables};
use crate::support::{Answer, Place};
use kurabe_testbed::testing;

/// A URL as messages have it.
fn shown(url: &str) -> String {
    kurabe_core::target::TargetUrl::parse(url).unwrap().to_string()
}

/// Checks that the answer is one error for an unusable target that contains all of `parts`, and that there is no run.
pub(super) fn assert_refused(place: &Place, answer: &Answer, parts: &[&str]) {
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let errors = answer.errors();
    assert_eq!(errors.len(), 1, "{answer:?}");
    for part in parts {
        assert!(errors[0].contains(part), "'{part}' is not in: {answer:?}");
    }
    assert!(!answer.err.contains("panicked") && answer.out.is_empty(), "{answer:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "there is a run: {answer:?}");
}

#[test]
fn too_many_clients_for_open_file_limit_are_rejected() {
    let Some(server) = testing::server_with("memcached", |options| options.set("c", 2_000)) else { return };
    let place = Place::new();
    let mut args = session(&[server.url()], &BRIEF);
    args.extend(["--clients", "200"]);
    // Both limits, soft and hard.
    let answer = Answer::of(&place.command_after("ulimit -n 100", &args).output().unwrap());
    assert_refused(&place, &answer, &["files", "may open 100", "ulimit -n"]);
    // The soft limit is raised to the hard one.
    let answer = Answer::of(&place.command_after("ulimit -S -n 100", &args).output().unwrap());
    assert_all_verified(&place, &answer);
}

#[test]
fn unknown_database_and_stopped_server_are_reported() {
    for engine in SQL {
        let Some(server) = testing::server(engine) else { continue };
        // MySQL and MariaDB tell only those who may know which databases there are.
        testing::make_superuser(&server);
        let place = Place::new();
        let url = by(&server, testing::login(&server), "nowhere");
        let answer = place.run(&session(&[&url], &BRIEF));
        assert_refused(&place, &answer, &[&shown(&url), "nowhere", "create the database first"]);
        let url = server.url().to_owned();
        server.stop().unwrap();
        let answer = place.run(&session(&[&url], &BRIEF));
        assert_refused(&place, &answer, &[&shown(&url), "nothing listens"]);
    }
}

#[test]
fn missing_create_permission_is_reported_before_run() {
    for engine in SQL {
        let Some(server) = testing::server(engine) else { continue };
        let make = if engine == "postgres" {
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE reader LOGIN PASSWORD 'a'"
        } else {
            "CREATE USER reader@'%' IDENTIFIED BY 'a'; GRANT SELECT ON kurabe.* TO reader@'%'; \
             GRANT ALL ON `other\\_%`.* TO reader@'%'"
        };
        let Some(_) = sql(&server, "", make) else { continue };
        let place = Place::new();
        let url = by(&server, "reader:a", "kurabe");
        let answer = place.run(&session(&[&url], &BRIEF));
        assert_refused(&place, &answer, &["nothing can be measured"]);
        let why = "no tables can be created there: ";
        assert!(answer.err.contains(engine) && answer.err.contains(why), "{answer:?}");
        assert_eq!(tables(&server).unwrap(), "", "{engine}");
    }
}

#[test]
fn foreign_table_with_our_prefix_is_rejected_and_untouched() {
    for engine in SQL {
        let Some(server) = testing::server(engine) else { continue };
        for name in ["kurabe_0_probe", "kurabe_0_session_1000_blnobitealre_r", "kurabe_marker"] {
            let make =
                format!("CREATE TABLE {name} (note VARCHAR(20)); INSERT INTO {name} VALUES ('not yours')");
            let Some(_) = sql(&server, "", &make) else { continue };
            let place = Place::new();
            let answer = place.run(&session(&[server.url()], &BRIEF));
            assert_refused(&place, &answer, &[name, "left alone", "another database"]);
            assert_eq!(sql(&server, "", &format!("SELECT * FROM {name}")).unwrap().trim(), "not yours");
            // No ownership table either: it would suggest that we created the table.
            assert_eq!(tables(&server).unwrap().trim(), name, "{engine}");
            sql(&server, "", &format!("DROP TABLE {name}"));
        }
    }
}

#[test]
fn tables_of_the_user_are_never_touched() {
    for engine in SQL {
        let Some(server) = testing::server(engine) else { continue };
        // One of them has a name similar to ours, which is allowed.
        let make = "CREATE TABLE users (name VARCHAR(20)); INSERT INTO users VALUES ('alice');
                    CREATE TABLE kurabe_notes (note VARCHAR(20)); INSERT INTO kurabe_notes VALUES ('mine')";
        let Some(_) = sql(&server, "", make) else { continue };
        let place = Place::new();
        assert_all_verified(&place, &place.run(&session(&[server.url()], &BRIEF)));
        let kept = sql(&server, "", "SELECT name, note FROM users, kurabe_notes").unwrap();
        assert_eq!(kept.split(['\t', '|']).map(str::trim).collect::<Vec<_>>(), ["alice", "mine"], "{engine}");
        assert_eq!(tables(&server).unwrap().trim(), "kurabe_notes\nusers", "{engine}");
    }
}
