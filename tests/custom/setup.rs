//! `--setup`: the user's schema and data on throwaway servers.

use super::*;
use std::process::Command;

const READS: &str = r#"
[table.customers]
key = "id"
fields = { id = "int", name = { type = "text", max = 100 } }
[transaction.read]
draw.name = { list = ["Ann; O'Neil"] }
draw.id = { uniform = [1, 1] }
steps = [ { sql = "SELECT id FROM customers WHERE name = :name", rows = 1, columns = ["id"], check = { id = ":id" } } ]
"#;

const SCHEMA: &str = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(100) NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id), total INTEGER NOT NULL);
INSERT INTO customers VALUES (1, 'Ann; O''Neil'), (2, 'Bob');
INSERT INTO orders VALUES (1, 1, 0), (2, 2, 5);
";

/// Of four blocks of two rounds each; with more than this many changes of a row its server was not restored.
const CHANGES: &str = r#"
[transaction.pay]
steps = [
  { sql = "UPDATE orders SET total = total + 1 WHERE id = 1", affected = 1 },
  { sql = "SELECT id FROM orders WHERE id = 1 AND total <= 80", rows = 1 },
]
"#;

/// A dump of the engine's own program, of tables whose owner another server does not have.
fn dump(engine: &str, path: &str) -> bool {
    let Some(server) = testing::server(engine) else { return false };
    sql(&server, "", SCHEMA).unwrap();
    let mut command = if engine == "postgres" {
        sql(&server, "", "CREATE ROLE shop; ALTER TABLE customers OWNER TO shop").unwrap();
        let mut command = Command::new(server.program().with_file_name("pg_dump"));
        command.args(["--dbname", server.url()]).env("PGPASSWORD", server.password().unwrap());
        command
    } else {
        let mut command = Command::new("mariadb-dump");
        let port = server.port().to_string();
        command.args([
            "--no-defaults", "--protocol=TCP", "--host=127.0.0.1", "--port", &port, "--user=root", "kurabe",
        ]);
        command.env("MYSQL_PWD", server.password().unwrap());
        command
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(if engine == "postgres" { "OWNER TO shop" } else { "INSERT INTO `customers`" }),
        "{text}"
    );
    std::fs::write(path, text).unwrap();
    if engine == "postgres" {
        sql(&server, "", "DROP OWNED BY shop CASCADE; DROP ROLE shop").unwrap();
    }
    true
}

#[test]
fn dumps_and_sql_are_loaded_into_throwaway_servers() {
    let place = Place::new();
    let reads = place.file("reads.toml", READS);
    let (schema, made) = (place.file("schema.sql", SCHEMA), place.at("dump.sql"));
    for (engine, has_dump) in [("postgres", true), ("mariadb", true), ("mysql", false)] {
        if testing::server(engine).is_none() {
            continue;
        }
        let from = if has_dump && dump(engine, &made) { &made } else { &schema };
        let args = [&format!("up:{engine}"), "--setup", from, "--requests", "20", "--rounds", "1"];
        run(&place, &reads, &args).success();
        let report = place.report();
        assert!(cells(&report).iter().all(|cell| cell["status"] == "ok"), "{engine}: {report:#}");
        // The file that was loaded is known; with another content there is no repetition.
        std::fs::write(from, "SELECT 1;").unwrap();
        place.run(&["run", "--again"]).exit_code(2).err_has("another content");
        std::fs::write(&schema, SCHEMA).unwrap();
    }
}

#[test]
fn database_is_copied_into_throwaway_servers() {
    let (Some(postgres), Some(mysql)) = (testing::server("postgres"), testing::server("mysql")) else {
        return;
    };
    sql(&postgres, "", SCHEMA).unwrap();
    sql(&postgres, "", "CREATE ROLE reader LOGIN PASSWORD 'hidden-word'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        .unwrap();
    let place = Place::new();
    let reads = place.file("reads.toml", READS);
    let port = postgres.port();
    let source = format!("copy:postgres://reader:hidden-word@127.0.0.1:{port}/kurabe");
    let answer =
        run(&place, &reads, &["up:postgres", "--setup", &source, "--requests", "20", "--rounds", "1"]);
    assert!(answer.code == Some(0) && !answer.err.contains("hidden-word"), "{answer:?}");
    assert!(cells(&place.report()).iter().all(|cell| cell["status"] == "ok"), "{answer:?}");
    let run_folder = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
    assert!(!std::fs::read_to_string(run_folder.join("run.jsonl")).unwrap().contains("hidden-word"));
    // What cannot be copied as it is stops the run, with its reason.
    sql(&mysql, "", "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(100), place POINT)")
        .unwrap();
    let source = format!("copy:{}", mysql.url());
    let refused = run(&place, &reads, &["up:postgres", "--setup", &source]);
    assert!(refused.code != Some(0) && refused.err.contains("was not copied"), "{refused:?}");
}

#[test]
fn each_block_of_rounds_begins_with_the_data_of_the_setup() {
    if testing::server("postgres").is_none() {
        return;
    }
    let place = Place::new();
    place.file("schema.sql", SCHEMA);
    // A suite names its setup relative to itself.
    let path = place.file("pay.toml", format!("setup = \"schema.sql\"\n{CHANGES}"));
    let args = ["up:postgres", "--requests", "20", "--rounds", "8", "--restarts", "3", "--interleave=off"];
    let answer = run(&place, &path, &args).success();
    assert!(cells(&place.report()).iter().all(|cell| cell["status"] == "ok"), "{answer:?}");
}

#[test]
fn setup_is_refused_where_it_would_change_a_server_of_others_or_cannot_be_read() {
    let place = Place::new();
    let reads = place.file("reads.toml", READS);
    let schema = &*place.file("schema.sql", "CREATE TABEL customers (id INTEGER);");
    let none = &*place.file("none.sql", "SELECT 1;");
    let archive = &*place.file("dump.pg", "PGDMP…");
    let mut wrong = vec![
        ("postgres://me@127.0.0.1:1/shop", schema, "throwaway servers only"),
        ("sqlite:", schema, "throwaway servers only"),
        ("up:memcached", schema, "cannot be loaded"),
        ("up:mysql", archive, "is of PostgreSQL"),
        ("up:postgres", "nofile.sql", "cannot be read"),
        ("up:postgres", "copy:up:mysql", "nothing to copy"),
    ];
    if testing::server("postgres").is_some() {
        wrong.extend([("up:postgres", schema, "TABEL"), ("up:postgres", none, "makes no table")]);
    }
    for (target, part) in [
        (format!("up:memcached?setup={schema}"), "cannot be loaded"),
        ("up:postgres?setup=nofile.sql".to_owned(), "cannot be read"),
        ("up:postgres?setup=copy:postgres://me:pw@h/shop".to_owned(), "--setup copy:URL"),
    ] {
        let answer = run(&place, &reads, &[&target]).exit_code(2).err_has(part);
        assert!(!answer.err.contains("me:pw"), "{answer:?}");
    }
    for (target, setup, part) in wrong {
        run(&place, &reads, &[target, "--setup", setup]).exit_code(2).err_has(part);
    }
}
