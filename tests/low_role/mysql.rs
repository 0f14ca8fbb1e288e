//! MySQL and MariaDB: views, triggers, functions under the names of the server's, and tables before us under our names.

use super::*;
use kurabe_testbed::testing;

/// What runs with the rights of who calls it, and notes that in a table that has no transactions.
const SPRUNG: &str = "CREATE FUNCTION kurabe.sprung(what varchar(60)) RETURNS int DETERMINISTIC MODIFIES SQL DATA \
    SQL SECURITY INVOKER BEGIN IF SUBSTRING_INDEX(USER(), '@', 1) <> 'low' THEN \
    INSERT INTO kurabe.sprung_log VALUES (what); END IF; RETURN 1; END";

/// Functions of the server that our statements call, and views under the names of the server's tables.
const FUNCTIONS: [&str; 28] = [
    "lower", "upper", "concat", "sha2", "version", "substring_index", "is_used_lock", "get_lock", "format",
    "round", "abs", "hex", "octet_length", "char_length", "ifnull", "trim", "concat_ws", "unhex", "nullif",
    "greatest", "length", "lpad", "substring", "json_extract", "release_lock", "is_free_lock", "crc32",
    "sleep",
];
const VIEWS: [&str; 12] = [
    "tables", "columns", "triggers", "innodb_table_stats", "servers", "processlist", "statistics",
    "routines", "user", "plugins", "engines", "global_status",
];

/// A role that may create in the database, with functions and views.
fn with_traps(url: &str) -> (Db, Db) {
    let mut own = Db::open(url);
    own.all(&[
        "SET GLOBAL log_bin_trust_function_creators = 1",
        &format!("CREATE USER {LOW}@'%' IDENTIFIED BY '{PASSWORD}'"),
        "GRANT SELECT, INSERT, UPDATE, CREATE, CREATE VIEW, CREATE ROUTINE, EXECUTE, TRIGGER, EVENT, INDEX, REFERENCES \
         ON kurabe.* TO low@'%'",
    ]);
    let mut low = Db::open(&as_low(url));
    low.all(&["CREATE TABLE sprung_log (what varchar(60)) ENGINE=MyISAM", SPRUNG]);
    // Their bodies do not say their names, for which a replay would be refused.
    for (number, name) in FUNCTIONS.iter().enumerate() {
        low.run(&format!(
            "CREATE FUNCTION kurabe.`{name}` (a varchar(60)) RETURNS varchar(60) DETERMINISTIC MODIFIES SQL DATA \
             SQL SECURITY INVOKER BEGIN SET @a = kurabe.sprung('trap {number}'); RETURN a; END"
        ));
    }
    for name in VIEWS {
        low.run(&format!("CREATE SQL SECURITY INVOKER VIEW `{name}` AS SELECT kurabe.sprung('{name}') AS n"));
    }
    (own, low)
}

fn sprung(low: &mut Db) -> String {
    low.value("SELECT COUNT(*) FROM kurabe.sprung_log")
}

/// Does this on both.
fn on_both(each: impl Fn(&str)) {
    for engine in ["mysql", "mariadb"] {
        if let Some(server) = testing::server(engine) {
            testing::make_superuser(&server);
            each(server.url());
        }
    }
}

#[test]
fn no_command_runs_functions_and_views_of_others() {
    on_both(|url| {
        let (mut own, mut low) = with_traps(url);
        // The traps work.
        own.run("SELECT kurabe.sha2('a'), n FROM kurabe.`tables`");
        assert_eq!(sprung(&mut low), "2", "{url}");
        own.run("TRUNCATE kurabe.sprung_log");
        run_all(&Place::new(), url, &mut |command| assert_eq!(sprung(&mut low), "0", "{url}: {command}"));
    });
}

#[test]
fn copy_runs_nothing_of_the_source_and_nothing_of_the_target() {
    on_both(|url| {
        let (_own, mut low) = with_traps(url);
        low.all(&[
            "CREATE TABLE people (id int PRIMARY KEY, name varchar(20), twice int GENERATED ALWAYS AS (id * 2) VIRTUAL, \
             CHECK (id > 0))",
            "INSERT INTO people (id, name) VALUES (1, 'Ada'), (2, 'Ben')",
            "CREATE SQL SECURITY INVOKER VIEW names AS SELECT name, kurabe.sprung('view') AS n FROM people",
            "CREATE TRIGGER fires BEFORE INSERT ON people FOR EACH ROW SET @a = kurabe.sprung('trigger')",
        ]);
        let place = Place::new();
        let file = format!("sqlite:{}", place.at("copy.db"));
        let all: Vec<&str> = kurabe_copy::issue::IssueKind::ALL.iter().map(|kind| kind.name()).collect();
        let accepted = all.join(",");
        for (from, to, more) in [
            (url, &*file, &["--tables", "people", "--dry-run"][..]),
            (url, &file, &["--tables", "people"]),
            (&file, url, &["--rename", "people=others"]),
        ] {
            let answer = place.run(&[&["copy", from, to, "--accept", &accepted], more].concat());
            assert_eq!(answer.code, Some(0), "{answer:?}");
            assert_eq!(sprung(&mut low), "0", "{from} {to}");
        }
    });
}

/// Ownership tables that the low role made.
const MARKERS: &[(&str, &[&str])] = &[
    (
        "without our comment",
        &["CREATE TABLE kurabe_marker (name varchar(60) PRIMARY KEY, made_by varchar(60), made_at bigint)"],
    ),
    (
        "a trigger",
        &[
            "CREATE TABLE kurabe_marker (name varchar(60) PRIMARY KEY, made_by varchar(60), made_at bigint) COMMENT='made by Kurabe'",
            "CREATE TRIGGER fires BEFORE INSERT ON kurabe_marker FOR EACH ROW SET @a = kurabe.sprung('trigger')",
        ],
    ),
    (
        "a view",
        &[
            "CREATE SQL SECURITY INVOKER VIEW kurabe_marker AS SELECT 'kurabe_wages' AS name, 'kurabe 1' AS made_by, \
           kurabe.sprung('marker') AS made_at",
        ],
    ),
    (
        "a generated column",
        &["CREATE TABLE kurabe_marker (name varchar(60) PRIMARY KEY, made_by varchar(60), \
           made_at bigint GENERATED ALWAYS AS (LENGTH(name)) VIRTUAL) COMMENT='made by Kurabe'"],
    ),
    (
        "partitions",
        &["CREATE TABLE kurabe_marker (name varchar(60) PRIMARY KEY, made_by varchar(60), made_at bigint) \
           COMMENT='made by Kurabe' PARTITION BY KEY (name) PARTITIONS 2"],
    ),
    (
        "a check",
        &["CREATE TABLE kurabe_marker (name varchar(60) PRIMARY KEY, made_by varchar(60), \
           made_at bigint CHECK (made_at < 6)) COMMENT='made by Kurabe'"],
    ),
    (
        "a foreign key",
        &[
            "CREATE TABLE parents (name varchar(60) PRIMARY KEY) ENGINE=InnoDB",
            "CREATE TABLE kurabe_marker (name varchar(60) PRIMARY KEY, made_by varchar(60), made_at bigint, \
             FOREIGN KEY (name) REFERENCES parents (name)) ENGINE=InnoDB COMMENT='made by Kurabe'",
        ],
    ),
    (
        "a foreign key of another table",
        &[
            "CREATE TABLE kurabe_marker (name varchar(60) PRIMARY KEY, made_by varchar(60), made_at bigint) ENGINE=InnoDB COMMENT='made by Kurabe'",
            "CREATE TABLE children (name varchar(60), FOREIGN KEY (name) REFERENCES kurabe_marker (name) ON DELETE CASCADE) ENGINE=InnoDB",
        ],
    ),
    (
        "another engine",
        &[
            "CREATE TABLE kurabe_marker (name varchar(60), made_by varchar(60), made_at bigint) ENGINE=BLACKHOLE \
           COMMENT='made by Kurabe'",
        ],
    ),
];

#[test]
fn ownership_table_of_others_is_refused_and_removes_nothing() {
    on_both(|url| {
        let (mut own, mut low) = with_traps(url);
        own.all(&["CREATE TABLE kurabe_wages (n int)", "INSERT INTO kurabe_wages VALUES (7)"]);
        let place = Place::new();
        let run = || place.run(&[&["run", "session", url][..], &SESSION].concat());
        for (trap, statements) in MARKERS {
            // Not every server has every storage engine.
            if statements.iter().any(|statement| low.0.run_text(statement).is_err()) {
                assert_eq!(*trap, "another engine", "{url}");
                continue;
            }
            assert_marker_refused(&run(), trap);
            assert_eq!(sprung(&mut low), "0", "{url}: {trap}");
            assert_eq!(own.value("SELECT SUM(n) FROM kurabe_wages"), "7", "{url}: {trap}");
            let kind = if *trap == "a view" { "VIEW" } else { "TABLE" };
            own.run("DROP TABLE IF EXISTS children");
            own.run(&format!("DROP {kind} kurabe_marker"));
        }
        // One like ours, with an entry of a table that is not ours.
        low.all(&[
            "CREATE TABLE kurabe_marker (name varchar(60) PRIMARY KEY, made_by varchar(60), made_at bigint) COMMENT='made by Kurabe'",
            "INSERT INTO kurabe_marker VALUES ('kurabe_wages', 'kurabe 1', 5)",
        ]);
        let answer = run().exit_code(3);
        for part in ["table kurabe_wages", "its comment is not", "left alone"] {
            assert!(answer.err.contains(part), "{url}: {part}: {answer:?}");
        }
        assert_eq!(own.value("SELECT SUM(n) FROM kurabe_wages"), "7", "{url}");
    });
}
