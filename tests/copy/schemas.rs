//! Schemas that nobody here wrote: the tables of pgbench, of sysbench, and of MariaDB itself.

use super::{assert_copied, copy, value};
use crate::servers::common::{by, skip, sql};
use crate::support::Place;
use kurabe_testbed::{Server, testing};
use std::process::Command;

/// Runs a tool; `false`, with a message, if it is not installed.
fn ran(command: &mut Command) -> bool {
    let name = command.get_program().to_string_lossy().into_owned();
    let Ok(output) = command.output() else { return skip(&format!("there is no program {name}")) };
    assert!(output.status.success(), "{name}: {output:?}");
    true
}

/// The tables of `pgbench -i` with foreign keys.
fn pgbench(server: &Server) -> bool {
    let mut command = Command::new("pgbench");
    command.args(["-i", "-s", "1", "--foreign-keys", "--quiet", "-U", "kurabe", "kurabe"]);
    command
        .arg("-h")
        .arg(server.socket().unwrap().parent().unwrap())
        .args(["-p", &server.port().to_string()]);
    ran(&mut command)
}

#[test]
fn tables_of_pgbench_are_copied_to_mysql_and_on_to_sqlite() {
    let (Some(postgres), Some(mysql)) = (testing::server("postgres"), testing::server("mysql")) else {
        return;
    };
    if !pgbench(&postgres) {
        return;
    }
    let place = Place::new();
    // So that the table without a key has rows.
    sql(
        &postgres,
        "",
        "INSERT INTO pgbench_history SELECT n % 10 + 1, 1, n, n, now() FROM generate_series(1, 50) n",
    )
    .unwrap();
    let answer = copy(&place, postgres.url(), mysql.url(), &["--accept", "collation"]);
    assert_eq!(assert_copied(&answer), 100_000 + 50 + 10 + 1);
    let keys = "SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()";
    assert_eq!(sql(&mysql, "", keys).unwrap(), "5\n");
    let sum = "SELECT SUM(delta) FROM pgbench_history";
    assert_eq!(sql(&mysql, "", sum).unwrap(), sql(&postgres, "", sum).unwrap());
    let to = format!("sqlite:{}", place.at("bank.db"));
    let answer = copy(
        &place,
        mysql.url(),
        &to,
        &[
            "--tables",
            "pgbench_branches,pgbench_tellers,pgbench_history",
            "--accept",
            "foreign-key,collation",
        ],
    );
    assert_eq!(assert_copied(&answer), 50 + 10 + 1);
    assert_eq!(value(&to, "SELECT count(*) FROM pragma_foreign_key_list('pgbench_tellers')"), "1");
}

#[test]
fn tables_of_sysbench_are_copied_from_mariadb_to_postgres() {
    let (Some(mariadb), Some(postgres)) = (testing::server("mariadb"), testing::server("postgres")) else {
        return;
    };
    let mut command = Command::new("sysbench");
    command.args(["oltp_read_write", "--db-driver=mysql", "--mysql-user=root", "--mysql-db=kurabe"]);
    command.arg(format!("--mysql-password={}", mariadb.password().unwrap()));
    command.arg(format!("--mysql-socket={}", mariadb.socket().unwrap().display()));
    command.args(["--tables=2", "--table_size=3000", "prepare"]);
    if !ran(&mut command) {
        return;
    }
    let place = Place::new();
    let answer = copy(&place, mariadb.url(), postgres.url(), &["--accept", "collation"]);
    assert_eq!(assert_copied(&answer), 6_000);
    // Spaces at the end of fixed-length text are shown by one of them only.
    let sums = "SELECT COUNT(*), SUM(k), MIN(TRIM(c)), MAX(TRIM(pad)) FROM sbtest2";
    let theirs = sql(&mariadb, "", sums).unwrap().replace('\t', "|");
    assert_eq!(sql(&postgres, "", sums).unwrap(), theirs);
    // The server gives numbers after the largest.
    let next = "INSERT INTO sbtest1 (k) VALUES (1) RETURNING id";
    assert_eq!(sql(&postgres, "", next).unwrap(), "3001\n");
}

#[test]
fn tables_of_mariadb_itself_are_copied_to_postgres_and_sqlite() {
    let (Some(mariadb), Some(postgres)) = (testing::server("mariadb"), testing::server("postgres")) else {
        return;
    };
    testing::make_superuser(&mariadb);
    let place = Place::new();
    let system = by(&mariadb, testing::login(&mariadb), "mysql");
    let to = format!("sqlite:{}", place.at("system.db"));
    let all: Vec<&str> = kurabe_copy::issue::IssueKind::ALL.iter().map(|kind| kind.name()).collect();
    for target in [postgres.url(), &to] {
        let dry = copy(&place, &system, target, &["--dry-run"]);
        assert!(dry.out.contains("refused  enum") && dry.out.contains("global_priv"), "{dry:?}");
        let answer = copy(&place, &system, target, &["--accept", &all.join(",")]);
        assert!(assert_copied(&answer) > 1_000, "{answer:?}");
    }
    let topics = "SELECT COUNT(*) FROM help_topic";
    assert_eq!(value(&system, topics), value(&to, topics));
    assert_eq!(value(&system, topics), value(postgres.url(), topics));
}
