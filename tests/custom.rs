//! Custom workloads on real servers: verified, counted, repeated; and the messages for invalid ones.

mod errors;
mod existing;
mod open;
mod regression;
mod scripts;
mod setup;

use crate::servers::common::{cells, sql};
use crate::support::{Answer, Place, metric};
use kurabe_testbed::Server;
use kurabe_testbed::testing::{self, Lease};

const SHOP: &str = r#"
[axes]
clients = [1, 4]
[variables]
users = 300
[collection.users]
rows = ":users"
key = "id"
index = "city"
[collection.users.fields]
id = "int"
name = { type = "text", max = 40 }
city = { type = "text", max = 20, list = ["Kyoto", "Nara", "Uji"] }
visits = { type = "int", value = 0 }
[collection.log]
key = "id"
fields = { id = "int", user_id = "int", word = { type = "text", max = 20 }, at = "time" }
[transaction.browse]
weight = 3
draw.id = { row = "users", zipfian = true }
draw.town = { file = "towns.txt" }
steps = [
  { get = "users", key = ":id", fields = ["name", "city"], keep = { town_of_user = "city" } },
  { find-equal = "users", where = { city = ":town" }, fields = ["city"], rows = [1, 300], check = { city = ":town" } },
]
[transaction.visit]
draw = { id = { row = "users" }, entry = { sequence = 1 }, word = { text = 12 } }
steps = [
  "begin",
  { update = "users", key = ":id", set = { visits = ":entry" } },
  { get = "users", key = ":id", fields = ["visits"], check = { visits = ":entry" } },
  { insert = "log", values = { id = ":entry", user_id = ":id", word = ":word", at = ":now" } },
  { get = "log", key = ":entry", fields = ["word", "user_id"], check = { word = ":word", user_id = ":id" } },
  { sql = "SELECT COUNT(*), {log}.id FROM {log} WHERE id = :entry GROUP BY id", columns = ["n", "id"], rows = 1, check = { n = 1, id = ":entry" } },
  "commit",
]
"#;

fn run(place: &Place, path: &str, rest: &[&str]) -> Answer {
    place.run(&[&["run", "-f", path], rest].concat())
}

fn sql_servers() -> Vec<Lease> {
    ["postgres", "mysql", "mariadb"].into_iter().filter_map(testing::server).collect()
}

#[test]
fn custom_workload_runs_verified_on_every_sql_engine_and_again_without_its_files() {
    let place = Place::new();
    let servers = sql_servers();
    let mut targets = vec!["sqlite:"];
    targets.extend(servers.iter().map(|server| server.url()));
    let path = place.file("shop.toml", SHOP);
    let towns = place.file("towns.txt", "Kyoto\nNara\n");
    run(&place, &path, &[&["--requests", "200", "--rounds", "2"], &targets[..]].concat()).success();
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(towns).unwrap();
    // The run file has no passwords.
    place.run(&[&["run", "--again", "last"], &targets[..]].concat()).success();
    let report = place.report();
    assert_eq!(report["experiment"], "shop");
    // Two cells of each target, and the A/A control of the first.
    assert_eq!(cells(&report).len(), targets.len() * 3);
    for cell in cells(&report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        let figure = |name: &str| metric(cell, name).unwrap();
        // Each transaction type has its own metrics: one in four is a visit, with seven requests instead of two.
        assert!((figure("visit share") - 0.25).abs() < 0.12, "{cell:#}");
        assert!((figure("browse share") + figure("visit share") - 1.0).abs() < 1e-9, "{cell:#}");
        assert!(figure("visit") > 0.0 && figure("browse p99") > 0.0, "{cell:#}");
        // About a quarter of 200 transactions, in two rounds, each adds a row that the server counts.
        assert!(cell["verified"]["counted"].as_u64().unwrap() > 40, "{cell:#}");
    }
    for server in &servers {
        if let Some(left) = crate::servers::common::tables(server) {
            assert!(!left.contains("kurabe_"), "{left}");
        }
    }
}

#[test]
fn steps_are_repeated_as_often_as_a_variable_says_and_lists_and_lengths_have_weights() {
    let place = Place::new();
    let text = "[collection.log]\nkey = 'id'\nfields = { id = 'int', n = 'int' }\n\
                [transaction.t]\ndraw.times = { list = [1, 4], weights = [1, 1_000_000] }\n\
                draw.text = { text = [10, 30], weights = [1, 1_000_000] }\nsteps = [\n\
                { sql = 'SELECT length(:text) AS size', columns = ['size'], rows = 1, check = { size = 30 } },\n\
                { repeat = ':times', most = 5, draw.id = { sequence = 1 }, draw.n = ':id + 1', steps = [\n\
                { insert = 'log', values = { id = ':id', n = ':n' } },\n\
                { repeat = 2, steps = [{ get = 'log', key = ':id', fields = ['n'], check = { n = ':n' } }] },\n] },\n]\n";
    let path = place.file("repeat.toml", text);
    run(&place, &path, &["--requests", "100", "--rounds", "1", "sqlite:"]).success();
    let report = place.report();
    // Each of a hundred transactions, and of those of the warm-up, added four rows, which the server counted.
    for cell in cells(&report) {
        let rows = cell["verified"]["counted"].as_u64().unwrap();
        assert!(rows >= 400 && rows % 4 == 0, "{cell:#}");
    }
    for (from, to, part) in [
        ("[1, 1_000_000]", "[1]", "'weights' is not a list of 2 whole numbers above 0"),
        ("text = [10, 30]", "text = []", "'text' is a length out of range"),
        ("most = 5,", "", "'most' must be a number from 1 to 2000"),
        ("':times'", "':tims'", "unknown variable 'tims'"),
        ("most = 5", "most = 1500", "more than 2000 steps"),
        ("repeat = 2,", "repeat = 2, most = 2,", "'most' needs a variable in 'repeat'"),
    ] {
        let path = place.file("wrong.toml", text.replacen(from, to, 1));
        run(&place, &path, &["sqlite:"]).exit_code(2).err_has(part);
    }
}

#[test]
fn loaded_rows_are_analysed_before_measuring() {
    let place = Place::new();
    let servers = sql_servers();
    let mut targets = vec!["sqlite:"];
    targets.extend(servers.iter().map(|server| server.url()));
    // During the run, each server is queried for its planner's statistics of the loaded rows.
    let text = r#"
[collection.users]
rows = 5_000
key = "id"
index = "city"
fields = { id = "int", city = { type = "text", max = 20 } }
[transaction.t]
steps = [
  { rows = 1, sql.sqlite = "SELECT 1 FROM sqlite_stat1 WHERE tbl LIKE 'kurabe%users' AND stat LIKE '5000 %' LIMIT 1",
    sql.postgres = "SELECT 1 FROM pg_class c JOIN pg_stats s ON s.tablename = c.relname AND s.attname = 'city' WHERE c.relname LIKE 'kurabe%users' AND c.reltuples = 5000",
    sql.mysql = "SELECT 1 FROM mysql.innodb_table_stats WHERE table_name LIKE 'kurabe%users' AND n_rows BETWEEN 4000 AND 6000" },
]
"#;
    let path = place.file("known.toml", text);
    let answer = run(&place, &path, &[&["--requests", "3", "--rounds", "1"], &targets[..]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(!answer.err.contains("ANALYZE"), "{answer:?}");
    let report = place.run(&["report", "last", "--format", "json"]);
    assert!(report.out.contains("gathered of what kurabe loads (ANALYZE)"), "{report:?}");
}

#[test]
fn sysbench_suites_run_verified_on_every_sql_engine() {
    let place = Place::new();
    let servers = sql_servers();
    let targets: Vec<&str> = servers.iter().map(|server| server.url()).collect();
    for name in ["point-select", "read-only", "read-write"] {
        let suite = format!("{}/../../suites/sysbench-{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(suite).unwrap();
        // A setting of the command line is also in the file: one of them must be removed.
        let lines = text
            .lines()
            .filter(|line| !["budget", "targets", "rounds"].iter().any(|key| line.starts_with(key)));
        let path = place.file("suite.toml", lines.collect::<Vec<_>>().join("\n"));
        let rest = ["--requests", "160", "--rounds", "1", "-D", "rows=500"];
        run(&place, &path, &[&rest[..], &targets].concat()).success();
        let report = place.report();
        assert_eq!(cells(&report).len(), targets.len() * 3, "{name}");
        for cell in cells(&report) {
            assert_eq!(cell["status"], "ok", "{name}: {cell:#}");
            let of = |what: &str| cell["verified"][what].as_u64().unwrap();
            if name == "read-write" {
                // The deleted rows were restored, and none counts twice.
                assert!(of("writes") > 0 && of("counted") == 0, "{cell:#}");
            } else {
                assert!(of("answers") >= 160, "{name}: {cell:#}");
            }
        }
    }
}

#[test]
fn conflicting_transactions_are_retried_only_for_named_errors() {
    let place = Place::new();
    let Some(server) = testing::server("mysql") else { return };
    let text = |retry: &str| {
        format!(
            "axes.clients = [4]\n[collection.a]\nrows = 4\nkey = 'id'\nfields = {{ id = 'int', n = {{ type = 'int', value = 0 }} }}\n\
             [collection.log]\nfields = {{ a = 'int', b = 'int' }}\n\
             [transaction.t]\n{retry}\ndraw = {{ one = {{ row = 'a' }}, other = {{ row = 'a' }} }}\nsteps = [\n'begin',\n\
             {{ insert = 'log', values = {{ a = ':one', b = ':other' }} }},\n\
             {{ sql = 'UPDATE {{a}} SET n = n + 1 WHERE id = :one', affected = 1 }},\n\
             {{ sql = 'UPDATE {{a}} SET n = n + 1 WHERE id = :other', affected = 1 }},\n'commit' ]\n"
        )
    };
    let rest = ["--requests", "400", "--rounds", "1", server.url()];
    run(&place, &place.file("meet.toml", text("retry = ['1213']")), &rest).success();
    // The server does not count rolled-back rows either.
    for cell in cells(&place.report()) {
        assert!(cell["retries"].as_u64().unwrap() > 0, "{cell:#}");
        assert!(cell["verified"]["counted"].as_u64().unwrap() >= 400, "{cell:#}");
    }
    run(&place, &place.file("meet.toml", text("")), &rest).exit_code(4).out_has("Deadlock");
    let answer = run(&place, &place.file("meet.toml", text("retry = 1213")), &rest).exit_code(2);
    assert!(answer.err.contains("list of the server's codes"), "{answer:?}");
}

#[test]
fn row_count_may_be_variable_and_texts_follow_template() {
    let place = Place::new();
    let good = "[collection.a]\nrows = 30\nkey = 'id'\nfields = { id = 'int', c = { type = 'text', max = 6, template = '##-@-#' } }\n\
                [transaction.t]\ndraw.id = { row = 'a' }\ndraw.last = ':id + 9'\ndraw.wanted = 'least(10, 31 - :id)'\n\
                draw.c = { template = '@@#é' }\nsteps = [\n\
                { sql = \"SELECT c FROM {a} WHERE id BETWEEN :id AND :last AND c GLOB '[0-9][0-9]-[a-z]-[0-9]'\", rows = ':wanted' },\n\
                { sql = \"SELECT 1 WHERE :c GLOB '[a-z][a-z][0-9]é'\", rows = 1 },\n\
                { get = 'a', key = ':id', fields = ['c'] } ]\n";
    let rest = ["--requests", "200", "--rounds", "1", "sqlite:"];
    run(&place, &place.file("rows.toml", good), &rest).success();
    for (from, to, code, part) in [
        ("31 - :id", "32 - :id", 4, "the answer has"),
        ("'least(10, 31 - :id)'", "{ list = ['x'] }", 4, "'x' is not a valid number of rows"),
        ("':wanted'", "':wnated'", 2, "unknown variable 'wnated'; did you mean 'wanted'?"),
        ("'##-@-#' }", "'##-@-##' }", 2, "a length of 7 does not fit 'max' 6"),
        (
            "type = 'text', max = 6, template",
            "type = 'int', template",
            2,
            "'template' does not apply to numbers",
        ),
    ] {
        let answer = run(&place, &place.file("rows.toml", good.replacen(from, to, 1)), &rest);
        assert_eq!(answer.code, Some(code), "{to}: {answer:?}");
        assert!((answer.out + &answer.err).replace("\n  ", " ").contains(part), "{to}: {part}");
    }
}

#[test]
fn answer_is_compared_with_values_at_its_request() {
    let place = Place::new();
    let text = "[collection.people]\nrows = 50\nkey = 'id'\n\
                fields = { id = 'int', friend = { type = 'int', uniform = [1, 50] }, name = { type = 'text', max = 20 } }\n\
                [transaction.t]\ndraw.id = { row = 'people' }\nsteps = [\n\
                { get = 'people', key = ':id', fields = ['friend', 'name'], keep = { id = 'friend' } },\n\
                { get = 'people', key = ':id', fields = ['friend', 'name'], keep = { id = 'friend', name = 'name' } },\n\
                { sql = 'SELECT :id, id FROM {people} WHERE name = :name', rows = 1, check = { 1 = ':id' }, keep = { id = '2' } },\n\
                { get = 'people', key = ':id', fields = ['name'], check = { name = ':name' } } ]\n";
    let rest = ["--requests", "200", "--rounds", "1", "sqlite:"];
    run(&place, &place.file("friends.toml", text), &rest).success();
    // And a wrong reply is still detected.
    let wrong = text.replace("check = { name = ':name' }", "check = { name = ':id' }");
    run(&place, &place.file("friends.toml", &wrong), &rest).exit_code(4);
}

#[test]
fn transaction_is_retried_if_sqlite_is_busy() {
    let place = Place::new();
    let text = "axes.clients = [2]\n[collection.a]\nrows = 4\nkey = 'id'\nfields = { id = 'int', n = { type = 'int', value = 0 } }\n\
                [transaction.t]\nretry = ['5']\ndraw.id = { row = 'a' }\nsteps = [ 'begin',\n\
                { sql = 'UPDATE {a} SET n = n + 1 WHERE id = :id', affected = 1 }, { sleep = '50ms' }, 'commit' ]\n";
    // Locked for longer than a statement waits, and for much less than all tries wait.
    let rest = ["--requests", "20", "--rounds", "1", "sqlite:?busy_timeout=20ms"];
    let answer = run(&place, &place.file("busy.toml", text), &rest).success();
    assert!(cells(&place.report()).iter().any(|cell| cell["retries"].as_u64() > Some(0)), "{answer:?}");
}
