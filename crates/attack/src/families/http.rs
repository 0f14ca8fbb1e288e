//! Misbehaving clients of `kurabe up app`: floods, slow requests, invalid and huge heads, wrong methods, half closes,
//! resets.
//!
//! Survived: meanwhile and afterwards valid requests are answered with 200 within 10 s, its peak memory stays within 64
//! MB of the earlier one, and at Ctrl-C it exits with a documented code within 10 s.

use crate::app::App;
use crate::case::{Case, Outcome};
use crate::context::Context;
use crate::process;
use crate::random::Random;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
const GROWTH_KB: u64 = 64 * 1024;
/// The number of tries on one application.
const BATCH: usize = 20;

/// A misbehaving client; it lasts as long as its connections are kept.
type Odd = fn(u16, &mut Random) -> std::io::Result<Vec<TcpStream>>;

const KINDS: [(&str, Odd); 7] = [
    ("flood", flood),
    ("slow", slow),
    ("head", head),
    ("huge-head", huge),
    ("method", method),
    ("half-close", half),
    ("many", many),
];

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let case = |(kind, odd): (&'static str, Odd)| {
        Case::new("http", kind, "app", BATCH, move |context, seed, tries| {
            attack(context, odd, seed, tries).unwrap_or_else(|why| vec![Outcome::Failed(why)])
        })
    };
    KINDS.into_iter().map(case).collect()
}

fn attack(context: &Context, odd: Odd, seed: u64, tries: usize) -> Result<Vec<Outcome>, String> {
    let place = context.place()?;
    let mut random = Random::new(seed);
    let target = *random.pick(&["null:", "sqlite:"]);
    let app = App::start(&place, target)?;
    let port = app.port;
    let mut outcomes = Vec::new();
    let mut kept = Vec::new();
    ask(port)?;
    let before = process::peak_kb(app.running.pid());
    for _ in 0..tries {
        // The server may close the connection before the end.
        kept.extend(odd(port, &mut random).unwrap_or_default());
        let grown = process::peak_kb(app.running.pid()).saturating_sub(before);
        let complaint = ask(port)
            .err()
            .or_else(|| (grown > GROWTH_KB).then(|| format!("memory grew by {} MB", grown / 1024)));
        outcomes.push(Outcome::of(complaint));
        if kept.len() > 100 {
            kept.clear();
        }
    }
    // Its clients are still connected.
    let ran = app.stop();
    drop(kept);
    if let (Some(complaint), Some(last)) = (ran.unclean(&[0, 130]), outcomes.last_mut()) {
        *last = Outcome::Failed(format!("at Ctrl-C: {complaint}"));
    }
    Ok(outcomes)
}

/// Checks that a valid request is answered.
fn ask(port: u16) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("a right request: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let request = b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).map_err(failed)?;
    let mut said = String::new();
    stream.read_to_string(&mut said).map_err(failed)?;
    let first = said.lines().next().unwrap_or_default();
    if first.starts_with("HTTP/1.1 200") {
        Ok(())
    } else {
        Err(format!("a right request was answered '{first}'"))
    }
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    Ok(stream)
}

/// A connection on which these bytes were sent.
fn sent(port: u16, bytes: &[u8]) -> std::io::Result<Vec<TcpStream>> {
    let mut stream = connect(port)?;
    stream.write_all(bytes)?;
    Ok(vec![stream])
}

/// Thousands of requests whose answers are not read.
fn flood(port: u16, random: &mut Random) -> std::io::Result<Vec<TcpStream>> {
    let mut stream = connect(port)?;
    let requests = b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(500);
    for _ in 0..=random.below(20) {
        if stream.write_all(&requests).is_err() {
            break;
        }
    }
    Ok(vec![stream])
}

/// A request that is never finished.
fn slow(port: u16, random: &mut Random) -> std::io::Result<Vec<TcpStream>> {
    let request = b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(port)?;
        stream.write_all(&request[..random.below(request.len())])?;
        streams.push(stream);
    }
    Ok(streams)
}

/// Bytes that are not a head, or nearly one.
fn head(port: u16, random: &mut Random) -> std::io::Result<Vec<TcpStream>> {
    let mut bytes = b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len());
        bytes[at] = random.number() as u8;
    }
    sent(port, &bytes)
}

/// A head without an end.
fn huge(port: u16, random: &mut Random) -> std::io::Result<Vec<TcpStream>> {
    let mut stream = connect(port)?;
    let start: &[&[u8]] = &[b"GET /", b"GET / HTTP/1.1\r\nHost: ", b"GET / HTTP/1.1\r\nHost: localhost\r\n"];
    stream.write_all(start[random.below(start.len())])?;
    let line: &[&[u8]] = &[b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"];
    let block = line[random.below(line.len())].repeat(2_000);
    for _ in 0..100 {
        if stream.write_all(&block).is_err() {
            break;
        }
    }
    Ok(vec![stream])
}

/// Methods, versions and bodies that are not served.
fn method(port: u16, random: &mut Random) -> std::io::Result<Vec<TcpStream>> {
    let requests: &[&[u8]] = &[
        b"POST /kv/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /kv/write HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /kv/read?key=%00%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ];
    sent(port, requests[random.below(requests.len())])
}

/// Clients that close their half, or reset, before or after their request.
fn half(port: u16, random: &mut Random) -> std::io::Result<Vec<TcpStream>> {
    let request = b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for _ in 0..50 {
        let mut stream = connect(port)?;
        stream.write_all(&request[..random.below(request.len() + 1)])?;
        if random.below(2) == 0 {
            stream.shutdown(Shutdown::Write)?;
        }
        // Dropping it with an unread answer causes a reset.
    }
    Ok(Vec::new())
}

/// Connections that send nothing.
fn many(port: u16, _: &mut Random) -> std::io::Result<Vec<TcpStream>> {
    (0..50).map(|_| connect(port)).collect()
}
