//! What Kurabe knows of a statement before a server sees it: whether it asks for `--write`.
//!
//! That a statement only reads is enforced by the server, in a read-only session ([`Access`]). What such a session lets
//! through, and what makes it write again, is known by its words ([`sql`]). Where a session writes, since the
//! workload changes its own collections, its other statements are held to more: they may call known functions only.
//!
//! [`Access`]: kurabe_core::driver::Access

use super::request::{Piece, Request};
use super::targets;
use kurabe_core::units::nearest;
use kurabe_core::{Error, Result};
use kurabe_protocol::sql::{self, Dialect, Kind, Statement};

/// Refuses, before anything is started for it, a statement whose first word is nearly one of SQL, and what copies rows to or from
/// the client, which is no request with an answer: PostgreSQL's COPY, MySQL's LOAD with LOCAL.
pub(super) fn check_begin(pieces: &[Piece]) -> Result<()> {
    let text = text(pieces);
    let statement = Statement::read(&text, Dialect::POSTGRES);
    let word = statement.first().map(str::to_lowercase).unwrap_or_default();
    let end = statement.tokens().iter().find(|token| token.is_one_of(&["stdin", "stdout"]));
    if let Some(end) = end.filter(|_| word == "copy") {
        let what = format!(
            "COPY and {} are not supported in a statement, nor are they by pgbench",
            end.text.to_uppercase()
        );
        return Err(
            Error::usage(what).hint("write the query (SELECT), or the rows (INSERT); run bulk measures COPY")
        );
    }
    let is_local = |at: usize| statement.tokens().get(at).is_some_and(|token| token.is_one_of(&["local"]));
    if word == "load" && (2..=3).any(is_local) {
        let what =
            "LOAD with LOCAL is not supported in a statement: the server would read a file of this machine";
        return Err(Error::usage(what).hint("write the rows (INSERT); run bulk measures LOAD DATA"));
    }
    let verbs = sql::verbs();
    let near =
        (!word.is_empty() && !verbs.contains(&word.as_str())).then(|| nearest(&word, &verbs)).flatten();
    near.map_or(Ok(()), |near| {
        let message = format!("'{}' is no statement of SQL", word.to_uppercase());
        Err(Error::usage(message).hint(format!("did you mean {}?", near.to_uppercase())))
    })
}

/// Why a statement asks for `--write` in a read-only session too; `None` if the server alone decides. `engine` names the
/// engine of the statement; without one, it may be any.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is of one lifetime only")]
pub(super) fn asks_for_write(pieces: &[Piece], engine: Option<&str>) -> Option<String> {
    first_reason(&text(pieces), engine, |statement| statement.asks_for_write())
}

/// Why a statement may change data in a session that writes; `None` if it only reads.
pub(super) fn may_change(pieces: &[Piece], engine: Option<&str>) -> Option<String> {
    let why = |statement: &Statement<'_>| {
        statement.asks_for_write().or_else(|| statement.calls_unknown(targets::OURS))
    };
    first_reason(&text(pieces), engine, why)
}

/// Why a text is not known to be harmless in one of the ways in which the engine may read it.
fn first_reason(
    text: &str,
    engine: Option<&str>,
    why: impl Fn(&Statement<'_>) -> Option<String>,
) -> Option<String> {
    let dialects = Dialect::all_of(engine);
    let reason = |dialect: &Dialect| why(&Statement::read(text, *dialect));
    sql::are_several(text, dialects).or_else(|| dialects.iter().find_map(reason))
}

/// Whether a server plans the request's statement when it is asked to explain it.
pub(super) fn is_planned(request: &Request) -> bool {
    let Request::Raw(raw) = request else { return false };
    raw.texts.iter().all(|(_, pieces)| {
        let text = text(pieces);
        let word = sql::first_word(&text, Dialect::POSTGRES).unwrap_or_default().to_ascii_lowercase();
        matches!(word.as_str(), "select" | "with" | "update" | "delete")
            && sql::are_several(&text, Dialect::all_of(None)).is_none()
    })
}

/// As [`asks_for_write`], of a statement without variables.
pub(crate) fn text_asks_for_write(sql: &str, engine: Option<&str>) -> Option<String> {
    asks_for_write(&[Piece::Text(sql.to_owned())], engine)
}

/// Whether the gaps of a template stand where values do, so that what [`is_value`] says of what fills them is true of the text too.
/// `gap` is no character of a statement.
pub(crate) fn has_values_in_gaps(template: &str, gap: char, engine: &str) -> bool {
    let gaps = template.matches(gap).count();
    let is_apart =
        |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !"_$'\"`\\.@:&#\0".contains(c) && c != gap;
    let mut parts = template.split(gap).peekable();
    let mut are_apart = true;
    while let (Some(before), Some(after)) = (parts.next(), parts.peek()) {
        are_apart &= before.chars().next_back().is_none_or(is_apart);
        are_apart &= after.chars().next().is_none_or(is_apart);
    }
    // A text may go on with the one before it.
    let mut between = template.split(gap).take(gaps).skip(1);
    let are_alone = !between.any(|between| between.trim().is_empty());
    let has_all = |dialect: &Dialect| {
        sql::tokens(template, *dialect).filter(|token| token.is_mark(gap)).count() == gaps
    };
    are_apart && are_alone && Dialect::all_of(Some(engine)).iter().all(has_all)
}

/// Whether what fills a gap is one number or one text within quotes.
pub(crate) fn is_value(literal: &str, engine: &str) -> bool {
    // A text that does not end goes on.
    let more = format!("{literal} x");
    let is_one = |dialect: &Dialect| {
        let first = sql::tokens(&more, *dialect).next();
        first.is_some_and(|token| matches!(token.kind, Kind::Number | Kind::Text) && token.text == literal)
    };
    Dialect::all_of(Some(engine)).iter().all(is_one)
}

/// Why a statement that names tables of the run may change something else; `None` if it changes these alone. `is_ours` says which of
/// the tables that it names are the run's.
pub(super) fn changes_others(
    pieces: &[Piece],
    is_ours: &dyn Fn(usize) -> bool,
    engine: Option<&str>,
) -> Option<String> {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable(_) => " ? ".to_owned(),
        Piece::Table(relation) if is_ours(*relation) => format!(" {} ", targets::OURS),
        Piece::Table(_) => " another_table ".to_owned(),
    };
    let text: String = pieces.iter().map(piece).collect();
    first_reason(&text, engine, |statement| {
        let tokens = targets::tokens(statement);
        let function = || statement.calls_unknown(targets::OURS).filter(|_| !targets::defines(&tokens));
        targets::others(&tokens).or_else(|| statement.lets_through()).or_else(function)
    })
}

/// The text with placeholders for parameters and with names for tables.
fn text(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable(_) => " ? ".to_owned(),
        Piece::Table(_) => " kurabe_table ".to_owned(),
    };
    pieces.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sql: &str) -> Vec<Piece> {
        vec![Piece::Text(sql.to_owned())]
    }

    #[test]
    fn misspelt_statement_is_refused_and_no_other() {
        for (sql, near) in
            [("SELEC 1", "SELECT"), ("(selct a from t)", "SELECT"), ("UPDAET t SET a = 1", "UPDATE")]
        {
            let error = check_begin(&pieces(sql)).unwrap_err().to_string();
            assert!(error.contains(near), "{error}");
        }
        for sql in
            ["SELECT 1", "-- selec\nVALUES (1)", "FROB t", "MERGE INTO t", "", "(SELECT 1) UNION (SELECT 2)"]
        {
            assert!(check_begin(&pieces(sql)).is_ok(), "{sql}");
        }
    }

    #[test]
    fn copy_to_the_client_is_refused_and_to_the_server_is_not() {
        for sql in ["COPY t TO STDOUT", "copy (SELECT 1) to stdout (FORMAT binary)", "COPY t FROM STDIN"] {
            assert!(
                check_begin(&pieces(sql)).unwrap_err().to_string().contains("nor are they by pgbench"),
                "{sql}"
            );
        }
        for sql in
            ["LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "load xml concurrent local infile 'x' into table t"]
        {
            let error = check_begin(&pieces(sql)).unwrap_err().to_string();
            assert!(error.contains("LOAD with LOCAL"), "{sql}: {error}");
        }
        for sql in [
            "COPY t TO '/tmp/stdout'",
            "SELECT stdout FROM copy",
            "LOAD DATA INFILE '/local' INTO TABLE local",
        ] {
            assert!(check_begin(&pieces(sql)).is_ok(), "{sql}");
        }
    }

    #[test]
    fn query_is_left_to_the_server() {
        for sql in [
            "",
            "-- ping",
            ";",
            "SELECT 'delete' FROM t",
            "-- insert\nselect 1",
            "WITH a (n) AS (SELECT 1) SELECT n FROM a",
            "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 5) SELECT * FROM a",
            "(SELECT a FROM t WHERE id = 1) UNION (SELECT 2) FOR UPDATE",
            "SELECT replace(a, 'x', 'y'), insert(a, 1, 2, 'b') FROM t;",
            "SET x = 1",
            "VALUES (1)",
            "SAVEPOINT a",
            "SELECT charge(5), my.own(a) FROM t",
            "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a",
            "SELECT STRAIGHT_JOIN a FROM t USE INDEX (k) WHERE j->>'$.a' = 'update'",
            "SELECT rank() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
            "EXPLAIN ANALYZE SELECT 1",
            "SHOW TABLES",
            "SET SESSION sort_buffer_size = 100000",
            "SELECT a FROM t WHERE b GLOB '[a-z]*'",
            "SELECT a FROM t WHERE b IN (\"delete\", \"set_\")",
            "START TRANSACTION READ ONLY",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            "SET client_encoding TO 'UTF8', character_set_results = NULL",
            "SELECT E'it\\'s; fine' AS t, k FROM item WHERE id = 1",
        ] {
            assert_eq!(asks_for_write(&pieces(sql), None), None, "{sql}");
        }
    }

    #[test]
    fn statement_that_a_read_only_session_does_not_stop_asks_for_write() {
        for (sql, part) in [
            ("UPDATE t SET a = 1", "UPDATE is not a query"),
            ("CALL p()", "CALL is not a query"),
            ("TRUNCATE t", "TRUNCATE is not a query"),
            ("COPY t TO PROGRAM 'x'", "COPY is not a query"),
            ("COPY (SELECT 1) TO '/tmp/a'", "COPY is not a query"),
            ("DO $$ BEGIN PERFORM 1; END $$", "DO is not a query"),
            ("PRAGMA query_only = OFF", "PRAGMA is not a query"),
            ("ATTACH 'a.db' AS a", "ATTACH is not a query"),
            ("VACUUM INTO 'a.db'", "VACUUM is not a query"),
            ("LOCK TABLES t READ", "LOCK is not a query"),
            ("FLUSH TABLES", "FLUSH is not a query"),
            ("KILL 5", "KILL is not a query"),
            ("PREPARE s FROM 'DELETE FROM t'", "PREPARE is not a query"),
            ("/*! DELETE FROM t */", "is not a query"),
            ("EXECUTE BLOCK AS BEGIN END", "EXECUTE is not a query"),
            ("START REPLICA", "START is not a query"),
            ("'x'", "it is not a query"),
            ("WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a", "a part of it writes"),
            ("WITH a AS MATERIALIZED (INSERT INTO t VALUES (1)) SELECT 1", "a part of it writes"),
            ("WITH a AS (SELECT 1) UPDATE t SET a = 1", "a part of it writes"),
            ("SET GLOBAL max_connections = 5", "GLOBAL"),
            ("SET @@global.max_connections = 5", "GLOBAL"),
            ("SET a = 1, PERSIST max_connections = 5", "PERSIST"),
            ("SET STATEMENT max_statement_time = 1 FOR DELETE FROM t", "STATEMENT"),
            ("SET SESSION TRANSACTION READ/**/WRITE", "READ WRITE"),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "READ WRITE"),
            ("BEGIN READ WRITE", "READ WRITE"),
            ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE", "READ WRITE"),
            ("SET \"default_transaction_read_only\" = off", "DEFAULT_TRANSACTION_READ_ONLY"),
            ("SET LOCAL transaction_read_only TO off", "TRANSACTION_READ_ONLY"),
            ("SET @@session.`tx_read_only` = 0", "TX_READ_ONLY"),
            ("SELECT set_config('a', 'b', false)", "SET_CONFIG"),
            ("SET NAMES 'gbk'", "character set"),
            ("SET NAMES DEFAULT", "character set"),
            ("SET @a = 1, @@SESSION.character_set_client := @b", "character set"),
            ("SET CHARACTER SET ?", "character set"),
            ("SET client_encoding = SJIS", "character set"),
            ("SELECT /*+ SET_VAR(transaction_read_only = 0) */ 1", "TRANSACTION_READ_ONLY"),
            ("SELECT nextval('s')", "NEXTVAL"),
            ("SELECT pg_catalog.setval('s', 1)", "SETVAL"),
            ("SELECT NEXT VALUE FOR s", "NEXT VALUE FOR"),
            ("SELECT \"pg_terminate_backend\"(1)", "PG_TERMINATE_BACKEND"),
            ("SELECT U&\"pg\\005fterminate_backend\"(1)", "Unicode"),
            ("SELECT 1 WHERE (SELECT lo_import('/etc/passwd')) > 0", "LO_IMPORT"),
            ("SELECT * FROM dblink('x', 'DELETE FROM t') AS d (a int)", "DBLINK"),
            ("SELECT spider_direct_sql('DELETE FROM t', '', 'srv \"x\"')", "SPIDER_DIRECT_SQL"),
            ("SELECT sys_exec('rm x')", "SYS_EXEC"),
            ("SELECT public.pg_truncate_visibility_map('t')", "PG_TRUNCATE_VISIBILITY_MAP"),
            ("SELECT * FROM ts_stat('SELECT lo_create(0)::text::tsvector')", "TS_STAT"),
            ("SELECT query_to_xml('DELETE FROM t', true, true, '')", "QUERY_TO_XML"),
            ("SELECT pg_catalog.pg_replication_origin_create('x')", "PG_REPLICATION_ORIGIN_CREATE"),
            ("SELECT GET_LOCK ('a', 5)", "GET_LOCK"),
            ("SELECT LOAD_FILE('/etc/passwd')", "LOAD_FILE"),
            ("SELECT load_extension('x')", "LOAD_EXTENSION"),
            ("SELECT a FROM t INTO OUTFILE '/tmp/a'", "INTO OUTFILE"),
            ("SELECT 1 /*!50001 INTO OUTFILE '/tmp/a' */", "INTO OUTFILE"),
            ("COMMIT PREPARED 'a'", "COMMIT PREPARED"),
            ("SELECT 1; DELETE FROM t", "more than one"),
            ("SELECT '\\'; DELETE FROM t; --'", "more than one"),
            ("SELEC 1", "SELEC is not a query"),
        ] {
            let why =
                asks_for_write(&pieces(sql), None).unwrap_or_else(|| panic!("left to the server: {sql}"));
            assert!(why.contains(part), "{sql}: {why}");
        }
    }

    #[test]
    fn text_that_only_a_session_with_other_settings_reads_otherwise_asks_for_write() {
        for (sql, engine) in [
            (r#"SELECT '\'' AS "\"; SET SESSION TRANSACTION READ WRITE; DELETE FROM t; -- '""#, "mysql"),
            (r"SELECT '\'', lo_create(0) -- '", "postgres"),
            (r#"BEGIN SELECT '\'' AS "\"; KILL 5; END -- '""#, "mysql"),
            (r"SELECT 1 AS ['], GET_LOCK('a', 5) -- '", "mysql"),
        ] {
            assert!(text_asks_for_write(sql, Some(engine)).is_some(), "{sql}");
            assert!(text_asks_for_write(sql, None).is_some(), "{sql}");
        }
    }

    #[test]
    fn word_of_another_engine_s_comment_counts_for_that_engine_only() {
        let sql = "SELECT 1 # nextval('s')";
        assert_eq!(asks_for_write(&pieces(sql), Some("mysql")), None);
        assert!(asks_for_write(&pieces(sql), Some("postgres")).is_some());
    }

    #[test]
    fn session_that_writes_calls_only_known_functions() {
        for sql in [
            "SELECT count(*), SUM(a), upper(b) FROM t GROUP BY b HAVING max(a) > 1 ORDER BY lower(b) LIMIT 5",
            "SELECT CAST(a AS varchar(10)) FROM t WHERE a IN (1, 2) AND EXISTS (SELECT 1 FROM u)",
            "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 5) SELECT * FROM a",
            "SELECT substring(n FROM 1 FOR 3), a::numeric(5, 2), $1 FROM t JOIN u USING (id)",
            "SELECT * FROM generate_series(1, 10) AS g (n)",
            "SELECT c FROM kurabe_table WHERE id BETWEEN ? AND ? ORDER BY c",
        ] {
            assert_eq!(may_change(&pieces(sql), None), None, "{sql}");
        }
        for (sql, part) in [
            ("SELECT charge(5)", "charge, which is not known"),
            ("SELECT 1 WHERE \"my\".\"Own\" (5) > 0", "own, which is not known"),
            ("DELETE FROM t", "not a query"),
        ] {
            let why = may_change(&pieces(sql), None).unwrap_or_else(|| panic!("classified as a read: {sql}"));
            assert!(why.contains(part), "{sql}: {why}");
        }
    }
}
