//! Round trips of values of every type and length, statements and errors.

use super::common::{ENGINES, connect, once, open, table};
use kurabe_core::ErrorKind;
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_testbed::testing;
use std::sync::Arc;

/// Pseudorandom bytes (xorshift).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

/// Length of the largest value, beyond the default reply limit of a client.
const LARGEST: usize = 40_000_000;

#[test]
fn values_round_trip() {
    for engine in ENGINES {
        // Values beyond MySQL's 16 MB packets need more than its default limit.
        let Some(server) = testing::server_with(engine, |options| match engine {
            "postgres" => options,
            _ => options.set("max_allowed_packet", "64M"),
        }) else {
            continue;
        };
        let url = server.url();
        let mut namespace = open(url).unwrap().namespace().unwrap();
        let table = table("kurabe_types");
        namespace.create(&table).unwrap();
        let options = ConnectOptions { largest_answer: LARGEST as u64, ..ConnectOptions::default() };
        let mut session = open(url).unwrap().connect(&options).unwrap();
        let insert = session.prepare(&Operation::Insert { collection: Arc::clone(&table) }).unwrap();
        let get = Operation::Get { collection: Arc::clone(&table), fields: vec![0, 1, 2, 3, 4, 5] };
        let get = session.prepare(&get).unwrap();
        let mut reply = Reply::new();
        let lengths = [0, 1, 100, 250, 251, 252, 4_000, 16_000, 16_384, 20_000, 65_535, 65_536, 1_000_000];
        let beyond_packets = [16_777_100, 16_777_215, LARGEST];
        for (at, length) in lengths.into_iter().chain(beyond_packets).enumerate() {
            let body = noise(length);
            let note: String = "aé漢🦀".chars().cycle().take(length.min(100_000)).collect();
            let tag = noise(length.min(40));
            let numbers = [0, 1, -1, i64::MAX, i64::MIN];
            let n = numbers[at % numbers.len()];
            let micros = [0, 1_234_567_890_123_456, -1, 1_700_000_000_000_000, 253_402_300_799_999_999];
            let micros = micros[at % micros.len()];
            let id = format!("id {length} é");
            let row = [
                Value::Text(&id),
                Value::Bytes(&body),
                Value::Text(&note),
                Value::Bytes(&tag),
                Value::Int(n),
                Value::Time(micros),
            ];
            session.execute(&insert, &row, &mut reply).unwrap_or_else(|e| panic!("{engine} {length}: {e}"));
            assert_eq!((reply.affected(), reply.rows()), (1, 0), "{engine} {length}");
            session
                .execute(&get, &[Value::Text(&id)], &mut reply)
                .unwrap_or_else(|e| panic!("{engine} {length}: {e}"));
            assert_eq!((reply.rows(), reply.width(), reply.affected()), (1, 6, 0), "{engine} {length}");
            assert_eq!(reply.field_bytes(0, 0), Some(id.as_bytes()), "{engine} {length}");
            assert!(reply.field_bytes(0, 1) == Some(&body), "{engine} {length}: body differs");
            assert!(reply.field_bytes(0, 2) == Some(note.as_bytes()), "{engine} {length}: note differs");
            assert_eq!(reply.field_bytes(0, 3), Some(tag.as_slice()), "{engine} {length}");
            assert_eq!(reply.field(0, 4), Some(Value::Int(n)), "{engine} {length}");
            assert_eq!(reply.field(0, 5), Some(Value::Time(micros)), "{engine} {length}");
        }
        let nothing =
            [Value::Text("nothing"), Value::Null, Value::Null, Value::Null, Value::Null, Value::Null];
        session.execute(&insert, &nothing, &mut reply).unwrap();
        session.execute(&get, &[Value::Text("nothing")], &mut reply).unwrap();
        assert!((1..6).all(|field| reply.field(0, field) == Some(Value::Null)), "{engine}");
        session.execute(&get, &[Value::Text("NOTHING")], &mut reply).unwrap();
        assert_eq!(reply.rows(), 0, "text compares by bytes");
        session.close().unwrap();
        namespace.remove("kurabe_types").unwrap();
        namespace.finish().unwrap();
    }
}

fn rows_now(session: &mut dyn Session, count: &Operation) -> Option<i64> {
    once(session, count, &[]).unwrap().field_int(0, 0)
}

#[test]
fn matched_rows_are_counted_and_session_is_usable_after_errors() {
    for engine in ENGINES {
        let Some(server) = testing::server(engine) else { continue };
        let url = server.url();
        let mut namespace = open(url).unwrap().namespace().unwrap();
        let table = table("kurabe_changes");
        namespace.create(&table).unwrap();
        let mut session = connect(url).unwrap();
        let session = &mut *session;
        let collection = || Arc::clone(&table);
        let row = |id: &'static str, n: i64| {
            [
                Value::Text(id),
                Value::Bytes(b"b"),
                Value::Text("t"),
                Value::Null,
                Value::Int(n),
                Value::Time(0),
            ]
        };
        let insert = Operation::Insert { collection: collection() };
        assert_eq!(once(session, &insert, &row("a", 1)).unwrap().affected(), 1);
        let error = once(session, &insert, &row("a", 2)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server, "{engine}: {error}");
        assert!(error.server_code().is_some(), "{engine}: {error}");
        let two = Operation::InsertMany { collection: collection(), rows: 2 };
        let rows: Vec<Value<'_>> = row("b", 2).into_iter().chain(row("c", 3)).collect();
        assert_eq!(once(session, &two, &rows).unwrap().affected(), 2, "{engine}");
        let update = Operation::Update { collection: collection(), fields: vec![4] };
        let to = |id| [Value::Int(7), Value::Text(id)];
        assert_eq!(once(session, &update, &to("a")).unwrap().affected(), 1, "{engine}");
        // A row that already has the value still counts.
        assert_eq!(once(session, &update, &to("a")).unwrap().affected(), 1, "{engine}");
        assert_eq!(once(session, &update, &to("z")).unwrap().affected(), 0, "{engine}");
        let put = Operation::Put { collection: collection() };
        once(session, &put, &row("a", 9)).unwrap();
        once(session, &put, &row("d", 9)).unwrap();
        let find = Operation::FindEqual { collection: collection(), by: vec![4], fields: vec![0, 4] };
        let found = once(session, &find, &[Value::Int(9)]).unwrap();
        assert_eq!(found.rows(), 2, "{engine}");
        assert_eq!(found.field_bytes(1, 0), Some(&b"d"[..]), "{engine}");
        let count = Operation::Count { collection: collection() };
        assert_eq!(rows_now(session, &count), Some(4), "{engine}");
        once(session, &Operation::Begin, &[]).unwrap();
        let delete = Operation::Delete { collection: collection() };
        assert_eq!(once(session, &delete, &[Value::Text("a")]).unwrap().affected(), 1, "{engine}");
        once(session, &Operation::Rollback, &[]).unwrap();
        assert_eq!(rows_now(session, &count), Some(4), "{engine}");
        once(session, &Operation::Begin, &[]).unwrap();
        once(session, &delete, &[Value::Text("a")]).unwrap();
        once(session, &Operation::Commit, &[]).unwrap();
        assert_eq!(rows_now(session, &count), Some(3), "{engine}");
        once(session, &Operation::Ping, &[]).unwrap();
        let error = once(session, &delete, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{engine}: {error}");
        assert_eq!(rows_now(session, &count), Some(3), "{engine}");
        namespace.clear(&table).unwrap();
        assert_eq!(rows_now(session, &count), Some(0), "{engine}");
        namespace.remove(&table.name).unwrap();
        let error = once(session, &count, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{engine}: {error}");
        namespace.finish().unwrap();
    }
}

#[test]
fn released_statements_are_closed_on_server() {
    for engine in ENGINES {
        let Some(server) = testing::server_with(engine, |options| match engine {
            "postgres" => options,
            _ => options.set("max_prepared_stmt_count", 10),
        }) else {
            continue;
        };
        let url = server.url();
        let mut namespace = open(url).unwrap().namespace().unwrap();
        let table = table("kurabe_statements");
        namespace.create(&table).unwrap();
        let mut session = connect(url).unwrap();
        let count = Operation::Count { collection: Arc::clone(&table) };
        // More than the server's limit of open statements.
        for _ in 0..50 {
            once(&mut *session, &count, &[]).unwrap_or_else(|e| panic!("{engine}: {e}"));
        }
        if engine != "postgres" {
            let kept: Vec<_> = (0..10).map(|_| session.prepare(&count).unwrap()).collect();
            let error = session.prepare(&count).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit, "{engine}: {error}");
            for prepared in kept {
                session.release(prepared).unwrap();
            }
            once(&mut *session, &count, &[]).unwrap();
        }
        session.close().unwrap();
        namespace.remove(&table.name).unwrap();
    }
}
