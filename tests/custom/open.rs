//! Transactions that a script leaves open, and statements that change what the run did not make.

use super::*;

/// What a script changes, by a table of the user's.
const MADE: &str = "CREATE TABLE dl (id INT PRIMARY KEY, v INT); INSERT INTO dl VALUES (1, 5), (2, 6);";

/// The SQL engines with a table of the user's: the target, and how to read that.
fn with_table(place: &Place, work: &mut dyn FnMut(&str, &dyn Fn() -> String)) {
    let file = place.at("mine.db");
    let sqlite = |text: &str| {
        let output = std::process::Command::new("sqlite3").args([&file, text]).output();
        output.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if sqlite(MADE).is_some() {
        work(&format!("sqlite:{file}"), &|| sqlite("SELECT SUM(v) FROM dl").unwrap());
    }
    for server in sql_servers() {
        if sql(&server, "", MADE).is_some() {
            let sum = || sql(&server, "", "SELECT SUM(v) FROM dl").unwrap().trim().to_owned();
            work(server.url(), &sum);
        }
    }
}

#[test]
fn script_that_leaves_a_transaction_open_has_no_result() {
    let place = Place::new();
    with_table(&place, &mut |target, sum| {
        let brief = ["--requests", "5", "--rounds", "1", "--clients", "1", "--write", target];
        let script = |text: &str| {
            let path = place.file("open.sql", text);
            place.run(&[&["run", "pgbench", "-f", &path], &brief[..]].concat())
        };
        for text in [
            "BEGIN;\nUPDATE dl SET v = v + 1 WHERE id = 1;",
            "\\if 1 = 1\nBEGIN;\n\\endif\nSELECT v FROM dl WHERE id = 1;",
        ] {
            script(text).exit_code(4).out_has("has a transaction open at the end of 'open'");
            assert_eq!(sum(), "11", "{target}: {text}");
        }
        script("BEGIN;\nUPDATE dl SET v = v + 1 WHERE id = 1;\nROLLBACK;").success();
        script("BEGIN;\nSELECT v FROM dl WHERE id = 1;\nEND;").success();
        assert_eq!(sum(), "11", "{target}");
    });
    let open = "[collection.c]\nrows = 100\nkey = 'id'\nfields = { id = 'int', n = { type = 'int', value = 0 } }\n\
                [transaction.u]\ndraw.id = { row = 'c' }\n\
                steps = [ 'begin', { sql = 'UPDATE {c} SET n = n + 1 WHERE id = :id', affected = 1 } ]\n";
    let path = place.file("open.toml", open);
    let servers = sql_servers();
    let targets = ["sqlite:"].into_iter().chain(servers.iter().map(|server| server.url()));
    for target in targets {
        let brief = ["--requests", "5", "--rounds", "1", "--clients", "1", target];
        run(&place, &path, &brief).exit_code(4).out_has("transaction open at the end of 'u'");
    }
}

#[test]
fn statement_that_names_a_table_of_the_run_changes_no_other() {
    let place = Place::new();
    with_table(&place, &mut |target, sum| {
        let brief = ["--init", "--scale", "1", "--requests", "2", "--rounds", "1", "--clients", "1", target];
        for text in [
            "UPDATE dl SET v = 777 FROM pgbench_branches b WHERE dl.id = 2 AND b.bid = 1;",
            "UPDATE dl, pgbench_branches SET dl.v = 777;",
            "DELETE dl FROM dl JOIN pgbench_branches;",
            "DELETE FROM dl WHERE id IN (SELECT bid FROM pgbench_branches);",
            "INSERT INTO dl SELECT bid + 10, 1 FROM pgbench_branches;",
            "WITH d AS (DELETE FROM dl RETURNING id) UPDATE pgbench_branches SET bbalance = 1;",
            "SELECT charge(bid) FROM pgbench_branches;",
        ] {
            let path = place.file("hole.sql", text);
            let answer = place.run(&[&["run", "pgbench", "-f", &path], &brief[..]].concat());
            answer.exit_code(2).err_has("--write");
            assert_eq!(sum(), "11", "{target}: {text}");
        }
        let path = place.file(
            "own.sql",
            "UPDATE pgbench_branches SET bbalance = bbalance + (SELECT max(v) FROM dl) WHERE bid = 1;",
        );
        place.run(&[&["run", "pgbench", "-f", &path], &brief[..]].concat()).success();
        assert_eq!(sum(), "11", "{target}");
    });
    let steps = "[collection.c]\nrows = 10\nkey = 'id'\nfields = { id = 'int', n = 'int' }\n\
                 [transaction.u]\nsteps = [ { sql = 'DELETE FROM dl WHERE id IN (SELECT id FROM {c})' } ]\n";
    let path = place.file("hole.toml", steps);
    let target = format!("sqlite:{}", place.at("mine.db"));
    run(&place, &path, &[&target]).exit_code(2).err_has("changes dl, which is no table of the run");
}
