//! Custom tables and procedures, with types and results that Kurabe's tables do not have.

use super::common::{connect, once};
use super::methods::{administer_by, has_mariadb_program};
use kurabe_core::ErrorKind;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::Session;
use kurabe_core::operation::Operation;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};
use kurabe_core::value::{Reply, Value};
use kurabe_testbed::testing;
use std::sync::Arc;

/// A custom statement: these texts, with a parameter between each two.
pub fn raw(texts: &[&str]) -> Operation {
    let text = |text: &&str| RawPiece::Text((*text).to_owned());
    let pieces = texts.iter().map(text).flat_map(|text| [RawPiece::Parameter, text]).skip(1).collect();
    let texts_of_all = vec![RawText { engine: None, pieces }];
    let (place, parameters) = ("test".to_owned(), texts.len() - 1);
    let statement = RawStatement { place, texts: texts_of_all, parameters, collection: None };
    Operation::Raw { statement: Arc::new(statement) }
}

fn execute(session: &mut dyn Session, sql: &str) {
    once(session, &raw(&[sql]), &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// A row's fields as text.
fn texts(reply: &Reply) -> Vec<String> {
    (0..reply.width())
        .map(|field| match reply.field(0, field).unwrap() {
            Value::Int(n) => format!("int {n}"),
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        })
        .collect()
}

const ID: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
/// 2024-02-29 00:00 UTC.
const DAY: i64 = 1_709_164_800_000_000;

#[test]
fn other_postgres_types_are_read_and_written() {
    let Some(server) = testing::server("postgres") else { return };
    let mut session = connect(server.url()).unwrap();
    let session = &mut *session;
    execute(session, "DROP TABLE IF EXISTS theirs");
    execute(
        session,
        "CREATE TABLE theirs (id uuid PRIMARY KEY, doc jsonb, total numeric(12, 2), day date, paid boolean, n bigint)",
    );
    let field = |name, kind| Field { name, kind };
    let fields = vec![
        field("id", FieldType::Text { max: 36 }),
        field("doc", FieldType::LongText),
        field("total", FieldType::LongText),
        field("day", FieldType::Timestamp),
        field("paid", FieldType::LongText),
        field("n", FieldType::Int),
    ];
    let theirs = Arc::new(Collection::new("theirs", fields, vec![0]));
    let row = [
        Value::Text(ID),
        Value::Text("{\"a\": [1, 2]}"),
        Value::Text("-12345.6"),
        Value::Time(DAY),
        Value::Text("true"),
        Value::Int(7),
    ];
    let insert = Operation::Insert { collection: theirs.clone() };
    assert_eq!(once(session, &insert, &row).unwrap().affected(), 1);
    let get = Operation::Get { collection: theirs.clone(), fields: vec![0, 1, 2, 3, 4, 5] };
    let reply = once(session, &get, &[Value::Text(ID)]).unwrap();
    let expected = [ID, "{\"a\": [1, 2]}", "-12345.60", "2024-02-29", "t", "int 7"];
    assert_eq!(texts(&reply), expected);
    let update = Operation::Update { collection: theirs.clone(), fields: vec![2, 4] };
    // An integer is also a `numeric`.
    let changed = once(session, &update, &[Value::Int(5), Value::Null, Value::Text(ID)]).unwrap();
    assert_eq!(changed.affected(), 1);
    let sql = ["SELECT total, paid IS NULL, day FROM theirs WHERE id = ", " AND total < ", " AND day = ", ""];
    let reply = once(session, &raw(&sql), &[Value::Text(ID), Value::Int(6), Value::Time(DAY)]).unwrap();
    assert_eq!(texts(&reply), ["5.00", "t", "2024-02-29"]);
    let truth = raw(&["SELECT n FROM theirs WHERE paid IS DISTINCT FROM ", ""]);
    assert_eq!(texts(&once(session, &truth, &[Value::Bool(false)]).unwrap()), ["int 7"]);
    // The server rejects an invalid number, and the session remains usable.
    let error = once(session, &update, &[Value::Text("x"), Value::Null, Value::Text(ID)]).unwrap_err();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Server, Some("22P02")), "{error}");
    // A user-defined type has no fixed OID.
    execute(session, "DROP TYPE IF EXISTS mood");
    execute(session, "CREATE TYPE mood AS ENUM ('sad', 'glad')");
    let mood = once(session, &raw(&["SELECT ", "::mood"]), &[Value::Text("glad")]);
    assert_eq!(texts(&mood.unwrap()), ["glad"]);
    assert_eq!(once(session, &Operation::Delete { collection: theirs }, &row[..1]).unwrap().affected(), 1);
}

#[test]
fn procedure_returns_its_rows_and_session_remains_usable() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        if !has_mariadb_program() {
            return;
        }
        administer_by(
            &server,
            "//",
            "CREATE PROCEDURE one(IN n BIGINT) SELECT n + 1 AS m, 'text' AS t//
             CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2, 3; END//
             CREATE PROCEDURE none() DO 0//
             CREATE PROCEDURE fails() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END//",
        );
        let mut session = connect(server.url()).unwrap();
        let one = session.prepare(&raw(&["CALL one(", ")"])).unwrap();
        let mut out = Reply::new();
        for n in [41, 1_000_000] {
            session.execute(&one, &[Value::Int(n)], &mut out).unwrap_or_else(|e| panic!("{engine}: {e}"));
            assert_eq!(texts(&out), [format!("int {}", n + 1), "text".to_owned()], "{engine}");
        }
        let session = &mut *session;
        let call =
            |session: &mut dyn Session, name: &str| once(session, &raw(&[&format!("CALL {name}()")]), &[]);
        let error = call(session, "two").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{engine}: {error}");
        let error = call(session, "fails").unwrap_err();
        assert_eq!(error.server_code(), Some("1644"), "{engine}: {error}");
        assert_eq!(call(session, "none").unwrap().rows(), 0, "{engine}");
        session.execute(&one, &[Value::Int(1)], &mut out).unwrap();
        assert_eq!(out.field_int(0, 0), Some(2), "{engine}");
    }
}
