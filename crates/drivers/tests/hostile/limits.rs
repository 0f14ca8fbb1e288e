//! A client's memory grows by at most 64 MB, whatever a server announces or sends.

use super::server::*;
use kurabe_core::ErrorKind;
use std::fs;
use std::time::{Duration, Instant};

const MAX: u64 = 64 << 20;

/// Reads a line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

/// Describes a server, and checks that this fails in time with at most 64 MB.
fn stays_small(what: &str, template: &str, port: u16) {
    // Resets the peak memory.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    let began = Instant::now();
    let error = describe(template, port);
    let grew = memory("VmHWM").saturating_sub(before);
    assert!(grew <= MAX, "{template}: {what}: grew by {} MB: {error}", grew >> 20);
    assert!(
        matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Protocol),
        "{template}: {what}: {error:?}"
    );
    assert!(began.elapsed() < ALLOWED * 3 + SLACK, "{template}: {what}: {:?}", began.elapsed());
}

fn flood(first: &[u8], again: &[u8]) -> u16 {
    endless(first.to_vec(), again.repeat(65_536 / again.len() + 1), Duration::ZERO)
}

#[test]
fn redis_reply_has_limit() {
    let _alone = alone();
    for (what, port) in [
        ("a string", flood(b"$17179869184\r\n", b"x")),
        ("a string within the limit of length", flood(b"$30000000\r\n", b"x")),
        ("an array", flood(b"*17179869184\r\n", b"_\r\n")),
        ("arrays in arrays", flood(b"*17179869184\r\n", b"*1\r\n+\r\n")),
        ("statistics", flood(&[HELLO, b"$17179869184\r\n"].concat(), b"x")),
        ("pushed messages", flood(b">17179869184\r\n", b"_\r\n")),
    ] {
        stays_small(what, REDIS, port);
    }
}

#[test]
fn mongodb_reply_has_limit() {
    let _alone = alone();
    let second = |header: Vec<u8>, rest: &[u8]| [mongodb_hello(), header, rest.to_vec()].concat();
    let zeros = zstd::encode_all(&*vec![0; 40_000_000], 3).unwrap();
    let compressed = |length: u32| {
        let head = [&2013_u32.to_le_bytes()[..], &length.to_le_bytes(), &[3]].concat();
        second(mongodb_header(16 + 9 + zeros.len() as u32, 2, 2012), &[&head, &*zeros].concat())
    };
    for (what, port) in [
        ("a greeting", flood(&mongodb_header(48_000_000, 1, 2013), b"\0")),
        ("a length of all bits", flood(&mongodb_header(u32::MAX >> 1, 1, 2013), b"\0")),
        ("a reply", flood(&second(mongodb_header(48_000_000, 2, 2013), b""), b"\0")),
        (
            "a reply within the limit of length",
            flood(&second(mongodb_header(20_000_000, 2, 2013), b""), b"\0"),
        ),
        ("messages", flood(&mongodb_hello(), &mongodb_hello())),
        ("compressed content", flood(&compressed(40_000_000), b"\0")),
        ("compressed content that is longer than announced", flood(&compressed(20_000_000), b"\0")),
    ] {
        stays_small(what, MONGODB, port);
    }
}

#[test]
fn memcached_reply_has_limit() {
    let _alone = alone();
    let names = generated(VERSION.to_vec(), Duration::ZERO, |n| {
        (0..1_000)
            .flat_map(|k| format!("STAT {} {}\r\n", n * 1_000 + k, "x".repeat(500)).into_bytes())
            .collect()
    });
    stays_small("statistics", MEMCACHED, names);
    stays_small("a line", MEMCACHED, flood(b"VERSION ", b"1"));
}

#[test]
fn http_response_has_limit() {
    let _alone = alone();
    let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 65_536], b"\r\n"].concat();
    for template in [COUCHDB, APPLICATION] {
        for (what, port) in [
            ("a length", flood(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", b"x")),
            ("a body without a length", flood(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"x")),
            ("chunks", flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &chunk)),
            ("a chunk", flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3fffffff\r\n", b"x")),
            ("a head", flood(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n")),
            ("a field", flood(b"HTTP/1.1 200 OK\r\na: ", b"b")),
        ] {
            stays_small(what, template, port);
        }
    }
}

#[test]
fn postgres_reply_has_limit() {
    let _alone = alone();
    let login = postgres_login();
    let row = |fields: &[u8]| message(b'D', fields);
    let nulls = row(&[&1_000u16.to_be_bytes()[..], &[0xff; 4_000]].concat());
    let long = row(&[&1u16.to_be_bytes()[..], &60_000u32.to_be_bytes(), &vec![b'x'; 60_000]].concat());
    let announced = [&login[..], b"D\x7f\xff\xff\xff\0\x01\x7f\xff\xff\x00"].concat();
    for (what, port) in [
        ("rows", flood(&login, &long)),
        ("empty fields", flood(&login, &nulls)),
        ("a long field", flood(&announced, b"x")),
        ("a description", flood(&[&login[..], b"T\x7f\xff\xff\xff"].concat(), b"x")),
        ("a description within its limit", flood(&[&login[..], b"T\x00\xff\xff\xff"].concat(), b"x")),
        ("an error", flood(b"E\x7f\xff\xff\xff", b"x")),
        ("a notice", flood(b"N\x7f\xff\xff\xff", b"x")),
    ] {
        stays_small(what, POSTGRES, port);
    }
}

#[test]
fn mysql_reply_has_limit() {
    let _alone = alone();
    // One column, its definition, and its end.
    let head = |columns: &[u8]| [mysql_login(), packet(1, columns)].concat();
    let definition = b"\x03def\0\0\0\0\0\x0c\x2d\0\xff\xff\0\0\xfd\0\0\0\0\0";
    let result = [head(b"\x01"), packet(2, definition), packet(3, b"\xfe\0\0\x02\0")].concat();
    // Sequence numbers wrap.
    let rows = |body: Vec<u8>| {
        let result = result.clone();
        generated(result, Duration::ZERO, move |n| {
            (0..4_096u64).flat_map(|k| packet((n * 4_096 + k + 4) as u8, &body)).collect()
        })
    };
    let long = [&result[..], b"\xff\xff\xff\x04\xfe\0\0\0\0\x04\0\0\0"].concat();
    for (what, port) in [
        ("rows", rows(vec![b'x'; 121])),
        ("empty fields", rows(vec![0xfb])),
        ("a long field", flood(&long, b"x")),
        ("columns", {
            generated(head(b"\xfe\0\0\0\0\x01\0\0\0"), Duration::ZERO, |_| packet(2, b"x").repeat(1_000))
        }),
        ("a greeting", flood(b"\xff\xff\xff\0\x0a", b"x")),
    ] {
        stays_small(what, MYSQL, port);
    }
}
