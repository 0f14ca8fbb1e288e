//! Servers that never finish an answer: silent, dripping, stalled, endless, or with impossible lengths.
//!
//! Survived: the program ends within twice the deadline of an answer (`--timeout`, 5 s or the default of 30 s) and
//! 20 s for a busy machine, with code 3 or 4 and an error, or with 0 if
//! the missing data was not needed. Its peak memory is at most 64 MB above that of the undisturbed run.

use crate::case::{Case, Outcome};
use crate::context::Context;
use crate::families::hostile::{GROWTH_KB, deadline, judge, limit, meet};
use crate::process;
use crate::random::Random;
use crate::relay::hostile::How;
use crate::server::ENGINES;
use kurabe_relay::{LOOPBACK, Listener};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let kinds: [(&str, &[&str]); 5] = [
        ("silent", &ENGINES),
        ("drip", &ENGINES),
        ("stall", &ENGINES),
        ("endless", &ENGINES),
        ("tls", &["postgres", "redis", "couchdb"]),
    ];
    Case::of_each("tarpit", &kinds, attack).into_iter().map(Case::waiting).collect()
}

/// A server that agrees to TLS and never completes the handshake.
fn tls(context: &Context, engine: &str, seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let how = random.below(3);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let agrees = engine == "postgres";
    let listener = Listener::start(LOOPBACK, move |mut client| {
        let stopped = Arc::clone(&stopped);
        thread::spawn(move || {
            let mut asked = [0; 512];
            let _ = client.read(&mut asked);
            if agrees {
                let _ = client.write_all(b"S");
                let _ = client.read(&mut asked);
            }
            while !stopped.load(Ordering::SeqCst) {
                // A handshake record of 16 kB, one byte a second; or endless small ones.
                let sent = match how {
                    0 => Ok(()),
                    1 => client.write_all(&[0x16, 3, 3, 0x40, 0][..1]),
                    _ => client.write_all(&[0x16, 3, 3, 0, 1, 0].repeat(100)),
                };
                if sent.is_err() {
                    return;
                }
                thread::sleep(if how == 1 { Duration::from_secs(1) } else { Duration::from_millis(20) });
            }
        });
    });
    let listener = listener.map_err(|error| error.to_string())?;
    let port = listener.address().port();
    let url = match engine {
        "postgres" => format!("postgres://kurabe@127.0.0.1:{port}/kurabe?tls=require"),
        "redis" => format!("rediss://127.0.0.1:{port}"),
        _ => format!("couchdbs://kurabe@127.0.0.1:{port}"),
    };
    let place = context.place()?;
    let deadline = deadline(&mut random);
    let seconds = format!("--timeout={}s", deadline.as_secs());
    let ran = process::run(&mut place.command(&["doctor", &url, &seconds]), limit(deadline))?;
    drop(listener);
    stop.store(true, Ordering::SeqCst);
    let complaint = ran.unclean(&[3]).or_else(|| {
        let kb = ran.peak_kb;
        (kb > 2 * GROWTH_KB).then(|| format!("its memory grew to {} MB", kb / 1024))
    });
    let how = ["silent", "dripping", "endless"][how];
    Ok(Outcome::of(complaint.map(|why| format!("{how} after the client's hello: {why}"))))
}

fn attack(context: &Context, kind: &str, engine: &str, seed: u64) -> Result<Outcome, String> {
    if kind == "tls" {
        return tls(context, engine, seed);
    }
    let server = context.waiting_server(engine)?;
    let mut random = Random::new(seed);
    let deadline = deadline(&mut random);
    let how = match kind {
        "silent" => How::Silent,
        // So slow that an answer of three bytes exceeds the deadline.
        "drip" => How::Drip(deadline / 2),
        "stall" => How::Half,
        _ => {
            let (first, pattern) = random.pick(&endless(engine)).clone();
            How::Endless(first, pattern)
        }
    };
    Ok(judge(&meet(context, server, &mut random, deadline, how)?))
}

/// Unbounded messages of an engine's protocol: a beginning, and a repeated part.
fn endless(engine: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let text = |first: &str, pattern: &str| (first.as_bytes().to_vec(), pattern.as_bytes().to_vec());
    let mut all = match engine {
        "redis" => vec![
            text("$17179869184\r\n", "x"),
            text("*17179869184\r\n", ":1\r\n"),
            text("%17179869184\r\n", "+a\r\n:1\r\n"),
            text("", "*1\r\n"),
            text("", ">2\r\n+a\r\n+b\r\n"),
            text("", "|1\r\n+a\r\n+b\r\n"),
            text("+", "x"),
            text("!17179869184\r\n", "x"),
            text("*100000000\r\n", "$1\r\nx\r\n"),
        ],
        "memcached" => vec![
            text("VA 17179869184\r\n", "x"),
            text("VA 99999999999999999999999\r\n", "x"),
            text("", "STAT name value\r\n"),
            text("STAT ", "x"),
            text("VERSION ", "x"),
            text("", "HD\r\n"),
        ],
        "couchdb" => vec![
            text("", "HTTP/1.1 100 Continue\r\n\r\n"),
            text("HTTP/1.1 200 OK\r\n", "X-Name: value\r\n"),
            text("HTTP/1.1 200 OK\r\nContent-Length: 17179869184\r\n\r\n", "x"),
            text("HTTP/1.1 200 OK\r\nContent-Length: 17179869184\r\n\r\n{\"a\":", "["),
            text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "10\r\n0123456789abcdef\r\n"),
            text("HTTP/1.1 200 ", "x"),
        ],
        "postgres" => {
            let message =
                |kind: u8, length: u32, body: &[u8]| [&[kind][..], &length.to_be_bytes(), body].concat();
            let notice = b"SNOTICE\0C00000\0Mnothing\0\0";
            vec![
                (Vec::new(), message(b'N', notice.len() as u32 + 4, notice)),
                (Vec::new(), message(b'S', 8, b"a\0b\0")),
                (message(b'D', 0x7fff_ffff, b""), vec![b'x']),
                (message(b'N', 0x7fff_ffff, b""), vec![b'x']),
                (message(b'E', 0x7fff_ffff, b"S"), vec![b'x']),
                (Vec::new(), message(b'D', 11, &[0, 1, 0, 0, 0, 1, b'x'])),
            ]
        }
        "mongodb" => vec![
            ([&0x7fff_ffff_u32.to_le_bytes()[..], &[0; 8], &2013_u32.to_le_bytes()].concat(), vec![0]),
            ([&16_777_216_u32.to_le_bytes()[..], &[0; 8], &2013_u32.to_le_bytes()].concat(), vec![0]),
        ],
        _ => {
            // Packets of MySQL with the sequence numbers of an answer, repeated.
            let packets = |size: usize| -> Vec<u8> {
                let all = (1..=256_u32).flat_map(|sequence| {
                    let length = (size as u32).to_le_bytes();
                    [&length[..3], &[sequence as u8], &vec![b'x'; size]].concat()
                });
                all.collect()
            };
            vec![
                (Vec::new(), packets(40)),
                (vec![0xff, 0xff, 0xff, 1], vec![b'x']),
                (vec![1, 0, 0, 1, 1], packets(30)),
            ]
        }
    };
    all.push((Vec::new(), vec![0]));
    all.push((Vec::new(), vec![0xff]));
    all
}
