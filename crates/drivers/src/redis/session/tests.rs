use super::*;
use crate::wire::script::{Parts, Script};
use kurabe_core::collection::{Collection, Field, FieldType};

const MARKER: &str = "%2\r\n+title\r\n+collections of Kurabe\r\n+kurabe_a\r\n+x\r\n";

fn session(answers: &[u8], piece: usize, ttl: Option<u32>) -> RedisSession<Script> {
    let answers = [MARKER.as_bytes(), answers].concat();
    RedisSession::new(Client::new(Script::in_pieces(answers, piece)), Arc::default(), ttl)
}

fn collection(key: &[usize]) -> Arc<Collection> {
    let text = |name| Field { name, kind: FieldType::LongText };
    let fields = vec![text("id"), Field { name: "sub", kind: FieldType::Int }, text("data")];
    Arc::new(Collection::new(
        "kurabe_a",
        if key == [0] { vec![text("id"), text("data")] } else { fields },
        key.to_vec(),
    ))
}

/// The request of an operation, as words separated by spaces.
fn sent(operation: &Operation, parameters: &[Value<'_>], ttl: Option<u32>) -> String {
    let mut session = session(b"+OK\r\n", 99, ttl);
    let prepared = session.prepare(operation).unwrap();
    let before = session.work.client.wire.stream().sent.len();
    let _ = session.execute(&prepared, parameters, &mut Reply::new());
    let sent = String::from_utf8(session.work.client.wire.stream().sent[before..].to_vec()).unwrap();
    // Parsing checks the announced count and lengths.
    let words = Client::new(Script::new(sent.into_bytes())).whole().unwrap();
    words.items().iter().map(super::super::protocol::Node::text).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_operation_is_one_command() {
    let (one, two) = (collection(&[0]), collection(&[0, 1]));
    let (a, b, x, n) = (Value::Text("a"), Value::Text("b"), Value::Text("x"), Value::Int(-7));
    let get = |c: &Arc<Collection>, fields| Operation::Get { collection: c.clone(), fields };
    let insert = |c: &Arc<Collection>| Operation::Insert { collection: c.clone() };
    let put = |c: &Arc<Collection>| Operation::Put { collection: c.clone() };
    let many = |c: &Arc<Collection>| Operation::InsertMany { collection: c.clone(), rows: 2 };
    let update = |c: &Arc<Collection>, fields| Operation::Update { collection: c.clone(), fields };
    let delete = |c: &Arc<Collection>| Operation::Delete { collection: c.clone() };
    let find = Operation::FindEqual { collection: two.clone(), by: vec![0], fields: vec![1, 2] };
    for (operation, parameters, plain, expiring) in [
        (Operation::Ping, &[][..], "PING", "PING"),
        (get(&one, vec![1]), &[a], "GET kurabe_a~kurabe:a", "GET kurabe_a~kurabe:a"),
        (insert(&one), &[a, x], "SET kurabe_a~kurabe:a x NX", "SET kurabe_a~kurabe:a x NX EX 60"),
        (put(&one), &[a, x], "SET kurabe_a~kurabe:a x", "SET kurabe_a~kurabe:a x EX 60"),
        (update(&one, vec![1]), &[x, a], "SET kurabe_a~kurabe:a x XX", "SET kurabe_a~kurabe:a x XX EX 60"),
        (delete(&one), &[a], "DEL kurabe_a~kurabe:a", "DEL kurabe_a~kurabe:a"),
        (many(&one), &[a, x, b, x], "MSETNX kurabe_a~kurabe:a x kurabe_a~kurabe:b x", ""),
        (get(&two, vec![2]), &[a, n], "HGET kurabe_a~kurabe:a -7", "HGET kurabe_a~kurabe:a -7"),
        (delete(&two), &[a, n], "HDEL kurabe_a~kurabe:a -7", "HDEL kurabe_a~kurabe:a -7"),
        (find, &[a], "HGETALL kurabe_a~kurabe:a", "HGETALL kurabe_a~kurabe:a"),
        (
            insert(&two),
            &[a, n, x],
            "HSETNX kurabe_a~kurabe:a -7 x",
            "EVAL … 1 kurabe_a~kurabe:a NX 60 1 -7 x",
        ),
        (put(&two), &[a, n, x], "HSET kurabe_a~kurabe:a -7 x", "EVAL … 1 kurabe_a~kurabe:a  60 1 -7 x"),
        (
            update(&two, vec![2]),
            &[x, a, n],
            "EVAL … 1 kurabe_a~kurabe:a XX 0 1 -7 x",
            "EVAL … 1 kurabe_a~kurabe:a XX 60 1 -7 x",
        ),
        (
            many(&two),
            &[a, n, x, b, n, x],
            "EVAL … 2 kurabe_a~kurabe:a kurabe_a~kurabe:b NX 0 1 -7 x 1 -7 x",
            "EVAL … 2 kurabe_a~kurabe:a kurabe_a~kurabe:b NX 60 1 -7 x 1 -7 x",
        ),
        (
            many(&two),
            &[a, n, x, a, Value::Int(8), b],
            "EVAL … 1 kurabe_a~kurabe:a NX 0 2 -7 x 8 b",
            "EVAL … 1 kurabe_a~kurabe:a NX 60 2 -7 x 8 b",
        ),
    ] {
        for (ttl, expected) in [(None, plain), (Some(60), expiring)] {
            if expected.is_empty() {
                assert!(unsupported(&operation, ttl).is_some(), "{operation:?}");
                continue;
            }
            let said = sent(&operation, parameters, ttl).replace(super::super::script::SOURCE, "…");
            assert_eq!(said, expected, "{operation:?}");
        }
    }
}

#[test]
fn row_with_a_time_expires_then() {
    let text = |name| Field { name, kind: FieldType::LongText };
    let fields = vec![text("id"), Field { name: "time", kind: FieldType::Timestamp }];
    let new = |expires| Collection { expires, ..Collection::new("kurabe_a", fields.clone(), vec![0]) };
    let (c, plain) = (Arc::new(new(Some(1))), Arc::new(new(None)));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as i64;
    for (time, life) in [(now + 3_600_000_000, 3_590_000..=3_600_000), (now - 1, 1..=1)] {
        let (a, time) = (Value::Text("a"), Value::Time(time));
        for (operation, parameters, mode) in [
            (Operation::Insert { collection: c.clone() }, [a, time], " NX"),
            (Operation::Put { collection: c.clone() }, [a, time], ""),
            (Operation::Update { collection: c.clone(), fields: vec![1] }, [time, a], " XX"),
        ] {
            let said = sent(&operation, &parameters, Some(60));
            let (_, rest) = said.split_once(" PX ").unwrap();
            let found: u64 = rest.strip_suffix(mode).unwrap().parse().unwrap();
            assert!(life.contains(&found) && !said.contains(" EX "), "{said}");
        }
        let put = Operation::Put { collection: plain.clone() };
        assert!(!sent(&put, &[a, time], None).contains(" PX "));
    }
    assert!(unsupported(&Operation::InsertMany { collection: c, rows: 2 }, None).is_some());
}

#[test]
fn different_fields_make_different_keys() {
    let text = |name| Field { name, kind: FieldType::LongText };
    let three = Arc::new(Collection::new(
        "kurabe_a",
        vec![text("a"), text("b"), text("c"), text("d")],
        vec![0, 1, 2],
    ));
    let get = Operation::Get { collection: three, fields: vec![3] };
    let key = |a, b, c| sent(&get, &[Value::Text(a), Value::Text(b), Value::Text(c)], None);
    assert_eq!(key("x:y%", "b:c", ":"), "HGET kurabe_a~kurabe:x%3Ay%25:b:c :");
    assert_ne!(key("a", "b:c", "d"), key("a:b", "c", "d"));
}

#[test]
fn duplicate_row_is_refused_before_sending() {
    let many = Operation::InsertMany { collection: collection(&[0]), rows: 3 };
    let mut session = session(b":1\r\n", 99, None);
    let prepared = session.prepare(&many).unwrap();
    let x = Value::Text("x");
    let row = |ids: [&'static str; 3]| ids.map(|id| [Value::Text(id), x]).concat();
    let before = session.work.client.wire.stream().sent.len();
    let error = session.execute(&prepared, &row(["b", "a", "b"]), &mut Reply::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
    assert_eq!(session.work.client.wire.stream().sent.len(), before);
    let mut out = Reply::new();
    session.execute(&prepared, &row(["b", "a", "c"]), &mut out).unwrap();
    assert_eq!(out.affected(), 3);
}

#[test]
fn pipeline_is_one_write_and_loses_no_answer() {
    let mut session = session(b"$1\r\n1\r\n-OOM full\r\n$1\r\n3\r\n+PONG\r\n", MARKER.len(), None);
    let get = Operation::Get { collection: collection(&[0]), fields: vec![1] };
    let prepared = session.prepare(&get).unwrap();
    let ping = session.prepare(&Operation::Ping).unwrap();
    let mut out: Vec<Reply> = (0..4).map(|_| Reply::new()).collect();
    let keys = [Value::Text("a"), Value::Text("b"), Value::Null, Value::Text("c")];
    let error = session.pipeline(&prepared, &keys, &mut out).unwrap_err();
    // The first of two errors is returned: that of the request that was not sent.
    assert_eq!(error.server_code(), Some("NULL_KEY"));
    let found: Vec<_> = out.iter().map(|reply| reply.field_bytes(0, 0)).collect();
    assert_eq!(found, [Some(&b"1"[..]), None, None, Some(b"3")]);
    session.execute(&ping, &[], &mut out[0]).unwrap();
}

#[test]
fn session_is_unusable_after_a_lost_answer() {
    let mut session = session(b"$5\r\nhel", 99, None);
    let get = Operation::Get { collection: collection(&[0]), fields: vec![1] };
    let prepared = session.prepare(&get).unwrap();
    let mut out = Reply::new();
    for _ in 0..2 {
        let error = session.execute(&prepared, &[Value::Text("a")], &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        assert_eq!(out.rows(), 0);
    }
}

mod fuzz {
    use super::*;

    const WORDS: &[&str] = &[
        "*2\r\n", "%1\r\n", "%2\r\n", "$1\r\n", "$2\r\n", "a\r\n", "ab\r\n", "\r\n", ":1\r\n", ":-1\r\n",
        "+x\r\n", "_\r\n", "-ERR no\r\n", "-NOSCRIPT x\r\n", "|1\r\n", ">1\r\n", "!1\r\n",
    ];

    /// The input is the operation's number, then the answers: as they are, or text with words of the protocol.
    #[test]
    fn any_answers_to_any_operation_are_a_reply_or_an_error() {
        bolero::check!(name = "redis-operations").for_each(|input: &[u8]| {
            let mut parts = Parts::new(input);
            let which = parts.byte() % 9;
            let (piece, with_words) = parts.head();
            let bytes = if with_words { parts.words(WORDS) } else { parts.rest().to_vec() };
            let (one, two) = (collection(&[0]), collection(&[0, 1]));
            let a = Value::Text("a");
            let (operation, parameters) = match which {
                0 => (Operation::Ping, vec![]),
                1 => (Operation::Get { collection: one, fields: vec![1] }, vec![a]),
                2 => (Operation::Insert { collection: one }, vec![a, a]),
                3 => (Operation::Update { collection: one, fields: vec![1] }, vec![a, a]),
                4 => (Operation::InsertMany { collection: one, rows: 1 }, vec![a, a]),
                5 => (Operation::FindEqual { collection: two, by: vec![0], fields: vec![1, 2] }, vec![a]),
                6 => (Operation::InsertMany { collection: two, rows: 1 }, vec![a, Value::Int(1), a]),
                7 => (Operation::Put { collection: two }, vec![a, Value::Int(1), a]),
                _ => (Operation::Delete { collection: two }, vec![a, Value::Int(1)]),
            };
            let mut session = session(&bytes, piece, None);
            let prepared = session.prepare(&operation).unwrap();
            let mut out = [Reply::new(), Reply::new()];
            if session.execute(&prepared, &parameters, &mut out[0]).is_err() {
                assert_eq!(out[0].rows(), 0);
            }
            let _ = session.pipeline(&prepared, &parameters.repeat(2), &mut out);
        });
    }
}
