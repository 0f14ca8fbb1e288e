//! Servers that never finish an answer: silent, dripping, stalled, endless, or with lengths that nobody can keep.
//!
//! Survived: the program ends within 80 s (the deadline of an answer is 30 s), by code 3 or 4 with an error, or by 0 where
//! what was held back was not needed; its memory's peak is at most 64 MB above that of the undisturbed run.

use crate::case::{Case, Outcome};
use crate::context::Context;
use crate::families::hostile::{judge, meet};
use crate::random::Random;
use crate::relay::hostile::How;

const ENGINES: [&str; 6] = ["postgres", "redis", "memcached", "mariadb", "couchdb", "mongodb"];

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for engine in ENGINES {
        for kind in ["silent", "drip", "stall", "endless"] {
            cases.push(
                Case::single("tarpit", kind, engine, move |context, seed| {
                    attack(context, engine, kind, seed).unwrap_or_else(Outcome::Skipped)
                })
                .waiting(),
            );
        }
    }
    cases
}

fn attack(context: &Context, engine: &str, kind: &str, seed: u64) -> Result<Outcome, String> {
    let server = context.waiting_server(engine)?;
    let mut random = Random::new(seed);
    let how = match kind {
        "silent" => How::Silent,
        "drip" => How::Drip,
        "stall" => How::Half,
        _ => {
            let (first, pattern) = random.pick(&endless(engine)).clone();
            How::Endless(first, pattern)
        }
    };
    Ok(judge(&meet(context, server, &mut random, how)?))
}

/// What an engine's protocol knows that need not end: a beginning, and what is repeated.
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
            // Packets of MySQL with the sequence numbers that an answer has, again and again.
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
