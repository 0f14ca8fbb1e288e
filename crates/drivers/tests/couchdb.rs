//! The driver of CouchDB on a real server: its connections, its indexes, its errors.

use crate::common::{once as run, open};
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_relay::{LOOPBACK, Relay, Server, Through};
use kurabe_testbed::testing;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

fn connect(driver: &dyn Driver) -> Result<Box<dyn Session>> {
    driver.connect(&ConnectOptions::within(Duration::from_secs(5)))
}

fn refused<T>(result: Result<T>) -> Error {
    result.err().expect("it must be refused")
}

fn collection(name: &str, indexes: Vec<Vec<usize>>) -> Arc<Collection> {
    let fields = [
        ("id", FieldType::Int),
        ("word", FieldType::LongText),
        ("n", FieldType::Int),
        ("data", FieldType::LongBytes),
    ];
    let fields = fields.map(|(name, kind)| Field { name, kind }).to_vec();
    Arc::new(Collection { indexes, ..Collection::new(name, fields, vec![0]) })
}

#[test]
fn a_session_is_one_connection_for_all_its_requests() {
    let Some(server) = testing::server("couchdb") else { return };
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let relay = Relay::start(LOOPBACK, Server::local(server.port()), move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Arc::new(Through)
    });
    let relay = relay.unwrap();
    let url = server.url().replace(&server.port().to_string(), &relay.address().port().to_string());
    let driver = open(&url);
    let table = collection("kurabe_one", Vec::new());
    open(server.url()).namespace().unwrap().create(&table).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 0);

    let mut session = connect(driver.as_ref()).unwrap();
    let session = session.as_mut();
    let get = Operation::Get { collection: table.clone(), fields: vec![3] };
    let update = Operation::Update { collection: table.clone(), fields: vec![3] };
    let large = vec![7; 300_000];
    for n in 0..20 {
        let row = [Value::Int(n), Value::Text("w"), Value::Int(n), Value::Bytes(&large)];
        run(session, &Operation::Insert { collection: table.clone() }, &row).unwrap();
        assert!(run(session, &Operation::Insert { collection: table.clone() }, &row).is_err());
        assert_eq!(run(session, &get, &row[..1]).unwrap().field_bytes(0, 0), Some(&large[..]));
        assert_eq!(run(session, &get, &[Value::Int(-1)]).unwrap().rows(), 0);
        run(session, &update, &[Value::Null, Value::Int(n)]).unwrap();
        run(session, &Operation::Ping, &[]).unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 1, "of 140 requests");

    // A connection for each request is one, and no hidden one beside it.
    for n in 0..20 {
        let mut session = connect(driver.as_ref()).unwrap();
        assert_eq!(run(session.as_mut(), &get, &[Value::Int(n)]).unwrap().rows(), 1);
        session.close().unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 21);
}

#[test]
fn rows_are_found_by_an_index_byte_for_byte_and_in_order() {
    let Some(server) = testing::server("couchdb") else { return };
    let driver = open(server.url());
    let table = collection("kurabe_index", vec![vec![1, 2], vec![0, 1]]);
    let mut namespace = driver.namespace().unwrap();
    namespace.create(&table).unwrap();
    let mut session = connect(driver.as_ref()).unwrap();
    let session = session.as_mut();
    let count = Operation::Count { collection: table.clone() };
    assert_eq!(run(session, &count, &[]).unwrap().field_int(0, 0), Some(0), "an index is no row");
    for n in (0..60).rev() {
        let word = ["a", "A", "\u{e9}", "e\u{301}"][n as usize % 4];
        let row = [Value::Int(n), Value::Text(word), Value::Int(n % 8), Value::Null];
        run(session, &Operation::Insert { collection: table.clone() }, &row).unwrap();
    }
    assert_eq!(run(session, &count, &[]).unwrap().field_int(0, 0), Some(60));
    let find = |by: &[usize]| Operation::FindEqual {
        collection: table.clone(),
        by: by.to_vec(),
        fields: vec![0, 1],
    };
    let ids =
        |reply: &Reply| (0..reply.rows()).map(|row| reply.field_int(row, 0).unwrap()).collect::<Vec<_>>();
    for (rest, word) in ["a", "A", "\u{e9}", "e\u{301}"].into_iter().enumerate() {
        let found = run(session, &find(&[1]), &[Value::Text(word)]).unwrap();
        assert_eq!(ids(&found), (0..60).filter(|n| n % 4 == rest as i64).collect::<Vec<_>>(), "{word}");
        assert_eq!(found.field_bytes(3, 1), Some(word.as_bytes()));
    }
    let found = run(session, &find(&[1, 2]), &[Value::Text("a"), Value::Int(4)]).unwrap();
    assert_eq!(ids(&found), (0..60).filter(|n| n % 8 == 4).collect::<Vec<_>>());
    assert_eq!(run(session, &find(&[1]), &[Value::Null]).unwrap().rows(), 0);
    for by in [&[2][..], &[0, 1]] {
        assert_eq!(refused(session.prepare(&find(by))).kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn changes_at_the_same_time_are_all_made() {
    let Some(server) = testing::server("couchdb") else { return };
    let driver = open(server.url());
    let table = collection("kurabe_race", Vec::new());
    driver.namespace().unwrap().create(&table).unwrap();
    let row = [Value::Int(1), Value::Text("w"), Value::Int(0), Value::Null];
    run(connect(driver.as_ref()).unwrap().as_mut(), &Operation::Insert { collection: table.clone() }, &row)
        .unwrap();
    thread::scope(|scope| {
        for field in [1, 2] {
            let (driver, table) = (driver.as_ref(), &table);
            scope.spawn(move || {
                let mut session = connect(driver).unwrap();
                let update = Operation::Update { collection: table.clone(), fields: vec![field] };
                for n in 1..=100 {
                    let text = n.to_string();
                    let value = if field == 1 { Value::Text(&text) } else { Value::Int(n) };
                    let done = run(session.as_mut(), &update, &[value, Value::Int(1)]).unwrap();
                    assert_eq!(done.affected(), 1);
                }
            });
        }
    });
    // Each kept what the other had written.
    let get = Operation::Get { collection: table, fields: vec![1, 2] };
    let last = run(connect(driver.as_ref()).unwrap().as_mut(), &get, &[Value::Int(1)]).unwrap();
    assert_eq!((last.field_bytes(0, 0), last.field_int(0, 1)), (Some(&b"100"[..]), Some(100)));
}

#[test]
fn largest_value_follows_the_setting_of_the_server() {
    let choose = |options: kurabe_testbed::StartOptions| options.set("couchdb.max_document_size", 8_000_000);
    let Some(server) = testing::server_with("couchdb", choose) else { return };
    let facts = open(server.url()).describe().unwrap();
    assert_eq!(facts.limits.value_bytes.as_ref().unwrap().most, (8_000_000 - 1_024) / 4 * 3, "{facts:#?}");
    assert!(facts.notes.iter().any(|note| note.contains("two requests")), "{facts:#?}");
}

#[test]
fn a_wrong_password_is_said_and_never_shown() {
    let Some(server) = testing::server_with("couchdb", |options| options.with_password("right")) else {
        return;
    };
    let at = |user: &str| format!("couchdb://{user}127.0.0.1:{}", server.port());
    assert!(open(&at("kurabe:right@")).namespace().is_ok());
    let driver = open(&at("kurabe:hunter2@"));
    for error in [refused(driver.describe()), refused(connect(driver.as_ref())), refused(driver.namespace())]
    {
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("kurabe") && !text.contains("hunter2"), "{text}");
    }
    // Nobody is somebody who may not make databases; and the server is still there.
    let error = refused(open(&at("")).namespace());
    assert!(matches!(error.kind(), ErrorKind::NotPermitted | ErrorKind::Denied), "{error}");
    assert!(open(&at("kurabe:right@")).describe().is_ok());
}

#[test]
fn database_in_memory_promises_nothing() {
    let in_memory = |options: kurabe_testbed::StartOptions| options.set("pouchdb_server.in_memory", "true");
    let Some(server) = testing::server_with("couchdb", in_memory) else { return };
    let facts = open(server.url()).describe().unwrap();
    if facts.engine == "PouchDB Server" {
        assert_eq!(facts.durability, Some(DurabilityClass::Memory), "{facts:#?}");
    }
}

#[test]
fn what_is_no_couchdb_is_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = refused(open(&format!("couchdb://127.0.0.1:{closed}")).describe());
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains(&format!("nothing listens at 127.0.0.1:{closed}")), "{error}");

    for (answer, kind) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"[..],
            ErrorKind::Protocol,
        ),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\n<html>", ErrorKind::Protocol),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"version\":\"8\"}", ErrorKind::Protocol),
        (b"HTTP/1.1 301 Moved\r\nLocation: https://h/\r\nContent-Length: 0\r\n\r\n", ErrorKind::Protocol),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ErrorKind::Protocol),
        (b"", ErrorKind::ConnectionLost),
    ] {
        let error = refused(open(&format!("couchdb://127.0.0.1:{}", speaks(answer))).describe());
        assert_eq!(error.kind(), kind, "{error}");
        let said = error.to_string();
        assert!(said.contains("not CouchDB") || kind == ErrorKind::ConnectionLost, "{said}");
    }
}

/// Answers every connection with these bytes, whatever it says, and closes it.
fn speaks(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(answer);
        }
    });
    port
}

#[test]
fn tls_on_a_plain_port_is_said() {
    let Some(server) = testing::server("couchdb") else { return };
    for url in [
        format!("couchdbs://127.0.0.1:{}", server.port()),
        format!("couchdb://127.0.0.1:{}?tls=require", server.port()),
    ] {
        let error = refused(open(&url).describe());
        assert!(matches!(error.kind(), ErrorKind::Protocol | ErrorKind::ConnectionLost), "{error}");
        assert!(error.to_string().contains("TLS"), "{error}");
    }
}
