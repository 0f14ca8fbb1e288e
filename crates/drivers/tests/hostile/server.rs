//! A hostile server on loopback. Its replies do not depend on the requests.

use kurabe_core::Error;
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::target::TargetUrl;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Timeout in these tests.
pub(crate) const ALLOWED: Duration = Duration::from_secs(1);
/// Tolerance on a busy machine.
pub(crate) const SLACK: Duration = Duration::from_secs(8);

/// Runs one test at a time, because tests measure the memory of the process; sets the timeout.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ConnectOptions::within(ALLOWED).make_default();
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves each connection in a separate thread until the process ends; returns the port.
pub(crate) fn serve(each: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let each = each.clone();
            thread::spawn(move || each(stream));
        }
    });
    port
}

/// Sends `first` at once, then `again` repeatedly at intervals of `pace`, until the client disconnects. Requests are
/// read and discarded.
pub(crate) fn endless(first: Vec<u8>, again: Vec<u8>, pace: Duration) -> u16 {
    generated(first, pace, move |_| again.clone())
}

/// As [`endless`], with another piece each time.
pub(crate) fn generated(
    first: Vec<u8>,
    pace: Duration,
    piece: impl Fn(u64) -> Vec<u8> + Send + Sync + Clone + 'static,
) -> u16 {
    serve(move |mut stream| {
        let _ = stream.set_nodelay(true);
        discard_requests(&stream);
        if stream.write_all(&first).is_err() {
            return;
        }
        for n in 0.. {
            if stream.write_all(&piece(n)).is_err() {
                return;
            }
            if !pace.is_zero() {
                thread::sleep(pace);
            }
        }
    })
}

/// Accepts connections and sends nothing.
pub(crate) fn silent() -> u16 {
    serve(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    })
}

fn discard_requests(stream: &TcpStream) {
    let mut requests = stream.try_clone().unwrap();
    thread::spawn(move || while requests.read(&mut [0; 4_096]).is_ok_and(|got| got > 0) {});
}

/// Sends `answers` at once, and ends the connection when the client's bytes end with `goodbye`.
pub(crate) fn until_goodbye(answers: Vec<u8>, goodbye: &'static [u8]) -> u16 {
    serve(move |mut stream| {
        let _ = stream.write_all(&answers);
        let mut received = Vec::new();
        let mut buffer = [0; 4_096];
        while let Ok(got @ 1..) = stream.read(&mut buffer) {
            received.extend_from_slice(&buffer[..got]);
            if received.ends_with(goodbye) {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    })
}

pub(crate) fn open(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// The URL of a server of this kind: `{port}` becomes its port.
pub(crate) fn url(template: &str, port: u16) -> String {
    template.replace("{port}", &port.to_string())
}

pub(crate) fn describe(template: &str, port: u16) -> Error {
    let described = open(&url(template, port)).describe();
    described.map(|facts| facts.engine).expect_err(template)
}

pub(crate) const MYSQL: &str = "mysql://u:p@127.0.0.1:{port}/d";
pub(crate) const POSTGRES: &str = "postgres://u:p@127.0.0.1:{port}/d";
pub(crate) const REDIS: &str = "redis://127.0.0.1:{port}";
pub(crate) const MEMCACHED: &str = "memcached://127.0.0.1:{port}";
pub(crate) const COUCHDB: &str = "couchdb://127.0.0.1:{port}";
pub(crate) const MONGODB: &str = "mongodb://127.0.0.1:{port}/d";
pub(crate) const APPLICATION: &str = "http://127.0.0.1:{port}";

pub(crate) const HELLO: &[u8] = b"%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n";
pub(crate) const VERSION: &[u8] = b"VERSION 1.6.18\r\n";

/// Encodes a MySQL packet.
pub(crate) fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&[length[0], length[1], length[2], number], body].concat()
}

/// MySQL's greeting, and OK to the client's response.
pub(crate) fn mysql_login() -> Vec<u8> {
    let mut greeting = b"\x0a9.7.4\0\x01\0\0\0abcdefgh\0".to_vec();
    // Protocol 4.1, secure connection, plugin authentication; no DEPRECATE_EOF.
    let capabilities = (1u32 | 1 << 3 | 1 << 9 | 1 << 15 | 1 << 19).to_le_bytes();
    greeting.extend_from_slice(&capabilities[..2]);
    greeting.extend_from_slice(&[45, 2, 0]);
    greeting.extend_from_slice(&capabilities[2..]);
    greeting.push(21);
    greeting.extend_from_slice(&[0; 10]);
    greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    [packet(0, &greeting), mysql_ok(2)].concat()
}

pub(crate) fn mysql_ok(number: u8) -> Vec<u8> {
    packet(number, &[0, 0, 0, 2, 0, 0, 0])
}

/// Encodes a PostgreSQL message.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind], &length[..], body].concat()
}

/// PostgreSQL's replies to a successful login.
pub(crate) fn postgres_login() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'Z', b"I")].concat()
}

/// The start of a MongoDB message of this length that answers a request.
pub(crate) fn mongodb_header(length: u32, answers: u32, code: u32) -> Vec<u8> {
    [length, 1, answers, code].map(u32::to_le_bytes).concat()
}

/// MongoDB's reply to `hello`, the first request.
pub(crate) fn mongodb_hello() -> Vec<u8> {
    let hello = b"\x21\0\0\0\x10maxWireVersion\0\x15\0\0\0\x10ok\0\x01\0\0\0\0";
    let length = 16 + 5 + hello.len() as u32;
    [&mongodb_header(length, 1, 2013)[..], &[0; 5], hello].concat()
}
