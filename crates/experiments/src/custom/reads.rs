//! Decides whether a statement only reads, with a parser for the engine's dialect.
//!
//! A statement only reads if it is a query, or sets or shows something of its own session, and no part of it can
//! change data: no part that writes, no `INTO`, and only functions that are known to be free of side effects. Unknown
//! functions, and statements that the parser does not understand, may change data. Locks of a query (`FOR UPDATE`)
//! end with its transaction and change nothing.

use super::declared::Piece;
use sqlparser::ast::{Expr, ObjectName, Query, SetExpr, Statement, TableFactor, Visit, Visitor};
use sqlparser::dialect::{Dialect, MySqlDialect, OracleDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// Why a statement may change data; `None` if it only reads. `engine` names the engine of the statement. Without one,
/// the statement must only read in each dialect whose parser understands it.
pub(super) fn may_change(pieces: &[Piece], engine: Option<&str>) -> Option<String> {
    let dialects: &[&dyn Dialect] = match engine {
        Some("postgres" | "postgresql") => &[&PostgreSqlDialect {}],
        Some("mysql" | "mariadb") => &[&MySqlDialect {}],
        Some("sqlite") => &[&SQLiteDialect {}],
        Some("oracle") => &[&OracleDialect {}],
        _ => &[&PostgreSqlDialect {}, &MySqlDialect {}, &SQLiteDialect {}],
    };
    let conditional =
        |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains("/*!") || text.contains("/*M!"));
    if pieces.iter().any(conditional) {
        return Some("it has a comment that MySQL or MariaDB executes".to_owned());
    }
    let mut not_understood = None;
    let mut understood = false;
    for dialect in dialects {
        let statements = match Parser::parse_sql(*dialect, &text(pieces, *dialect)) {
            Ok(statements) => statements,
            Err(error) => {
                not_understood.get_or_insert_with(|| format!("it is not understood ({error})"));
                continue;
            }
        };
        understood = true;
        let [statement] = statements.as_slice() else {
            return Some("it is more than one statement".to_owned());
        };
        if let Some(why) = statement_may_change(statement) {
            return Some(why);
        }
    }
    if understood { None } else { not_understood }
}

/// Why a statement without variables may change data, on any engine that understands it; `None` if it only reads.
pub(crate) fn text_may_change(sql: &str) -> Option<String> {
    may_change(&[Piece::Text(sql.to_owned())], None)
}

/// The text with placeholders for parameters and with names for tables.
fn text(pieces: &[Piece], dialect: &dyn Dialect) -> String {
    let place = if dialect.is::<PostgreSqlDialect>() { "$1" } else { "?" };
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Variable(_) => place,
            Piece::Table(_) => "kurabe_table",
        })
        .collect()
}

fn statement_may_change(statement: &Statement) -> Option<String> {
    use Statement as S;
    match statement {
        S::Query(_)
        | S::ShowFunctions { .. }
        | S::ShowVariable { .. }
        | S::ShowStatus { .. }
        | S::ShowVariables { .. }
        | S::ShowCreate { .. }
        | S::ShowColumns { .. }
        | S::ShowDatabases { .. }
        | S::ShowProcessList { .. }
        | S::ShowSchemas { .. }
        | S::ShowTables { .. }
        | S::ShowCollation { .. }
        | S::StartTransaction { .. }
        | S::Commit { .. }
        | S::Rollback { .. }
        | S::Savepoint { .. }
        | S::ReleaseSavepoint { .. }
        | S::Reset(_)
        | S::ExplainTable { .. } => {}
        S::Set(_) => {
            // As text, because engines allow the scope in different positions.
            let text = statement.to_string().to_ascii_lowercase();
            let reaches =
                |word: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word);
            if let Some(scope) =
                ["global", "persist", "persist_only", "password"].into_iter().find(|word| reaches(word))
            {
                return Some(format!("it sets more than its own session has ({scope})"));
            }
        }
        // Without ANALYZE nothing is executed.
        S::Explain { analyze: false, .. } => return None,
        S::Explain { statement, .. } => return statement_may_change(statement),
        other => {
            let text = other.to_string();
            return Some(format!("{} is not a query", text.split_whitespace().next().unwrap_or("it")));
        }
    }
    match statement.visit(&mut Finder) {
        ControlFlow::Break(why) => Some(why),
        ControlFlow::Continue(()) => None,
    }
}

struct Finder;

impl Visitor for Finder {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        body(&query.body)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                called(name)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        match expr {
            Expr::Function(function) => called(&function.name),
            // MySQL's `SELECT @a := 1` changes only a variable of the session.
            _ => ControlFlow::Continue(()),
        }
    }
}

fn body(set: &SetExpr) -> ControlFlow<String> {
    match set {
        SetExpr::Select(select) if select.into.is_some() => {
            ControlFlow::Break("it puts its rows into something (INTO)".to_owned())
        }
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            ControlFlow::Break("a part of it writes".to_owned())
        }
        SetExpr::SetOperation { left, right, .. } => {
            body(left)?;
            body(right)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn called(name: &ObjectName) -> ControlFlow<String> {
    let full = name.to_string().to_ascii_lowercase();
    let plain = full.trim_start_matches("pg_catalog.").trim_matches(|c| "\"`[]".contains(c));
    // Functions of the engines that compute a result or report a state, and change nothing.
    let lines = include_str!("functions.txt").lines().filter(|line| !line.starts_with('#'));
    if lines.flat_map(str::split_whitespace).any(|known| known == plain) {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(format!("it calls {plain}, which is not known to only read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(sql: &str, engine: Option<&str>) -> Option<String> {
        may_change(&[Piece::Text(sql.to_owned())], engine)
    }

    #[test]
    fn query_that_computes_only_reads() {
        for sql in [
            "SELECT 'delete' FROM t",
            "-- insert\nselect 1",
            "WITH a (n) AS (SELECT 1) SELECT n FROM a",
            "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 5) SELECT * FROM a",
            "SELECT a FROM t WHERE id = 1 FOR UPDATE",
            "SELECT count(*), SUM(a), upper(b) FROM t GROUP BY b HAVING max(a) > 1 ORDER BY lower(b) LIMIT 5",
            "SELECT CAST(a AS varchar(10)) FROM t WHERE a IN (1, 2) AND EXISTS (SELECT 1 FROM u)",
            "SELECT replace(a, 'x', 'y') FROM t",
            "SET x = 1",
            "VALUES (1)",
            "SAVEPOINT a",
        ] {
            assert_eq!(why(sql, None), None, "{sql}");
        }
        for (sql, engine) in [
            ("SELECT substring(n FROM 1 FOR 3), a::int, $1 FROM t", "postgres"),
            ("SELECT * FROM generate_series(1, 10) AS g (n)", "postgres"),
            ("EXPLAIN ANALYZE SELECT 1", "postgres"),
            ("EXPLAIN DELETE FROM t", "postgres"),
            ("SHOW TABLES", "mysql"),
            ("SELECT `a` FROM `t` USE INDEX (k) WHERE a = ? LIMIT 5", "mysql"),
            ("SET SESSION sort_buffer_size = 100000", "mysql"),
            ("SELECT a FROM t WHERE b GLOB '[a-z]*'", "sqlite"),
        ] {
            assert_eq!(why(sql, Some(engine)), None, "{engine}: {sql}");
        }
    }

    #[test]
    fn statement_that_may_write_is_rejected_with_reason() {
        for (sql, part) in [
            ("UPDATE t SET a = 1", "UPDATE is not a query"),
            ("CALL p()", "CALL is not a query"),
            ("TRUNCATE t", "TRUNCATE is not a query"),
            ("WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a", "a part of it writes"),
            (
                "WITH u AS (UPDATE t SET a = 1 RETURNING n) SELECT substring(n FROM 1 FOR 3) FROM u",
                "a part of it writes",
            ),
            (
                "WITH u AS (INSERT INTO t VALUES (1) RETURNING n) SELECT n FROM u FOR UPDATE",
                "a part of it writes",
            ),
            ("SELECT 1 INTO t", "INTO"),
            ("SET GLOBAL max_connections = 5", "own session"),
            ("SET @@global.max_connections = 5", "own session"),
            ("SET PERSIST max_connections = 5", "not understood"),
            ("SELECT nextval('s')", "nextval"),
            ("SELECT pg_catalog.setval('s', 1)", "setval"),
            ("SELECT \"pg_terminate_backend\"(1)", "pg_terminate_backend"),
            ("SELECT 1 WHERE (SELECT lo_import('/etc/passwd')) > 0", "lo_import"),
            ("SELECT * FROM dblink('x', 'DELETE FROM t') AS d (a int)", "dblink"),
            ("SELECT GET_LOCK('a', 5)", "get_lock"),
            ("SELECT LOAD_FILE('/etc/passwd')", "load_file"),
            ("SELECT charge(5)", "charge, which is not known"),
            ("SELECT a FROM t INTO OUTFILE '/tmp/a'", ""),
            ("SELECT 1 /*! INTO OUTFILE '/tmp/a' */", "comment"),
            ("EXPLAIN ANALYZE DELETE FROM t", "not a query"),
            ("SELECT 1; DELETE FROM t", "more than one"),
            ("SELEC 1", "not understood"),
            ("PRAGMA journal_mode = off", "not"),
            ("COPY t TO '/tmp/a'", "COPY is not a query"),
            ("DO $$ BEGIN DELETE FROM t; END $$", "not understood"),
            ("VACUUM", "not"),
        ] {
            let why = why(sql, None).unwrap_or_else(|| panic!("classified as a read: {sql}"));
            assert!(why.contains(part), "{sql}: {why}");
        }
    }
}
