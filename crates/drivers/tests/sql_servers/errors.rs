//! What the servers say of an error besides its message.

use super::common::{connect, once, open};
use super::tables::raw;
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::value::Value;
use kurabe_testbed::testing;

/// The error of preparing and executing a statement, with parameters for question marks.
fn error(session: &mut dyn Session, sql: &str, values: &[Value<'_>]) -> String {
    once(session, &raw(&sql.split('?').collect::<Vec<_>>()), values).unwrap_err().to_string()
}

/// A mark under the character that `before` precedes.
fn mark(before: &str) -> String {
    format!("\n{}^", " ".repeat(2 + before.chars().count()))
}

#[test]
fn postgres_says_details_hints_positions_and_names() {
    let Some(server) = testing::server("postgres") else { return };
    let session = &mut *connect(server.url()).unwrap();
    let wrong = error(session, "SELECT 'é' AS a,\n  nope FROM pg_class", &[]);
    assert!(wrong.contains("[42703 undefined_column]"), "{wrong}");
    assert!(wrong.contains(&format!("LINE 2:   nope FROM pg_class{}", mark("LINE 2:   "))), "{wrong}");
    let hint = error(session, "SELECT to_hex('a')", &[]);
    assert!(hint.contains("HINT: ") && hint.contains("[42725 ambiguous_function]"), "{hint}");
    let types = error(session, "SELECT 1/(?::int4), ?::text", &[Value::Int(0), Value::Text("x")]);
    assert!(types.contains("[22012 division_by_zero]"), "{types}");
    assert!(types.contains("PARAMETERS: $1 integer, $2 text"), "{types}");
    once(session, &raw(&["CREATE TEMP TABLE t (id int PRIMARY KEY)"]), &[]).unwrap();
    let twice = error(session, "INSERT INTO t VALUES (1), (1)", &[]);
    assert!(twice.contains("DETAIL: Key (id)=(1) already exists."), "{twice}");
    assert!(twice.contains("[23505 unique_violation]"), "{twice}");
    let inner = error(session, "DO $$ BEGIN\n PERFORM nope; END $$", &[]);
    assert!(inner.contains(&format!("LINE 1: SELECT nope{}", mark("LINE 1: SELECT "))), "{inner}");
    assert!(inner.contains("CONTEXT: PL/pgSQL function inline_code_block line 2"), "{inner}");
}

#[test]
fn mysql_says_where_and_which_state() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let session = &mut *connect(server.url()).unwrap();
        let wrong = error(session, "SELECT 'é',\n  1 FRM t\nWHERE x", &[]);
        assert!(wrong.contains("[1064 42000 syntax_error_or_access_rule_violation]"), "{engine}: {wrong}");
        // `FRM` is the name of a column, and what follows it is the error.
        assert!(
            wrong.contains(&format!("LINE 2:   1 FRM t{}", mark("LINE 2:   1 FRM "))),
            "{engine}: {wrong}"
        );
        let types =
            error(session, "SELECT 1 FROM DUAL WHERE ? = (SELECT 1 UNION SELECT 2)", &[Value::Int(1)]);
        assert!(types.contains("PARAMETERS: 1 integer"), "{engine}: {types}");
    }
}

#[test]
fn sqlite_says_where_and_which_code() {
    let session = &mut *open("sqlite:").unwrap().connect(&ConnectOptions::default()).unwrap();
    let wrong = error(session, "SELECT 'é',\n  1 FRM t WHERE", &[]);
    assert!(wrong.contains("[1 SQLITE_ERROR]"), "{wrong}");
    assert!(wrong.contains(&format!("LINE 2:   1 FRM t WHERE{}", mark("LINE 2:   1 FRM "))), "{wrong}");
}
