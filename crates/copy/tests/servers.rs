//! Copies through several engines, on real servers.

use crate::common::{copy, run, side};
use kurabe_testbed::testing;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A table with a column of every type that all of SQLite, PostgreSQL and MariaDB hold without loss.
const TABLE: &str = "CREATE TABLE everything (id BIGINT NOT NULL PRIMARY KEY, flag BOOLEAN, number BIGINT, \
    large UNSIGNED64_TEXT, exact DECIMAL_TEXT(40,12), real DOUBLE, word VARCHAR(60), long TEXT, bytes BLOB, \
    day DATE_TEXT, hour TIME_TEXT(6), at DATETIME_TEXT(6), instant TIMESTAMPTZ_TEXT(6), uuid UUID_TEXT, \
    document JSON_TEXT)";

/// What these types cost on the way.
const ACCEPTED: &str = "unsigned-64,decimal,time-zone,json";

/// A literal of text.
#[allow(clippy::needless_pass_by_value, reason = "strategies map values")]
fn text(value: String) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

fn date() -> impl Strategy<Value = String> {
    (1..=9999, 1..=12, 1..=28).prop_map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"))
}

fn hour() -> impl Strategy<Value = String> {
    (0..24, 0..60, 0..60, prop_oneof![Just(0), 0..1_000_000]).prop_map(|(hour, minute, second, micros)| {
        // Zeros at the end of a fraction have no meaning, and other engines do not keep them.
        let text = format!("{hour:02}:{minute:02}:{second:02}.{micros:06}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    })
}

/// Literals of one row, without its key.
fn row() -> impl Strategy<Value = Vec<String>> {
    let null = |values: BoxedStrategy<String>| prop_oneof![9 => values, 1 => Just("NULL".to_owned())].boxed();
    let printable = || "[^\\x00]{0,40}";
    let real = any::<f64>().prop_filter("a number", |n| n.is_finite()).prop_map(|n| format!("{n:e}"));
    let digits = "-?[1-9][0-9]{0,27}\\.[0-9]{0,11}[1-9]";
    let bytes = prop::collection::vec(any::<u8>(), 0..50).prop_map(|bytes| {
        let mut literal = "x'".to_owned();
        kurabe_driver_common::sql::hex(&mut literal, &bytes);
        literal + "'"
    });
    let document = ("[a-z]{1,5}", any::<i32>(), "[a-zé\"\\\\]{0,8}").prop_map(|(name, number, word)| {
        text(serde_json::json!({ name: [number, word, null, true], "z": {} }).to_string())
    });
    vec![
        null(any::<bool>().prop_map(|flag| u8::from(flag).to_string()).boxed()),
        null(
            any::<i64>()
                .prop_filter("SQLite reads it as a floating-point number", |n| *n != i64::MIN)
                .prop_map(|n| n.to_string())
                .boxed(),
        ),
        null(any::<u64>().prop_map(|n| text(n.to_string())).boxed()),
        null(digits.prop_map(text).boxed()),
        null(real.boxed()),
        null(printable().prop_map(text).boxed()),
        null(printable().prop_map(text).boxed()),
        null(bytes.boxed()),
        null(date().prop_map(text).boxed()),
        null(hour().prop_map(text).boxed()),
        null((date(), hour()).prop_map(|(day, hour)| text(format!("{day} {hour}"))).boxed()),
        null((date(), hour()).prop_map(|(day, hour)| text(format!("{day} {hour}"))).boxed()),
        null(
            any::<u128>()
                .prop_map(|n| {
                    let digits = format!("{n:032x}");
                    text(
                        [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]]
                            .join("-"),
                    )
                })
                .boxed(),
        ),
        null(document.boxed()),
    ]
}

/// The rows of a file, as the program `sqlite3` writes them. PostgreSQL does not keep the order of keys, as the plan says.
fn dump(url: &str) -> String {
    let path = url.strip_prefix("sqlite:").unwrap();
    crate::common::Place::File(path.into()).ask(
        "SELECT id, flag, number, large, exact, real, quote(word), quote(long), hex(bytes), day, hour, at, instant, \
         uuid, json_extract(document, '$.z'), json_remove(document, '$.z') FROM everything ORDER BY id",
    )
}

#[test]
fn rows_of_every_type_survive_sqlite_postgres_mariadb_sqlite() {
    let (Some(postgres), Some(mariadb)) = (testing::server("postgres"), testing::server("mariadb")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let mut runner = TestRunner::new(Config { cases: 4, failure_persistence: None, ..Config::default() });
    let case = std::cell::Cell::new(0);
    let done = runner.run(&prop::collection::vec(row(), 1..60), |rows| {
        case.set(case.get() + 1);
        let (first, last) =
            (file(&format!("{}-first.db", case.get())), file(&format!("{}-last.db", case.get())));
        run(&first, &[TABLE]);
        let mut source = side(&first);
        for (id, row) in rows.iter().enumerate() {
            source.run(&format!("INSERT INTO everything VALUES ({}, {})", id * 3, row.join(", "))).unwrap();
        }
        drop(source);
        let steps = [(&first[..], postgres.url()), (postgres.url(), mariadb.url()), (mariadb.url(), &last)];
        let copied = steps.iter().try_for_each(|(from, to)| copy(from, to, ACCEPTED).map(drop));
        for server in [postgres.url(), mariadb.url()] {
            for table in ["everything", "kurabe_copy", "kurabe_marker"] {
                run(server, &[&format!("DROP TABLE IF EXISTS {table}")]);
            }
        }
        copied.map_err(|error| TestCaseError::fail(error.to_string()))?;
        assert_eq!(dump(&first), dump(&last), "by the engine's own rendering");
        Ok(())
    });
    done.unwrap();
}
