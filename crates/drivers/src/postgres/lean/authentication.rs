//! Authentication: trust, password, MD5, SCRAM-SHA-256 (manual, "Message Flow", "Start-up"; "SASL Authentication").

use super::{answer, binding, request};
use crate::postgres::config::{ChannelBinding, Config};
use crate::scram::{Begun, Binding, Hash, Proved};
use crate::wire::{Peer, Stream, Wire, malformed};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_protocol::postgres::frame::{Tagged, backend};
use std::time::{Duration, Instant};

/// The name of the mechanism.
const MECHANISM: &str = "SCRAM-SHA-256";

/// The name of the mechanism with channel binding.
const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// What is known of the connection below the exchange.
#[derive(Default)]
pub(super) struct Channel {
    /// Whether a password may be sent in plain text.
    pub(super) private: bool,
    pub(super) encrypted: bool,
    /// The hash of the server's certificate, to which SCRAM can be bound.
    pub(super) end_point: Option<Vec<u8>>,
}

impl Channel {
    pub(super) fn of(stream: &Stream) -> Self {
        let certificate = stream.certificate();
        let end_point = certificate.and_then(binding::end_point);
        Self { private: stream.is_private(), encrypted: certificate.is_some(), end_point }
    }
}

enum Scram {
    NotRequested,
    Begun(Begun),
    /// The client has proved that it knows the password.
    Proved(Proved),
    /// The server has proved it too.
    Done,
}

/// Responds to the server until it accepts or rejects the login. Returns the time from the server's first request to the last response, and the method; zero and
/// an empty text if the server requests nothing.
pub(super) fn authenticate<S: Peer>(
    wire: &mut Wire<S>,
    config: &Config,
    channel: &Channel,
) -> Result<(Duration, &'static str)> {
    let mut requested = None;
    let (mut took, mut method) = (Duration::ZERO, "");
    let mut scram = Scram::NotRequested;
    let mut out = Vec::new();
    loop {
        let Tagged { tag, length } = answer::header(wire)?;
        let body = match tag {
            backend::AUTHENTICATION => answer::whole(wire, length, <[u8]>::to_vec)?,
            backend::ERROR_RESPONSE => return Err(answer::whole(wire, length, answer::error)??),
            backend::NEGOTIATE_PROTOCOL_VERSION => {
                wire.skip(length)?;
                continue;
            }
            other => return Err(answer::unexpected(other, " during authentication")),
        };
        let requested = *requested.get_or_insert_with(Instant::now);
        let (number, data) = body
            .split_first_chunk::<4>()
            .ok_or_else(|| malformed("an authentication request without a type"))?;
        out.clear();
        let number = u32::from_be_bytes(*number);
        // Of all methods only SCRAM can be bound, and only if it ended.
        if config.channel_binding == ChannelBinding::Require
            && !matches!((number, &scram), (10..=12, _) | (0, Scram::Done))
        {
            return Err(unbound("the server does not use SCRAM"));
        }
        match number {
            0 if matches!(scram, Scram::Begun(_) | Scram::Proved(_)) => {
                return Err(malformed("the server did not prove that it knows the password"));
            }
            0 => return Ok((took, method)),
            3 if channel.private => {
                let secret = [password(config)?, b"\0"].concat();
                request::password(&mut out, &secret)?;
                method = "password";
            }
            3 => {
                return Err(Error::new(ErrorKind::Denied, "the server requests the password in plain text")
                    .hint("connect with tls=verify or over a Unix socket"));
            }
            5 => {
                let salt: &[u8; 4] =
                    data.try_into().map_err(|_| malformed("a salt that is not four bytes"))?;
                let hash = md5_response(&config.user, password(config)?, *salt);
                request::password(&mut out, hash.as_bytes())?;
                method = "md5";
            }
            10 => {
                scram = Scram::Begun(begin(data, config, channel, &mut out)?);
                method = "scram-sha-256";
            }
            11 => match &scram {
                Scram::Begun(begun) => {
                    let proved = begun.prove(password(config)?, data, 1, None)?;
                    request::password(&mut out, proved.message.as_bytes())?;
                    scram = Scram::Proved(proved);
                }
                _ => return Err(malformed("SCRAM continues before its start")),
            },
            12 => match &scram {
                Scram::Proved(proved) => {
                    proved.check(data)?;
                    scram = Scram::Done;
                }
                _ => return Err(malformed("SCRAM ends before its start")),
            },
            other => {
                let message = "the server requests an unsupported authentication method";
                let error = Error::new(ErrorKind::Denied, message).code(other);
                return Err(
                    error.hint("supported: trust, password, md5, scram-sha-256 (also bound to TLS), cert")
                );
            }
        }
        if !out.is_empty() {
            wire.send(&out)?;
            took = requested.elapsed();
        }
    }
}

fn password(config: &Config) -> Result<&[u8]> {
    let missing = || {
        Error::new(ErrorKind::Denied, "the server requires a password, but none is given")
            .hint("set it in the URL, in PGPASSWORD or in ~/.pgpass")
    };
    config.password.as_ref().map(|secret| secret.expose().as_bytes()).ok_or_else(missing)
}

/// The answer to the MD5 request, ended by a zero byte: `md5` and the digits of `MD5(MD5(password + user) + salt)`.
fn md5_response(user: &str, password: &[u8], salt: [u8; 4]) -> String {
    let inner = format!("{:x}", md5::compute([password, user.as_bytes()].concat()));
    format!("md5{:x}\0", md5::compute([inner.as_bytes(), &salt].concat()))
}

fn unbound(why: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("channel_binding=require: {why}"))
        .hint("the server offers SCRAM-SHA-256-PLUS over TLS, for passwords that are stored as SCRAM-SHA-256")
}

/// `SASLInitialResponse`.
fn begin(mechanisms: &[u8], config: &Config, channel: &Channel, out: &mut Vec<u8>) -> Result<Begun> {
    let offers = |wanted: &str| mechanisms.split(|b| *b == 0).any(|name| name == wanted.as_bytes());
    let binding = match (&channel.end_point, config.channel_binding) {
        (Some(hash), ChannelBinding::Prefer | ChannelBinding::Require) if offers(BOUND) => {
            Binding::EndPoint(hash.clone())
        }
        (_, ChannelBinding::Require) if !channel.encrypted => {
            return Err(unbound("the connection is not encrypted"));
        }
        (_, ChannelBinding::Require) => return Err(unbound("the server does not offer it")),
        // The server, if it did offer this, learns that somebody removed it.
        (Some(_), ChannelBinding::Prefer) => Binding::NotOffered,
        _ => Binding::None,
    };
    let mechanism = if let Binding::EndPoint(_) = binding { BOUND } else { MECHANISM };
    if !offers(mechanism) {
        let names = String::from_utf8_lossy(mechanisms).replace('\0', " ");
        return Err(Error::new(ErrorKind::Denied, format!("the server offers only {}", names.trim()))
            .hint("supported: SCRAM-SHA-256, SCRAM-SHA-256-PLUS"));
    }
    // Fails before the exchange begins if there is no password.
    password(config)?;
    let begun = Begun::new(Hash::Sha256, "", binding)?;
    let message = begun.message();
    let mut text = [mechanism.as_bytes(), b"\0"].concat();
    text.extend_from_slice(&(message.len() as u32).to_be_bytes());
    text.extend_from_slice(message.as_bytes());
    request::password(out, &text)?;
    Ok(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by Python's `hashlib` with the formula of the manual ("Message Flow", "`AuthenticationMD5Password`").
    #[test]
    fn md5_response_is_the_one_of_the_manual() {
        assert_eq!(md5_response("user", b"secret", [1, 2, 3, 4]), "md5fccef98e4f1cf6cbe96b743fad4e8bd0\0");
    }
}
