//! `kurabe run replay` of what real clients did: each request once, in an order that keeps answers, each answer compared.

mod answers;
mod cache;
mod changes;
mod couchdb;
mod harmless;
pub(crate) mod mongodb;
mod planted;
mod settings;

use crate::capture::shown;
use crate::servers::common::{cells, has_program, sql};
use crate::support::{Answer, Place, eventually, metric};
use kurabe_testbed::{Server, testing};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::Command;

/// Captures a shell's command.
fn captured(place: &Place, name: &str, server: &Server, script: &str) -> String {
    let script = format!("cd '{}'; {script}", place.home().display());
    crate::capture::captured(place, name, &[], server.url(), &script)
}

/// The number of requests that a capture shows.
fn requests(place: &Place, path: &str) -> u64 {
    shown(place, path)["requests"].as_u64().unwrap()
}

pub(crate) fn replay(place: &Place, path: &str, rest: &[&str]) -> Answer {
    let brief = ["--rounds", "1", "--no-html"];
    place.run(&[&["run", "replay", path], rest, &brief].concat())
}

/// The report of a replay in which all went well.
fn report(place: &Place, path: &str, rest: &[&str]) -> Json {
    let answer = replay(place, path, rest);
    assert!(answer.code == Some(0) && !answer.err.contains("did not end in order"), "{answer:?}");
    let report = place.report();
    for cell in cells(&report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["verified"]["answers"], requests(place, path), "{cell:#}");
    }
    report
}

#[test]
fn writes_of_sessions_are_replayed_in_an_order_that_keeps_their_answers() {
    let Some(server) = testing::server("postgres") else { return };
    if !has_program("pgbench") {
        return;
    }
    let place = Place::that_starts_servers();
    let url = server.url();
    let pgbench = Command::new("pgbench").args(["-i", "-q", "-s", "1", url]).output().unwrap();
    assert!(pgbench.status.success(), "{pgbench:?}");
    let made = "DELETE FROM pgbench_accounts WHERE aid > 50000; CREATE TABLE shop (id int PRIMARY KEY, n int); \
                INSERT INTO shop VALUES (1, 0), (2, 0)";
    sql(&server, "", made).unwrap();
    let dump = place.at("dump.sql");
    let output = Command::new("pg_dump").args([url, "-f", &dump]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // The second session is connected before the first one commits, and reads what it has committed. Without an order it would
    // read before, since the first one sleeps.
    let reader = "SELECT 1;\n\\! touch connected\n\\! while [ ! -e done ]; do sleep 0.01; done\nSELECT n FROM shop WHERE id = 1;\n\
                  SELECT random();\nSELECT 1 / 0;\n\\copy shop FROM 'rows'\nSELECT id, n FROM shop ORDER BY id;\n";
    place.file("reader.sql", reader);
    place.file("rows", "3\t7\n4\t\\N\n");
    // So many transactions that their statements are among those with the most time, which have metrics of their own.
    let script = "pgbench -n -M prepared -c 3 -t 40; pgbench -n -M simple -c 3 -t 40; pgbench -n -S -M extended -c 2 -t 50; \
                  psql -qXf reader.sql & while [ ! -e connected ]; do sleep 0.01; done; \
                  psql -qX -c BEGIN -c 'UPDATE shop SET n = n + 5 WHERE id = 1' -c 'SELECT pg_sleep(0.3)' -c COMMIT; \
                  touch done; wait";
    let path = captured(&place, "shop", &server, script);
    let slow = "up:postgres?enable_indexscan=off&enable_bitmapscan=off&enable_indexonlyscan=off";
    let report = report(&place, &path, &["up:postgres", slow, "--data", &dump]);
    let times = |cell: &Json, part: &str| {
        let metrics = cell["metrics"].as_array().unwrap();
        let found = metrics.iter().find(|metric| metric["name"].as_str().unwrap().contains(part));
        found.unwrap_or_else(|| panic!("{cell:#}"))["value"].as_f64().unwrap()
    };
    let own: Vec<&Json> = cells(&report).iter().filter(|cell| cell["aa_control"] != true).collect();
    let ratio = |part: &str| times(own[1], part) / times(own[0], part);
    // Statements that need no index wait for the processors of those that do.
    let (changed, other) = (ratio("SELECT abalance"), ratio("INSERT INTO pgbench_history"));
    assert!(changed > 3.0 && changed > other, "{changed} and {other}: {report:#}");
    // `random()` and `pg_sleep()`, whose values are not compared.
    assert_eq!(metric(own[0], "volatile answers"), Some(2.0), "{report:#}");
    // These statements are in no other transactions: one takes as long as they do, a SELECT, and what begins and ends it.
    let parts = [
        "UPDATE pgbench_accounts", "UPDATE pgbench_tellers", "UPDATE pgbench_branches",
        "INSERT INTO pgbench_history",
    ];
    for cell in &own {
        let is_whole =
            |name: &str| name.starts_with("transaction ") && name.contains("UPDATE pgbench_accounts");
        let metrics = cell["metrics"].as_array().unwrap();
        let whole =
            metrics.iter().find(|metric| is_whole(metric["name"].as_str().unwrap())).unwrap()["value"]
                .as_f64()
                .unwrap();
        let sum: f64 = parts.iter().map(|part| times(cell, &format!(" {part}"))).sum();
        let most = 2.0 * (sum + times(cell, "SELECT abalance"));
        assert!(sum < whole && whole < most, "{sum} and {whole}: {cell:#}");
    }
    // The user's own server is left alone.
    replay(&place, &path, &[url]).exit_code(2).err_has("--write allows it");
    // Without its data none of it fits, which the first statement says.
    sql(&server, "", "DROP TABLE pgbench_accounts").unwrap();
    let answer = replay(&place, &path, &[url, "--write"]);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0) && said.contains("error 42P01 instead of no error"), "{answer:?}");
}

#[test]
fn reads_are_replayed_as_often_as_the_server_counts_and_other_answers_are_named() {
    for (engine, other) in [("postgres", "mysql"), ("mysql", "postgres"), ("mariadb", "postgres")] {
        let Some(server) = testing::server(engine) else { continue };
        let is_postgres = engine == "postgres";
        if !has_program(if is_postgres { "pgbench" } else { "sysbench" }) {
            return;
        }
        let place = Place::new();
        let sysbench = "sysbench oltp_point_select --mysql-host=127.0.0.1 --mysql-port=$MYSQL_TCP_PORT --mysql-user=root --mysql-password=$MYSQL_PWD \
                        --mysql-db=kurabe --mysql-ssl=off --table-size=50 --threads=2 --events=60 --time=0";
        let (prepare, script, count, change) = if is_postgres {
            (
                "pgbench -i -q -s 1 2>/dev/null".to_owned(),
                "pgbench -n -S -M prepared -c 2 -t 30".to_owned(),
                "SELECT pg_stat_force_next_flush(); SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'pgbench_accounts'",
                "UPDATE pgbench_accounts SET abalance = 1",
            )
        } else {
            (
                format!("{sysbench} prepare >/dev/null"),
                format!("{sysbench} run >/dev/null"),
                "SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'",
                "UPDATE sbtest1 SET c = 'other'",
            )
        };
        captured(&place, "prepared", &server, &prepare);
        let path = captured(&place, "reads", &server, &script);
        let counted = || -> u64 {
            let said = sql(&server, "", count).unwrap();
            said.split_whitespace().last().unwrap().parse().unwrap()
        };
        let before = counted();
        report(&place, &path, &[server.url()]);
        // The cell and its A/A control, with 60 executions each.
        assert_eq!(counted() - before, 120, "{engine}");
        // Of reads that a cache answers, the server has none.
        let front = if is_postgres { "redis" } else { "memcached" };
        if let Some(cache) = testing::server(front) {
            let before = counted();
            let report = report(&place, &path, &[server.url(), "--cache", cache.url(), "--cached", "yes"]);
            let of = |name: &'static str| cells(&report).iter().map(move |cell| metric(cell, name).unwrap());
            let pairs = of("cacheable reads").zip(of("hit ratio"));
            let missed: u64 = pairs.map(|(reads, hits)| (reads * (1.0 - hits)).round() as u64).sum();
            // pgbench asks for the number of branches first, in the cell and in its A/A control.
            let others = if is_postgres { 2 } else { 0 };
            assert_eq!(counted() - before, missed - others, "{engine}: {report:#}");
            assert!(is_postgres || missed < 110, "{missed} of 120");
            // Nothing of ours is left in the cache of others.
            if is_postgres {
                let port = cache.port().to_string();
                let mut command = Command::new("redis-cli");
                command.args(["-p", &port, "KEYS", "*"]).env("REDISCLI_AUTH", cache.password().unwrap());
                let output = command.output().unwrap();
                assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "");
            }
        }
        sql(&server, "", change).unwrap();
        let answer = replay(&place, &path, &[server.url()]);
        let said = format!("{}{}", answer.out, answer.err);
        let named = if is_postgres {
            "other values in 1 rows for 'SELECT abalance"
        } else {
            "other values in 1 rows for 'SELECT c"
        };
        assert!(answer.code != Some(0) && said.contains("answers differ"), "{answer:?}");
        assert!(said.contains(named), "{answer:?}");

        replay(&place, &path, &[&format!("up:{other}")]).exit_code(2).err_has("speaks another protocol");
        let whole = std::fs::read(&path).unwrap();
        let bad = place.at("bad");
        for (bytes, why) in [
            (&[b"kurabe capture 9\n", &whole[17..]].concat()[..], "version \"9\""),
            (&whole[..40], "ends before its first record"),
            (b"SELECT 1", "is not a capture"),
        ] {
            std::fs::write(&bad, bytes).unwrap();
            let refused = replay(&place, &bad, &[server.url()]);
            assert!(refused.code != Some(0) && refused.err.contains(why), "{refused:?}");
        }
        let hashed = place.at("hashed");
        let args = ["capture", server.url(), "-o", &hashed, "--values", "hash", "--", "true"];
        assert_eq!(place.run(&args).code, Some(0));
        let refused = replay(&place, &hashed, &[server.url()]);
        assert!(refused.code != Some(0) && refused.err.contains("values were not kept"), "{refused:?}");
    }
}

#[test]
fn commands_of_redis_are_recorded_and_replayed_as_often_as_the_server_counts() {
    for engine in ["redis", "valkey"] {
        let Some(server) = testing::own_server(engine) else { continue };
        if has_program("redis-benchmark") {
            assert_commands_are_replayed(&server, &format!("up:{engine}"));
        }
    }
}

/// How often Redis has executed each command.
pub(crate) fn commands(server: &Server) -> BTreeMap<String, u64> {
    let port = server.port().to_string();
    let mut command = Command::new("redis-cli");
    command.args(["-p", &port, "INFO", "commandstats"]).env("REDISCLI_AUTH", server.password().unwrap());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let data = said.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
    data.map(|(name, rest)| (name.to_owned(), rest.split(',').next().unwrap().parse().unwrap())).collect()
}

fn assert_commands_are_replayed(server: &Server, up: &str) {
    let place = Place::that_starts_servers();
    // Without what this test and a driver ask.
    let counted = || -> u64 {
        let own = |name: &str| {
            ["info", "config", "hello", "auth", "ping", "client", "select", "command"]
                .iter()
                .any(|own| name.starts_with(own))
        };
        commands(server).iter().filter(|(name, _)| !own(name)).map(|(_, count)| count).sum()
    };
    let bench = "redis-benchmark -h $REDIS_HOST -p $REDIS_PORT -a $REDISCLI_AUTH -q -r 50 -n 300 -c 3";
    let cli = "redis-cli -h $REDIS_HOST -p $REDIS_PORT";
    let words = "HSET h a 1 b 2\nHGETALL h\nSADD s x y z\nSMEMBERS s\nMULTI\nINCRBY n 4\nGET n\nEXEC\nLPUSH h 1\nSET e 'a b' EX 1000\n\
                 TTL e\nGET missing\nMGET e n h s missing q\n";
    let script = format!(
        "{bench} -t set,get,incr,lpush -P 8 >/dev/null; {bench} -t set,get >/dev/null; \
         printf '{words}' | {cli} >/dev/null; printf '{words}' | {cli} -3 >/dev/null"
    );
    let logged_in = || commands(server).get("auth").copied().unwrap_or(0);
    let (before, logins) = (counted(), logged_in());
    let path = captured(&place, "commands", server, &script);
    let recorded = shown(&place, &path);
    let calls = |of: &str| -> u64 {
        let all = recorded["statements"].as_array().unwrap().iter();
        all.filter(|one| one["text"].as_str().unwrap().starts_with(of))
            .map(|one| one["calls"].as_u64().unwrap())
            .sum()
    };
    // redis-benchmark asks for settings, and may send a few more than it was told.
    let asked = calls("CONFIG") + calls("HELLO") + calls("COMMAND") + calls("CLIENT") + calls("PING");
    // Logins are recorded without their words; one of them is of this question itself.
    let logins = logged_in() - logins - 1;
    assert_eq!(
        requests(&place, &path) - asked - logins,
        counted() - before,
        "{:?}\n{recorded:#}",
        commands(server)
    );
    assert!(calls("SET ?") >= 600 && calls("SMEMBERS ?") == 2, "{recorded:#}");

    // The user's own server is left alone.
    replay(&place, &path, &[server.url()]).exit_code(2).err_has("may change keys");
    let empty = place.file("empty", "");
    replay(&place, &path, &[up, "--data", &empty]).success();
    let report = place.report();
    let left_out = calls("CONFIG") + calls("CLIENT") + logins;
    for cell in cells(&report) {
        assert_eq!(
            cell["verified"]["answers"].as_u64(),
            Some(requests(&place, &path) - left_out),
            "{cell:#}"
        );
    }
    // Other data, other answers.
    std::fs::write(&empty, "SET n 5\n").unwrap();
    let answer = replay(&place, &path, &[up, "--data", &empty]);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0) && said.contains("'EXEC'"), "{answer:?}");
}

#[test]
fn commands_of_memcached_are_recorded_and_replayed_as_often_as_the_server_counts() {
    // Its client programs cannot log in.
    let open = |options: kurabe_testbed::StartOptions| options.set("login", "none");
    let Some(server) = testing::own_server_with("memcached", open) else { return };
    if !has_program("bash") {
        return;
    }
    let place = Place::that_starts_servers();
    let ask = |text: &str| -> String {
        let mut stream = testing::connected(&server).unwrap();
        stream.write_all(format!("{text}quit\r\n").as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    let counted = |name: &str| -> u64 {
        let said = ask("stats\r\n");
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} "))).unwrap();
        line.trim().parse().unwrap()
    };
    // One request after the other, then many at once, some without an answer; a value with the end of a line in it.
    let script = r#"
        set -e
        open() { exec 3<>/dev/tcp/${MEMCACHED_SERVERS%:*}/${MEMCACHED_SERVERS#*:}; }
        ask() { printf "$1" >&3; read -r line <&3; }
        open
        ask 'set a 5 0 4\r\n1\r\n2\r\n'; ask 'set n 0 0 1\r\n7\r\n'; ask 'incr n 3\r\n'; ask 'delete gone\r\n'
        ask 'touch a 1000\r\n'; ask 'ms m 3 T0\r\nxyz\r\n'; ask 'mn\r\n'
        open
        printf 'add b 0 0 2 noreply\r\nhi\r\nget b\r\nappend b 0 0 1\r\n!\r\nget b\r\nset b 0 0 1 noreply\r\n?\r\n' >&3
        printf 'get nothing\r\nmg m v t\r\nset z 0 0 1 noreply\r\n0\r\nquit\r\n' >&3
        cat <&3 >/dev/null
    "#;
    let slap = "memcslap --servers=$MEMCACHED_SERVERS --concurrency=2 --execute-number=40 --test=get --initial-load=60 >/dev/null\n";
    let script = script.to_owned() + if has_program("memcslap") { slap } else { "" };
    place.file("commands.sh", script);
    let (sets, gets) = (counted("cmd_set"), counted("cmd_get"));
    let path = captured(&place, "memcached", &server, "bash commands.sh");
    let recorded = shown(&place, &path);
    let calls = |of: &[&str]| -> u64 {
        let all = recorded["statements"].as_array().unwrap().iter();
        all.filter(|one| of.contains(&one["text"].as_str().unwrap()))
            .map(|one| one["calls"].as_u64().unwrap())
            .sum()
    };
    let stores = ["set ?", "set ? noreply", "add ? noreply", "append ?", "ms ?"];
    assert_eq!(calls(&stores), counted("cmd_set") - sets, "{recorded:#}");
    assert_eq!(calls(&["get ?", "mg ?"]), counted("cmd_get") - gets, "{recorded:#}");
    assert!(calls(&["incr ?"]) == 1 && calls(&["mn"]) == 1 && calls(&["get ?"]) >= 3, "{recorded:#}");

    // The user's own server is left alone.
    replay(&place, &path, &[server.url()]).exit_code(2).err_has("may change values");
    // A throwaway server is empty before each replay, as that of the capture was.
    ask("flush_all\r\n");
    report(&place, &path, &["up:memcached"]);
    // Other data, other answers.
    ask("set b 0 0 5\r\nother\r\n");
    let answer = replay(&place, &path, &[server.url(), "--write"]);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0) && said.contains("of 'get ?', such as"), "{answer:?}");
}

#[test]
fn connections_that_are_kept_and_statements_that_are_prepared_are_those_that_the_server_counts() {
    let Some(server) = testing::server("mariadb") else { return };
    if !has_program("mysql") {
        return;
    }
    let place = Place::new();
    sql(&server, "", "CREATE TABLE hot (id int PRIMARY KEY, v int); INSERT INTO hot VALUES (1, 2)").unwrap();
    let one = "mysql --no-defaults --protocol=tcp --user=root kurabe -e 'SELECT v FROM hot WHERE id = 1' >/dev/null;";
    let path = captured(&place, "kept", &server, &one.repeat(20));
    let counted = |name: &str| -> i64 {
        let said = sql(&server, "", &format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap();
        said.split_whitespace().last().unwrap().parse().unwrap()
    };
    let counts = |pooled: &str, prepared: &str| -> [i64; 3] {
        let names = ["Connections", "Com_stmt_prepare", "Com_stmt_execute"];
        let before = names.map(counted);
        report(&place, &path, &[server.url(), "--pooled", pooled, "--prepared", prepared]);
        let mut after = names.map(counted);
        after.iter_mut().zip(before).for_each(|(after, before)| *after -= before);
        after
    };
    let [usual, kept, prepared, both] =
        [("no", "no"), ("yes", "no"), ("no", "yes"), ("yes", "yes")].map(|(one, other)| counts(one, other));
    let beside = |one: [i64; 3]| [one[0] - usual[0], one[1] - usual[1], one[2] - usual[2]];
    // The cell and its A/A control, with 20 connections and as many executions each.
    let ([fewer, 0, 0], [same, many, 40], [as_few, few, 40]) = (beside(kept), beside(prepared), beside(both))
    else {
        panic!("{usual:?} {kept:?} {prepared:?} {both:?}")
    };
    assert!(fewer <= -30 && as_few <= -30 && same > -5, "{usual:?} {kept:?} {prepared:?} {both:?}");
    // Each connection prepares its own.
    assert!(many >= 40 && few <= 10, "{prepared:?} {both:?}");
}
