//! Misbehaving clients.

use super::common::{App, Said, serve_beside_idle_connections};
use kurabe_testbed::testing;
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn invalid_request_gets_error_status_and_server_continues() {
    let app = App::start("null:", &[]);
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "x: y\r\n".repeat(1_000));
    for (bytes, status) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage"[..], 400),
        (b"hello there\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET /kv/write HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"POST /kv/read HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET /kv/read HTTP/1.1\r\nHost: kurabe.example\r\n\r\n", 421),
        (b"POST /kv/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 413),
        (b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /kv/read?key=1;drop HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"POST /kv/write?key=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /kv/read?key=501 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /kv/read?key=18446744073709551615 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (long.as_bytes(), 431),
        (many.as_bytes(), 431),
    ] {
        let said = app.send(bytes);
        assert_eq!(said.status, status, "{}: {said:?}", String::from_utf8_lossy(bytes));
        assert!(said.body.ends_with('\n') && said.body.len() > 5, "no reason: {said:?}");
        assert_eq!(app.get("/kv/read").status, 200);
    }
    assert_eq!(app.stop().code, Some(0));
}

#[test]
fn slow_request_gets_408_and_idle_connection_is_closed() {
    let app = App::start("null:", &["--header-time", "2s", "--idle-time", "3s"]);
    let mut slow = app.connect();
    let mut silent = app.connect();
    for piece in [&b"GET /kv/re"[..], b"ad HT", b"TP/1.1\r\nHo"] {
        slow.write_all(piece).unwrap();
        assert_eq!(app.get("/kv/read").status, 200);
    }
    let said = Said::read(&mut slow);
    assert_eq!((said.status, said.field("connection").as_deref()), (408, Some("close")), "{said:?}");
    assert_eq!(slow.read(&mut [0; 10]).unwrap(), 0, "the connection stays");
    assert_eq!(silent.read(&mut [0; 10]).unwrap(), 0, "an idle connection got an answer");
}

#[test]
fn fragmented_or_pipelined_requests_are_answered_in_order() {
    let app = App::start("null:", &[]);
    let mut stream = app.connect();
    for byte in b"GET /kv/read?key=3 HTTP/1.1\r\nHost: localhost\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    assert!(Said::read(&mut stream).body.starts_with("00000000000000000003\n"));
    // Requests are read one at a time: the rest stays for the next.
    stream.write_all(&b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(3)).unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while bytes.windows(5).filter(|five| five == b"\r\nok\n").count() < 3 {
        let n = stream.read(&mut piece).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&piece[..n]);
    }
}

#[test]
fn half_closed_client_is_answered() {
    let app = App::start("sqlite:", &[]);
    for n in 0..200 {
        let mut stream = app.connect();
        stream.write_all(b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        if n % 2 == 0 {
            // Its end arrives after its request.
            std::thread::yield_now();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(Said::read(&mut stream).status, 200);
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "the connection stays");
    }
}

#[test]
fn client_with_trailing_data_gets_its_answer() {
    let app = App::start("null:", &[]);
    for _ in 0..2_000 {
        let mut stream = app.connect();
        stream.set_nodelay(true).unwrap();
        stream.write_all(b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        // It may arrive before the answer, and is then not read; or after the connection was closed.
        let _ = stream.write_all(b"and this\r\n");
        assert_eq!(Said::read(&mut stream).status, 200);
    }
}

#[test]
fn slow_reader_gets_all_answers() {
    const ANSWERS: usize = 40;
    let app = App::start_with("sqlite:", &["--experiment", "session", "--set", "session.payload=1m"]);
    let mut late = app.connect();
    late.write_all(&b"GET /session/read HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(ANSWERS)).unwrap();
    // More than the kernel buffers for a connection: others are served while this one is not read.
    for _ in 0..20 {
        assert_eq!(app.get("/session/read").status, 200);
    }
    let mut all = 0;
    for _ in 0..ANSWERS {
        let said = head_and_length(&mut late);
        assert!(said.0.starts_with("HTTP/1.1 200") && said.1 > 1_000_000, "{said:?}");
        all += said.1;
    }
    assert!(all > ANSWERS * 1_000_000);
    late.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(Said::read(&mut late).body, "ok\n");
}

/// The head of an answer, and the length of its body, which is discarded.
fn head_and_length(stream: &mut TcpStream) -> (String, usize) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let length: usize = length.parse().unwrap();
    stream.read_exact(&mut vec![0; length]).unwrap();
    (head, length)
}

#[test]
fn aborted_requests_do_not_affect_others() {
    let Some(server) = testing::server("postgres") else { return };
    let app = App::start(server.url(), &["--workers", "4"]);
    for n in 0..300 {
        let mut stream = app.connect();
        let request = b"POST /kv/write HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(&request[..if n % 3 == 0 { 20 } else { request.len() }]).unwrap();
        drop(stream);
    }
    let said = app.post("/kv/write");
    assert_eq!(said.status, 200, "{said:?}");
    let answer = app.stop().success();
    // The client had disconnected before the answer; the records exist.
    assert!(answer.err.contains("kv write: "), "{answer:?}");
    assert!(answer.err.contains("all counted on the server"), "{answer:?}");
}

#[test]
fn flood_of_pipelined_requests_delays_neither_others_nor_shutdown() {
    let app = App::start("null:", &["--workers", "1"]);
    for page in ["/", "/kv/read"] {
        let mut flood = app.connect();
        let mut answers = flood.try_clone().unwrap();
        let requests = format!("GET {page} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(1_000);
        std::thread::spawn(move || while flood.write_all(requests.as_bytes()).is_ok() {});
        answers.read_exact(&mut [0; 1]).unwrap();
        // Until the connection ends.
        std::thread::spawn(move || std::io::copy(&mut answers, &mut std::io::sink()));
    }
    for _ in 0..100 {
        assert_eq!(app.get("/kv/read").status, 200);
    }
    assert_eq!(app.stop().code, Some(0));
}

#[test]
fn idle_connections_do_not_block_others() {
    serve_beside_idle_connections(200);
}

#[test]
fn connection_over_limit_gets_error() {
    let place = crate::support::Place::new();
    let args = ["up", "app", "null:", "--listen", "127.0.0.1:0", "--experiment", "kv", "--workers", "1"];
    let mut command = place.command_after("ulimit -n 100", &args);
    let mut child = crate::support::piped(&mut command);
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap().to_owned();
    let connect = || TcpStream::connect(&address).unwrap();
    let mut held: Vec<TcpStream> = (0..100).map(|_| connect()).collect();
    let refused = held.last_mut().map(Said::read).unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("connections are open already"), "{refused:?}");
    assert!(refused.field("retry-after").is_some(), "{refused:?}");
    drop(held);
    let served = crate::support::eventually(60, || {
        let mut stream = connect();
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        (Said::read(&mut stream).status == 200).then_some(())
    });
    assert!(served.is_some(), "it does not recover");
    crate::support::signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
