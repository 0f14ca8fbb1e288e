//! `kurabe capture` between real clients and real servers: what it recorded is what the server counted, and what was sent.

use crate::servers::common::{skip, sql};
use crate::support::{Answer, KURABE, Place, eventually, piped};
use kurabe_capture::file;
use kurabe_capture::record::{Record, Request, Value};
use kurabe_testbed::testing;
use kurabe_wire::view::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Captures a shell's command.
fn captured(place: &Place, name: &str, options: &[&str], url: &str, script: &str) -> PathBuf {
    let path = place.home().join(name);
    let args =
        [&["capture", url, "-o", path.to_str().unwrap()], options, &["--", "sh", "-ec", script]].concat();
    let answer = place.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    path
}

fn records(path: &Path) -> Vec<Record> {
    let mut found = Vec::new();
    let (_, ending) = file::read(path, |record| found.push(record)).unwrap();
    assert!(ending.complete, "{ending:?}");
    found
}

/// The requests with the texts of their statements, whose gaps are filled.
fn requests(path: &Path) -> Vec<(String, Request)> {
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

fn shown(place: &Place, path: &Path) -> Json {
    let answer = place.run(&["capture", "show", path.to_str().unwrap(), "--report", "json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.json()
}

fn sum(statements: &Json, of: &str) -> u64 {
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
    if Command::new("pgbench").arg("--version").output().is_err() {
        skip("there is no program pgbench");
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
            "SELECT sum(calls), sum(rows) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'",
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

#[test]
fn statements_on_mysql_are_those_that_the_server_counted() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let status = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Com_insert')";
        let count = || -> Option<Vec<u64>> {
            let told = sql(&server, "", status)?;
            Some(told.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        };
        let (Some(first), Some(before)) = (count(), count()) else { continue };
        let place = Place::new();
        let script = format!(
            "'{KURABE}' run point-read \"$KURABE_URL\" --clients 2 --requests 100 --records 50 --rounds 1 --no-html \
             --interleave=off --quiet"
        );
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
    std::fs::write(place.home().join("a.sql"), "SELECT :n::int + 1, length(:word), NULL::text\n").unwrap();
    std::fs::write(place.home().join("data"), "1\tAlice\n2\t\\N\n").unwrap();
    let script = format!(
        "cd '{}'; pgbench -n -M prepared -t 2 -D n=4711 -D \"word=it's Alice\" -f a.sql; \
         psql -qXc \"SELECT 'Alice' AS a, 4711 -- Alice\" -c 'CREATE TEMP TABLE t (a int, b text)' \
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
        assert_eq!(values, [value("4711"), value("it's Alice")]);
        assert_eq!((request.rows, &request.error), (1, &None));
    }
    let of = |part: &str| {
        &found.iter().find(|(text, _)| text.contains(part)).unwrap_or_else(|| panic!("{found:#?}")).1
    };
    assert_eq!(of("SELECT 'Alice' AS a, 4711 -- Alice").rows, 1);
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
        assert!(!all.contains("Alice") && !all.contains("4711"), "{all}");
        assert_eq!(requests(&path).len(), found.len());
    }
}

#[test]
fn no_password_is_in_a_capture() {
    let Some(server) = testing::server_with("postgres", |options| options.with_password("hunter2")) else {
        return;
    };
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
    let (about, _) = file::read(&path, |_| {}).unwrap();
    assert!(!format!("{about:?}").contains("hunter2"), "{about:?}");
}

#[test]
fn reads_in_a_loop_are_named_in_a_short_answer() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let items: Vec<String> = (0..20).map(|n| format!("SELECT {n} AS item;\n")).collect();
    let script = place.home().join("shop.sql");
    std::fs::write(&script, format!("BEGIN;\nSELECT 1 AS orders, 2;\n{}COMMIT;\n", items.concat())).unwrap();
    let run = format!("for n in 1 2 3; do psql -qAtXf '{}'; done", script.display());
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
    let answer = place.run(&["capture", "show", path.to_str().unwrap()]);
    assert!(answer.out.contains("N+1: 3 × (20 × SELECT ? AS item)"), "{answer:?}");
    let widest = answer.out.lines().map(|line| line.chars().count()).max();
    assert!(answer.out.lines().count() <= 25 && widest <= Some(80), "{answer:?}");
}

#[test]
fn capture_of_a_killed_recorder_is_read_and_said_to_be_one() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let path = place.home().join("killed");
    let mut child = piped(&mut place.command(&["capture", server.url(), "-o", path.to_str().unwrap()]));
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let psql = Command::new("psql").args([url.trim(), "-qXc", "SELECT 6 * 7"]).output();
    assert!(psql.is_ok_and(|output| Answer::of(&output).out.contains("42")));
    let count = || {
        let mut requests = 0;
        let read = file::read(&path, |record| requests += u64::from(matches!(record, Record::Request(_))));
        read.is_ok().then_some(requests)
    };
    // It is written without another request.
    assert!(eventually(20, || (count()? == 1).then_some(())).is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let answer = place.run(&["capture", "show", path.to_str().unwrap()]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.out.contains("did not end in order") && answer.out.contains("left out"), "{answer:?}");
    std::fs::write(&path, &whole).unwrap();
    let answer = place.run(&["capture", "show", path.to_str().unwrap()]);
    assert!(answer.out.contains("1 requests") && answer.out.contains("did not end in order"), "{answer:?}");
    let replay = place.run(&["run", "replay", path.to_str().unwrap(), server.url(), "--dry-run"]);
    assert!(replay.code == Some(0) && replay.err.contains("did not end in order"), "{replay:?}");
    // What exists is not written over, and another protocol is refused before anything is made.
    let refused = place.run(&["capture", server.url(), "-o", path.to_str().unwrap(), "--", "true"]);
    assert!(refused.code == Some(2) && refused.err.contains("exists already"), "{refused:?}");
    let other = place.home().join("other");
    let refused = place.run(&["capture", "redis://127.0.0.1:1", "-o", other.to_str().unwrap(), "--", "true"]);
    assert!(refused.code != Some(0) && !other.exists(), "{refused:?}");
}

/// The model of a capture: its text, and its path.
fn modelled(place: &Place, path: &Path, name: &str, options: &[&str]) -> (String, String) {
    let file = place.home().join(name).to_str().unwrap().to_owned();
    let args = [&["capture", "model", path.to_str().unwrap(), "-o", &file], options].concat();
    let answer = place.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (std::fs::read_to_string(&file).unwrap(), file)
}

/// Runs a model once, and asserts that the server counts its statements in the proportions of the recording.
fn assert_mix(place: &Place, file: &str, url: &str, recorded: &[u64], count: &mut dyn FnMut() -> Vec<u64>) {
    let args = [
        "run", "-f", file, url, "--rounds", "1", "--requests", "1500", "--interleave=off", "--no-html",
        "--quiet",
    ];
    let answer = place.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let found = count();
    let (all, of): (u64, u64) = (recorded.iter().sum(), found.iter().sum());
    assert!(of > 1_500, "{found:?}");
    for (before, after) in recorded.iter().zip(&found) {
        let (expected, share) = (*before as f64 / all as f64, *after as f64 / of as f64);
        // Statements of one transaction come together: seven at most. The warm-up stops within one.
        let error = (7.0 * expected * (1.0 - expected) / of as f64).sqrt();
        assert!((share - expected).abs() < 4.5 * error + 0.003, "recorded {recorded:?}, run {found:?}");
    }
}

/// The numbers behind each of these words in a text.
fn numbers(text: &str, word: &str) -> Vec<f64> {
    let number = |rest: &str| rest.split([' ', ',', ']', '}']).next().and_then(|number| number.parse().ok());
    text.split(word).skip(1).filter_map(number).collect()
}

#[test]
fn model_of_pgbench_has_its_mix_and_its_draws() {
    let preload = |options: kurabe_testbed::StartOptions| {
        options
            .set("shared_preload_libraries", "pg_stat_statements")
            .set("pg_stat_statements.track_utility", "off")
    };
    let Some(server) = testing::own_server_with("postgres", preload) else { return };
    let Some(_) = sql(&server, "", "CREATE EXTENSION pg_stat_statements") else { return };
    if Command::new("pgbench").arg("--version").output().is_err() {
        skip("there is no program pgbench");
        return;
    }
    let place = Place::new();
    // The frequent keys are anywhere; a list of texts; a second value that depends on the first.
    let script = "\\set aid 1 + permute(random_zipfian(0, 99999, 1.3) , 100000)\n\\set word random(1, 4) / 4 * 7 + 1\n\
                  SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 9 AND filler < :word::text;\n";
    std::fs::write(place.home().join("zipf.sql"), script).unwrap();
    captured(&place, "init", &[], server.url(), "pgbench -i -q -s 1 2>/dev/null");
    let mut count = || {
        // As texts, since a run prepares some with other names for types.
        let query = "SELECT sum(calls) FILTER (WHERE query ILIKE 'UPDATE%accounts%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'UPDATE%tellers%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'UPDATE%branches%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'INSERT%history%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'SELECT%abalance%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'SELECT count%filler%') FROM pg_stat_statements";
        let told = sql(&server, "", query).unwrap();
        sql(&server, "", "SELECT pg_stat_statements_reset()");
        told.trim().split('|').map(|number| number.parse().unwrap_or(0)).collect::<Vec<u64>>()
    };
    for mode in ["prepared", "simple"] {
        count();
        let script = format!(
            "cd '{}'; pgbench -n -M {mode} -c 2 -t 200; pgbench -n -S -M {mode} -c 2 -t 600; \
             pgbench -n -M {mode} -f zipf.sql -c 2 -t 800",
            place.home().display()
        );
        let path = captured(&place, &format!("{mode}.capture"), &[], server.url(), &script);
        let recorded = count();
        assert_eq!(recorded, [400, 400, 400, 400, 1_600, 1_600], "{mode}");
        let (text, file) = modelled(&place, &path, &format!("{mode}.toml"), &[]);
        let exponents = numbers(&text, "exponent = ");
        assert!(exponents.len() == 1 && (exponents[0] / 1.3 - 1.0).abs() < 0.1, "{exponents:?}: {text}");
        // Uniform draws are no Zipf, and the deltas have both signs.
        let least = numbers(&text, "uniform = [");
        assert!(least.iter().any(|least| (-5_000.0..-4_500.0).contains(least)), "{text}");
        assert!(text.contains("weights = [") && text.contains(":aid + 9 "), "{text}");
        assert!(text.contains("get = \"pgbench_accounts\", key = \":aid\""), "{text}");
        assert_mix(&place, &file, server.url(), &recorded, &mut count);
    }
    // An engine on which it never ran.
    let (text, file) = modelled(&place, &place.home().join("prepared.capture"), "made.toml", &["--made"]);
    assert!(
        text.contains("[collection.pgbench_history]") && text.contains("row = \"pgbench_accounts\""),
        "{text}"
    );
    assert!(text.contains("Not in it") && text.contains("not a statement on rows of one table"), "{text}");
    let args = [
        "run", "-f", &file, "sqlite:", "-D", "scale=0.01", "--rounds", "1", "--requests", "200", "--no-html",
    ];
    let answer = place.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn model_of_a_mysql_client_has_its_mix_and_its_loops() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let Some(_) = sql(
            &server,
            "",
            "CREATE TABLE item (id int PRIMARY KEY, name varchar(20), n int); \
             CREATE TABLE part (id int, of_item int, KEY (of_item))",
        ) else {
            continue;
        };
        let place = Place::new();
        // 150 pages with the parts of one item, one by one, and a name that is often the same; 300 changes of an item.
        let mut script = String::new();
        for n in 0..150_u64 {
            let item = kurabe_stats::mix(1, n) % 500;
            let _ = writeln!(script, "START TRANSACTION; SELECT name, n FROM item WHERE id = {item};");
            for part in 0..3 + n % 2 * 4 {
                let _ = writeln!(script, "SELECT n + {} FROM item WHERE n = {item};", 100 + part * 7);
            }
            script.push_str("COMMIT;\n");
            for change in 0..2 {
                let key = kurabe_stats::mix(2, 2 * n + change) % 500;
                let name = if n % 3 == 0 { "it''s" } else { "plain" };
                let _ = writeln!(script, "UPDATE item SET name = '{name}', n = {n} WHERE id = {key};");
            }
        }
        let file = place.home().join("script.sql");
        std::fs::write(&file, script).unwrap();
        let count = || -> Vec<u64> {
            let status = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Com_update')";
            let told = sql(&server, "", status).unwrap();
            told.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let difference = |before: &[u64]| -> Vec<u64> {
            count().iter().zip(before).map(|(now, before)| now - before).collect()
        };
        let before = count();
        let command = format!(
            "mysql --no-defaults --protocol=tcp --user=root kurabe < '{}' > /dev/null",
            file.display()
        );
        let path = captured(&place, engine, &[], server.url(), &command);
        let recorded = difference(&before);
        let (text, file) = modelled(&place, &path, &format!("{engine}.toml"), &[]);
        // Two kinds: the pages with their loop of three or seven, and the changes.
        assert!(text.matches("[transaction.").count() == 2, "{text}");
        assert!(
            text.contains("{ list = [3, 7], weights = [75, 75] }") && text.contains("most = 7"),
            "{text}"
        );
        assert!(text.contains("list = [\"plain\", \"it's\"], weights = [200, 100]"), "{text}");
        assert!(text.contains("update = \"item\", key = \":id\""), "{text}");
        assert!(text.contains("statement = [\"literal\"]"), "{text}");
        let before = count();
        assert_mix(&place, &file, server.url(), &recorded, &mut || difference(&before));
    }
}

#[test]
fn model_says_what_it_cannot_do() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let script = "psql -qXc 'CREATE TEMP TABLE t (a int)' -c 'SELECT 6 * 7'";
    let out = place.home().join("out.toml");
    for (values, part) in
        [("hash", "was recorded with --values hash"), ("drop", "was recorded with --values drop")]
    {
        let path = captured(&place, values, &["--values", values], server.url(), script);
        let answer = place.run(&["capture", "model", path.to_str().unwrap(), "-o", out.to_str().unwrap()]);
        assert!(answer.code == Some(2) && answer.err.contains(part) && !out.exists(), "{answer:?}");
    }
    let path = captured(&place, "none", &[], server.url(), "psql -qXc 'CREATE TEMP TABLE t (a int)'");
    let answer = place.run(&["capture", "model", path.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    assert!(
        answer.code == Some(2) && answer.err.contains("no statement that a workload can have"),
        "{answer:?}"
    );
    let answer = place.run(&["capture", "model", path.to_str().unwrap(), "-o", path.to_str().unwrap()]);
    assert!(answer.code != Some(0), "{answer:?}");
}

/// tcpdump of the loopback packets of a port, until it is ended.
fn tcpdump(port: u16, to: &Path) -> Option<(Child, impl Iterator<Item = String>)> {
    let mut command = Command::new("tcpdump");
    // Without immediate mode, packets take no more of the buffer than they are long, and are given after a second at most.
    command.args(["-i", "lo", "-B", "65536", "-s", "0", "-Z", "root", "-U", "-w"]);
    command.arg(to).args(["port", &port.to_string()]).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        skip("tcpdump is not installed");
        return None;
    };
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut said = String::new();
    while let Some(line) = lines.next() {
        if line.contains("listening on") {
            return Some((child, lines));
        }
        said += &line;
    }
    let _ = child.wait();
    skip(&format!("tcpdump may not capture here: that takes root, or CAP_NET_RAW: {said}"));
    None
}

/// What was asked and answered, without times, in no order of connections.
fn exchanged(path: &Path) -> Vec<Vec<String>> {
    let mut by_connection: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (text, request) in requests(path) {
        let Request {
            connection,
            step,
            parameters,
            limit,
            cut,
            rows,
            affected,
            error,
            digest,
            transaction,
            ..
        } = request;
        let shown = format!(
            "{text} {step:?} {parameters:?} {limit} {cut} {rows} {affected} {error:?} {digest} {transaction:?}"
        );
        by_connection.entry(connection).or_default().push(shown);
    }
    let mut all: Vec<_> = by_connection.into_values().collect();
    all.sort();
    all
}

/// The packets between the relay and its server are the same conversation, which the kernel saw.
#[test]
fn packets_of_tcpdump_make_the_capture_that_the_relay_made() {
    for (engine, script) in [
        (
            "postgres",
            "pgbench -i -q -s 1 2>/dev/null; pgbench -n -M prepared -c 3 -t 20; psql -qXc 'SELECT 1 / 0' || true",
        ),
        (
            "mysql",
            "s='sysbench oltp_read_write --mysql-host=127.0.0.1 --mysql-user=root --mysql-db=kurabe --mysql-ssl=off --table-size=3000'; \
             s=\"$s --mysql-port=$MYSQL_TCP_PORT --threads=2 --events=40 --time=0\"; $s prepare >/dev/null; $s run >/dev/null",
        ),
        (
            "redis",
            "redis-benchmark -h $REDIS_HOST -p $REDIS_PORT -q -t set,get,incr -d 20000 -n 200 -c 3 -P 4 >/dev/null",
        ),
        (
            "memcached",
            "memcslap --servers=$MEMCACHED_SERVERS --concurrency=2 --execute-number=50 --test=get --initial-load=60",
        ),
    ] {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let packets = place.home().join("packets");
        let Some((mut dump, said)) = tcpdump(server.port(), &packets) else { return };
        let relayed = captured(&place, "relayed", &[], server.url(), script);
        std::thread::sleep(Duration::from_millis(1_500));
        kill_process(Pid::from_child(&dump), Signal::INT).unwrap();
        dump.wait().unwrap();
        let said: Vec<String> = said.collect();
        assert!(said.iter().any(|line| line.starts_with("0 packets dropped")), "{engine}: {said:?}");
        let traced = place.home().join("traced");
        let [from, to] = [&packets, &traced].map(|path| path.to_str().unwrap());
        let answer = place.run(&["capture", server.url(), "--from", from, "-o", to]);
        assert!(answer.code == Some(0) && !answer.err.contains("warning"), "{answer:?}");
        let (relayed, traced) = (exchanged(&relayed), exchanged(&traced));
        let requests = relayed.iter().map(Vec::len).sum::<usize>();
        assert!(requests > 100, "{engine}: {requests}");
        // The relay looks whether the server answers before it begins: a connection without a request.
        let different = relayed.iter().zip(&traced).find(|(one, other)| one != other);
        assert!(relayed == traced, "{engine}: {} and {}: {different:?}", relayed.len(), traced.len());
    }
}

/// What the server wrote down is the conversation that the relay saw, and errors and values are those that were sent.
#[test]
fn log_of_the_server_makes_the_capture_that_the_relay_made() {
    let place = Place::new();
    let at = |name: &str| place.home().join(name).display().to_string();
    for (engine, script, folder, log) in [
        (
            "postgres",
            "pgbench -i -q -s 1 2>/dev/null; for m in simple extended prepared; do pgbench -n -M $m -c 3 -t 20; done; \
             psql -qXc 'SELECT 1 / 0' -c \"SELECT 'it''s', \\\"a\\\" FROM (SELECT 1 AS \\\"a\\\") AS x\" || true",
            "SHOW data_directory",
            "log/one.EXT",
        ),
        (
            "mysql",
            "s='sysbench oltp_read_write --mysql-host=127.0.0.1 --mysql-user=root --mysql-db=kurabe --mysql-ssl=off --table-size=3000'; \
             s=\"$s --mysql-port=$MYSQL_TCP_PORT --threads=2 --events=40 --time=0\"; $s --db-ps-mode=disable prepare >/dev/null; \
             $s --db-ps-mode=disable run >/dev/null",
            "SELECT @@datadir",
            "slow.EXT",
        ),
    ] {
        let options = |options: kurabe_testbed::StartOptions| {
            let set = |options: kurabe_testbed::StartOptions, all: &[(&str, &str)]| {
                all.iter().fold(options, |options, (name, value)| options.set(*name, *value))
            };
            match engine {
                "postgres" => set(
                    options,
                    &[
                        ("logging_collector", "on"),
                        ("log_destination", "csvlog,jsonlog"),
                        ("log_filename", "one.log"),
                        ("log_min_duration_statement", "0"),
                    ],
                ),
                _ => set(
                    options,
                    &[
                        ("slow_query_log", "ON"),
                        ("slow_query_log_file", "slow.log"),
                        ("long_query_time", "0"),
                        ("log_slow_admin_statements", "ON"),
                        ("log_slow_extra", "ON"),
                    ],
                ),
            }
        };
        let Some(server) = testing::own_server_with(engine, options) else { continue };
        let folder = sql(&server, "", folder).unwrap();
        let log = format!("{}/{log}", folder.trim());
        if engine == "postgres" {
            assert_log_is_replayed(&place, &server, &log.replace("EXT", "csv"));
        }
        let relayed = captured(&place, engine, &[], server.url(), script);
        for ext in if engine == "postgres" { &["csv", "json"][..] } else { &["log"] } {
            let (to, log) = (at(ext), log.replace("EXT", ext));
            logged(&place, server.url(), &log, &to);
            let (relayed, logged) = (executed(&relayed), executed(Path::new(&to)));
            let requests = relayed.iter().map(Vec::len).sum::<usize>();
            assert!(requests > 100, "{engine}: {requests}");
            let missing: Vec<_> = relayed.iter().filter(|one| !logged.contains(one)).collect();
            assert!(missing.is_empty(), "{ext}: {missing:#?} of {logged:#?}");
        }
    }
}

/// Makes a capture of a log, once the server has written it.
fn logged(place: &Place, url: &str, log: &str, to: &str) {
    let mut size = None;
    let is_whole = || {
        let now = std::fs::metadata(log).map(|log| log.len()).ok().filter(|size| *size > 0);
        (now.is_some() && std::mem::replace(&mut size, now) == now).then_some(()).or_else(|| {
            std::thread::sleep(Duration::from_millis(500));
            None
        })
    };
    assert!(eventually(20, is_whole).is_some(), "{log}");
    let answer = place.run(&["capture", url, "--from", log, "-o", to]);
    assert!(answer.code == Some(0), "{answer:?}");
}

/// A log does not say what was answered, but what failed: only that is compared.
fn assert_log_is_replayed(place: &Place, server: &kurabe_testbed::Server, log: &str) {
    let path = place.home().join("reads").display().to_string();
    std::fs::write(place.home().join("a.sql"), "SELECT :n::int + count(*) FROM pg_class\n").unwrap();
    let script = format!(
        "cd '{}'; pgbench -n -M prepared -c 2 -t 5 -D n=7 -f a.sql '{}'; psql -qXc 'SELECT n FROM later' '{1}' || true",
        place.home().display(),
        server.url()
    );
    assert!(
        Command::new("sh")
            .args(["-ec", &script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    logged(place, server.url(), log, &path);
    let shown = place.run(&["capture", "show", &path]);
    assert!(shown.out.contains("From a log: times are the server's"), "{shown:?}");
    let replay = || place.run(&["run", "replay", &path, server.url(), "--rounds", "1", "--no-html"]);
    let answer = replay();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    let verified = &report["cells"][0]["verified"];
    assert_eq!((&verified["answers"], &verified["how"]), (&0.into(), &"nothing".into()), "{report:#}");
    sql(server, "", "CREATE TABLE later (n int)").unwrap();
    let answer = replay();
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0) && said.contains("no error instead of error 42P01"), "{answer:?}");
}

/// What each connection executed: the statement with its values, and the error.
fn executed(path: &Path) -> Vec<Vec<String>> {
    let mut found = BTreeMap::<u64, Vec<String>>::new();
    for (text, request) in requests(path) {
        let values: Vec<_> = request.parameters.iter().map(|one| &one.value).collect();
        let is_statement = !text.starts_with("COM_") && request.step != Step::Prepare;
        if is_statement && !text.to_ascii_lowercase().starts_with("copy") {
            let line = format!(
                "{} {values:?} {:?} {}",
                text.trim_end_matches([';', ' ', '\n']),
                request.error,
                request.cut
            );
            found.entry(request.connection).or_default().push(line);
        }
    }
    let mut all: Vec<_> = found.into_values().collect();
    all.sort();
    all
}

#[test]
fn what_is_no_trace_of_the_server_is_refused_and_leaves_no_file() {
    let place = Place::new();
    let at = |name: &str| place.home().join(name).display().to_string();
    std::fs::write(at("text"), "SELECT 1").unwrap();
    std::fs::write(at("packed"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    let header = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    std::fs::write(at("empty"), header).unwrap();
    std::fs::write(at("long"), [&header[..], &[0; 8], &[255; 8]].concat()).unwrap();
    for (target, from, why) in [
        ("redis://127.0.0.1:1", "text", "is no file of packets"),
        ("postgres://127.0.0.1:1", "text", "it is no log of PostgreSQL"),
        ("mysql://127.0.0.1:1", "text", "it is no slow or general query log"),
        ("postgres://127.0.0.1:1", "packed", "unpack it"),
        ("postgres://127.0.0.1:1", "missing", "cannot be read"),
        ("postgres://127.0.0.1:1", "empty", "has no packets of 127.0.0.1:1"),
        ("postgres://db:1", "empty", "has no packets of port 1"),
        ("postgres://127.0.0.1:1", "long", "longer than any"),
        ("up:postgres", "empty", "of a server that there was"),
        ("mongodb://127.0.0.1:1", "empty", "cannot be captured yet"),
    ] {
        let answer = place.run(&["capture", target, "--from", &at(from), "-o", &at("out")]);
        assert!(answer.code != Some(0) && answer.err.contains(why), "{from}: {answer:?}");
        assert!(!Path::new(&at("out")).exists(), "{from}");
    }
}
