//! Tables and functions of the user on the same server.

use super::*;

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

/// A view is read as a table is, and may call a function that writes.
#[test]
fn view_that_writes_is_refused_where_only_fields_are_read() {
    let place = Place::new();
    let text = "[table.seen]\nkey = 'id'\nfields = { id = 'int', n = 'int' }\n[transaction.t]\n\
                steps = [ { get = 'seen', key = 1, fields = ['n'] } ]\n";
    let path = place.file("view.toml", text);
    for server in sql_servers() {
        let Some(_) = with_functions(&server) else { continue };
        sql(&server, "", "CREATE VIEW seen AS SELECT id, charge() AS n FROM theirs");
        let answer = run(&place, &path, &["--requests", "3", "--rounds", "1", server.url()]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.err.contains("may change data"), "{answer:?}");
        assert_eq!(sql(&server, "", "SELECT SUM(n) FROM theirs").unwrap().trim(), "10");
    }
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
