//! `kurabe copy` and experiment copy on real servers: what does not map, refusals, kills, full disks, real schemas.

mod experiment;
mod kills;
mod schemas;

use crate::servers::common::{by, sql, tables, tell};
use crate::support::{Answer, KURABE, Place, eventually, piped};
use kurabe_copy::engines::of_scheme;
use kurabe_copy::sql::Side;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::target::TargetUrl;
use kurabe_testbed::{Server, testing};
use std::process::Command;

/// A session of a database, for what its own program would do.
pub(crate) fn side(url: &str) -> Side {
    let parsed = TargetUrl::parse(url).unwrap();
    let driver = kurabe_drivers::registry::open(&parsed).unwrap();
    let session = driver.connect(&ConnectOptions::default()).unwrap();
    Side { session, engine: of_scheme(&parsed.scheme).unwrap(), name: parsed.to_string() }
}

/// The first field of the first row.
fn value(url: &str, statement: &str) -> String {
    side(url).value(statement).unwrap().unwrap_or_default()
}

fn copy(place: &Place, from: &str, to: &str, rest: &[&str]) -> Answer {
    place.run(&[&["copy", from, to], rest].concat())
}

/// Checks that a copy was completed and compared, and returns the number of rows that its process copied.
fn assert_copied(answer: &Answer) -> u64 {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let (_, rest) = answer.out.split_once("the digests of all values are equal; ").unwrap();
    rest.split_once(" copied").unwrap().0.replace(',', "").parse().unwrap()
}

/// A shop on MySQL, with what PostgreSQL cannot have.
const SHOP: &str = "SET sql_mode = ''; \
    CREATE TABLE customers (id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, \
      name varchar(40) COLLATE utf8mb4_general_ci NOT NULL, since date NOT NULL); \
    CREATE TABLE orders (id int NOT NULL AUTO_INCREMENT PRIMARY KEY, customer bigint unsigned NOT NULL, total decimal(10,2), \
      note text, KEY by_note (note(10)), KEY by_total (total), \
      CONSTRAINT of_customer FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE); \
    CREATE VIEW names AS SELECT name FROM customers; \
    INSERT INTO customers VALUES (1, 'Ada', '0000-00-00'), (18446744073709551615, 'Größe', '2024-02-29'); \
    INSERT INTO orders VALUES (7, 1, 12.50, 'first'), (8, 18446744073709551615, NULL, NULL)";

/// What does not map of it, with the object.
const LOST: [(&str, &str); 6] = [
    ("unsigned-64", "customers.id"),
    ("identity", "customers.id"),
    ("collation", "customers.name"),
    ("zero-date", "customers.since: 1 values"),
    ("prefix-index", "orders.by_note"),
    ("view", "names"),
];

#[test]
fn no_output_is_written_into_a_database_or_into_another_output() {
    let place = Place::new();
    let [from, to] = ["from.db", "to.db"].map(|name| place.home().join(name).display().to_string());
    let made = Command::new("sqlite3")
        .args([&from, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'a')"])
        .status();
    assert!(made.unwrap().success());
    let before = std::fs::read(&from).unwrap();
    for option in ["--leftovers", "--reject", "--export-html"] {
        for file in [&from, &to] {
            for more in [&[][..], &["--dry-run"]] {
                let rest = [&[option, file.as_str()], more].concat();
                copy(&place, &format!("sqlite:{from}"), &format!("sqlite:{to}"), &rest)
                    .exit_code(2)
                    .err_has("is a database");
            }
        }
    }
    let both = ["--leftovers", "one", "--reject", "./one"];
    copy(&place, &format!("sqlite:{from}"), &format!("sqlite:{to}"), &both)
        .exit_code(2)
        .err_has("named for two things");
    assert_eq!(std::fs::read(&from).unwrap(), before);
    let other = place.home().join("left.sql").display().to_string();
    copy(&place, &format!("sqlite:{from}"), &format!("sqlite:{to}"), &["--leftovers", &other]).exit_code(0);
}

#[test]
fn what_does_not_map_is_listed_before_anything_is_made() {
    let (Some(mysql), Some(postgres)) = (testing::server("mysql"), testing::server("postgres")) else {
        return;
    };
    if sql(&mysql, "", SHOP).is_none() {
        return;
    }
    let place = Place::new();
    let dry = copy(&place, mysql.url(), postgres.url(), &["--dry-run"]).success();
    for (kind, object) in LOST {
        let listed = |line: &&str| line.contains("refused") && line.contains(kind) && line.contains(object);
        assert!(dry.out.lines().any(|line| listed(&line)), "{kind} {object}: {}", dry.out);
    }
    assert!(dry.out.contains("CREATE TABLE \"orders\""), "{}", dry.out);
    let refused = copy(&place, mysql.url(), postgres.url(), &["--accept", "collation,view"]).exit_code(3);
    assert!(refused.err.contains("nothing was copied"), "{refused:?}");
    assert!(refused.err.contains("unsigned-64") && refused.err.contains("zero-date"), "{refused:?}");
    assert_eq!(tables(&postgres).unwrap(), "");
    let mut accepted: Vec<&str> = LOST.map(|(kind, _)| kind).to_vec();
    accepted.push("default");
    let answer = copy(&place, mysql.url(), postgres.url(), &["--accept", &accepted.join(",")]);
    assert_eq!(assert_copied(&answer), 4);
    assert_eq!(tables(&postgres).unwrap(), "customers\norders\n");
    let found = sql(&postgres, "", "SELECT id, name, since FROM customers ORDER BY id").unwrap();
    assert_eq!(found, "1|Ada|\n18446744073709551615|Größe|2024-02-29\n");
    let deleted = "DELETE FROM customers WHERE id = 1; SELECT count(*) FROM orders; \
                   INSERT INTO orders (customer) VALUES (18446744073709551615) RETURNING id";
    let found = sql(&postgres, "", deleted).unwrap();
    assert!(found.contains('1') && found.contains('9'), "the foreign key and the numbers: {found}");
}

#[test]
fn table_that_exists_is_refused_by_name_and_left() {
    let (Some(mysql), Some(postgres)) = (testing::server("mysql"), testing::server("postgres")) else {
        return;
    };
    if sql(&mysql, "", "CREATE TABLE prices (id int PRIMARY KEY); CREATE TABLE goods (id int PRIMARY KEY)")
        .is_none()
    {
        return;
    }
    sql(&postgres, "", "CREATE TABLE prices (x text); INSERT INTO prices VALUES ('mine')").unwrap();
    let place = Place::new();
    let answer = copy(&place, mysql.url(), postgres.url(), &[]).exit_code(3);
    assert!(answer.err.contains("table prices exists") && answer.err.contains("--tables"), "{answer:?}");
    assert_eq!(tables(&postgres).unwrap(), "prices\n");
    assert_eq!(sql(&postgres, "", "SELECT x FROM prices").unwrap(), "mine\n");
    let answer = copy(&place, mysql.url(), postgres.url(), &["--tables", "goods"]);
    assert_eq!(assert_copied(&answer), 0);
    // Unknown tables and kinds are refused with the nearest ones.
    copy(&place, mysql.url(), postgres.url(), &["--tables", "good"]).exit_code(3).err_has("goods");
    for twice in [
        ["--where", "goods:id > 1", "--where", "goods:id < 9"],
        ["--rename", "goods=a", "--rename", "goods=b"],
    ] {
        copy(&place, mysql.url(), postgres.url(), &twice).exit_code(2).err_has("there are two for goods");
    }
    copy(&place, mysql.url(), postgres.url(), &["--accept", "zero-dates"]).exit_code(2).err_has("zero-date");
}

/// The rows of a table on PostgreSQL; `None` while there is no such table.
fn rows_of(server: &Server, table: &str) -> Option<u64> {
    let there = format!("SELECT count(*) FROM information_schema.tables WHERE table_name = '{table}'");
    if sql(server, "", &there)?.trim() == "0" {
        return None;
    }
    sql(server, "", &format!("SELECT count(*) FROM {table}"))?.trim().parse().ok()
}

#[test]
fn copy_to_a_killed_server_is_continued_after_its_last_page() {
    const ROWS: u64 = 150_000;
    let (Some(mariadb), Some(postgres)) = (testing::server("mariadb"), testing::server("postgres")) else {
        return;
    };
    let fill = format!(
        "CREATE TABLE numbers (id int NOT NULL PRIMARY KEY, word varbinary(60) NOT NULL, KEY by_word (word)); \
         INSERT INTO numbers SELECT seq, CONCAT('word ', seq * 7) FROM seq_1_to_{ROWS}"
    );
    if sql(&mariadb, "", &fill).is_none() {
        return;
    }
    let place = Place::new();
    let args = ["copy", mariadb.url(), postgres.url()];
    let child = piped(&mut place.command(&args));
    eventually(120, || rows_of(&postgres, "numbers").filter(|rows| *rows >= 2_000)).expect("no rows arrived");
    // Pages are committed before they are on the disk; a commit that waits for it takes them there, and only one that wrote something waits.
    sql(&postgres, "", "CREATE TEMPORARY TABLE written ()").unwrap();
    postgres.kill_hard().unwrap();
    Answer::at_end_of(child).exit_code(3).err_has("numbers").err_has("the same command continues");
    // While the server is away, nothing changes that.
    assert_eq!(place.run(&args).code, Some(3));
    postgres.restart().unwrap();
    let there = rows_of(&postgres, "numbers").unwrap();
    assert!((2_000..ROWS).contains(&there), "{there}");
    let answer = place.run(&args);
    assert!(answer.err.contains("continuing an unfinished copy"), "{answer:?}");
    assert_eq!(assert_copied(&answer), ROWS - there, "{answer:?}");
    assert_eq!(rows_of(&postgres, "numbers"), Some(ROWS));
    let indexes = "SELECT indexname FROM pg_indexes WHERE tablename = 'numbers' ORDER BY 1";
    assert_eq!(sql(&postgres, "", indexes).unwrap(), "by_word\nnumbers_pkey\n");
    assert_eq!(tables(&postgres).unwrap(), "numbers\n");
}

/// The full tier kills a hundred.
#[test]
fn killed_copy_is_continued_or_refused() {
    kills::kill(&["sqlite", "postgres"], 2, crate::copy::kills::given_seed().unwrap_or(7));
}

#[test]
fn full_disk_stops_the_copy_and_the_same_command_continues() {
    let place = Place::new();
    let from = format!("sqlite:{}", place.at("from.db"));
    let disk = place.home().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mut source = side(&from);
    source.run("CREATE TABLE notes (id INTEGER NOT NULL PRIMARY KEY, data BLOB)").unwrap();
    source
        .run(
            "INSERT INTO notes WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000) \
             SELECT n, randomblob(200) FROM n",
        )
        .unwrap();
    drop(source);
    let to = format!("sqlite:{}", disk.join("to.db").display());
    // In a mount namespace of its own, so that nothing stays mounted.
    let script = format!(
        "mount -t tmpfs -o size=2m none {disk} || exit 99
         \"$0\" \"$@\"; echo \"first $?\"
         mount -o remount,size=64m {disk} || exit 98
         \"$0\" \"$@\"; echo \"second $?\"
         cp {disk}/to.db {home}/kept.db",
        disk = disk.display(),
        home = place.home().display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &script, KURABE, "copy", &from, &to]);
    place.configure(&mut command);
    let answer = command.output().map(|output| Answer::of(&output));
    let Some(answer) =
        answer.ok().filter(|answer| answer.code != Some(99) && !answer.err.contains("unshare: "))
    else {
        tell("a file system cannot be mounted here (it takes unshare and permission to use it)");
        return;
    };
    assert!(answer.out.contains("first 5"), "{answer:?}");
    assert!(answer.err.contains("full") && answer.err.contains("the same command continues"), "{answer:?}");
    assert!(answer.err.contains("continuing an unfinished copy"), "{answer:?}");
    let second = answer.out.split_once("first 5").unwrap().1;
    assert!(second.contains("second 0"), "{answer:?}");
    let copied = assert_copied(&Answer { code: Some(0), out: second.to_owned(), ..Answer::default() });
    assert!((1..20_000).contains(&copied), "{copied}");
    let kept = format!("sqlite:{}", place.at("kept.db"));
    for sum in [
        "SELECT count(*) FROM notes",
        "SELECT hex(max(data)) FROM notes",
        "SELECT sum(length(data)) FROM notes",
    ] {
        assert_eq!(value(&from, sum), value(&kept, sum));
    }
    assert_eq!(value(&kept, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'kurabe%'"), "0");
}

#[test]
fn user_who_may_only_read_is_enough_for_the_source() {
    let place = Place::new();
    for (engine, grant) in [
        ("mysql", "CREATE USER reader IDENTIFIED BY 'a'; GRANT SELECT ON kurabe.* TO reader"),
        ("mariadb", "CREATE USER reader IDENTIFIED BY 'a'; GRANT SELECT ON kurabe.* TO reader"),
        (
            "postgres",
            "CREATE ROLE reader LOGIN PASSWORD 'a'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
        ),
    ] {
        let Some(server) = testing::server(engine) else { continue };
        let made = "CREATE TABLE goods (id int NOT NULL PRIMARY KEY, price decimal(8,2)); \
                    INSERT INTO goods VALUES (1, 9.95), (2, NULL)";
        if sql(&server, "", made).is_none() || sql(&server, "", grant).is_none() {
            continue;
        }
        let reader = by(&server, "reader:a", "kurabe");
        let to = format!("sqlite:{}", place.home().join(format!("{engine}.db")).display());
        let answer = copy(&place, &reader, &to, &["--accept", "decimal"]);
        assert_eq!(assert_copied(&answer), 2, "{engine}");
        assert_eq!(value(&to, "SELECT price FROM goods WHERE id = 1"), "9.95", "{engine}");
        assert_eq!(tables(&server).unwrap(), "goods\n", "{engine}");
    }
}
