//! What the MongoDB driver has beyond the conformance body: one connection a session, errors, TLS, limits.

mod fake;
mod login;
mod protocol;

use crate::common::{once as run, open};
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver, Session, Support};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::operation::Operation;
use kurabe_core::value::Value;
use kurabe_core::{Error, ErrorKind};
use kurabe_testbed::{Server, StartOptions, testing};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What connecting may take in these tests: what is known at once must not wait for it.
const ALLOWED: Duration = Duration::from_secs(12);
/// Less than that, and much more than a busy machine needs.
const AT_ONCE: Duration = Duration::from_secs(8);

fn connect(driver: &dyn Driver) -> Box<dyn Session> {
    driver.connect(&ConnectOptions::default()).unwrap()
}

fn refused(url: &str) -> Error {
    let options = ConnectOptions::within(ALLOWED);
    open(url).connect(&options).err().unwrap()
}

fn collection_of(name: &'static str) -> Arc<Collection> {
    let fields =
        vec![Field { name: "id", kind: FieldType::Int }, Field { name: "data", kind: FieldType::LongBytes }];
    Arc::new(Collection::new(name, fields, vec![0]))
}

fn collection(driver: &dyn Driver) -> Arc<Collection> {
    let collection = collection_of("kurabe_test_mongodb");
    driver.namespace().unwrap().create(&collection).unwrap();
    collection
}

/// Connections to the server that the system knows as established, by the port of their other end.
fn connections(server: &Server) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = format!(":{:04X}", server.port());
    let established = |fields: &Vec<&str>| fields[2].ends_with(&port) && fields[3] == "01";
    let mut found: Vec<String> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(established)
        .map(|fields| fields[1].to_owned())
        .collect();
    found.sort();
    found
}

fn eventually(server: &Server, sessions: usize) {
    let until = Instant::now() + Duration::from_secs(30);
    while connections(server).len() != sessions {
        assert!(Instant::now() < until, "{} connections, {sessions} sessions", connections(server).len());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_session_is_one_connection_from_its_beginning_to_its_end() {
    let Some(server) = testing::server("mongodb") else { return };
    let driver = open(server.url());
    let collection = collection(driver.as_ref());
    let count = Operation::Count { collection };
    let mut sessions: Vec<_> = (0..20).map(|_| connect(driver.as_ref())).collect();
    eventually(&server, 20);
    for session in &mut sessions {
        run(session.as_mut(), &count, &[]).unwrap();
    }
    eventually(&server, 20);
    // All are busy, some more come: those have connections of their own too.
    std::thread::scope(|scope| {
        for session in &mut sessions {
            scope.spawn(|| (0..50).for_each(|_| drop(run(session.as_mut(), &count, &[]).unwrap())));
        }
        let more: Vec<_> = (0..5).map(|_| connect(driver.as_ref())).collect();
        drop(more);
    });
    sessions.truncate(3);
    eventually(&server, 3);
    for session in sessions {
        session.close().unwrap();
    }
    eventually(&server, 0);
}

#[test]
fn a_session_for_each_request_opens_a_connection_each_time() {
    let Some(server) = testing::server("mongodb") else { return };
    let driver = open(server.url());
    let mut seen = std::collections::HashSet::new();
    for _ in 0..10 {
        let mut session = connect(driver.as_ref());
        run(session.as_mut(), &Operation::Ping, &[]).unwrap();
        seen.extend(connections(&server));
        session.close().unwrap();
    }
    assert!(seen.len() >= 10, "{seen:?}");
}

#[test]
fn a_closed_port_is_said_at_once() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let started = Instant::now();
    let error = refused(&format!("mongodb://bob:hunter2@127.0.0.1:{free}/db"));
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains(&format!("nothing listens at 127.0.0.1:{free}")), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    let error = refused("mongodb:?socket=/nowhere/mongodb-1.sock");
    assert!(error.to_string().contains("no server listens at /nowhere/mongodb-1.sock"), "{error}");
}

#[test]
fn what_does_not_speak_the_protocol_is_said_so() {
    for (answer, words) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..],
            &["protocol", "closed the connection"][..],
        ),
        (b"", &["closed the connection"]),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 512]);
                let _ = stream.write_all(answer);
            }
        });
        let started = Instant::now();
        let error = refused(&format!("mongodb://127.0.0.1:{port}/db")).to_string();
        assert!(words.iter().any(|word| error.contains(word)), "{error}");
        assert!(error.len() < 400 && !error.contains("Kind:"), "{error}");
        assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    }
}

#[test]
fn a_user_whom_the_server_does_not_let_in_is_told_so() {
    let Some(server) = testing::server("mongodb") else { return };
    let error = refused(&format!("mongodb://bob:hunter2@127.0.0.1:{}/db?authSource=admin", server.port()));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("authSource") && !error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn tls_is_spoken_where_both_want_it_and_said_where_one_does_not() {
    let Some(plain) = testing::server("mongodb") else { return };
    let Some(server) = testing::server_with("mongodb", StartOptions::with_tls) else { return };
    let ca = server.ca().unwrap().display();
    let driver = open(&format!("{}&tls=true&tlsCAFile={ca}", server.url()));
    assert_eq!(driver.describe().unwrap().transport, "TCP with TLS 1.3");
    let error = refused(&format!("{}&tls=true", server.url()));
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("tlsCAFile=FILE"), "{error}");
    let error = refused(server.url()).to_string();
    assert!(error.contains("tls=true"), "{error}");
    let error = refused(&format!("{}&tls=true", plain.url())).to_string();
    assert!(error.contains("TLS") && error.len() < 400, "{error}");
}

#[test]
fn requests_are_compressed_where_the_server_takes_it_and_go_in_the_clear_where_it_does_not() {
    let Some(server) = testing::server("mongodb") else { return };
    let driver = open(&format!("{}&compressors=zstd,zlib", server.url()));
    let collection = collection(driver.as_ref());
    let mut session = connect(driver.as_ref());
    let data = vec![7; 300_000];
    let put = Operation::Put { collection: collection.clone() };
    run(session.as_mut(), &put, &[Value::Int(1), Value::Bytes(&data)]).unwrap();
    let get = Operation::Get { collection, fields: vec![1] };
    let reply = run(session.as_mut(), &get, &[Value::Int(1)]).unwrap();
    assert!(reply.field_bytes(0, 0) == Some(&data[..]));
}

#[test]
fn a_document_that_is_too_large_is_the_limit_and_the_session_goes_on() {
    let Some(server) = testing::server("mongodb") else { return };
    let driver = open(server.url());
    let most = driver.describe().unwrap().limits.value_bytes.unwrap().most as usize;
    let collection = collection(driver.as_ref());
    let mut session = connect(driver.as_ref());
    let insert = Operation::Insert { collection: collection.clone() };
    let data = vec![1; most + 100_000];
    let error = run(session.as_mut(), &insert, &[Value::Int(2), Value::Bytes(&data)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    run(session.as_mut(), &insert, &[Value::Int(1), Value::Bytes(&data[..most])]).unwrap();
    let reply = run(session.as_mut(), &Operation::Count { collection }, &[]).unwrap();
    assert_eq!(reply.field_int(0, 0), Some(1));
}

#[test]
fn options_that_applications_have_in_their_connection_strings_are_taken() {
    let Some(server) = testing::server("mongodb") else { return };
    let options =
        "readPreference=secondaryPreferred&maxPoolSize=1&minPoolSize=1&maxIdleTimeMS=1000&retryWrites=true";
    let driver = open(&format!("{}&{options}", server.url()));
    let facts = driver.describe().unwrap();
    for part in ["readPreference=secondaryPreferred", "maxPoolSize=1 is not used"] {
        assert!(facts.notes.iter().any(|note| note.contains(part)), "{part}: {:?}", facts.notes);
    }
    let collection = collection(driver.as_ref());
    let mut sessions: Vec<_> = (0..3).map(|_| connect(driver.as_ref())).collect();
    for (n, session) in (0..).zip(&mut sessions) {
        let put = Operation::Put { collection: collection.clone() };
        run(session.as_mut(), &put, &[Value::Int(n), Value::Bytes(b"x")]).unwrap();
        let get = Operation::Get { collection: collection.clone(), fields: vec![1] };
        assert_eq!(run(session.as_mut(), &get, &[Value::Int(n)]).unwrap().rows(), 1);
    }
    eventually(&server, 3);
}

#[test]
fn the_substitute_says_what_it_is_and_what_it_does_not_promise() {
    let Some(server) = testing::server("mongodb") else { return };
    if !server.program().ends_with("ferretdb-users") {
        return;
    }
    let mut driver = open(&format!("{}&journal=true", server.url()));
    let facts = driver.describe().unwrap();
    assert_eq!((facts.engine.as_str(), facts.version.as_str()), ("FerretDB", server.version()));
    assert_eq!(facts.durability, Some(DurabilityClass::OsCache));
    let error = driver.require_durability(DurabilityClass::Synced).unwrap_err().to_string();
    assert!(error.contains("'os-cache'") && error.contains("no write concern makes it 'synced'"), "{error}");
    let Support::No(reason) = driver.supports(&Operation::Begin) else { panic!("transactions") };
    assert!(reason.contains("FerretDB"), "{reason}");
}

#[test]
fn a_server_that_is_killed_ends_its_sessions_with_an_error_and_in_time() {
    let Some(server) = testing::server("mongodb") else { return };
    let driver = open(server.url());
    let mut session = connect(driver.as_ref());
    run(session.as_mut(), &Operation::Ping, &[]).unwrap();
    server.kill_hard().unwrap();
    let started = Instant::now();
    let error = run(session.as_mut(), &Operation::Ping, &[]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ConnectionLost | ErrorKind::Unreachable), "{error}");
    drop(session);
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    server.restart().unwrap();
    let mut session = connect(driver.as_ref());
    run(session.as_mut(), &Operation::Ping, &[]).unwrap();
}
