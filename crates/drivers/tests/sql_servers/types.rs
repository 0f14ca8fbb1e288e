//! Round trips of values of every type and length, statements and errors.

use super::common::{ENGINES, connect, once, open, table};
use kurabe_core::ErrorKind;
use kurabe_core::driver::ConnectOptions;
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
