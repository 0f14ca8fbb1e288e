//! Authentication ("Authentication Method"; MariaDB Knowledge Base, "Authentication Plugin - ed25519").

use super::packets::Packets;
use super::{ed25519, key, scramble};
use crate::mysql::config::{Config, ServerKey};
use crate::wire::{Peer, malformed};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_protocol::mysql::message::answer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plugin {
    Native,
    CachingSha2,
    Ed25519,
    /// The password in plain text: only if the user allows it, over TLS with a verified certificate.
    Clear,
}

impl Plugin {
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        [Self::Native, Self::CachingSha2, Self::Ed25519, Self::Clear]
            .into_iter()
            .find(|plugin| plugin.name().as_bytes() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Ed25519 => "client_ed25519",
            Self::Clear => "mysql_clear_password",
        }
    }

    /// The nonce in the data that the server sent for this method. MySQL's has 20 bytes, followed by a zero byte.
    /// MariaDB's ed25519 has 32 random bytes without a terminator (`NONCE_BYTES`), so the last byte may be zero.
    pub(super) fn nonce(self, data: &[u8]) -> Result<&[u8]> {
        let length = match self {
            Self::Native | Self::CachingSha2 => 20,
            Self::Ed25519 => 32,
            Self::Clear => 0,
        };
        data.get(..length).ok_or_else(|| {
            malformed(format!("a nonce of {} bytes for {}, expected {length}", data.len(), self.name()))
        })
    }

    /// The response to the server's nonce; empty for an empty password.
    pub(super) fn first_answer(self, config: &Config, nonce: &[u8], private: bool) -> Result<Vec<u8>> {
        let password = config.password.expose().as_bytes();
        Ok(match self {
            Self::Native => scramble::native(password, nonce),
            Self::CachingSha2 => scramble::caching_sha2(password, nonce),
            Self::Ed25519 if password.is_empty() => Vec::new(),
            Self::Ed25519 => ed25519::sign(password, nonce).to_vec(),
            Self::Clear if private && config.cleartext => [password, b"\0"].concat(),
            Self::Clear => return Err(cleartext_refused()),
        })
    }
}

/// The error if the server requests a plain-text password and the user has not allowed that.
fn cleartext_refused() -> Error {
    Error::new(ErrorKind::Denied, "the server requests the password in plain text (mysql_clear_password)")
        .hint("add enable_cleartext_plugin=true and tls=verify if you trust this server with the password")
}

/// The error if the server needs the password over an unencrypted connection, as error 2061 of MySQL's client.
fn key_refused() -> Error {
    let what = "authentication plugin 'caching_sha2_password' reported error: authentication requires secure connection";
    Error::new(ErrorKind::Denied, what).code("2061").hint(
        "use tls=verify, or the server's Unix socket; tls=require and get_server_public_key=true, as MySQL's client has it, send \
         the password to an unchecked server",
    )
}

/// Responds to the server until it accepts or rejects the login; returns the method.
pub(super) fn finish<S: Peer>(
    packets: &mut Packets<S>,
    config: &Config,
    mut plugin: Plugin,
    mut nonce: Vec<u8>,
    private: bool,
) -> Result<&'static str> {
    let password = config.password.expose();
    let method = |plugin: Plugin| if password.is_empty() { "" } else { plugin.name() };
    // Bounded, in case the server never ends the exchange.
    for _ in 0..8 {
        packets.next()?;
        match packets.first()? {
            answer::OK => return packets.skip_rest().map(|()| method(plugin)),
            answer::ERR => return Err(packets.error()?),
            // "Protocol::AuthSwitchRequest"
            answer::EOF => {
                let body = packets.rest()?.get(1..).unwrap_or_default();
                let (name, data) = split(body);
                plugin = Plugin::named(name).ok_or_else(|| unknown(name))?;
                nonce = plugin.nonce(data)?.to_vec();
                packets.skip_rest()?;
                let proof = plugin.first_answer(config, &nonce, private)?;
                packets.send(&proof)?;
            }
            // "Protocol::AuthMoreData"
            1 if plugin == Plugin::CachingSha2 => {
                let more = packets.rest()?.get(1).copied();
                packets.skip_rest()?;
                match more {
                    // The password is in the server's cache; OK follows.
                    Some(3) => {}
                    Some(4) if private => packets.send(&[password.as_bytes(), b"\0"].concat())?,
                    Some(4) => {
                        let key = match &config.server_key {
                            ServerKey::Known(key) => key.clone(),
                            ServerKey::Asked => ask_for_key(packets)?,
                            ServerKey::Refused => return Err(key_refused()),
                        };
                        packets.send(&key::encrypt(password, &nonce, &key)?)?;
                    }
                    _ => return Err(malformed("an invalid reply for caching_sha2_password")),
                }
            }
            other => return Err(malformed(format!("unexpected byte {other:#04x} during authentication"))),
        }
    }
    Err(malformed("the authentication does not end"))
}

fn ask_for_key<S: Peer>(packets: &mut Packets<S>) -> Result<Vec<u8>> {
    packets.send(&[2])?;
    packets.next()?;
    match packets.first()? {
        1 => {}
        answer::ERR => return Err(packets.error()?),
        other => return Err(malformed(format!("byte {other:#04x} instead of an RSA key"))),
    }
    let key = packets.rest()?[1..].to_vec();
    packets.skip_rest()?;
    Ok(key)
}

/// Splits at the first zero byte; returns the name before it and the bytes after it.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = bytes.splitn(2, |b| *b == 0);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

fn unknown(name: &[u8]) -> Error {
    let name = if name.is_empty() { "mysql_old_password".into() } else { String::from_utf8_lossy(name) };
    let message = format!("the server requests the authentication method {name}, which is not supported");
    Error::new(ErrorKind::Denied, message)
        .hint("supported: caching_sha2_password, mysql_native_password, client_ed25519, mysql_clear_password")
}
