use super::*;
use crate::file::{Known, read};
use crate::record::{Record, Request, Value};
use kurabe_wire::registry::of_scheme;
use kurabe_wire::view::{Step, Transaction};
use proptest::prelude::*;

/// Requests with their connection and text, what is missing, and what the capture is of.
type Seen = (Vec<(u64, String, Request)>, Vec<String>, About);

fn captured(scheme: &str, database: Option<&str>, text: &str) -> Result<Seen> {
    let folder = tempfile::tempdir().unwrap();
    let [from, path] = ["log", "capture"].map(|name| folder.path().join(name));
    fs::write(&from, text).unwrap();
    let mut about = About { protocol: scheme.to_owned(), ..About::default() };
    let recorded = record(Input::open(&from)?, database, of_scheme(scheme).unwrap(), &path, &mut about);
    assert_eq!(path.exists(), recorded.is_ok());
    let (_, missing) = recorded?;
    let (mut templates, mut found) = (Vec::new(), Vec::new());
    read(&path, |_, record| match record {
        Record::Statement { template, .. } => templates.push(template),
        Record::Request(request) => {
            let text = templates[request.statement as usize].replace('\0', "?");
            found.push((request.connection, text, *request));
        }
        _ => {}
    })
    .unwrap();
    Ok((found, missing, about))
}

fn csv(session: &str, at: &str, severity: &str, code: &str, message: &str, rest: &str) -> String {
    format!(
        "2026-11-27 12:00:{at} UTC,\"app\",\"shop\",7,\"[local]\",{session},1,\"SELECT\",2026-11-27 12:00:00 UTC,3/1,0,{severity},{code},\
         \"{message}\",{rest},\"psql\",\"client backend\",,0\n"
    )
}

/// A line about a request.
fn told(session: &str, at: &str, message: &str, rest: &str) -> String {
    csv(session, at, "LOG", "00000", message, rest)
}

const NONE: &str = ",,,,,,,";

#[test]
fn requests_of_postgresql_have_values_errors_and_the_time_of_all_their_steps() {
    let detail = |text: &str| format!("\"{text}\",,,,,,,");
    let failed = ",,,,,\"SELECT 1 / 0\",8,";
    let log = [
        told("a", "00.100", "duration: 1.500 ms  statement: SELECT \"\"x\"\"\nFROM t WHERE n = 7", NONE),
        told("b", "00.101", "duration: 0.100 ms  parse <unnamed>: SELECT $1, $2", NONE),
        told("b", "00.101", "duration: 0.200 ms  bind <unnamed>: SELECT $1, $2", NONE),
        told(
            "b",
            "00.102",
            "duration: 0.300 ms  execute <unnamed>: SELECT $1, $2",
            &detail("Parameters: $1 = 'it''s, $2 = ''', $2 = NULL"),
        ),
        told("b", "00.103", "duration: 0.100 ms  parse s1: SELECT $1", NONE),
        told(
            "b",
            "00.103",
            "duration: 0.100 ms  execute s1/c1: SELECT $1",
            &detail("parameters: $1 = 'a: b'"),
        ),
        told(
            "b",
            "00.104",
            "duration: 0.100 ms  execute s1: SELECT $1",
            &detail("parameters: $1 = 'abcdefghijkl...'"),
        ),
        told("b", "00.104", "duration: 0.100 ms  execute s1: SELECT $1", NONE),
        told("a", "00.200", "statement: BEGIN", NONE),
        told("a", "00.201", "duration: 0.250 ms", NONE),
        csv("a", "00.202", "ERROR", "22012", "division by zero", failed),
        told("a", "00.203", "duration: 0.010 ms  statement: rollback", NONE),
        told("a", "00.203", "statement: SELECT 'never told'", NONE),
        told(
            "a",
            "00.204",
            "disconnection: session time: 0:00:00.100 user=app database=shop host=[local]",
            NONE,
        ),
    ];
    let (found, missing, about) = captured("postgres", None, &log.concat()).unwrap();
    let value = |text: &str| Value::Bytes(text.as_bytes().to_vec());
    let shown: Vec<_> = found
        .iter()
        .map(|(connection, text, request)| {
            let values: Vec<_> = request.parameters.iter().map(|one| one.value.clone()).collect();
            (*connection, text.as_str(), request.step, values, request.time.unwrap(), request.cut)
        })
        .collect();
    let (bound, executed) = ("SELECT $1, $2", "SELECT $1");
    assert_eq!(
        shown,
        [
            (0, "SELECT \"x\"\nFROM t WHERE n = ?", Step::Text, vec![], 1_500_000, false),
            (1, bound, Step::Bound, vec![value("it's, $2 = '"), Value::Null], 600_000, false),
            (1, executed, Step::Prepare, vec![], 100_000, false),
            (1, executed, Step::Execute, vec![value("a: b")], 100_000, false),
            (1, executed, Step::Execute, vec![value("abcdefghijkl...")], 100_000, true),
            (1, executed, Step::Execute, vec![], 100_000, true),
            (0, "BEGIN", Step::Text, vec![], 250_000, false),
            (0, "SELECT ? / ?", Step::Text, vec![], 0, false),
            (0, "rollback", Step::Text, vec![], 10_000, false),
        ]
    );
    let of_first: Vec<_> =
        found.iter().filter(|(connection, ..)| *connection == 0).map(|(.., request)| request).collect();
    let states: Vec<_> = of_first.iter().map(|request| request.transaction).collect();
    assert_eq!(states, [Transaction::None, Transaction::Open, Transaction::Failed, Transaction::None]);
    assert_eq!((of_first[0].at, of_first[1].at), (0, 102_250_000));
    assert_eq!(of_first[2].error.as_deref(), Some("22012"));
    assert_eq!((about.began_ms, about.known), (1_795_780_800_098, Known::Errors));
    let has = |what: &str| missing.iter().any(|one| one.starts_with(what));
    assert!(has("requests whose values or data are not in the log: 2"), "{missing:?}");
    assert!(has("requests without a duration: 1"), "{missing:?}");
}

#[test]
fn lines_after_a_prefix_say_the_same_but_for_codes_of_errors() {
    let log = "\
\tof a statement that began before
2026-11-27 12:00:00.100 UTC [3] LOG:  checkpoint starting: time
2026-11-27 12:00:00.100 UTC [7] app@shop LOG:  duration: 1.500 ms  statement: SELECT 'a
\t\tb', 'LOG:  c'
2026-11-27 12:00:00.102 UTC [8] app@shop LOG:  duration: 0.100 ms  bind <unnamed>: SELECT $1, $2
2026-11-27 12:00:00.103 UTC [8] app@shop LOG:  duration: 0.200 ms  execute <unnamed>: SELECT $1, $2
2026-11-27 12:00:00.103 UTC [8] app@shop DETAIL:  parameters: $1 = 'it''s
\tmore', $2 = NULL
2026-11-27 12:00:00.104 UTC [9] app@other LOG:  duration: 0.200 ms  statement: SELECT 2
2026-11-27 12:00:00.105 UTC [7] app@shop ERROR:  division by zero
2026-11-27 12:00:00.105 UTC [7] app@shop CONTEXT:  SQL function \"f\"
2026-11-27 12:00:00.105 UTC [7] app@shop STATEMENT:  SELECT
\t1 / 0
2026-11-27 12:00:00.106 UTC [7] [unknown]@[unknown] LOG:  connection received: host=[local]
2026-11-27 12:00:00.107 UTC [7] app@shop LOG:  duration: 0.010 ms  statement: COMMIT
";
    let (found, missing, about) = captured("postgres", Some("shop"), log).unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|(connection, text, request)| {
            let values: Vec<_> = request.parameters.iter().map(|one| one.value.clone()).collect();
            (*connection, text.as_str(), values, request.time.unwrap(), request.error.is_some())
        })
        .collect();
    let value = Value::Bytes(b"it's\nmore".to_vec());
    assert_eq!(
        shown,
        [
            (0, "SELECT ?, ?", vec![], 1_500_000, false),
            (1, "SELECT $1, $2", vec![value, Value::Null], 300_000, false),
            (0, "SELECT\n? / ?", vec![], 0, true),
            (2, "COMMIT", vec![], 10_000, false),
        ]
    );
    assert_eq!(about.known, Known::Times);
    assert_eq!(missing, ["lines that cannot be read: 1"]);
}

#[test]
fn json_says_the_same_and_another_database_or_program_is_left_out() {
    let line = |database: &str, kind: &str, text: &str| {
        let message = format!("duration: 0.5 ms  statement: {text}");
        let line = serde_json::json!({
            "timestamp": "2026-11-27 12:00:00.100 UTC", "user": "app", "dbname": database, "pid": 7, "session_id": "a",
            "error_severity": "LOG", "state_code": "00000", "message": message, "backend_type": kind,
        });
        format!("{line}\n")
    };
    let client = "client backend";
    let log = [
        "a line that was cut off\n".to_owned(),
        line("shop", "walsender", "IDENTIFY_SYSTEM"),
        line("shop", client, "SELECT 'é\n'"),
        line("other", client, "SELECT 2"),
    ]
    .concat();
    let (found, missing, _) = captured("postgres", Some("shop"), &log).unwrap();
    assert_eq!(found.iter().map(|(_, text, _)| text.as_str()).collect::<Vec<_>>(), ["SELECT ?"]);
    assert_eq!(missing, ["lines that cannot be read: 1"]);
    let error = captured("postgres", None, &log).unwrap_err().to_string();
    assert!(error.contains("databases \"shop\" and \"other\""), "{error}");
    let error = format!("{:?}", captured("postgres", Some("none"), &log).unwrap_err());
    assert!(error.contains("nothing of database none") && error.contains("shop, other"), "{error}");
}

#[test]
fn statements_of_slow_query_logs_have_times_rows_and_errors() {
    let mysql = "/usr/sbin/mysqld, Version: 8.0.44 (MySQL Community Server - GPL). started with:\nTcp port: 3306  Unix socket: /s\n\
        Time                 Id Command    Argument\n\
        # Time: 2026-11-27T12:00:00.100000Z\n# User@Host: app[app] @ localhost []  Id:     8\n\
        # Query_time: 0.000500  Lock_time: 0.000001 Rows_sent: 1  Rows_examined: 1 Thread_id: 8 Errno: 0 Killed: 0\n\
        use shop;\nSET timestamp=1795780800;\nSELECT *\nFROM t -- 'x\nWHERE id = 7;\n\
        # Time: 2026-11-27T12:00:00.200000Z\n# User@Host: app[app] @ localhost []  Id:     8\n\
        # Query_time: 0.000100  Lock_time: 0.000001 Rows_sent: 0  Rows_examined: 0 Thread_id: 8 Errno: 1062 Killed: 0\n\
        SET timestamp=1795780800;\nINSERT INTO t VALUES (7);\n\
        # Time: 2026-11-27T12:00:00.300000Z\n# User@Host: app[app] @ localhost []  Id:     8\n\
        # Query_time: 0.000100  Lock_time: 0.000001 Rows_sent: 0  Rows_examined: 0 Thread_id: 8 Errno: 0 Killed: 0\n\
        SET timestamp=1795780800;\n# administrator command: Quit;\n";
    let mariadb = "# Time: 261127 12:00:00\n# User@Host: app[app] @ localhost []\n\
        # Thread_id: 8  Schema: shop  QC_hit: No\n\
        # Query_time: 0.000500  Lock_time: 0.000001  Rows_sent: 1  Rows_examined: 1\n# Rows_affected: 0  Bytes_sent: 60\n\
        SET timestamp=1795780800;\nSELECT *\nFROM t -- 'x\nWHERE id = 7;\n\
        # User@Host: app[app] @ localhost []\n# Thread_id: 8  Schema:   QC_hit: No\n\
        # Query_time: 0.000100  Lock_time: 0.000001  Rows_sent: 0  Rows_examined: 0\n# Rows_affected: 1  Bytes_sent: 60\n\
        SET timestamp=1795780800;\nINSERT INTO t VALUES (7);\n";
    for (scheme, log, answers, affected, error) in
        [("mysql", mysql, Known::Errors, 0, Some("1062")), ("mariadb", mariadb, Known::Times, 1, None)]
    {
        let database = Some("shop").filter(|_| scheme == "mysql");
        let (found, missing, about) =
            captured(scheme, database, log).unwrap_or_else(|error| panic!("{error:?}"));
        let shown: Vec<_> = found
            .iter()
            .map(|(_, text, request)| (text.as_str(), request.time.unwrap(), request.rows))
            .collect();
        assert_eq!(shown[..1], [("SELECT *\nFROM t ?\nWHERE id = ?", 500_000, 1)], "{scheme}");
        assert_eq!(shown[1..], [("INSERT INTO t VALUES (?)", 100_000, 0)], "{scheme}");
        let last = &found[1].2;
        assert_eq!((last.affected, last.error.as_deref()), (affected, error), "{scheme}");
        assert_eq!((about.known, missing.len()), (answers, 0), "{scheme}: {missing:?}");
    }
}

#[test]
fn statements_of_general_query_logs_have_their_lines_and_no_times() {
    let mysql = "/usr/sbin/mysqld, Version: 8.0.44 (MySQL). started with:\nTcp port: 3306  Unix socket: /s\nTime  Id Command    Argument\n\
        2026-11-27T12:00:00.100000Z\t    8 Connect\tapp@localhost on shop using TCP/IP\n\
        2026-11-27T12:00:00.200000Z\t    8 Query\tSELECT *\nFROM t -- 'x\nWHERE id = 7\n\
        2026-11-27T12:00:00.300000Z\t    8 Prepare\tSELECT ?\n2026-11-27T12:00:00.400000Z\t    8 Execute\tSELECT 7\n\
        2026-11-27T12:00:00.400000Z\t    8 Quit\t\n";
    let mariadb = "261127 12:00:00\t     8 Connect\tapp@localhost on shop using Socket\n\t\t     8 Query\tSELECT *\nFROM t -- 'x\nWHERE id = 7\n\
        261127 12:00:01\t     8 Execute\tSELECT 7\n\t\t     8 Quit\t\n";
    for (scheme, log) in [("mysql", mysql), ("mariadb", mariadb)] {
        let (found, missing, about) =
            captured(scheme, Some("shop"), log).unwrap_or_else(|error| panic!("{error:?}"));
        let texts: Vec<_> = found.iter().map(|(_, text, _)| text.as_str()).collect();
        assert_eq!(texts, ["SELECT *\nFROM t ?\nWHERE id = ?", "SELECT ?"], "{scheme}");
        assert_eq!((about.known, missing.len()), (Known::Requests, 0), "{scheme}: {missing:?}");
        assert!(found[1].2.at >= 200_000_000, "{scheme}: {found:?}");
    }
}

/// What a log says beside its statements is not taken for one, nor for a part of one.
#[test]
fn statements_are_those_that_clients_sent() {
    let csv = |message: &str, tag: &str| {
        told("a", "00.1", message, NONE).replace("\"SELECT\"", &format!("{tag:?}"))
    };
    let head = "# Time: 2026-11-27T12:00:00.1Z\n# User@Host: a[a] @ l []  Id:     8\n# Query_time: 0.1  Lock_time: 0 Rows_sent: 0\n";
    let slow = |text: &str| format!("{head}{text}");
    let general = |text: &str| format!("2026-11-27T12:00:00.1Z\t    8 {text}");
    let one = "duration: 1.0 ms  statement: SELECT a";
    let cases: Vec<(&str, String, &[&str], &str)> = vec![
        (
            "postgres",
            csv("duration: 9.0 ms", "SELECT") + &csv(one, "SELECT"),
            &["SELECT a"],
            "durations without a statement: 1",
        ),
        (
            "postgres",
            csv("duration: 9.0 ms  parse <unnamed>: SELECT b", "PARSE") + &csv(one, "SELECT"),
            &["SELECT a"],
            "",
        ),
        (
            "postgres",
            csv(one, "SELECT") + &csv("duration: 1.0 ms  statement: a\r\nb", "SELECT"),
            &["SELECT a", "a\r\nb"],
            "",
        ),
        (
            "postgres",
            csv("duration: 1.0 ms  statement: \"x", "SELECT") + &csv(one, "SELECT"),
            &["SELECT a"],
            "lines that cannot be read: 1",
        ),
        ("postgres", csv("duration: 1.0 ms  execute <unnamed>: SELECT a$1", "SELECT"), &["SELECT a$1"], ""),
        (
            "postgres",
            csv("duration: 1.0 ms  statement: /* a */ COPY t FROM STDIN", "COPY"),
            &["? COPY t FROM STDIN"],
            "requests whose values or data are not in the log: 1",
        ),
        ("mysql", slow("SET insert_id=7,timestamp=1795780800;\nINSERT t;\n"), &["INSERT t"], ""),
        ("mysql", slow("SET timestamp=1795780800;\nSET timestamp=?;\n"), &["SET timestamp=?"], ""),
        (
            "mysql",
            slow("SELECT a;\n") + &slow("DELETE FROM t WH"),
            &["SELECT a"],
            "lines that cannot be read: 1",
        ),
        (
            "mysql",
            slow("CALL p();\n"),
            &["CALL p()"],
            "calls of procedures, whose own statements may be in the log too: 1",
        ),
        ("mysql", general("Query\tEXECUTE s\n") + &general("Execute\tINSERT t\n"), &["EXECUTE s"], ""),
        (
            "mysql",
            general("Query\tSELECT a\n\t1 Execute the plan\n"),
            &["SELECT a\n\t? Execute the plan"],
            "",
        ),
        ("mysql", general("Query\tSELECT a\n").replace("\t    8", "    8"), &["SELECT a"], ""),
        (
            "mysql",
            "\t\t    8 Query\tSELECT b\n".to_owned() + &general("Query\tSELECT a\n"),
            &["SELECT a"],
            "lines that cannot be read: 1",
        ),
    ];
    for (scheme, log, statements, expected) in cases {
        let (found, missing, _) =
            captured(scheme, None, &log).unwrap_or_else(|error| panic!("{log}: {error:?}"));
        let texts: Vec<_> = found.iter().map(|(_, text, _)| text.as_str()).collect();
        assert_eq!((texts.as_slice(), missing.join("; ").as_str()), (statements, expected), "{log}");
        let times: Vec<_> = found.iter().filter(|(_, _, request)| request.time > Some(100_000_000)).collect();
        assert!(times.is_empty(), "{log}: {times:?}");
    }
}

#[test]
fn connection_ends_with_its_session_and_begins_anew_with_its_number() {
    let general = |text: &str| format!("2026-11-27T12:00:00.1Z\t    8 {text}\n");
    let log = [
        "Connect\ta@l on shop", "Query\tBEGIN", "Connect\ta@l on shop", "Query\tSELECT a",
        "Query\tUSE other", "Query\tSELECT b",
    ];
    let (found, _, _) = captured("mysql", Some("shop"), &log.map(general).concat()).unwrap();
    let shown: Vec<_> =
        found.iter().map(|(at, text, request)| (*at, text.as_str(), request.transaction)).collect();
    assert_eq!(shown, [(0, "BEGIN", Transaction::Open), (1, "SELECT a", Transaction::None)]);
}

#[test]
fn log_without_times_is_refused_with_the_settings_that_write_them() {
    let timeless = told("a", "00.1", "statement: SELECT 1", NONE);
    for (scheme, log, why, setting) in [
        ("mysql", "SELECT 1", "it is no slow or general query log", "long_query_time = 0"),
        ("mysql", "", "it is no slow or general query log", "slow_query_log = ON"),
        (
            "postgres",
            timeless.as_str(),
            "has no requests but requests without a duration: 1",
            "log_min_duration_statement = 0",
        ),
        (
            "postgres",
            "2026-11-27 12:00:00 UTC LOG:  statement: SELECT 1\n",
            "it is no log of PostgreSQL whose lines begin with time and process",
            "log_line_prefix = '%m [%p] ",
        ),
    ] {
        let error = format!("{:?}", captured(scheme, None, log).unwrap_err());
        assert!(error.contains(why) && error.contains(setting), "{error}");
    }
}

/// Statements with the codes of their errors, and the states after them.
type Case<'a> = (Dialect, &'a [(&'a str, &'a str, Transaction)]);

#[test]
fn transactions_are_those_that_servers_have() {
    use Transaction::{Failed, None as No, Open};
    let cases: &[Case<'_>] = &[
        (
            Dialect::POSTGRES,
            &[
                ("BEGIN; UPDATE t SET a = 'x;y'; COMMIT;", "", No),
                ("/* a */ begin", "", Open),
                ("SELECT 1 / 0", "22012", Failed),
                ("ROLLBACK TO SAVEPOINT gone", "3B001", Failed),
                ("ROLLBACK TO SAVEPOINT a", "", Open),
                ("COMMIT AND CHAIN", "", Open),
                ("COMMIT", "23503", No),
                ("SELECT 1 / 0", "22012", No),
                ("START TRANSACTION READ ONLY", "", Open),
                ("PREPARE TRANSACTION 'a'", "", No),
                ("COMMIT PREPARED 'a'", "", No),
            ],
        ),
        (
            Dialect::MYSQL,
            &[
                ("SET NAMES utf8mb4", "", No),
                ("SET @@session.autocommit = 0", "", No),
                ("SELECT 1", "", Open),
                ("UPDATE t SET a = 1", "1062", Open),
                ("CREATE TEMPORARY TABLE x (a INT)", "", Open),
                ("CREATE TABLE x (a INT)", "", No),
                ("UPDATE t SET a = 1", "", Open),
                ("UPDATE t SET a = 1", "1213", No),
                ("SET autocommit=1", "", No),
                ("SELECT 1", "", No),
            ],
        ),
    ];
    for (dialect, statements) in cases {
        let mut followed = Followed::default();
        for (text, error, expected) in *statements {
            let error = Some((*error).to_owned()).filter(|error| !error.is_empty());
            let exchange = Exchange { text: (*text).to_owned(), error, ..Exchange::default() };
            assert_eq!(followed.after(&exchange, *dialect), *expected, "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_damage_is_read_or_refused(which in 0_usize..5, at in any::<prop::sample::Index>(), with in prop::collection::vec(any::<u8>(), 0..9)) {
        let head = "# Time: 2026-11-27T12:00:00.1Z\n# User@Host: a[a] @ l []  Id:     8\n# Query_time: 0.1  Rows_sent: 0\n";
        let (scheme, log) = [
            ("postgres", told("a", "00.1", "duration: 1.5 ms  execute s/c: SELECT $1", "\"parameters: $1 = 'é', $2 = NULL\",,,,,,,")),
            ("postgres", csv("a", "00.1", "ERROR", "22012", "division by zero", ",,,,,\"SELECT 1 / 0\",8,")),
            ("mysql", format!("{head}use shop;\nSET insert_id=1,timestamp=1795780800;\nSELECT 'é';\n")),
            ("mysql", "2026-11-27T12:00:00.1Z\t    8 Connect\ta@l on shop using TCP/IP\n\t\t    8 Query\tSELECT 'é'\n".to_owned()),
            ("postgres", "2026-11-27 12:00:00.1 UTC [7] a@shop LOG:  duration: 1.5 ms  execute s: SELECT\n\t$1\n2026-11-27 12:00:00.1 UTC [7] a@shop DETAIL:  parameters: $1 = 'é'\n".to_owned()),
        ][which].clone();
        let mut bytes = log.repeat(3).into_bytes();
        let at = at.index(bytes.len());
        bytes.splice(at..(at + with.len()).min(bytes.len()), with);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = captured(scheme, None, &text);
    }
}
