use super::*;
use crate::file::read;
use crate::record::{Record, Request, Value};
use kurabe_wire::registry::of_scheme;

/// Requests with their connection and text, what is missing, and what the capture is of.
type Seen = (Vec<(u64, String, Request)>, Vec<String>, About);

/// Makes a capture of a log.
fn captured(scheme: &str, database: Option<&str>, text: &str) -> Result<Seen> {
    let folder = tempfile::tempdir().unwrap();
    let [from, path] = ["log", "capture"].map(|name| folder.path().join(name));
    fs::write(&from, text).unwrap();
    let mut about = About { protocol: scheme.to_owned(), ..About::default() };
    let recorded = record(&from, database, of_scheme(scheme).unwrap(), &path, &mut about);
    assert_eq!(path.exists(), recorded.is_ok());
    let (_, missing) = recorded?;
    let (mut templates, mut found) = (Vec::new(), Vec::new());
    read(&path, |record| match record {
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

const NONE: &str = ",,,,,,,";

#[test]
fn requests_of_postgresql_have_values_errors_and_the_time_of_all_their_steps() {
    let detail = |text: &str| format!("\"{text}\",,,,,,,");
    let failed = ",,,,,\"SELECT 1 / 0\",8,";
    let log = [
        csv(
            "a",
            "00.100",
            "LOG",
            "00000",
            "duration: 1.500 ms  statement: SELECT \"\"x\"\"\nFROM t WHERE n = 7",
            NONE,
        ),
        csv("b", "00.101", "LOG", "00000", "duration: 0.100 ms  parse <unnamed>: SELECT $1, $2", NONE),
        csv("b", "00.101", "LOG", "00000", "duration: 0.200 ms  bind <unnamed>: SELECT $1, $2", NONE),
        csv(
            "b",
            "00.102",
            "LOG",
            "00000",
            "duration: 0.300 ms  execute <unnamed>: SELECT $1, $2",
            &detail("Parameters: $1 = 'it''s, $2 = ''', $2 = NULL"),
        ),
        csv("b", "00.103", "LOG", "00000", "duration: 0.100 ms  parse s1: SELECT $1", NONE),
        csv(
            "b",
            "00.103",
            "LOG",
            "00000",
            "duration: 0.100 ms  execute s1/c1: SELECT $1",
            &detail("parameters: $1 = 'a: b'"),
        ),
        csv(
            "b",
            "00.104",
            "LOG",
            "00000",
            "duration: 0.100 ms  execute s1: SELECT $1",
            &detail("parameters: $1 = 'abc...'"),
        ),
        csv("b", "00.104", "LOG", "00000", "duration: 0.100 ms  execute s1: SELECT $1", NONE),
        csv("a", "00.200", "LOG", "00000", "statement: BEGIN", NONE),
        csv("a", "00.201", "LOG", "00000", "duration: 0.250 ms", NONE),
        csv("a", "00.202", "ERROR", "22012", "division by zero", failed),
        csv("a", "00.203", "LOG", "00000", "duration: 0.010 ms  statement: rollback", NONE),
        csv("a", "00.203", "LOG", "00000", "statement: SELECT 'never told'", NONE),
        csv(
            "a",
            "00.204",
            "LOG",
            "00000",
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
            (1, executed, Step::Execute, vec![value("abc...")], 100_000, true),
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
    assert!(
        missing.iter().any(|what| what.starts_with("requests without a duration are left out: 1")),
        "{missing:?}"
    );
    assert!(
        missing.iter().any(|what| what.starts_with("requests whose values are not in the log: 2")),
        "{missing:?}"
    );
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
    assert_eq!(missing, ["lines of the log that could not be read: 1"]);
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

#[test]
fn log_without_times_is_refused_with_the_settings_that_write_them() {
    let timeless = csv("a", "00.1", "LOG", "00000", "statement: SELECT 1", NONE);
    for (scheme, log, why, setting) in [
        ("mysql", "SELECT 1", "it is no slow or general query log", "long_query_time = 0"),
        ("mysql", "", "it is no slow or general query log", "slow_query_log = ON"),
        (
            "postgres",
            timeless.as_str(),
            "does not say how long requests took",
            "log_min_duration_statement = 0",
        ),
        (
            "postgres",
            "2026-11-27 12:00:00 UTC [7] LOG:  statement: SELECT 1\n",
            "it is no log of PostgreSQL in the format",
            "csvlog",
        ),
    ] {
        let error = format!("{:?}", captured(scheme, None, log).unwrap_err());
        assert!(error.contains(why) && error.contains(setting), "{error}");
    }
}

#[test]
fn times_of_logs_are_those_of_the_calendar() {
    let seconds = |text: &str| lines::time(text).map(|at| (at / 1_000_000) as f64 / 1e3);
    // By `date -u -d … +%s`.
    for (text, expected) in [
        ("2024-02-29 12:00:00.500 UTC", 1_709_208_000.5),
        ("2000-03-01T00:00:00Z", 951_868_800.0),
        ("2026-11-27 09:05:07.25 +05:30", 1_795_770_307.25 - 19_800.0),
        ("261127  9:05:07", 1_795_770_307.0),
        ("1970-01-01 00:00:00 GMT", 0.0),
    ] {
        assert_eq!(seconds(text), Some(expected), "{text}");
    }
    for text in [
        "", "now", "2026-13-01 00:00:00", "2026-11-27", "2026-11-27 25:00:00", "é6-11-27 00:00:00",
        "2026-11-27 12:00:00 +é",
    ] {
        assert_eq!(seconds(text), None, "{text}");
    }
}
