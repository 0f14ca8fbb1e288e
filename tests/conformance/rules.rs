//! Unsupported operations are reported, sessions survive errors, and the namespace keeps its rules.

use super::subject::{Subject, affected, count, data, get, insert, put, run};
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{Namespace, Prepared, Support};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{ErrorKind, Result};
use kurabe_drivers::sql::marker;
use std::sync::Arc;

pub(super) fn facts_are_sane(subject: &Subject) {
    let facts = subject.driver.describe().unwrap();
    for text in [&facts.engine, &facts.version, &facts.client, &facts.transport] {
        assert!(!text.trim().is_empty(), "{facts:?}");
    }
    assert!(facts.version.chars().any(|c| c.is_ascii_digit()), "{}", facts.version);
    assert!(facts.durability.is_some());
    for setting in facts.durability_settings.iter().chain(&facts.settings) {
        assert!(!setting.name.is_empty(), "{setting:?}");
    }
    let limits = &facts.limits;
    for limit in [&limits.connections, &limits.value_bytes, &limits.request_bytes, &limits.parameters] {
        assert!(limit.as_ref().is_none_or(|limit| limit.most > 0 && !limit.set_by.is_empty()), "{limits:?}");
    }
    if let (Some(most), Some(used)) = (&limits.connections, limits.connections_in_use) {
        assert!(used <= most.most, "{limits:?}");
    }
    assert!(facts.notes.iter().all(|note| !note.is_empty()));
}

pub(super) fn what_is_not_supported_is_refused_and_nothing_else(subject: &Subject) {
    let collection = subject.make_plain("support");
    let c = || Arc::clone(&collection);
    let operations = [
        Operation::Ping,
        Operation::Begin,
        Operation::Commit,
        Operation::Rollback,
        get(&collection, &[1]),
        get(&collection, &[0, 1]),
        get(&collection, &[1, 0]),
        insert(&collection),
        Operation::InsertMany { collection: c(), rows: 3 },
        Operation::InsertEach { collection: c(), rows: 3 },
        put(&collection),
        Operation::Update { collection: c(), fields: vec![1] },
        Operation::Delete { collection: c() },
        Operation::FindEqual { collection: c(), by: vec![0], fields: vec![1] },
        Operation::FindRange { collection: c(), by: 0, fields: vec![0, 1] },
        count(&collection),
    ];
    let mut session = subject.session();
    for operation in operations {
        if subject.has(&operation) {
            let prepared =
                session.prepare(&operation).unwrap_or_else(|e| panic!("{}: {e}", operation.name()));
            session.release(prepared).unwrap();
        }
    }
    // Without these nothing can be measured.
    assert!(
        subject.has(&Operation::Ping)
            && subject.has(&get(&collection, &[1]))
            && subject.has(&put(&collection))
    );
    let ping = run(session.as_mut(), &Operation::Ping, &[]).unwrap();
    assert_eq!((ping.rows(), ping.affected()), (0, 0));
    if let Support::No(reason) = subject.driver.capabilities().prepared_statements {
        assert!(!reason.is_empty());
    }
}

pub(super) fn preparing_a_thousand_times_leaves_nothing_behind(subject: &Subject) {
    let collection = subject.make_plain("prepare");
    let session = &mut *subject.session();
    run(session, &put(&collection), &[Value::Text("a"), Value::Bytes(b"1")]).unwrap();
    let get = get(&collection, &[1]);
    let kept = session.prepare(&get).unwrap();
    let mut out = Reply::new();
    for _ in 0..1_000 {
        let prepared = session.prepare(&get).unwrap();
        assert!(prepared.0 < 10, "numbers are not reused: {prepared:?}");
        session.execute(&prepared, &[Value::Text("a")], &mut out).unwrap();
        assert_eq!(out.field_bytes(0, 0), Some(&b"1"[..]));
        session.release(prepared).unwrap();
    }
    // Earlier prepared statements still exist.
    session.execute(&kept, &[Value::Text("a")], &mut out).unwrap();
    assert_eq!(out.field_bytes(0, 0), Some(&b"1"[..]));
    session.release(kept).unwrap();
    // Many at once, released in another order.
    let many: Vec<Prepared> = (0..100).map(|_| session.prepare(&get).unwrap()).collect();
    for prepared in many.iter().rev() {
        session.execute(prepared, &[Value::Text("a")], &mut out).unwrap();
        assert_eq!(out.rows(), 1);
    }
    for prepared in many {
        session.release(prepared).unwrap();
    }
}

pub(super) fn a_wrong_call_is_an_error_and_the_session_goes_on(subject: &Subject) {
    let collection = subject.make_plain("wrong");
    let session = &mut *subject.session();
    let mut out = Reply::new();
    let put = session.prepare(&put(&collection)).unwrap();
    let (a, b) = (Value::Text("a"), Value::Bytes(b"b"));
    for wrong in [&[][..], &[a], &[a, b, b]] {
        assert!(session.execute(&put, wrong, &mut out).is_err(), "{} parameters", wrong.len());
    }
    assert!(session.execute(&Prepared(4_711), &[], &mut out).is_err());
    assert!(session.release(Prepared(4_711)).is_err());
    // A key without a value is the server's error.
    let error = session.execute(&put, &[Value::Null, b], &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
    session.execute(&put, &[a, b], &mut out).unwrap();
    session.release(put).unwrap();
    assert_eq!(data(session, &collection, "a").as_deref(), Some(&b"b"[..]));

    // A collection that does not exist causes an error sooner or later, and the session continues.
    let fields = vec![Field { name: "id", kind: FieldType::Int }, Field { name: "n", kind: FieldType::Int }];
    let nowhere = Arc::new(Collection::new("kurabe_test_nowhere", fields, vec![0]));
    let error = run(session, &get(&nowhere, &[1]), &[Value::Int(1)]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Server | ErrorKind::NotFound), "{error}");
    assert_eq!(data(session, &collection, "a").as_deref(), Some(&b"b"[..]));
}

/// Requests of a pipeline.
const DEPTH: usize = 100;

/// Replies come in the order of the requests; a rejected request affects no other.
pub(super) fn pipeline_answers_are_in_order(subject: &Subject) {
    let collection = subject.make_plain("pipeline");
    let session = &mut *subject.session();
    let insert = session.prepare(&insert(&collection)).unwrap();
    let get = session.prepare(&get(&collection, &[1])).unwrap();
    let mut out: Vec<Reply> = (0..DEPTH).map(|_| Reply::new()).collect();
    if let Support::No(reason) = subject.driver.capabilities().pipelining {
        assert!(!reason.is_empty());
        let error = session.pipeline(&get, &[Value::Text("a")], &mut out[..1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        return;
    }
    // Short ones, and some that fill the buffers of both sides.
    let datum = |n: usize| vec![n as u8; if n % 30 == 7 { 50_000 } else { n }];
    let (ids, rows): (Vec<String>, Vec<Vec<u8>>) = (0..DEPTH).map(|n| (format!("id {n}"), datum(n))).unzip();
    let row = |n: usize| [Value::Text(&ids[n]), Value::Bytes(&rows[n])];
    // Two exist already: they are rejected, the others are not.
    let mut reply = Reply::new();
    for taken in [3, 97] {
        let row = [Value::Text(&ids[taken]), Value::Bytes(b"first")];
        session.execute(&insert, &row, &mut reply).unwrap();
    }
    // The content of an earlier reply must not remain.
    for reply in &mut out {
        reply.push_int(7);
        reply.end_row();
        reply.set_affected(7);
    }
    let all: Vec<Value<'_>> = (0..DEPTH).flat_map(row).collect();
    let error = session.pipeline(&insert, &all, &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
    assert!(error.server_code().is_some(), "{error}");
    for (n, reply) in out.iter().enumerate() {
        let affected = u64::from(![3, 97].contains(&n));
        assert_eq!((reply.rows(), reply.affected()), (0, affected), "insert {n}");
    }
    // Backwards, with a missing one in the middle.
    let mut keys: Vec<Value<'_>> = ids.iter().rev().map(|id| Value::Text(id)).collect();
    keys[50] = Value::Text("absent");
    session.pipeline(&get, &keys, &mut out).unwrap();
    for (n, reply) in out.iter().enumerate() {
        let expected = match DEPTH - 1 - n {
            _ if n == 50 => None,
            3 | 97 => Some(&b"first"[..]),
            n => Some(&rows[n][..]),
        };
        assert!(reply.field_bytes(0, 0) == expected, "get {n}");
        assert_eq!(reply.rows(), usize::from(expected.is_some()), "get {n}");
    }
    // None at all, and too few parameters; the session continues.
    session.pipeline(&get, &[], &mut []).unwrap();
    // More than all buffers hold in both directions: the server stops receiving while it cannot send.
    let many = 20_000;
    let (long, datum) = ("k".repeat(40), vec![7; 2_000]);
    let row = [Value::Text(&long), Value::Bytes(&datum)];
    session.execute(&insert, &row, &mut reply).unwrap();
    let keys = vec![Value::Text(&long); many];
    let mut replies: Vec<Reply> = (0..many).map(|_| Reply::new()).collect();
    session.pipeline(&get, &keys, &mut replies).unwrap();
    assert!(replies.iter().all(|reply| reply.field_bytes(0, 0) == Some(&datum)));
    assert!(session.pipeline(&get, &keys[..9], &mut out[..10]).is_err());
    session.execute(&get, &[Value::Text("id 9")], &mut reply).unwrap();
    assert_eq!(reply.field_bytes(0, 0), Some(&rows[9][..]));
    session.release(insert).unwrap();
    session.release(get).unwrap();
}

pub(super) fn two_sessions_see_each_other(subject: &Subject) {
    let collection = subject.make_plain("two");
    let (mut one, mut two) = (subject.session(), subject.session());
    for n in 0..20u8 {
        let (writer, reader) = if n % 2 == 0 { (&mut one, &mut two) } else { (&mut two, &mut one) };
        run(writer.as_mut(), &put(&collection), &[Value::Text("a"), Value::Bytes(&[n])]).unwrap();
        assert_eq!(data(reader.as_mut(), &collection, "a"), Some(vec![n]));
    }
    // Both at the same time, each with its own rows, none lost.
    std::thread::scope(|scope| {
        for (session, name) in [(&mut one, "x"), (&mut two, "y")] {
            let collection = &collection;
            scope.spawn(move || {
                for n in 0..50 {
                    let id = format!("{name}{n}");
                    run(
                        session.as_mut(),
                        &insert(collection),
                        &[Value::Text(&id), Value::Bytes(id.as_bytes())],
                    )
                    .unwrap();
                }
            });
        }
    });
    for name in ["x", "y"] {
        for n in 0..50 {
            let id = format!("{name}{n}");
            assert_eq!(data(one.as_mut(), &collection, &id), Some(id.into_bytes()));
        }
    }
    one.close().unwrap();
    two.close().unwrap();
}

pub(super) fn a_rollback_takes_back(subject: &Subject) {
    if !subject.has(&Operation::Begin) {
        assert!(!subject.has(&Operation::Commit) && !subject.has(&Operation::Rollback));
        return;
    }
    let collection = subject.make_plain("transaction");
    let (mut one, mut two) = (subject.session(), subject.session());
    let row = |id: &'static str| [Value::Text(id), Value::Bytes(b"new")];
    run(one.as_mut(), &put(&collection), &[Value::Text("old"), Value::Bytes(b"old")]).unwrap();
    run(one.as_mut(), &Operation::Begin, &[]).unwrap();
    run(one.as_mut(), &insert(&collection), &row("a")).unwrap();
    run(one.as_mut(), &put(&collection), &row("old")).unwrap();
    assert!(data(one.as_mut(), &collection, "a").is_some(), "a transaction sees its own rows");
    run(one.as_mut(), &Operation::Rollback, &[]).unwrap();
    for session in [&mut one, &mut two] {
        assert_eq!(data(session.as_mut(), &collection, "a"), None);
        assert_eq!(data(session.as_mut(), &collection, "old").as_deref(), Some(&b"old"[..]));
    }
    run(one.as_mut(), &Operation::Begin, &[]).unwrap();
    run(one.as_mut(), &insert(&collection), &row("a")).unwrap();
    run(one.as_mut(), &Operation::Commit, &[]).unwrap();
    assert!(data(two.as_mut(), &collection, "a").is_some());
    // An aborted transaction has no effect.
    run(one.as_mut(), &Operation::Begin, &[]).unwrap();
    run(one.as_mut(), &insert(&collection), &row("b")).unwrap();
    drop(one);
    for _ in 0..500 {
        if data(two.as_mut(), &collection, "b").is_none() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(affected(two.as_mut(), &insert(&collection), &row("b")), 1);
}

pub(super) fn the_namespace_keeps_its_rules(subject: &Subject) {
    let mut namespace = subject.namespace();
    let collection = subject.make_plain("house");
    let mut session = subject.session();
    let prepared = session.prepare(&put(&collection)).unwrap();
    let mut write = |id: &str| session.execute(&prepared, &[Value::Text(id), Value::Null], &mut Reply::new());
    let rows = |ids: &[&str]| {
        let mut session = subject.session();
        ids.iter()
            .filter(|id| {
                run(session.as_mut(), &get(&collection, &[1]), &[Value::Text(id)]).unwrap().rows() == 1
            })
            .count()
    };
    assert!(namespace.list().unwrap().contains(&collection.name));
    write("a").unwrap();
    assert_eq!(rows(&["a"]), 1);
    namespace.clear(&collection).unwrap();
    assert_eq!(rows(&["a"]), 0, "clear");
    // A statement that was prepared earlier still works.
    write("b").unwrap();
    assert_eq!(rows(&["a", "b"]), 1);
    namespace.create(&collection).unwrap();
    assert_eq!(rows(&["a", "b"]), 0, "create over our own");
    namespace.remove(&collection.name).unwrap();
    assert!(!namespace.list().unwrap().contains(&collection.name));
    namespace.remove(&collection.name).unwrap();
    assert!(namespace.clear(&collection).is_err(), "clear of a missing collection");

    for name in ["users", "kurabe_", "kurabe_A", "kurabe_a;b", "kurabe_a b", "kurabe_marker"] {
        let fields = vec![Field { name: "id", kind: FieldType::Int }];
        let foreign = Collection::new(name, fields, vec![0]);
        let results: [Result<()>; 3] =
            [namespace.create(&foreign), namespace.clear(&foreign), namespace.remove(name)];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::NotOurs, "{name}");
        }
    }
}

/// Makes one of our collections foreign by removing it from the ownership table directly.
pub(super) fn foreign_collection_is_unchanged(subject: &Subject) {
    let collection = subject.make_plain("foreign");
    let marker = Arc::new(marker());
    let session = &mut *subject.session();
    run(session, &put(&collection), &[Value::Text("a"), Value::Bytes(b"theirs")]).unwrap();
    let entry = [Value::Text(&collection.name)];
    let Ok(reply) = run(session, &get(&marker, &[1, 2]), &entry) else {
        // No ownership table: not an SQL engine.
        return;
    };
    let (by, at) = (reply.field_bytes(0, 0).unwrap(), reply.field_int(0, 1).unwrap());
    assert!(by.starts_with(b"kurabe ") && at > 1_600_000_000);
    let by = String::from_utf8(by.to_vec()).unwrap();
    assert_eq!(affected(session, &Operation::Delete { collection: marker.clone() }, &entry), 1);

    let mut namespace = subject.namespace();
    let results =
        [namespace.create(&collection), namespace.clear(&collection), namespace.remove(&collection.name)];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotOurs, "{error}");
        assert!(error.to_string().contains(&collection.name), "{error}");
    }
    assert!(!namespace.list().unwrap().contains(&collection.name));
    assert_eq!(data(session, &collection, "a").as_deref(), Some(&b"theirs"[..]));
    run(session, &insert(&marker), &[entry[0], Value::Text(&by), Value::Int(at)]).unwrap();
    // An entry that others wrote lets an empty collection be removed, on every engine.
    run(session, &Operation::Delete { collection: collection.clone() }, &[Value::Text("a")]).unwrap();
    namespace.remove(&collection.name).unwrap();
}

pub(super) fn a_claim_keeps_others_out(subject: &Subject) {
    let (mut one, mut two) = (subject.namespace(), subject.namespace());
    one.claim("first").unwrap();
    one.claim("first").unwrap();
    // A run may reach a database by two targets.
    let mut same = subject.namespace();
    same.claim("first").unwrap_or_else(|error| panic!("{error}"));
    let refused = |two: &mut Box<dyn Namespace>| {
        let error = two.claim("second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    };
    refused(&mut two);
    refused(&mut two);
    // Dropping a target without the lease does not release the lease.
    drop(same);
    refused(&mut two);
    drop(one);
    // A server may need some time to detect a closed connection.
    for attempt in 0.. {
        match two.claim("second") {
            Ok(()) => break,
            Err(error) => assert!(attempt < 500, "not released: {error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut three = subject.namespace();
    assert_eq!(three.claim("third").unwrap_err().kind(), ErrorKind::InUse);
}
