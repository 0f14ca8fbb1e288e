//! Custom workloads on real servers: verified, counted, repeated; and the messages for invalid ones.

mod scripts;
mod setup;

use crate::servers::common::{cells, sql};
use crate::support::{Answer, Place};
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
    place.run(&["run", "--again", "last"]).success();
    let report = place.report();
    assert_eq!(report["experiment"], "shop");
    // Two cells of each target, and the A/A control of the first.
    assert_eq!(cells(&report).len(), targets.len() * 3);
    for cell in cells(&report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        let figure = |name: &str| {
            let figures = cell["metrics"].as_array().unwrap();
            figures.iter().find(|figure| figure["name"] == name).unwrap()["value"].as_f64().unwrap()
        };
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
        let path = place.file("wrong.toml", &text.replacen(from, to, 1));
        run(&place, &path, &["sqlite:"]).exit_code(2).err_has(part);
    }
}

#[test]
fn unexpected_answer_fails_trial() {
    let place = Place::new();
    for (step, part) in [
        ("{ get = 'a', key = 3, rows = 0 }", "the answer has 1 rows, expected 0"),
        ("{ get = 'a', key = 11 }", "the answer has 0 rows, expected 1"),
        ("{ get = 'a', key = ':id', check = { n = 8 } }", "column 1 of row 1 is 7, expected 8"),
        ("{ update = 'a', key = 11, set = { n = 1 } }", "0 rows were changed, expected 1"),
        ("{ sql = 'SELECT 1 WHERE 1 = 0', rows = 1 }", "the answer has 0 rows, expected 1"),
        ("{ sql = \"SELECT n FROM {a} WHERE id = :id\", check = { 1 = 'x' } }", "is 7, expected 'x'"),
        ("{ sql = \"UPDATE {a} SET n = 7 WHERE id > :id\", affected = 11 }", "rows were changed, expected"),
        ("{ sql = \"DELETE FROM {a} WHERE id = :id\", adds = 'a' }", "the server counts"),
        ("{ sql = \"INSERT INTO {a} VALUES (1, 1)\" }", "transaction t, step 1"),
        ("{ sql = 'SELEC 1' }", "transaction t, step 1"),
        ("{ get = 'a', key = ':zero' }", "the answer has 0 rows"),
    ] {
        let text = format!(
            "[collection.a]\nrows = 10\nkey = 'id'\nfields = {{ id = 'int', n = {{ type = 'int', value = 7 }} }}\n\
             [transaction.t]\ndraw = {{ id = {{ row = 'a' }}, zero = ':id - :id' }}\nsteps = [{step}]\n"
        );
        let path = place.file("wrong.toml", &text);
        let answer = run(&place, &path, &["--requests", "20", "--rounds", "1", "sqlite:"]);
        assert_ne!(answer.code, Some(0), "{step}: {answer:?}");
        assert!((answer.out + &answer.err).replace("\n  ", " ").contains(part), "{step}: {part}");
    }
}

#[test]
fn error_in_file_is_reported_with_place_and_suggestion() {
    let place = Place::new();
    let good = "[collection.users]\nrows = 10\nkey = 'id'\nfields = { id = 'int', name = { type = 'text', max = 9 } }\n\
                [transaction.t]\ndraw = { id = { row = 'users' } }\nsteps = [{ get = 'users', key = ':id' }]\n";
    for (from, to, part) in [
        ("rows = 10", "rwos = 10", "collection users: unknown key 'rwos'; did you mean 'rows'?"),
        ("'int'", "'imt'", "field id: unknown type 'imt'; did you mean 'int'?"),
        (
            "get = 'users'",
            "get = 'user'",
            "transaction t, step 1: unknown collection or table 'user'; did you mean 'users'?",
        ),
        ("get =", "gte =", "did you mean 'get'?"),
        ("':id'", "':di'", "unknown variable 'di'"),
        ("row = 'users'", "rwo = 'users'", "draw id: unknown key 'rwo'; did you mean 'row'?"),
        ("{ row = 'users' }", "'randon(1, 10)'", "unknown function 'randon'; did you mean 'random'?"),
        ("{ row = 'users' }", "':id + 1'", "depends on its own value"),
        ("steps = [{ get = 'users', key = ':id' }]", "", "it has no 'steps'"),
        ("key = ':id'", "kye = ':id'", "did you mean 'key'?"),
        ("[transaction.t]", "[transactoin.t]", "unknown key 'transactoin'; did you mean 'transaction'?"),
        ("rows = 10", "rows = 10\nkey = 3", "line"),
        (
            "{ get = 'users', key = ':id' }",
            "{ sql = 'DELETE FROM theirs' }",
            "may change data that Kurabe did not create",
        ),
        ("{ get = 'users', key = ':id' }", "{ sql.mysqll = 'SELECT 1' }", "did you mean 'mysql'?"),
        ("{ get = 'users', key = ':id' }", "{ sql = 'COMMIT' }", "use the step \"commit\""),
        ("max = 9", "max = 9, length = 20", "does not fit 'max' 9"),
        ("draw = { id", "draw = { i_d = 'random(1, 2)', now", "already has a value"),
        ("{ row = 'users' }", "{ uniform = [5, 1] }", "transaction t, draw id: a range from 5 to 1 is empty"),
        ("rows = 10", "rows = '3 - 8'", "collection users, rows: -5 is not a valid number of rows"),
        (
            "{ get = 'users', key = ':id' }",
            "{ sql = 'WITH u AS (DELETE FROM theirs RETURNING 1) SELECT 1 FROM u' }",
            "did not create: a part of it writes",
        ),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good);
        let path = place.file("wrong.toml", &text);
        // Throwaway targets hold nothing that statements must not change.
        let target = format!("sqlite:{}", place.at("mine.db"));
        run(&place, &path, &[&target]).exit_code(2).err_has(part).err_has("wrong.toml");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "an error left a run behind");
}

#[test]
fn existing_table_is_read_only_by_default_and_never_removed() {
    let place = Place::new();
    for server in sql_servers() {
        let made = "CREATE TABLE theirs (id bigint PRIMARY KEY, n bigint); INSERT INTO theirs VALUES (1, 5), (2, 5);";
        let Some(_) = sql(&server, "", made) else { continue };
        let table = "[table.theirs]\nkey = 'id'\nfields = { id = 'int', n = 'int' }\n";
        let steps = |steps: &str| format!("[transaction.t]\ndraw.id = 'random(1, 2)'\nsteps = [{steps}]\n");
        let read = table.to_owned() + &steps("{ get = 'theirs', key = ':id', check = { n = 5 } }");
        let brief = ["--requests", "20", "--rounds", "1", server.url()];
        run(&place, &place.file("read.toml", &read), &brief).success();
        let change = steps("{ update = 'theirs', key = ':id', set = { n = 6 } }");
        let answer = run(&place, &place.file("change.toml", &(table.to_owned() + &change)), &brief);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.err.contains("read-only"), "{answer:?}");
        let allowed = format!("{table}write = true\n{change}");
        run(&place, &place.file("change.toml", &allowed), &brief).success();
        assert_eq!(sql(&server, "", "SELECT SUM(n) FROM theirs").unwrap().trim(), "12");
    }
}

/// Functions of the user, one of which writes.
fn with_functions(server: &Server) -> Option<String> {
    let rows = "CREATE TABLE theirs (id INT PRIMARY KEY, n INT); INSERT INTO theirs VALUES (1, 5), (2, 5);";
    let functions = if server.url().starts_with("postgres") {
        "CREATE FUNCTION charge() RETURNS int LANGUAGE sql AS 'UPDATE theirs SET n = n + 1 RETURNING n';
         CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2';"
    } else {
        "CREATE FUNCTION twice(a INT) RETURNS INT DETERMINISTIC RETURN 2 * a;\nDELIMITER |\n\
         CREATE FUNCTION charge() RETURNS INT DETERMINISTIC MODIFIES SQL DATA \
         BEGIN UPDATE theirs SET n = n + 1; RETURN 1; END|\n"
    };
    sql(server, "", &format!("{rows}{functions}"))
}

#[test]
fn server_refuses_writes_unless_they_are_allowed() {
    let place = Place::new();
    for server in sql_servers() {
        let Some(_) = with_functions(&server) else { continue };
        let sum = || sql(&server, "", "SELECT SUM(n) FROM theirs").unwrap().trim().to_owned();
        let brief = ["--requests", "2", "--rounds", "1", "--clients", "1", server.url()];
        let script = |text: &str, more: &[&str]| {
            let path = place.file("theirs.sql", text);
            place.run(&[&["run", "pgbench", "-f", &path], more, &brief].concat())
        };
        let workload = |text: &str, more: &[&str]| {
            let steps = format!("[transaction.t]\nsteps = [ 'begin', {{ sql = '{text}' }}, 'commit' ]\n");
            run(&place, &place.file("theirs.toml", &steps), &[more, &brief].concat())
        };
        // A function that only the server knows.
        for answer in
            [script("SELECT twice(n) FROM theirs;", &[]), workload("SELECT twice(n) FROM theirs", &[])]
        {
            assert_eq!(answer.code, Some(0), "{answer:?}");
        }
        for (answer, parts) in [
            (
                script("SELECT 1;\nSELECT charge();", &[]),
                ["theirs.sql: line 2", "may change data", "--write"],
            ),
            (workload("SELECT charge()", &[]), ["transaction t, step 2", "may change data", "--write"]),
        ] {
            assert_eq!(answer.code, Some(2), "{answer:?}");
            let target = ["postgres", "mysql", "mariadb"].map(|name| format!("{name}: this statement"));
            assert!(target.iter().any(|target| answer.err.contains(target)), "{answer:?}");
            for part in parts {
                assert!(answer.err.contains(part), "{part}: {answer:?}");
            }
            assert_eq!(sum(), "10", "{answer:?}");
        }
        // RemoteContext writes to collections of the run, the session cannot be read-only.
        let mixed = "[collection.a]\nrows = 3\nkey = 'id'\nfields.id = 'int'\n[transaction.t]\n\
                     steps = [ { sql = 'SELECT charge()' }, { sql = 'DELETE FROM {a} WHERE id < 0' } ]\n";
        run(&place, &place.file("mixed.toml", mixed), &brief)
            .exit_code(2)
            .err_has("step 1: this statement may change data, and the sessions");
        assert_eq!(sum(), "10");
        script("SELECT charge();", &["--write"]).success();
        assert_ne!(sum(), "10");
        if server.url().starts_with("postgres") {
            let before = sum();
            let own =
                ["run", "estimate", server.url(), "--state", "as-is", "--data", "theirs WHERE charge() > 0"];
            place.run(&[&own[..], &["--rounds", "1"]].concat()).exit_code(2).err_has("may change data");
            assert_eq!(sum(), before);
        }
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
fn existing_table_without_statistics_is_reported_before_run() {
    let place = Place::new();
    let text = r#"
[table.orders]
key = "id"
fields = { id = "int", total = "int" }
[transaction.t]
draw.id = { uniform = [1, 20_000] }
steps = [ { get = "orders", key = ":id" }, { sql = "SELECT COUNT(*) FROM parts WHERE total = 5", rows = 1 } ]
"#;
    let path = place.file("orders.toml", text);
    let brief = ["--requests", "3", "--rounds", "1"];
    let check = |target: &str, warned: &[&str], analysed: &[&str]| {
        let answer = run(&place, &path, &[&brief[..], &[target]].concat()).success();
        for (table, is_told) in warned.iter().map(|t| (t, true)).chain(analysed.iter().map(|t| (t, false))) {
            assert_eq!(answer.err.contains(&format!("table {table} ")), is_told, "{table}: {answer:?}");
        }
        for table in warned {
            let remedy = answer.err.contains(&format!("ANALYZE {table}"))
                || answer.err.contains(&format!("ANALYZE TABLE {table}"));
            assert!(remedy, "{answer:?}");
        }
    };
    for server in sql_servers() {
        let postgres = server.url().starts_with("postgres");
        // As after a load into a server without automatic ANALYZE.
        let (tail, rows) = if postgres {
            (
                " WITH (autovacuum_enabled = off)",
                "SELECT n, n FROM generate_series(1, 20000) AS s(n)".to_owned(),
            )
        } else {
            let digit = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 \
                         UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
            let half = "(SELECT 0 h UNION ALL SELECT 1)";
            let n = "1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.h";
            (
                " STATS_PERSISTENT = 1 STATS_AUTO_RECALC = 0",
                format!("SELECT {n}, 1 FROM {digit} a, {digit} b, {digit} c, {digit} e, {half} f"),
            )
        };
        let made = ["orders", "parts"].map(|table| {
            format!("CREATE TABLE {table} (id bigint PRIMARY KEY, total bigint){tail}; INSERT INTO {table} {rows};")
        });
        let Some(_) = sql(&server, "", &made.concat()) else { continue };
        check(server.url(), &["orders", "parts"], &[]);
        let analyse = if postgres { "ANALYZE parts" } else { "ANALYZE TABLE parts" };
        sql(&server, "", analyse);
        check(server.url(), &["orders"], &["parts"]);
    }
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
        let path = place.file("suite.toml", &lines.collect::<Vec<_>>().join("\n"));
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
    run(&place, &place.file("meet.toml", &text("retry = ['1213']")), &rest).success();
    // The server does not count rolled-back rows either.
    for cell in cells(&place.report()) {
        assert!(cell["retries"].as_u64().unwrap() > 0, "{cell:#}");
        assert!(cell["verified"]["counted"].as_u64().unwrap() >= 400, "{cell:#}");
    }
    run(&place, &place.file("meet.toml", &text("")), &rest).exit_code(4).out_has("Deadlock");
    let answer = run(&place, &place.file("meet.toml", &text("retry = 1213")), &rest).exit_code(2);
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
        let answer = run(&place, &place.file("rows.toml", &good.replacen(from, to, 1)), &rest);
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

#[test]
fn invalid_variable_is_reported_with_place_before_run() {
    let place = Place::new();
    let path = place.file("shop.toml", SHOP);
    place.file("towns.txt", "Kyoto\n");
    run(&place, &path, &["-D", "users=-5", "sqlite:"])
        .exit_code(2)
        .err_has("shop.toml: line 6: collection users, rows: -5 is not a valid number of rows");
    run(&place, &path, &["-D", "users=0", "sqlite:"])
        .exit_code(2)
        .err_has("shop.toml: line 18: transaction browse, draw id: a range from 1 to 0 is empty");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "an error left a run behind");
    // Unreached expressions are not evaluated: pgbench runs this too.
    let script =
        place.file("far.sql", "\\set a 1\n\\if :scale > 10\n\\set a random(11, :scale)\n\\endif\nSELECT :a;");
    let args = ["run", "pgbench", "-f", &script, "--requests", "5", "--rounds", "1", "sqlite:"];
    place.run(&args).success();
}
