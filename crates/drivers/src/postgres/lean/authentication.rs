//! Who we are: trust, password, MD5, SCRAM-SHA-256 (manual, "Message Flow", "Start-up"; "SASL Authentication").

use super::{answer, request};
use crate::postgres::config::Config;
use crate::wire::{Peer, Wire, malformed};
use kurabe_core::{Error, ErrorKind, Result};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use std::time::{Duration, Instant};

/// The most rounds of hashing that a server may ask for, since they take this processor's time and no deadline ends them.
/// PostgreSQL asks for 4,096 (`scram_iterations`).
const MOST_ROUNDS: u64 = 1_000_000;

/// How far SCRAM has come.
enum Scram {
    NotAsked,
    Begun(Box<ScramSha256>),
    /// The server has proved that it knows the password too.
    Proved,
}

/// Answers the server until it is content. `private`: whether a password may be sent as it is. Gives the time from the
/// server's first question to our last answer; none passes where it asks nothing.
pub(super) fn authenticate<S: Peer>(wire: &mut Wire<S>, config: &Config, private: bool) -> Result<Duration> {
    let mut asked = None;
    let mut took = Duration::ZERO;
    let mut scram = Scram::NotAsked;
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
                let what = format!("unexpected message '{}' while authenticating", other.escape_ascii());
                return Err(malformed(what));
            }
        }
        let body = answer::body(wire, length)?;
        let asked = *asked.get_or_insert_with(Instant::now);
        let (number, data) = body
            .split_first_chunk::<4>()
            .ok_or_else(|| malformed("a request for authentication without a kind"))?;
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
                return Err(Error::new(ErrorKind::Denied, "the server wants the password in plain text")
                    .hint("reach it with tls=verify, tls=require or over a Unix socket"));
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
                    check_rounds(data)?;
                    scram.update(data).map_err(|e| malformed(format!("SCRAM: {e}")))?;
                    request::password(&mut out, scram.message())?;
                }
                _ => return Err(malformed("SCRAM goes on before it began")),
            },
            12 => match &mut scram {
                Scram::Begun(begun) => {
                    begun.finish(data).map_err(|e| malformed(format!("SCRAM: {e}")))?;
                    scram = Scram::Proved;
                }
                _ => return Err(malformed("SCRAM ends before it began")),
            },
            other => {
                return Err(Error::new(
                    ErrorKind::Denied,
                    "the server wants an authentication that is not supported",
                )
                .code(other)
                .hint("supported: trust, password, md5, scram-sha-256"));
            }
        }
        wire.consume(length);
        if !out.is_empty() {
            wire.send(&out)?;
            took = asked.elapsed();
        }
    }
}

/// Refuses a `server-first-message` (RFC 5802, section 7) that asks for too many rounds.
fn check_rounds(message: &[u8]) -> Result<()> {
    let rounds = message.split(|b| *b == b',').find_map(|part| part.strip_prefix(b"i="));
    let rounds: Option<u64> = rounds.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    match rounds.filter(|rounds| *rounds > MOST_ROUNDS) {
        Some(rounds) => Err(malformed(format!("SCRAM: the server asks for {rounds} rounds of hashing"))),
        None => Ok(()),
    }
}

fn password(config: &Config) -> Result<&[u8]> {
    let missing = || {
        Error::new(ErrorKind::Denied, "the server wants a password and none is known")
            .hint("give it in the URL, in PGPASSWORD or in ~/.pgpass")
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
