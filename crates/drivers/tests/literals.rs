//! Checks that a literal in a statement equals the bound value.

use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Row {
    word: String,
    note: String,
    body: Vec<u8>,
    tag: Vec<u8>,
    n: i64,
    at: i64,
}

impl Row {
    fn values<'a>(&'a self, id: &'a str) -> [Value<'a>; 7] {
        let (word, note) = (Value::Text(&self.word), Value::Text(&self.note));
        let (body, tag) = (Value::Bytes(&self.body), Value::Bytes(&self.tag));
        [Value::Text(id), word, note, body, tag, Value::Int(self.n), Value::Time(self.at)]
    }
}

/// Texts with quotes, escapes, parameters, comments and non-ASCII characters.
fn difficult_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "'", "''", "\\", "\\'", "\"", "`", "\0", "\n", "\r", "\u{1a}", "?", "$1", ":1", "--", "/*", "*/",
        ";", "%s", "x'", "E'", "\\x41", "é", "漢", "ソ", "🦀", "\u{bf}", "\u{e000}", "a", " ",
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat()),
        ".{0,20}",
        Just(String::new())
    ]
}

fn row() -> impl Strategy<Value = Row> {
    // Years 1 to 9999.
    let at = prop_oneof![Just(0), Just(-1), -62_135_596_800_000_000i64..253_402_300_799_999_999];
    let n = prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), -3i64..3];
    let bytes = || prop_oneof![prop::collection::vec(any::<u8>(), 0..40), Just(b"\\x41'\0\xff".to_vec())];
    (difficult_text(), difficult_text(), bytes(), bytes(), n, at)
        .prop_map(|(word, note, body, tag, n, at)| Row { word, note, body, tag, n, at })
}

fn execute(
    session: &mut dyn Session,
    operation: &Operation,
    values: &[Value<'_>],
    literal: bool,
) -> kurabe_core::Result<Reply> {
    let prepared = if literal { session.prepare_literal(operation) } else { session.prepare(operation) }?;
    let mut reply = Reply::new();
    let done = session.execute(&prepared, values, &mut reply);
    session.release(prepared)?;
    done.map(|()| reply)
}

fn is(reply: &Reply, values: &[Value<'_>]) -> bool {
    reply.rows() == 1
        && reply.affected() == 0
        && values.iter().enumerate().all(|(field, value)| match value {
            Value::Text(text) => reply.field_bytes(0, field) == Some(text.as_bytes()),
            value => reply.field(0, field) == Some(*value),
        })
}

/// Compares literals with bound values on this target. `zeros`: whether its text may contain zero characters.
pub fn check(driver: &dyn Driver, zeros: bool, context: &str) {
    let fields = vec![
        Field { name: "id", kind: FieldType::Text { max: 200 } },
        Field { name: "word", kind: FieldType::Text { max: 200 } },
        Field { name: "note", kind: FieldType::LongText },
        Field { name: "body", kind: FieldType::LongBytes },
        Field { name: "tag", kind: FieldType::Bytes { max: 40 } },
        Field { name: "n", kind: FieldType::Int },
        Field { name: "at", kind: FieldType::Timestamp },
    ];
    let table = Arc::new(Collection::new("kurabe_literals", fields, vec![0]));
    let mut namespace = driver.namespace().unwrap();
    namespace.create(&table).unwrap();
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let session = &mut *session;
    let c = || Arc::clone(&table);
    let get = Operation::Get { collection: c(), fields: (0..7).collect() };
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 60, failure_persistence: None, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let number = std::cell::Cell::new(0);
    let session = std::cell::RefCell::new(session);
    runner
        .run(&(row(), row()), |(one, two)| {
            let session = &mut **session.borrow_mut();
            number.set(number.get() + 1);
            let id = format!("{} {}", number.get(), one.word);
            let mut run = |operation: &Operation, values: &[Value<'_>], literal| {
                execute(session, operation, values, literal).map_err(|e| {
                    TestCaseError::fail(format!("{context}: {} by literal {literal}: {e}", operation.name()))
                })
            };
            let values = one.values(&id);
            if !zeros && [&id, &one.note, &two.word, &two.note].iter().any(|text| text.contains('\0')) {
                let insert = Operation::Insert { collection: c() };
                prop_assert_eq!(
                    run(&insert, &one.values(&id), true).is_err(),
                    id.contains('\0') || one.note.contains('\0')
                );
                return Ok(());
            }
            prop_assert_eq!(run(&Operation::Insert { collection: c() }, &values, true)?.affected(), 1);
            for literal in [false, true] {
                let reply = run(&get, &values[..1], literal)?;
                prop_assert!(is(&reply, &values), "{}: {:?} was returned as {:?}", context, values, reply);
            }
            let find = Operation::FindEqual { collection: c(), by: vec![0, 1, 4, 5, 6], fields: vec![0] };
            let by = [values[0], values[1], values[4], values[5], values[6]];
            prop_assert_eq!(run(&find, &by, true)?.rows(), 1, "{}: {:?} is not found", context, by);
            let other = two.values(&id);
            let update = Operation::Update { collection: c(), fields: vec![1, 2, 3, 4, 5, 6] };
            let changed: Vec<Value<'_>> = other[1..].iter().chain(&other[..1]).copied().collect();
            prop_assert_eq!(run(&update, &changed, true)?.affected(), 1);
            prop_assert!(is(&run(&get, &values[..1], false)?, &other), "{}: {:?}", context, other);
            run(&Operation::Put { collection: c() }, &values, true)?;
            prop_assert!(is(&run(&get, &values[..1], true)?, &values), "{}: {:?}", context, values);
            prop_assert_eq!(run(&Operation::Delete { collection: c() }, &values[..1], true)?.affected(), 1);
            prop_assert_eq!(run(&get, &values[..1], true)?.rows(), 0);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{context}: {e}"));
    let session = session.into_inner();
    let many = Operation::InsertMany { collection: c(), rows: 2 };
    let null = Value::Null;
    let two = ["a", "b"].map(|id| [Value::Text(id), null, null, null, null, null, null]).concat();
    assert_eq!(execute(session, &many, &two, true).unwrap().affected(), 2, "{context}");
    assert_eq!(
        execute(session, &get, &[Value::Text("b")], true).unwrap().field(0, 6),
        Some(null),
        "{context}"
    );
    let count = execute(session, &Operation::Count { collection: c() }, &[], true).unwrap();
    assert!(count.field_int(0, 0) >= Some(2), "{context}");
    // The session is usable after an error.
    assert!(execute(session, &Operation::Insert { collection: c() }, &two[..7], true).is_err(), "{context}");
    assert_eq!(execute(session, &get, &[Value::Text("a")], true).unwrap().rows(), 1, "{context}");
    namespace.remove(&table.name).unwrap();
    namespace.finish().unwrap();
}
