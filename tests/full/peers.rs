//! Custom workloads compared with the tools that they come from: the same values, statements and rows.

use crate::servers::common::sql;
use crate::support::{Answer, Place};
use kurabe_testbed::{Server, testing};
use std::process::{Command, Output};

/// pgbench on a server, `None` if it is not installed.
fn pgbench(server: &Server, args: &[&str]) -> Option<Output> {
    let mut command = Command::new("pgbench");
    command.args(args).arg("-h").arg(server.socket().unwrap().parent().unwrap());
    command.args(["-p", &server.port().to_string(), "-U", "kurabe", "kurabe"]);
    let Ok(output) = command.output() else {
        testing::skipped("there is no program pgbench");
        return None;
    };
    Some(output)
}

/// Every operator and function of pgbench's manual, with edge cases.
const EXPRESSIONS: &[&str] = &[
    "1 + 2 * 3 - 10 % 4",
    "-5 / 2",
    "-5 % 3",
    "5 % -3",
    "5.0 / 2",
    "7 / 2 * 2.0",
    "1 - 2 - 3",
    "2 * (3 + 4)",
    "- 5 + 3",
    "- - 5",
    "+ 5",
    "-0.0",
    "-(0.0)",
    "-9223372036854775808",
    "9223372036854775807",
    "-9223372036854775807 - 1",
    "-9223372036854775808 % -1",
    "1e3",
    "1.",
    ".5",
    "1e-5",
    "1.5E+300",
    "0.1 + 0.2",
    "1.0 / 3",
    "123456789012345678.0",
    "999999999999999.9",
    "100000.0 * 100000",
    "1.0 / 0.0",
    "-1.0 / 0.0",
    "~5",
    "~5 + 1",
    "~5 | 8",
    "2 * ~3 + 1",
    "5 & 3 | 8",
    "1 | 2 # 3 & 2",
    "1 << 4 >> 1",
    "1 << 63",
    "1 << 64",
    "-1 >> 1",
    "6 & 1 + 2",
    "5.4 & 7",
    "true",
    "FALSE",
    "not true",
    "not not true",
    "not 1 = 2",
    "1 < 2",
    "2 <= 1",
    "2 > 1.5",
    "2 >= 2",
    "1 <> 2",
    "1 != 1.0",
    "1 = 1.0",
    "true and false",
    "false and 1 / 0 = 1",
    "true or 1 / 0 = 1",
    "false or true and false",
    "null",
    "null is null",
    "1 is not null",
    "1 isnull",
    "null notnull",
    "true is true",
    "1 is true",
    "null is not false",
    "not 1 is null",
    "1 = 2 is null",
    "1 is null is null",
    "1 isnull notnull",
    "1 + null",
    "null = null",
    "null and false",
    "null and true",
    "null or true",
    "true and null",
    "false and null",
    "not null",
    "abs(null)",
    "random(null, 5)",
    "random_gaussian(1, null, 3)",
    "greatest(1, null)",
    "case when 5 > 3 and not false then 1 else 2 end",
    "case when null then 1 end",
    "case when 0 then 1 when 2 then 3 end",
    "case when 0.5 then 1.5 else 2 end",
    "case when null is null then 10 | 5 # 3 & 1 end",
    "abs(-17)",
    "abs(-2.5)",
    "double(5432)",
    "exp(1)",
    "exp(1000)",
    "greatest(5, 4, 3, 2)",
    "greatest(1, 2.5, -3)",
    "least(5, 4, 3, 2.1)",
    "least(4)",
    "hash(10, 5432)",
    "hash(10)",
    "hash_fnv1a(10, 5432)",
    "hash_fnv1a(-10)",
    "hash_murmur2(-7, 1)",
    "hash_murmur2(5.5, 1)",
    "int(5.4 + 3.8)",
    "int(2.5) + int(3.5)",
    "int(-0.5)",
    "ln(2.718281828459045)",
    "ln(0)",
    "mod(54, 32)",
    "mod(-54, 32)",
    "mod(5.5, 3)",
    "permute(0, 4)",
    "permute(5, 4)",
    "permute(-1, 10)",
    "permute(3, 1000)",
    "permute(12345, 100000, 7)",
    "permute(5, 9223372036854775807, 11)",
    "pi()",
    "pow(2.0, 10)",
    "power(2, 0.5)",
    "power(0, 0)",
    "random(7, 7)",
    "random_exponential(3, 3, 5)",
    "random_gaussian(4, 4, 2.5)",
    "random_zipfian(5, 5, 1.5)",
    "sqrt(2.0)",
    "sqrt(4)",
    ":scale * 3",
    ":client_id",
    ":whole + 1",
    ":whole",
    ":fraction * 2",
    ":fraction",
    ":large + 0",
    ":large",
    ":yes and true",
    ":yes",
    ":nothing is null",
    "case when :off then 1 else 2 end",
];

/// What pgbench rejects, while it reads a script or while it runs it.
const NO_EXPRESSIONS: &[&str] = &[
    "9223372036854775808", "9223372036854775807 + 1", "-9223372036854775808 / -1", "-(-9223372036854775808)",
    "1e400", "1 / 0", "1 % 0", "1 < 2 < 3", "true = true", "1 and true", "not 1", "true + 1", "int(true)",
    "greatest(true)", "int(1e300)", "random(5, 1)", "random_gaussian(1, 5, 1.5)",
    "random_exponential(1, 5, 0)", "random_zipfian(1, 5, 1)", "permute(1, 0)", "abs()", "abs(1, 2)",
    ":word + 1", "'text'",
];

#[test]
fn expression_has_the_same_value_as_in_pgbench() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let given =
        ["whole=0042", "fraction=1.50", "large=1e3", "yes=yes", "nothing=null", "off=off", "word=abc"];
    let given = given.iter().chain(&["scale=3", "default_seed=77"]).flat_map(|text| ["-D", text]);
    let given: Vec<&str> = given.collect();
    let script = |into: &str| {
        let line = |(number, text): (usize, &&str)| {
            format!("\\set v{number} {text}\nINSERT INTO {into} VALUES ({number}, :v{number});\n")
        };
        place.file("all.sql", EXPRESSIONS.iter().enumerate().map(line).collect::<String>())
    };
    sql(&server, "", "CREATE TABLE theirs (n int, v text); CREATE TABLE ours (n int, v text);").unwrap();
    let theirs = script("theirs");
    let args = [&["-n", "-t", "1", "-M", "prepared", "-f", &theirs], &given[..]].concat();
    let Some(output) = pgbench(&server, &args) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ours = script("ours");
    let args = ["run", "pgbench", "--write", "-f", &ours, "--requests", "1", "--rounds", "1"];
    place.run(&[&args[..], &given[..], &[server.url()]].concat()).success();
    // pgbench sends null as the word NULL, and a NaN without the sign of the processor's result.
    let rows = |table: &str| {
        let query = format!(
            "SELECT DISTINCT n, CASE coalesce(v, 'NULL') WHEN '-nan' THEN 'nan' ELSE coalesce(v, 'NULL') END FROM {table} ORDER BY n"
        );
        sql(&server, "", &query).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (theirs, ours) = (rows("theirs"), rows("ours"));
    assert_eq!(theirs.len(), EXPRESSIONS.len(), "{theirs:?}");
    assert_eq!(ours.len(), EXPRESSIONS.len(), "{ours:?}");
    let differ: Vec<_> = EXPRESSIONS
        .iter()
        .zip(theirs.iter().zip(&ours))
        .filter(|(_, (theirs, ours))| theirs != ours)
        .collect();
    assert!(differ.is_empty(), "{} of {} differ: {differ:#?}", differ.len(), EXPRESSIONS.len());
    for text in NO_EXPRESSIONS {
        let script = place.file("no.sql", format!("\\set v {text}\nSELECT :v;\n"));
        let script = &script;
        let args = [&["-n", "-t", "1", "-M", "prepared", "-f", script], &given[..]].concat();
        let output = pgbench(&server, &args).unwrap();
        let brief = ["run", "pgbench", "-f", script, "--requests", "1", "--rounds", "1"];
        let answer = place.run(&[&brief[..], &given[..], &[server.url()]].concat());
        assert!(!output.status.success(), "pgbench takes {text}");
        assert_ne!(answer.code, Some(0), "{text}: {answer:?}");
        assert!((answer.out + &answer.err).contains("line 1"), "{text}");
    }
}

/// The largest distance between the distributions of two samples of numbers (Kolmogorov and Smirnov), and the
/// distance that equal distributions exceed once in ten thousand times.
fn distance(one: &[i64], other: &[i64]) -> (f64, f64) {
    let below = |sample: &[i64], limit: i64| {
        sample.iter().filter(|number| **number <= limit).count() as f64 / sample.len() as f64
    };
    let distance = one.iter().chain(other).map(|limit| (below(one, *limit) - below(other, *limit)).abs());
    let (n, m) = (one.len() as f64, other.len() as f64);
    (distance.fold(0.0, f64::max), 2.23 * ((n + m) / (n * m)).sqrt())
}

fn same_distribution(what: &str, theirs: &[i64], ours: &[i64]) {
    assert!(theirs.len() >= 1_000 && ours.len() >= 1_000, "{what}: {} and {}", theirs.len(), ours.len());
    let (distance, limit) = distance(theirs, ours);
    assert!(distance < limit, "{what}: {distance:.3} apart, more than {limit:.3}");
}

fn column(server: &Server, query: &str) -> Vec<i64> {
    sql(server, "", query).unwrap().lines().map(|line| line.trim().parse().unwrap()).collect()
}

fn ok(answer: &Answer) {
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn built_in_script_touches_the_same_rows_as_pgbench() {
    const SCALE: i64 = 3;
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let Some(made) = pgbench(&server, &["-i", "-q", "-s", "3"]) else { return };
    assert!(made.status.success(), "{made:?}");
    for script in ["tpcb-like", "simple-update"] {
        sql(&server, "", "TRUNCATE pgbench_history").unwrap();
        let output = pgbench(&server, &["-n", "-M", "prepared", "-t", "2000", "-b", script]).unwrap();
        assert!(output.status.success(), "{output:?}");
        let read = |what: &str| column(&server, &format!("SELECT {what} FROM pgbench_history"));
        let columns = ["aid", "bid", "tid", "delta"];
        let theirs = columns.map(read);
        sql(&server, "", "TRUNCATE pgbench_history").unwrap();
        let args =
            ["run", "pgbench", "-b", script, "--write", "--requests", "2000", "--rounds", "1", server.url()];
        let answer = place.run(&args);
        ok(&answer);
        assert!(answer.err.contains(&format!("scale {SCALE}")), "{answer:?}");
        for ((name, theirs), ours) in columns.iter().zip(&theirs).zip(columns.map(read)) {
            same_distribution(&format!("{script}: {name}"), theirs, &ours);
        }
        let branches = column(&server, "SELECT DISTINCT bid FROM pgbench_history ORDER BY bid");
        assert_eq!(branches, (1..=SCALE).collect::<Vec<_>>());
    }
    // The rows determine the scale, not --scale; a definition takes precedence, as in pgbench; the user's own scripts
    // have scale 1.
    let script = place.file("scale.sql", "SELECT :scale;\n");
    let brief = ["--requests", "5", "--rounds", "1", server.url()];
    let run = |args: &[&str]| place.run(&[&["run", "pgbench"], args, &brief[..]].concat());
    let answer = run(&["-b", "select-only", "-s", "7"]);
    ok(&answer);
    assert!(answer.err.contains("scale 7 is ignored"), "{answer:?}");
    for args in [&["-b", "select-only", "-D", "scale=2"][..], &["-f", &script]] {
        let answer = run(args);
        ok(&answer);
        assert!(!answer.err.contains("pgbench_branches"), "{answer:?}");
    }
    sql(&server, "", "INSERT INTO pgbench_branches (bid, bbalance) VALUES (4, 0)").unwrap();
    let answer = place.run(&["run", "--again", "last"]);
    ok(&answer);
    let answer = run(&["-b", "select-only"]);
    assert!(answer.err.contains("scale 4"), "{answer:?}");
    sql(&server, "", "DROP TABLE pgbench_branches CASCADE").unwrap();
    let answer = run(&["-b", "select-only"]);
    assert_ne!(answer.code, Some(0), "{answer:?}");
    assert!(answer.err.contains("pgbench -i") && answer.err.contains("pgbench_branches"), "{answer:?}");
}

#[test]
fn suite_touches_the_same_rows_as_sysbench() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let sysbench = |script: &str, rest: &[&str]| {
        let mut command = Command::new("sysbench");
        command.args([
            script, "--db-driver=pgsql", "--pgsql-user=kurabe", "--pgsql-db=kurabe", "--table_size=10000",
        ]);
        command.arg(format!("--pgsql-host={}", server.socket().unwrap().parent().unwrap().display()));
        command.arg(format!("--pgsql-port={}", server.port())).args(rest);
        command.output()
    };
    let Ok(made) = sysbench("oltp_read_write", &["prepare"]) else {
        testing::skipped("there is no program sysbench");
        return;
    };
    assert!(made.status.success(), "{made:?}");
    // The server records the changes of each.
    let watch = "CREATE TABLE touched (what text, id int, k int);
        CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          INSERT INTO touched VALUES (
            CASE WHEN TG_OP <> 'UPDATE' THEN TG_OP WHEN OLD.k <> NEW.k THEN 'index' ELSE 'plain' END,
            CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END, CASE TG_OP WHEN 'DELETE' THEN OLD.k ELSE NEW.k END);
          RETURN NULL; END $$;
        CREATE TRIGGER touch AFTER INSERT OR UPDATE OR DELETE ON sbtest1 FOR EACH ROW EXECUTE FUNCTION touch();";
    sql(&server, "", watch).unwrap();
    let kinds = ["index", "plain", "DELETE", "INSERT"];
    let touched = || {
        let read = |what: &str| column(&server, &format!("SELECT id FROM touched WHERE what = '{what}'"));
        let ids = kinds.map(read);
        let k = column(&server, "SELECT k FROM touched WHERE what = 'INSERT'");
        sql(&server, "", "TRUNCATE touched").unwrap();
        (ids, k)
    };
    let output = sysbench("oltp_read_write", &["--time=0", "--events=1500", "run"]).unwrap();
    assert!(output.status.success(), "{output:?}");
    let theirs = touched();
    let suite = format!("{}/../../suites/sysbench-read-write.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(suite).unwrap();
    // On sysbench's own table.
    let (head, rest) = text.split_once("[collection.sbtest1]").unwrap();
    let (_, transaction) = rest.split_once("[transaction.read-write]").unwrap();
    let head: Vec<&str> = head
        .lines()
        .filter(|line| !["targets", "rounds", "budget"].iter().any(|key| line.starts_with(key)))
        .collect();
    let table = "[table.sbtest1]\nkey = 'id'\nwrite = true\n\
                 fields = { id = 'int', k = 'int', c = { type = 'text', max = 120 }, pad = { type = 'text', max = 60 } }\n";
    let text = format!("{}\n{table}[transaction.read-write]{transaction}", head.join("\n"));
    let path = place.file("suite.toml", text.replace("clients = [1, 8]", "clients = [1]"));
    let args = ["run", "-f", &path, "-D", "rows=10000", "--requests", "1500", "--rounds", "1"];
    ok(&place.run(&[&args[..], &[server.url()]].concat()));
    let ours = touched();
    for ((what, theirs), ours) in kinds.iter().zip(&theirs.0).zip(&ours.0) {
        same_distribution(what, theirs, ours);
    }
    same_distribution("k", &theirs.1, &ours.1);
}
