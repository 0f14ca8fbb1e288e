//! Settings of the servers, databases and roles of the user do not change what is read or made: a copy under odd ones is that
//! under the usual ones.

use crate::choices::{Done, all, places};
use crate::common::Place;

/// What a session can have otherwise, for all that may change what a server writes.
const POSTGRES: [(&str, &str); 19] = [
    ("DateStyle", "'German, DMY'"),
    ("IntervalStyle", "iso_8601"),
    ("TimeZone", "'Asia/Tokyo'"),
    ("timezone_abbreviations", "'India'"),
    ("extra_float_digits", "-10"),
    ("bytea_output", "escape"),
    ("xmlbinary", "hex"),
    ("xmloption", "document"),
    ("quote_all_identifiers", "on"),
    ("standard_conforming_strings", "off"),
    ("backslash_quote", "on"),
    ("escape_string_warning", "on"),
    ("array_nulls", "off"),
    ("transform_null_equals", "on"),
    ("gin_fuzzy_search_limit", "1"),
    ("statement_timeout", "250"),
    ("lock_timeout", "250"),
    ("row_security", "on"),
    ("client_min_messages", "debug1"),
];

const MYSQL: [(&str, &str); 16] = [
    (
        "sql_mode",
        "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,IGNORE_SPACE'",
    ),
    ("time_zone", "'+09:00'"),
    ("sql_quote_show_create", "0"),
    ("show_create_table_verbosity", "1"),
    ("show_old_temporals", "1"),
    ("group_concat_max_len", "4"),
    ("sql_select_limit", "1"),
    ("max_sort_length", "4"),
    ("sql_auto_is_null", "1"),
    ("sql_safe_updates", "1"),
    ("div_precision_increment", "0"),
    ("lc_time_names", "'de_DE'"),
    ("max_statement_time", "0.25"),
    ("max_execution_time", "250"),
    ("completion_type", "1"),
    ("information_schema_stats_expiry", "86400"),
];

const TABLES: &str = "CREATE TABLE t (id int PRIMARY KEY, p varchar(60) DEFAULT 'C:\\dir', q char(9) NOT NULL, f double precision, \
      CONSTRAINT c CHECK (p <> 'a\\b''c')); ";

/// The tables, views and routines of a copy, with their rows, and the file of the rest, by the program of the engine.
fn copied(engine: &str, from: &Place) -> String {
    let (_, to) = places(["sqlite", engine]).unwrap();
    let (plan, _) = Done::by(1).copy(from, &to, &all()).unwrap();
    let made = match engine {
        "postgres" => {
            "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1; SELECT pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1; \
                       SELECT * FROM t ORDER BY id; SELECT * FROM u ORDER BY id"
        }
        _ => {
            "SHOW CREATE TABLE t; SHOW CREATE TABLE u; SELECT * FROM t ORDER BY id; SELECT * FROM u ORDER BY id"
        }
    };
    plan.left_text(to.engine()) + &to.ask(made)
}

#[test]
fn settings_of_the_sources_sessions_change_nothing() {
    let rows =
        "INSERT INTO t VALUES (1, 'a', 'x', 0.1), (2, 'b\\c', 'y  z', 1e300), (3, 'c', ' ', 123456.789)";
    if let Some(from) = Place::new("postgres") {
        from.ask(&format!(
            "{TABLES} {rows}; CREATE TABLE u (id int PRIMARY KEY, b bytea DEFAULT '\\x5c00', d timestamptz DEFAULT '2024-02-03 04:05:06+00', \
               i interval DEFAULT '1 day 2 hours', a text[] DEFAULT '{{NULL}}', x xml, m money, n float8 DEFAULT 0.1); \
             INSERT INTO u (id, x, m) VALUES (1, '<a/>b', 12.5), (2, NULL, NULL); CREATE VIEW v AS SELECT id, p || '\\' AS e FROM t WHERE p <> 'z\\'"
        ));
        let usual = copied("postgres", &from);
        for (name, value) in POSTGRES {
            from.ask(&format!("ALTER DATABASE kurabe SET {name} = {value}"));
        }
        let found = copied("postgres", &from);
        // They are listed, each as a comment of its own.
        let (settings, rest): (Vec<&str>, Vec<&str>) =
            found.split("\n\n").partition(|part| part.contains("-- a setting of the database: "));
        assert_eq!(rest.join("\n\n"), usual);
        assert_eq!(settings.len(), POSTGRES.len());
    }
    for engine in ["mysql", "mariadb"] {
        let Some(from) = Place::new(engine) else { continue };
        let mysql = format!("{TABLES} {rows}").replace('\\', "\\\\");
        from.ask(&format!(
            "{mysql}; CREATE TABLE u (id int AUTO_INCREMENT PRIMARY KEY, d timestamp DEFAULT '2024-02-03 04:05:06', e enum('a\\\\b', 'c')); \
             INSERT INTO u VALUES (1, '2024-03-01 00:00:00', 'c'), (7, '2024-03-01 00:00:01', 'a\\\\b'); DELETE FROM u WHERE id = 7; \
             CREATE VIEW v AS SELECT id, CONCAT(p, '\\\\') AS e FROM t WHERE p <> 'z\\\\'; \
             CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @a = \"x\\\\\""
        ));
        let usual = copied(engine, &from);
        let set: Vec<_> = MYSQL
            .iter()
            .filter(|(name, _)| !from.ask(&format!("SHOW VARIABLES LIKE '{name}'")).is_empty())
            .collect();
        let odd: Vec<String> =
            set.iter().map(|(name, value)| format!("SET GLOBAL {name} = {value};")).collect();
        let default: Vec<String> =
            set.iter().map(|(name, _)| format!("SET GLOBAL {name} = DEFAULT;")).collect();
        from.ask(&odd.concat());
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| copied(engine, &from)));
        from.ask(&default.concat());
        assert_eq!(found.unwrap(), usual, "{engine}");
    }
}
