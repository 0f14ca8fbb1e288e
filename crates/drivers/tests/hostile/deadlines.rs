//! One answer has one deadline, however it arrives.

use super::server::*;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PACE: Duration = Duration::from_millis(20);

/// Asks a server what it is, which fails within the time allowed.
fn ends(what: &str, template: &str, port: u16) -> Error {
    let began = Instant::now();
    let error = describe(template, port);
    let took = began.elapsed();
    assert!(took < ALLOWED + SLACK, "{what}: {took:?}: {error}");
    assert!(matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Protocol), "{what}: {error:?}");
    error
}

#[test]
fn silent_server_is_given_up() {
    let _alone = alone();
    for template in [MYSQL, POSTGRES, REDIS, MEMCACHED, COUCHDB, APPLICATION] {
        let error = ends("silence", template, silent());
        assert_eq!(error.kind(), ErrorKind::Timeout, "{template}: {error}");
    }
}

#[test]
fn answer_that_drips_has_one_deadline() {
    let _alone = alone();
    let dripping = |first: &[u8], again: &[u8]| endless(first.to_vec(), again.to_vec(), PACE);
    for (what, template, port) in [
        ("a greeting", MYSQL, dripping(b"\xff\xff\0\0\x0a", b"x")),
        ("authentication", MYSQL, dripping(&mysql_login()[..60], b"")),
        ("rows", MYSQL, {
            let columns = [mysql_login(), packet(1, b"\x01"), packet(2, b"")].concat();
            dripping(&columns, b"")
        }),
        ("a start-up message", POSTGRES, dripping(b"R\0\0\xff\xff", b"x")),
        ("ParameterStatus", POSTGRES, { dripping(&message(b'R', &[0; 4]), &message(b'S', b"a\0b\0")) }),
        ("notices", POSTGRES, dripping(b"", &message(b'N', b"\0"))),
        ("notices to a query", POSTGRES, dripping(&postgres_login(), &message(b'N', b"\0"))),
        ("a greeting", REDIS, dripping(b"$9999\r\n", b"x")),
        ("pushed messages", REDIS, dripping(b"", b">1\r\n+x\r\n")),
        ("pushed messages", REDIS, dripping(HELLO, b">1\r\n+x\r\n")),
        ("a version", MEMCACHED, dripping(b"VERSION 1", b"1")),
        ("statistics", MEMCACHED, dripping(VERSION, b"STAT a 1\r\n")),
        ("100 Continue", APPLICATION, dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
        ("a head", APPLICATION, dripping(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n")),
        ("chunks", APPLICATION, {
            dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")
        }),
        ("a body", APPLICATION, dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x")),
        ("100 Continue", COUCHDB, dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
        ("a head", COUCHDB, dripping(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n")),
        ("chunks", COUCHDB, {
            dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")
        }),
        ("a body", COUCHDB, dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x")),
    ] {
        ends(&format!("{template}: {what}"), template, port);
    }
}

#[test]
fn stream_without_end_is_given_up() {
    let _alone = alone();
    let flooding = |first: &[u8], again: &[u8]| endless(first.to_vec(), again.repeat(2_000), Duration::ZERO);
    for (what, template, port) in [
        ("ParameterStatus", POSTGRES, flooding(&message(b'R', &[0; 4]), &message(b'S', b"a\0b\0"))),
        ("notices", POSTGRES, flooding(&postgres_login(), &message(b'N', b"\0"))),
        ("pushed messages", REDIS, flooding(HELLO, b">1\r\n+x\r\n")),
        ("attributes", REDIS, flooding(b"", b"|1\r\n+x\r\n+y\r\n")),
        ("statistics", MEMCACHED, flooding(VERSION, b"STAT a 1\r\n")),
        ("100 Continue", APPLICATION, flooding(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
        ("trailers", APPLICATION, {
            flooding(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n")
        }),
        ("100 Continue", COUCHDB, flooding(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
    ] {
        ends(&format!("{template}: {what}"), template, port);
    }
}

#[test]
fn tls_handshake_that_drips_has_one_deadline() {
    let _alone = alone();
    let drip = || endless(b"\x16\x03\x03\x3f\xff\x02".to_vec(), b"\0".to_vec(), PACE);
    ends("TLS", "redis://127.0.0.1:{port}?tls=require", drip());
    ends("TLS", "couchdb://127.0.0.1:{port}?tls=require", drip());
    let drip = || endless(b"S\x16\x03\x03\x3f\xff\x02".to_vec(), b"\0".to_vec(), PACE);
    // PostgreSQL's client refuses bytes that came before the handshake, or gives it up.
    ends("TLS", "postgres://u:p@127.0.0.1:{port}/d?tls=require", drip());
}

fn rows() -> Arc<Collection> {
    let text = |name| Field { name, kind: FieldType::LongText };
    Arc::new(Collection::new("kurabe_a", vec![text("id"), text("data")], vec![0]))
}

#[test]
fn request_that_the_server_does_not_take_has_a_deadline() {
    let _alone = alone();
    let marker = b"%2\r\n+title\r\n+collections of Kurabe\r\n+kurabe_a\r\n+x\r\n";
    let port = serve(move |mut stream| {
        use std::io::Write as _;
        let _ = stream.write_all(&[HELLO, marker].concat());
        std::thread::sleep(ALLOWED + SLACK);
    });
    let mut session = open(&url(REDIS, port)).connect(&ConnectOptions::default()).unwrap();
    let put = session.prepare(&Operation::Put { collection: rows() }).unwrap();
    let long = "x".repeat(64 << 20);
    let began = Instant::now();
    let error =
        session.execute(&put, &[Value::Text("a"), Value::Text(&long)], &mut Reply::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(began.elapsed() < ALLOWED + SLACK, "{:?}", began.elapsed());
}

#[test]
fn session_is_not_used_again_after_a_timeout() {
    let _alone = alone();
    let marker = b"VA 30\r\nkurabe collections\nkurabe_a 7\n\r\n";
    let late = |first: Vec<u8>, late: &'static [u8]| {
        serve(move |mut stream| {
            use std::io::Write as _;
            let _ = stream.write_all(&first);
            std::thread::sleep(ALLOWED + ALLOWED / 2);
            let _ = stream.write_all(late);
            std::thread::sleep(SLACK);
        })
    };
    let redis = b"%2\r\n+title\r\n+collections of Kurabe\r\n+kurabe_a\r\n+x\r\n";
    for (template, port) in [
        (MEMCACHED, late([VERSION, marker].concat(), b"EN\r\nEN\r\n")),
        (REDIS, late([HELLO, redis].concat(), b"_\r\n_\r\n")),
    ] {
        let mut session = open(&url(template, port)).connect(&ConnectOptions::default()).unwrap();
        let get = session.prepare(&Operation::Get { collection: rows(), fields: vec![1] }).unwrap();
        let mut ask = || session.execute(&get, &[Value::Text("a")], &mut Reply::new()).unwrap_err().kind();
        assert_eq!(ask(), ErrorKind::Timeout, "{template}");
        std::thread::sleep(ALLOWED);
        // The late answer is there by now.
        assert_eq!(ask(), ErrorKind::ConnectionLost, "{template}");
    }
}
