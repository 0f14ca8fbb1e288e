//! Wrong answers are found whatever words a statement has, and right ones are not called wrong.

use super::{captured, replay, report};
use crate::servers::common::{has_program, sql};
use crate::support::Place;
use kurabe_testbed::testing;
use std::fmt::Write as _;

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

/// What each of several sessions does at the same time with keys, a UUID and a moment that the server made.
const ORDERS: &str = r"
BEGIN;
INSERT INTO orders (buyer) VALUES ('b') RETURNING id, token, at \gset
INSERT INTO item (order_id, what) VALUES (:id, 'a'), (:id, 'b');
COMMIT;
SELECT o.id, o.buyer, i.what FROM orders o JOIN item i ON i.order_id = o.id WHERE o.id = :id ORDER BY i.what;
SELECT id, buyer FROM orders WHERE token = :'token';
UPDATE orders SET buyer = 'c' WHERE id = :id AND at = :'at';
SELECT buyer, at FROM orders WHERE id = :id;
SELECT what FROM item WHERE order_id = :id ORDER BY order_id LIMIT 5;
";

#[test]
fn keys_and_moments_that_the_server_made_are_followed_and_a_planted_wrong_answer_is_found() {
    let Some(server) = testing::server("postgres") else { return };
    if !has_program("psql") {
        return;
    }
    let place = Place::that_starts_servers();
    let schema = "CREATE TABLE orders (id serial PRIMARY KEY, buyer text, token uuid DEFAULT gen_random_uuid(), \
                  at timestamptz DEFAULT now()); \
                  CREATE TABLE item (id serial, order_id int REFERENCES orders, what text);";
    sql(&server, "", schema).unwrap();
    let file = place.file("orders.sql", ORDERS.repeat(3));
    let session = format!("psql -qXf '{file}' > out");
    let path = captured(&place, "orders", &server, &format!("{session} & {session} & {session}; wait"));
    // Sequences stand elsewhere, so that each key is another one.
    let moved = format!("{schema} SELECT setval('orders_id_seq', 1000), setval('item_id_seq', 500);");
    for (planted, said) in [
        ("", None),
        (
            "CREATE RULE r AS ON INSERT TO item DO ALSO UPDATE item SET what = 'x' WHERE what = 'b'",
            Some("other values in 2 rows"),
        ),
        (
            "CREATE RULE r AS ON INSERT TO item DO ALSO DELETE FROM item WHERE what = 'b'",
            Some("1 rows instead of 2"),
        ),
        ("ALTER TABLE orders ALTER at SET DEFAULT '2020-02-02'", Some("answers differ")),
        ("CREATE RULE r AS ON UPDATE TO orders DO INSTEAD NOTHING", Some("0 rows changed instead of 1")),
    ] {
        let dump = place.file("dump.sql", format!("{moved} {planted};"));
        let answer = replay(&place, &path, &["up:postgres", "--data", &dump]);
        let all = format!("{}{}", answer.out, answer.err);
        assert_eq!(answer.code == Some(0), said.is_none(), "{planted}: {all}");
        assert!(said.is_none_or(|said| all.contains(said)), "{planted}: {all}");
    }
}

#[test]
fn ids_of_streams_are_followed_and_a_planted_wrong_answer_is_found() {
    let Some(server) = testing::server("redis") else { return };
    if !has_program("redis-cli") {
        return;
    }
    let place = Place::that_starts_servers();
    let script = "for n in 1 2 3 4; do \
                  id=$(redis-cli -p $REDIS_PORT XADD jobs '*' n $n); redis-cli -p $REDIS_PORT XADD other '*' n $n > out; \
                  redis-cli -p $REDIS_PORT XRANGE jobs $id $id > out; redis-cli -p $REDIS_PORT XDEL jobs $id > out; \
                  printf 'MULTI\\nXADD jobs * k %s\\nINCR n\\nEXEC\\n' $n | redis-cli -p $REDIS_PORT > out; \
                  redis-cli -p $REDIS_PORT XRANGE jobs - + > out; redis-cli -p $REDIS_PORT XLEN jobs > out; done";
    let path = captured(&place, "jobs", &server, script);
    let replayed = |rest: &[&str]| replay(&place, &path, &[&["up:redis"][..], rest].concat());
    replayed(&[]).success();
    let data = place.file("data.redis", "XADD jobs 1-1 k 1\n");
    let answer = replayed(&["--data", &data]);
    let all = format!("{}{}", answer.out, answer.err);
    // Of which of the four it shows an example, depends on which connection was answered first.
    let are_found = all.contains("4 of 'XRANGE ?'") && all.contains("rows instead of");
    assert!(answer.code != Some(0) && are_found, "{all}");
}

/// A column of each type, a value that was there, and another one.
const TYPES: [(&str, &str, &str); 11] = [
    ("int", "5", "6"),
    ("bigint", "5000000000", "5000000001"),
    ("numeric(12, 3)", "1.500", "1.501"),
    ("double precision", "0.1", "0.10000001"),
    ("varchar(60)", "'now() limit 5'", "'now() limit 6'"),
    ("date", "'2026-11-28'", "'2026-11-29'"),
    // Within seconds of the capture, as what its server makes, and far from it.
    ("timestamp", "now()", "now() - interval '61' second"),
    ("timestamp", "'2024-05-05 05:05:05'", "'2024-05-05 05:05:06'"),
    ("boolean", "true", "false"),
    ("time", "'05:05:05'", "'05:05:06'"),
    ("char(36)", "'4f6c9e0a-1b2c-4d3e-8f40-51627384950a'", "'4f6c9e0a-1b2c-4d3e-8f40-51627384950b'"),
];

/// Columns that only PostgreSQL has.
const OF_POSTGRES: [(&str, &str, &str); 5] = [
    ("uuid", "'4f6c9e0a-1b2c-4d3e-8f40-51627384950a'", "'4f6c9e0a-1b2c-4d3e-8f40-51627384950b'"),
    ("bytea", r"'\x00ff'", r"'\x00fe'"),
    ("jsonb", r#"'{"now": [1, 2]}'"#, r#"'{"now": [1, 3]}'"#),
    ("int[]", "'{1,2}'", "'{2,1}'"),
    ("text", "NULL", "'NULL'"),
];

#[test]
fn planted_wrong_value_of_each_type_is_found_also_beside_a_call_of_a_clock() {
    for (engine, client) in [
        ("postgres", "psql -qXAt"),
        ("mysql", "mysql --no-defaults --protocol=tcp --user=root kurabe"),
        ("mariadb", "mysql --no-defaults --protocol=tcp --user=root kurabe"),
    ] {
        let Some(server) = testing::server(engine) else { continue };
        let is_postgres = engine == "postgres";
        if !has_program(if is_postgres { "psql" } else { "mysql" }) {
            return;
        }
        let more = if is_postgres { &OF_POSTGRES[..] } else { &[] };
        let types: Vec<_> = TYPES.iter().chain(more).collect();
        let (mut made, mut script) = (String::new(), String::new());
        for (n, (kind, value, _)) in types.iter().enumerate() {
            let _ = write!(
                made,
                "CREATE TABLE t{n} (id int PRIMARY KEY, v {kind}); INSERT INTO t{n} VALUES (1, {value}), (2, {value}); "
            );
            let _ = write!(
                script,
                "SELECT id, v FROM t{n} ORDER BY id;\nSELECT now(), v AS random FROM t{n} WHERE id = 2;\n"
            );
            // A table into which rows are inserted at the same time, but none with a time of the server's.
            if *value != "now()" {
                let _ =
                    write!(script, "INSERT INTO t{n} VALUES (3, {value});\nDELETE FROM t{n} WHERE id = 3;\n");
            }
        }
        let Some(_) = sql(&server, "", &made) else { continue };
        let place = Place::new();
        let file = place.file("types.sql", script);
        let path = captured(&place, engine, &server, &format!("{client} < '{file}' > out"));
        replay(&place, &path, &[server.url(), "--write"]).success();
        for (n, (kind, value, other)) in types.iter().enumerate() {
            let kept =
                format!("CREATE TABLE kept AS SELECT * FROM t{n}; UPDATE t{n} SET v = {other} WHERE id = 2");
            sql(&server, "", &kept).unwrap();
            let answer = replay(&place, &path, &[server.url(), "--write"]);
            let all = format!("{}{}", answer.out, answer.err);
            let said = |text: &str| all.contains(&format!("for '{text}"));
            assert!(answer.code != Some(0) && all.contains("2 of "), "{engine}: {kind} {value}: {all}");
            assert!(
                said(&format!("SELECT id, v FROM t{n}")) && said("SELECT now(), v"),
                "{engine}: {kind}: {all}"
            );
            let undo = format!("DELETE FROM t{n}; INSERT INTO t{n} SELECT * FROM kept; DROP TABLE kept");
            sql(&server, "", &undo).unwrap();
        }
        replay(&place, &path, &[server.url(), "--write"]).success();
    }
}

#[test]
fn times_that_were_exchanged_are_found() {
    let Some(server) = testing::server("postgres") else { return };
    if !has_program("psql") {
        return;
    }
    let made = "CREATE TABLE visit (id int PRIMARY KEY, at timestamptz); \
                INSERT INTO visit VALUES (1, now()), (2, now() + interval '1 second')";
    let Some(_) = sql(&server, "", made) else { return };
    let place = Place::new();
    let path =
        captured(&place, "visits", &server, "psql -qXAtc 'SELECT id, at FROM visit ORDER BY id' > out");
    replay(&place, &path, &[server.url()]).success();
    let exchanged = "UPDATE visit SET id = 3 WHERE id = 1; UPDATE visit SET id = 1 WHERE id = 2; UPDATE visit SET id = 2 WHERE id = 3";
    sql(&server, "", exchanged).unwrap();
    let answer = replay(&place, &path, &[server.url()]);
    let all = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0) && all.contains("another time for 'SELECT id, at"), "{all}");
}

/// Statements of an application, by chance.
fn any_statements(count: usize) -> String {
    let mut rng = kurabe_stats::Rng::new(55);
    let mut script = String::new();
    let mut is_open = false;
    for n in 0..count {
        let mut below = |most: u64| rng.below(most);
        let (id, key, text) = (below(60) + 1, below(20), below(9));
        let table = ["shop", "uuid_log"][below(2) as usize];
        let order =
            ["", " ORDER BY id", " ORDER BY a DESC, id", " ORDER BY b, a, id LIMIT 5", " ORDER BY at, id"]
                [below(5) as usize];
        let columns = [
            "*", "id, a, b", "at, a", "d, id", "count(*), max(a), sum(e)", "now(), id, e",
            "random() < 2, b, id",
        ][below(7) as usize];
        let order = if columns.starts_with("count") { "" } else { order };
        let returning = ["", " RETURNING id", " RETURNING *", " RETURNING d, at, a"][below(4) as usize];
        let filter = [
            format!("a = {key}"),
            format!("id = {id}"),
            format!("b LIKE '%{text}' AND a > {key}"),
            "true".to_owned(),
        ][below(4) as usize]
            .clone();
        let next = match below(10) {
            0..5 => format!("SELECT {columns} FROM {table} WHERE {filter}{order};\n"),
            5..7 => {
                format!("INSERT INTO {table} (a, b, e) VALUES ({key}, 'uuid {text}', {n}.5){returning};\n")
            }
            7 => format!("UPDATE {table} SET a = a + 1, at = now() WHERE id = {id}{returning};\n"),
            8 => format!("DELETE FROM {table} WHERE id % 30 = {}{returning};\n", id / 2),
            _ if is_open => {
                is_open = false;
                ["COMMIT;\n", "ROLLBACK;\n"][below(2) as usize].to_owned()
            }
            _ => {
                is_open = true;
                "BEGIN;\n".to_owned()
            }
        };
        script.push_str(&next);
    }
    script + if is_open { "COMMIT;\n" } else { "" }
}

#[test]
fn no_wrong_answer_is_invented_on_an_equal_server() {
    let Some(server) = testing::server("postgres") else { return };
    if !has_program("psql") {
        return;
    }
    let columns = "(id serial PRIMARY KEY, a int, b text, e numeric, at timestamptz DEFAULT clock_timestamp(), \
                   d uuid DEFAULT gen_random_uuid())";
    let schema = format!("CREATE TABLE shop {columns}; CREATE TABLE uuid_log {columns};");
    let Some(_) = sql(&server, "", &schema) else { return };
    let place = Place::that_starts_servers();
    let dump = place.file("dump.sql", &schema);
    let file = place.file("any.sql", any_statements(10_000));
    let path = captured(&place, "any", &server, &format!("psql -qXAtf '{file}' > out"));
    replay(&place, &path, &["up:postgres", "--data", &dump]).success();
}
