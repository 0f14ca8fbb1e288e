//! Wrong answers are found whatever words a statement has, and right ones are not called wrong.

use super::{captured, replay, report};
use crate::servers::common::{has_program, sql};
use crate::support::Place;
use kurabe_testbed::testing;

/// Statements whose names, literals and comments are those of functions and clauses. `"` stands for the quote of names.
const STATEMENTS: &str = r#"
SELECT uuid, now, "limit" FROM random WHERE credit_limit > 0 ORDER
BY uuid;
SELECT count(*) AS version FROM random /* now() limit 5 rand() */ WHERE now <> 'uuid() returning xmin';
SELECT r.uuid FROM random AS r ORDER BY r.credit_limit;
SELECT sum(10 / (uuid - 9)) AS utc_offset FROM random;
UPDATE random SET credit_limit = credit_limit + 1 WHERE now LIKE 'n%';
UPDATE random SET credit_limit = credit_limit - 1 WHERE now LIKE 'n%';
SELECT now();
"#;

#[test]
fn planted_wrong_answer_is_found_whatever_words_its_statement_has() {
    for (engine, quote) in [("postgres", '"'), ("mysql", '`'), ("mariadb", '`')] {
        let Some(server) = testing::server(engine) else { continue };
        let is_postgres = engine == "postgres";
        if !has_program(if is_postgres { "psql" } else { "mysql" }) {
            return;
        }
        let quoted = |text: &str| text.replace('"', &quote.to_string());
        let made = quoted(
            "CREATE TABLE random (uuid int PRIMARY KEY, now varchar(20), \"limit\" int, credit_limit int); \
             INSERT INTO random VALUES (1, 'n1', 5, 10), (2, 'n2', 5, 20), (3, 'n3', 5, 30), (4, 'other', 5, 40)",
        );
        let Some(_) = sql(&server, "", &made) else { continue };
        let place = Place::new();
        let file = place.file("statements.sql", quoted(STATEMENTS));
        let client = if is_postgres {
            format!("psql -qXf '{file}'")
        } else {
            format!("mysql --no-defaults --comments --protocol=tcp --user=root kurabe < '{file}'")
        };
        let path = captured(&place, engine, &server, &format!("{client} > out"));
        report(&place, &path, &[server.url(), "--write"]);
        for (plant, undo, said) in [
            (
                "UPDATE random SET now = 'n5' WHERE uuid = 3",
                "UPDATE random SET now = 'n3' WHERE uuid = 3",
                "other values in 4 rows for 'SELECT uuid, now",
            ),
            (
                "DELETE FROM random WHERE uuid = 4",
                "INSERT INTO random VALUES (4, 'other', 5, 40)",
                "3 rows instead of 4 for 'SELECT uuid, now",
            ),
            (
                "INSERT INTO random VALUES (5, 'n5', 5, 50)",
                "DELETE FROM random WHERE uuid = 5",
                "5 rows instead of 4 for 'SELECT uuid, now",
            ),
            (
                "UPDATE random SET now = 'n9' WHERE uuid = 4",
                "UPDATE random SET now = 'other' WHERE uuid = 4",
                // MySQL's client counts otherwise than a replay does: what it changed is not compared.
                if is_postgres { "4 rows changed instead of 3 for 'UPDATE" } else { "for 'SELECT uuid, now" },
            ),
            (
                "UPDATE random SET credit_limit = 35 WHERE uuid = 1",
                "UPDATE random SET credit_limit = 10 WHERE uuid = 1",
                "for 'SELECT r.uuid",
            ),
            (
                "UPDATE random SET uuid = 9 WHERE uuid = 4",
                "UPDATE random SET uuid = 4 WHERE uuid = 9",
                if is_postgres { "error 22012 instead of no error" } else { "for 'SELECT sum" },
            ),
        ] {
            sql(&server, "", plant).unwrap();
            let answer = replay(&place, &path, &[server.url(), "--write"]);
            let all = format!("{}{}", answer.out, answer.err);
            assert!(answer.code != Some(0) && all.contains(said), "{engine}: {plant}: {all}");
            sql(&server, "", undo).unwrap();
        }
        // Nothing else was changed.
        report(&place, &path, &[server.url(), "--write"]);
    }
}

#[test]
fn time_that_the_server_stored_is_read_back_and_ends_no_replay() {
    let Some(server) = testing::server("postgres") else { return };
    if !has_program("psql") {
        return;
    }
    let place = Place::that_starts_servers();
    let dump =
        place.file("dump.sql", "CREATE TABLE visit (id serial PRIMARY KEY, page text, at timestamptz);");
    sql(&server, "", &std::fs::read_to_string(&dump).unwrap()).unwrap();
    let script = "for n in 1 2 3; do \
                  psql -qXAt -c \"INSERT INTO visit (page, at) VALUES ('p$n', now()) RETURNING id\" \
                  -c 'SELECT id, page FROM visit ORDER BY id' -c 'SELECT at, page FROM visit ORDER BY id'; done > out";
    let path = captured(&place, "visits", &server, script);
    replay(&place, &path, &["up:postgres", "--data", &dump]).success();
    let cell = &crate::servers::common::cells(&place.report())[0].clone();
    let partial = crate::support::metric(cell, "answers compared in part").unwrap_or_default();
    assert!((partial - 3.0).abs() < 0.01, "{cell:#}");
    // Of the same rows, what the server did not make is compared.
    let other = "CREATE TABLE visit (id serial PRIMARY KEY, page text DEFAULT 'x', at timestamptz); \
                 CREATE RULE r AS ON INSERT TO visit DO ALSO UPDATE visit SET page = 'other';";
    std::fs::write(&dump, other).unwrap();
    let answer = replay(&place, &path, &["up:postgres", "--data", &dump]);
    assert!(answer.code != Some(0), "{answer:?}");
}
