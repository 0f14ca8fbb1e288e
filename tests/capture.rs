//! `kurabe capture` between real clients and real servers: what it recorded is what the server counted, and what was sent.

mod cases;
mod from;
mod model;
mod tls;

use crate::servers::common::{has_program, skip, sql};
use crate::support::{Answer, KURABE, Place, eventually, piped};
use kurabe_capture::file;
use kurabe_capture::record::{Record, Request, Value};
use kurabe_testbed::{Server, testing};
use kurabe_wire::view::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Captures a shell's command.
pub(crate) fn captured(place: &Place, name: &str, options: &[&str], url: &str, script: &str) -> String {
    let path = place.at(name);
    let args = [&["capture", url, "-o", &path], options, &["--", "sh", "-ec", script]].concat();
    place.run(&args).success();
    path
}

fn records(path: &str) -> Vec<Record> {
    let mut found = Vec::new();
    let (_, ending) = file::read(Path::new(path), |_, record| found.push(record)).unwrap();
    assert!(ending.complete, "{ending:?}");
    found
}

/// The requests with the texts of their statements, whose gaps are filled.
fn requests(path: &str) -> Vec<(String, Request)> {
    let (mut templates, mut found) = (Vec::new(), Vec::new());
    for record in records(path) {
        match record {
            Record::Statement { template, .. } => templates.push(template),
            Record::Request(request) => {
                let mut literals = request.literals.iter();
                let gap =
                    |c: char| if c == '\0' { literals.next().cloned().unwrap_or_default() } else { c.into() };
                let text = templates[request.statement as usize].chars().map(gap).collect();
                found.push((text, *request));
            }
            _ => {}
        }
    }
    found
}

pub(crate) fn shown(place: &Place, path: &str) -> Json {
    place.run(&["capture", "show", path, "--report", "json"]).success().json()
}

pub(crate) fn sum(statements: &Json, of: &str) -> u64 {
    statements.as_array().unwrap().iter().map(|one| one[of].as_u64().unwrap()).sum()
}

#[test]
fn requests_and_rows_are_those_that_the_server_counted() {
    let preload = |options: kurabe_testbed::StartOptions| {
        // Of prepared BEGIN and END it counts the first only.
        options
            .set("shared_preload_libraries", "pg_stat_statements")
            .set("pg_stat_statements.track_utility", "off")
    };
    let Some(server) = testing::own_server_with("postgres", preload) else { return };
    let Some(_) = sql(&server, "", "CREATE EXTENSION pg_stat_statements") else { return };
    let place = Place::new();
    if !has_program("pgbench") {
        return;
    }
    captured(&place, "init", &[], server.url(), "pgbench -i -q -s 1 2>/dev/null");
    for mode in ["simple", "extended", "prepared"] {
        sql(&server, "", "SELECT pg_stat_statements_reset()");
        let script = format!(
            "pgbench -n -M {mode} -c 3 -t 40; pgbench -n -S -M {mode} -c 2 -t 100; psql -qXc 'SELECT generate_series(1, 9)'"
        );
        let path = captured(&place, mode, &[], server.url(), &script);
        let counted = sql(
            &server,
            "",
            "SELECT sum(calls), sum(rows) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' \
             AND query NOT LIKE '%string_agg(a.attname%' AND query NOT LIKE '%current_setting%'",
        );
        let report = shown(&place, &path);
        let statements = &report["statements"];
        let rows = sum(statements, "rows") + sum(statements, "affected");
        let is_utility = |one: &&Json| ["BEGIN", "END"].iter().any(|word| one["text"] == *word);
        let utility = statements.as_array().unwrap().iter().filter(is_utility);
        let utility: u64 = utility.map(|one| one["calls"].as_u64().unwrap()).sum();
        let calls = sum(statements, "calls") - utility;
        assert_eq!((utility, format!("{calls}|{rows}\n")), (240, counted.unwrap()), "{mode}: {report:#}");
        assert_eq!((&report["errors"], &report["unanswered"]), (&0.into(), &0.into()), "{report:#}");
        // Of pgbench's transactions each is one unit of work: begin, five statements, end.
        let units = report["units"].as_array().unwrap();
        let transactions = units.iter().filter(|unit| unit["transaction"] == true);
        let calls: u64 = transactions.map(|unit| unit["calls"].as_u64().unwrap()).sum();
        assert_eq!(calls, 120, "{mode}: {report:#}");
        // A point read takes thirty bytes and some.
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(size < 60 * report["requests"].as_u64().unwrap(), "{size} bytes: {report:#}");
    }
}

/// The SELECT and INSERT statements that MySQL or MariaDB has counted.
pub(crate) fn executions(server: &Server) -> Option<Vec<u64>> {
    let status = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Com_insert')";
    let told = sql(server, "", status)?;
    Some(told.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// A command that inserts and reads records, by two clients.
pub(crate) fn point_reads() -> String {
    format!(
        "'{KURABE}' run point-read \"$KURABE_URL\" --clients 2 --requests 100 --records 50 --rounds 1 --no-html \
         --interleave=off --quiet"
    )
}

#[test]
fn statements_on_mysql_are_those_that_the_server_counted() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let count = || executions(&server);
        let (Some(first), Some(before)) = (count(), count()) else { continue };
        let (place, script) = (Place::new(), point_reads());
        let path = captured(&place, engine, &[], server.url(), &script);
        let after = count().unwrap();
        let found = requests(&path);
        for (n, verb) in ["INSERT", "SELECT"].iter().enumerate() {
            let runs = |request: &Request| request.step != Step::Prepare;
            let is_verb = |text: &str| text.trim_start_matches('(').to_ascii_uppercase().starts_with(verb);
            let calls = found.iter().filter(|(text, request)| runs(request) && is_verb(text)).count() as u64;
            // Without what counting itself costs.
            let counted = after[n] - before[n] - (before[n] - first[n]);
            assert_eq!(calls, counted, "{engine} {verb}");
            assert!(calls > 0, "{engine} {verb}");
        }
        let executed: Vec<_> = found.iter().filter(|(_, request)| request.step == Step::Execute).collect();
        assert!(executed.len() >= 100, "{engine}");
        for (text, request) in executed {
            assert_eq!((request.parameters.len(), request.cut), (text.matches('?').count(), false), "{text}");
            assert!(request.time.is_some() && request.error.is_none(), "{text}: {request:?}");
        }
        let report = shown(&place, &path);
        assert_eq!(report["connections"]["unreadable"], serde_json::json!({}), "{engine}");
        assert_eq!(report["unanswered"], 0, "{engine}: {report:#}");
    }
}

#[test]
fn values_are_those_that_were_sent_and_are_replaced_or_dropped_where_wished() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    place.file("a.sql", "SELECT :n::int + 1, length(:word), NULL::text\n");
    place.file("data", "1\tAlice\n2\t\\N\n");
    let script = format!(
        "cd '{}'; pgbench -n -M prepared -t 2 -D n=471147114 -D \"word=it's Alice\" -f a.sql; \
         psql -qXc \"SELECT 'Alice' AS a, 471147114 -- Alice\" -c 'CREATE TEMP TABLE t (a int, b text)' \
         -c '\\copy t FROM data' -c \"SELECT 1 / 0\" || true",
        place.home().display()
    );
    let path = captured(&place, "keep", &[], server.url(), &script);
    let found = requests(&path);
    let value = |bytes: &str| Value::Bytes(bytes.as_bytes().to_vec());
    let bound: Vec<_> = found.iter().filter(|(_, request)| !request.parameters.is_empty()).collect();
    assert_eq!(bound.len(), 2, "{found:#?}");
    for (text, request) in bound {
        assert_eq!(text.trim(), "SELECT $1::int + 1, length($2), NULL::text");
        let values: Vec<_> = request.parameters.iter().map(|one| one.value.clone()).collect();
        assert_eq!(values, [value("471147114"), value("it's Alice")]);
        assert_eq!((request.rows, &request.error), (1, &None));
    }
    let of = |part: &str| {
        &found.iter().find(|(text, _)| text.contains(part)).unwrap_or_else(|| panic!("{found:#?}")).1
    };
    assert_eq!(of("SELECT 'Alice' AS a, 471147114 -- Alice").rows, 1);
    assert_eq!(of("COPY  t FROM STDIN").affected, 2);
    assert_eq!(of("1 / 0").error.as_deref(), Some("22012"));
    let data: Vec<u8> = records(&path)
        .into_iter()
        .filter_map(|record| if let Record::Data { bytes, .. } = record { Some(bytes) } else { None })
        .flatten()
        .collect();
    assert_eq!(data, b"1\tAlice\n2\t\\N\n");
    for values in ["hash", "drop"] {
        let path = captured(&place, values, &["--values", values], server.url(), &script);
        let all = format!("{:?}", records(&path));
        assert!(!all.contains("Alice") && !all.contains("471147114"), "{all}");
        assert_eq!(requests(&path).len(), found.len());
    }
}

#[test]
fn no_password_is_in_a_capture() {
    let Some(server) = testing::server_with("postgres", |options| options.with_password("hunter2")) else {
        return;
    };
    testing::make_superuser(&server);
    let place = Place::new();
    let url = server.url().replacen("kurabe@", "kurabe:hunter2@", 1);
    let script = "psql -qX -c \"CREATE ROLE eve LOGIN PASSWORD 'hunter2'\" -c 'DROP ROLE eve' \
                  -c 'CREATE TEMP TABLE u (password text)' -c \"INSERT INTO u VALUES ('hunter2') -- password\" \
                  -c \"SET my.password = 'hunter2'\" -c \"SELECT count(*) FROM u WHERE password = 'hunter2'\"";
    let path = captured(&place, "passwords", &[], &url, script);
    let found = requests(&path);
    let all = format!("{:?}", records(&path));
    assert!(!all.contains("hunter2") && all.contains("CREATE ROLE …"), "{all}");
    let select = found.iter().find(|(text, _)| text == "SELECT count(*) FROM u WHERE password = ?");
    assert!(select.is_some_and(|(_, request)| request.cut && request.digest == 0), "{found:#?}");
    let (about, _) = file::read(Path::new(&path), |_, _| {}).unwrap();
    assert!(!format!("{about:?}").contains("hunter2"), "{about:?}");
}

/// The records of a capture as text, and what the program said, tried again while a busy machine answers too late.
fn captured_with_catalogue(place: &Place, name: &str, url: &str, script: &str) -> (String, Answer) {
    for n in 0..10 {
        let path = place.at(&format!("{name}{n}"));
        let answer = place.run(&["capture", url, "-o", &path, "--", "sh", "-ec", script]).success();
        if !answer.err.contains("does not answer within two seconds") {
            return (format!("{:?}", records(&path)), answer);
        }
    }
    panic!("the server never answers in time");
}

/// A client's command that executes a file.
fn client(server: &Server, file: &str) -> String {
    let password = server.password().unwrap_or_default();
    if server.url().starts_with("postgres") {
        return format!("PGUSER=kurabe PGPASSWORD='{password}' psql -qXf '{file}'");
    }
    format!("MYSQL_PWD='{password}' mysql --no-defaults --protocol=tcp --user=root kurabe < '{file}'")
}

fn has_no_secret(all: &str) -> bool {
    let bytes = format!("{:?}", b"hunter2");
    !all.contains("hunter2") && !all.contains(&bytes[1..bytes.len() - 1])
}

#[test]
fn rows_without_a_list_of_columns_are_kept_unless_the_catalogue_has_one_of_secrets_or_not_the_table() {
    for engine in ["postgres", "mariadb", "mysql"] {
        let Some(server) = testing::server(engine) else { continue };
        let is_postgres = engine == "postgres";
        if !has_program(if is_postgres { "psql" } else { "mysql" }) {
            continue;
        }
        let made = "CREATE TABLE people (id int, pass_phrase varchar(20)); CREATE TABLE things (id int, name varchar(20)); \
                    CREATE TABLE sessions (id int, token varchar(20))";
        let Some(_) = sql(&server, "", made) else { continue };
        let place = Place::new();
        let mut statements = "INSERT INTO people VALUES (1, 'hunter2');\nINSERT INTO things VALUES (1, 'hello9');\n\
            CREATE TEMPORARY TABLE notes (id int, pass_phrase varchar(20));\nINSERT INTO notes VALUES (1, 'hunter2');\n\
            CREATE TEMPORARY TABLE plain (id int, name varchar(20));\nINSERT INTO plain VALUES (1, 'hello8');\n\
            CREATE TEMPORARY TABLE copied AS SELECT * FROM people;\nINSERT INTO copied VALUES (1, 'hunter2');\n\
            INSERT INTO sessions (id, token) SELECT 1, 'hunter2';\nUPDATE sessions SET token = lower('hunter2');\n\
            SELECT id FROM sessions WHERE 'hunter2'=token;\n"
            .to_owned();
        statements += if is_postgres {
            "COPY people FROM STDIN;\n2\thunter2\n\\.\nPREPARE p AS INSERT INTO people VALUES ($1, $2);\nEXECUTE p(3, 'hunter2');\n\
             COPY sessions (id, token) FROM STDIN;\n2\thunter2\n\\.\nCOPY things (id, name) FROM STDIN;\n2\thello7\n\\.\n\
             PREPARE q AS UPDATE sessions SET token = 'hunter2' WHERE id = $1;\nEXECUTE q(1);\n"
        } else {
            "PREPARE p FROM 'INSERT INTO people VALUES (?, ?)';\nSET @p = 'hunter2', @n = 1;\nEXECUTE p USING @n, @p;\n\
             PREPARE q FROM 'UPDATE sessions SET token = \\'hunter2\\'';\nEXECUTE q;\nUPDATE sessions SET token=_binary'hunter2';\n\
             INSERT people VALUES (1, 'hunter2');\nREPLACE people VALUES (1, 'hunter2');\n"
        };
        let file = place.file("rows.sql", &statements);
        let (all, _) = captured_with_catalogue(&place, engine, server.url(), &client(&server, &file));
        assert!(has_no_secret(&all), "{engine}: {all}");
        assert!(all.contains("hello9") && all.contains("hello8"), "{engine}: {all}");
        let data = format!("{:?}", b"2\thello7\n");
        assert!(!is_postgres || all.contains(&data[1..data.len() - 1]), "{engine}: {all}");
        if is_postgres {
            continue;
        }
        // The login of the URL does not see every table that the application's does.
        let low = "CREATE USER low IDENTIFIED BY 'lowly'; GRANT SELECT ON things TO low";
        let Some(_) = sql(&server, "", low) else { continue };
        let key = if engine == "mysql" { "?get_server_public_key=true" } else { "" };
        let url = format!("{engine}://low:lowly@127.0.0.1:{}/kurabe{key}", server.port());
        let rows = "INSERT INTO people VALUES (1, 'hunter2');\nINSERT INTO things VALUES (1, 'hello9');\n";
        let file = place.file("low.sql", rows);
        let (all, answer) = captured_with_catalogue(&place, "low", &url, &client(&server, &file));
        sql(&server, "", "DROP USER low");
        assert!(!answer.err.contains("are not known"), "{engine}: {answer:?}");
        assert!(has_no_secret(&all) && all.contains("hello9"), "{engine}: {all}");
    }
}

#[test]
fn catalogue_that_refuses_the_login_is_said_and_names_decide_then() {
    let Some(server) = testing::server("postgres") else { return };
    let made = "CREATE TABLE users (id int, word text); CREATE TABLE things (id int, name text)";
    let Some(_) = sql(&server, "", made) else { return };
    let place = Place::new();
    let rows = "INSERT INTO users VALUES (1, 'hunter2');\nINSERT INTO things VALUES (1, 'hello9');\n";
    let file = place.file("rows.sql", rows);
    let url = format!("postgres://absent:wrong@127.0.0.1:{}/kurabe", server.port());
    let (all, answer) = captured_with_catalogue(&place, "refused", &url, &client(&server, &file));
    assert!(has_no_secret(&all) && all.contains("hello9"), "{all}");
    assert!(answer.err.contains("are not known ("), "{answer:?}");
}

#[test]
fn reads_in_a_loop_are_named_in_a_short_answer() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let items: Vec<String> = (0..20).map(|n| format!("SELECT {n} AS item;\n")).collect();
    let script =
        place.file("shop.sql", format!("BEGIN;\nSELECT 1 AS orders, 2;\n{}COMMIT;\n", items.concat()));
    let run = format!("for n in 1 2 3; do psql -qAtXf '{script}'; done");
    let path = captured(&place, "loop", &[], server.url(), &run);
    let report = shown(&place, &path);
    let units = report["units"].as_array().unwrap();
    assert_eq!(
        (units.len(), &units[0]["calls"], &units[0]["n_plus_one"]),
        (1, &3.into(), &true.into()),
        "{report:#}"
    );
    let times: Vec<_> = units[0]["steps"].as_array().unwrap().iter().map(|step| &step["times"]).collect();
    assert_eq!(times, [&serde_json::json!([1, 1]), &serde_json::json!([20, 20])], "{report:#}");
    let answer = place.run(&["capture", "show", &path]);
    assert!(answer.out.contains("N+1: 3 × (20 × SELECT ? AS item)"), "{answer:?}");
    let widest = answer.out.lines().map(|line| line.chars().count()).max();
    assert!(answer.out.lines().count() <= 25 && widest <= Some(80), "{answer:?}");
}

#[test]
fn capture_of_a_killed_recorder_is_read_and_said_to_be_one() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let path = place.at("killed");
    let mut child = piped(&mut place.command(&["capture", server.url(), "-o", &path]));
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let mut psql = Command::new("psql");
    psql.args([url.trim(), "-qXc", "SELECT 6 * 7"]).env("PGPASSWORD", server.password().unwrap());
    let psql = psql.output();
    assert!(psql.is_ok_and(|output| Answer::of(&output).out.contains("42")));
    let count = || {
        let mut requests = 0;
        let read = file::read(Path::new(&path), |_, record| {
            requests += u64::from(matches!(record, Record::Request(_)));
        });
        read.is_ok().then_some(requests)
    };
    // It is written without another request.
    assert!(eventually(20, || (count()? == 1).then_some(())).is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let answer = place.run(&["capture", "show", &path]).success();
    assert!(answer.out.contains("did not end in order") && answer.out.contains("left out"), "{answer:?}");
    std::fs::write(&path, &whole).unwrap();
    let answer = place.run(&["capture", "show", &path]);
    assert!(answer.out.contains("1 requests") && answer.out.contains("did not end in order"), "{answer:?}");
    place.run(&["run", "replay", &path, server.url(), "--dry-run"]).success().err_has("did not end in order");
    // What exists is not written over, and another protocol is refused before anything is made.
    place.run(&["capture", server.url(), "-o", &path, "--", "true"]).exit_code(2).err_has("exists already");
    let other = place.at("other");
    let refused = place.run(&["capture", "redis://127.0.0.1:1", "-o", &other, "--", "true"]);
    assert!(refused.code != Some(0) && !Path::new(&other).exists(), "{refused:?}");
}

#[test]
fn long_requests_that_no_replay_has_are_counted() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let script = place.file("long.sql", format!("SELECT length('{}');\nSELECT 1;\n", "x".repeat(2 << 20)));
    let path = place.at("long");
    let path = &path;
    let run = format!("psql -qXf '{script}'");
    let answer = place.run(&["capture", server.url(), "-o", path, "--", "sh", "-ec", &run]);
    let said = "1 requests (50.0 %) are above 1 MB or may hold a password: no replay has them";
    assert!(answer.code == Some(0) && answer.err.contains(said), "{answer:?}");
    assert!(place.run(&["capture", "show", path]).out.contains(said));
}
