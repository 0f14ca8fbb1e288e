//! Authentication: trust, password, MD5, SCRAM-SHA-256 (manual, "Message Flow", "Start-up"; "SASL Authentication").

use super::{answer, request};
use crate::postgres::config::Config;
use crate::wire::{Peer, Wire, malformed};
use kurabe_core::{Error, ErrorKind, Result};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use std::time::{Duration, Instant};

/// Maximum number of SCRAM iterations that a server may request: they use CPU time, and no deadline interrupts them.
/// PostgreSQL's default is 4,096 (`scram_iterations`).
const MAX_ITERATIONS: u64 = 1_000_000;

enum Scram {
    NotRequested,
    Begun(Box<ScramSha256>),
    /// The server has also proved that it knows the password.
    Proved,
}

/// Responds to the server until it accepts or rejects the login. `private`: whether a password may be sent in plain
/// text. Returns the time from the server's first request to the last response; zero if the server requests nothing.
pub(super) fn authenticate<S: Peer>(wire: &mut Wire<S>, config: &Config, private: bool) -> Result<Duration> {
    let mut requested = None;
    let mut took = Duration::ZERO;
    let mut scram = Scram::NotRequested;
    let mut out = Vec::new();
    loop {
        let (kind, length) = answer::header(wire)?;
        match kind {
            b'R' => {}
            b'E' => return Err(answer::error(answer::body(wire, length)?)?),
            b'N' | b'v' => {
                wire.skip(length)?;
                continue;
            }
            other => {
                let what = format!("unexpected message '{}' during authentication", other.escape_ascii());
                return Err(malformed(what));
            }
        }
        let body = answer::body(wire, length)?;
        let requested = *requested.get_or_insert_with(Instant::now);
        let (number, data) = body
            .split_first_chunk::<4>()
            .ok_or_else(|| malformed("an authentication request without a type"))?;
        out.clear();
        match u32::from_be_bytes(*number) {
            0 if matches!(scram, Scram::Begun(_)) => {
                return Err(malformed("the server did not prove that it knows the password"));
            }
            0 => {
                wire.consume(length);
                return Ok(took);
            }
            3 if private => {
                let secret = [password(config)?, b"\0"].concat();
                request::password(&mut out, &secret)?;
            }
            3 => {
                return Err(Error::new(ErrorKind::Denied, "the server requests the password in plain text")
                    .hint("connect with tls=verify, with tls=require or over a Unix socket"));
            }
            5 => {
                let salt = data.try_into().map_err(|_| malformed("a salt that is not four bytes"))?;
                let mut hash = md5_hash(config.user.as_bytes(), password(config)?, salt).into_bytes();
                hash.push(0);
                request::password(&mut out, &hash)?;
            }
            10 => scram = Scram::Begun(begin(data, config, &mut out)?),
            11 => match &mut scram {
                Scram::Begun(scram) => {
                    check_iterations(data)?;
                    scram.update(data).map_err(|e| malformed(format!("SCRAM: {e}")))?;
                    request::password(&mut out, scram.message())?;
                }
                _ => return Err(malformed("SCRAM continues before its start")),
            },
            12 => match &mut scram {
                Scram::Begun(begun) => {
                    begun.finish(data).map_err(|e| malformed(format!("SCRAM: {e}")))?;
                    scram = Scram::Proved;
                }
                _ => return Err(malformed("SCRAM ends before its start")),
            },
            other => {
                let message = "the server requests an unsupported authentication method";
                let error = Error::new(ErrorKind::Denied, message).code(other);
                return Err(error.hint("supported: trust, password, md5, scram-sha-256"));
            }
        }
        wire.consume(length);
        if !out.is_empty() {
            wire.send(&out)?;
            took = requested.elapsed();
        }
    }
}

/// Rejects a `server-first-message` (RFC 5802, section 7) that requests too many iterations.
fn check_iterations(message: &[u8]) -> Result<()> {
    let count = message.split(|b| *b == b',').find_map(|part| part.strip_prefix(b"i="));
    let count: Option<u64> = count.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    match count.filter(|count| *count > MAX_ITERATIONS) {
        Some(count) => Err(malformed(format!("SCRAM: the server requests {count} iterations"))),
        None => Ok(()),
    }
}

fn password(config: &Config) -> Result<&[u8]> {
    let missing = || {
        Error::new(ErrorKind::Denied, "the server requires a password, but none is given")
            .hint("set it in the URL, in PGPASSWORD or in ~/.pgpass")
    };
    config.password.as_ref().map(|secret| secret.expose().as_bytes()).ok_or_else(missing)
}

/// `SASLInitialResponse`.
fn begin(mechanisms: &[u8], config: &Config, out: &mut Vec<u8>) -> Result<Box<ScramSha256>> {
    if !mechanisms.split(|b| *b == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
        let names = String::from_utf8_lossy(mechanisms).replace('\0', " ");
        return Err(Error::new(ErrorKind::Denied, format!("the server offers only {}", names.trim()))
            .hint("supported: SCRAM-SHA-256"));
    }
    let scram = Box::new(ScramSha256::new(password(config)?, ChannelBinding::unsupported()));
    let mut text = [SCRAM_SHA_256.as_bytes(), b"\0"].concat();
    text.extend_from_slice(&(scram.message().len() as u32).to_be_bytes());
    text.extend_from_slice(scram.message());
    request::password(out, &text)?;
    Ok(scram)
}
