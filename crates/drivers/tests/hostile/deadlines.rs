//! A reply has one deadline, however it arrives.

use super::server::*;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const PACE: Duration = Duration::from_millis(20);

/// Describes a server, and checks that this fails within the timeout.
fn fails_in_time(what: &str, template: &str, port: u16) -> Error {
    let began = Instant::now();
    let error = describe(template, port);
    let took = began.elapsed();
    assert!(took < ALLOWED + SLACK, "{what}: {took:?}: {error}");
    assert!(matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Protocol), "{what}: {error:?}");
    error
}

/// Describes all servers at the same time, and checks that each fails within the timeout.
fn all_fail_in_time<'a>(servers: impl IntoIterator<Item = (&'a str, &'a str, u16)>, check: fn(&str, &Error)) {
    thread::scope(|scope| {
        for (what, template, port) in servers {
            scope.spawn(move || {
                check(template, &fails_in_time(&format!("{template}: {what}"), template, port));
            });
        }
    });
}

#[test]
fn silent_server_times_out() {
    let _alone = alone();
    let templates = [MYSQL, POSTGRES, REDIS, MEMCACHED, COUCHDB, MONGODB, APPLICATION];
    all_fail_in_time(templates.map(|template| ("silence", template, silent())), |template, error| {
        assert_eq!(error.kind(), ErrorKind::Timeout, "{template}: {error}");
    });
}

#[test]
fn slow_reply_has_one_deadline() {
    let _alone = alone();
    let slow = |first: &[u8], again: &[u8]| endless(first.to_vec(), again.to_vec(), PACE);
    let servers = [
        ("a greeting", MYSQL, slow(b"\xff\xff\0\0\x0a", b"x")),
        ("authentication", MYSQL, slow(&mysql_login()[..60], b"")),
        ("rows", MYSQL, {
            let columns = [mysql_login(), packet(1, b"\x01"), packet(2, b"")].concat();
            slow(&columns, b"")
        }),
        ("a start-up message", POSTGRES, slow(b"R\0\0\xff\xff", b"x")),
        ("ParameterStatus", POSTGRES, { slow(&message(b'R', &[0; 4]), &message(b'S', b"a\0b\0")) }),
        ("notices", POSTGRES, slow(b"", &message(b'N', b"\0"))),
        ("notices to a query", POSTGRES, slow(&postgres_login(), &message(b'N', b"\0"))),
        ("a greeting", REDIS, slow(b"$9999\r\n", b"x")),
        ("pushed messages", REDIS, slow(b"", b">1\r\n+x\r\n")),
        ("pushed messages", REDIS, slow(HELLO, b">1\r\n+x\r\n")),
        ("a version", MEMCACHED, slow(b"VERSION 1", b"1")),
        ("statistics", MEMCACHED, slow(VERSION, b"STAT a 1\r\n")),
        ("a header", MONGODB, slow(b"\x25", b"\0")),
        ("a greeting", MONGODB, slow(&mongodb_header(9_999, 1, 2013), b"\0")),
        ("a reply", MONGODB, slow(&[mongodb_hello(), mongodb_header(9_999, 2, 2013)].concat(), b"\0")),
        ("100 Continue", APPLICATION, slow(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
        ("a head", APPLICATION, slow(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n")),
        ("chunks", APPLICATION, {
            slow(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")
        }),
        ("a body", APPLICATION, slow(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x")),
        ("100 Continue", COUCHDB, slow(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
        ("a head", COUCHDB, slow(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n")),
        ("chunks", COUCHDB, {
            slow(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")
        }),
        ("a body", COUCHDB, slow(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x")),
    ];
    all_fail_in_time(servers, |_, _| {});
}

#[test]
fn endless_stream_times_out() {
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
        fails_in_time(&format!("{template}: {what}"), template, port);
    }
}

#[test]
fn slow_tls_handshake_has_one_deadline() {
    let _alone = alone();
    let slow = || endless(b"\x16\x03\x03\x3f\xff\x02".to_vec(), b"\0".to_vec(), PACE);
    let early = endless(b"S\x16\x03\x03\x3f\xff\x02".to_vec(), b"\0".to_vec(), PACE);
    let servers = [
        ("TLS", "redis://127.0.0.1:{port}?tls=require", slow()),
        ("TLS", "couchdb://127.0.0.1:{port}?tls=require", slow()),
        // PostgreSQL's client rejects bytes received before the handshake, or times out.
        ("TLS", "postgres://u:p@127.0.0.1:{port}/d?tls=require", early),
    ];
    all_fail_in_time(servers, |_, _| {});
}

fn rows() -> Arc<Collection> {
    let text = |name| Field { name, kind: FieldType::LongText };
    Arc::new(Collection::new("kurabe_a", vec![text("id"), text("data")], vec![0]))
}

#[test]
fn request_that_server_does_not_read_has_deadline() {
    let _alone = alone();
    let marker = b"%2\r\n+title\r\n+collections of Kurabe\r\n+kurabe_a\r\n+x\r\n";
    let port = serve(move |mut stream| {
        use std::io::Write as _;
        let _ = stream.write_all(&[HELLO, marker].concat());
        thread::sleep(ALLOWED + SLACK);
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
fn session_is_not_used_again_after_timeout() {
    let _alone = alone();
    let marker = b"VA 30\r\nkurabe collections\nkurabe_a 7\n\r\n";
    let late = |first: Vec<u8>, late: &'static [u8]| {
        serve(move |mut stream| {
            use std::io::Write as _;
            let _ = stream.write_all(&first);
            thread::sleep(ALLOWED + ALLOWED / 2);
            let _ = stream.write_all(late);
            thread::sleep(SLACK);
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
        thread::sleep(ALLOWED);
        // The late reply has arrived by now.
        assert_eq!(ask(), ErrorKind::ConnectionLost, "{template}");
    }
}
