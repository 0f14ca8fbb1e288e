//! The first packets of both ends ("Connection Phase").

use super::capability;
use super::message::text;
use crate::bytes::{chunk, until_zero, word};

/// The length of the payload of the request for TLS, in bytes (`Protocol::SSLRequest`).
pub const SSL_REQUEST: usize = 32;

/// The server's first packet, up to its second part of the nonce (`Protocol::HandshakeV10`).
#[derive(Clone, Copy, Debug)]
pub struct Greeting<'a> {
    pub version: &'a [u8],
    /// The server's number of this connection.
    pub connection: u32,
    pub capabilities: u32,
    /// MariaDB's own capabilities; 0 of MySQL.
    pub mariadb: u32,
    /// The first part of the nonce, and the length of all of it.
    pub nonce: [u8; 8],
    pub nonce_length: u8,
    /// What follows: the second part of the nonce, and the name of the authentication plugin.
    pub rest: &'a [u8],
}

impl<'a> Greeting<'a> {
    pub const VERSION: u8 = 10;

    /// Reads a payload: protocol (1), version (up to 0), connection (4), nonce (8), filler (1), capabilities (2), character
    /// set (1), status (2), capabilities (2), nonce length (1), filler (6), MariaDB's capabilities (4).
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        let (version, at) = until_zero(payload, 1);
        let (fixed, rest) = payload.get(at..)?.split_first_chunk::<31>()?;
        let capabilities = u32::from_le_bytes([fixed[13], fixed[14], fixed[18], fixed[19]]);
        // MySQL sets this bit, and leaves MariaDB's field empty.
        let is_mysql = capabilities & capability::LONG_PASSWORD != 0;
        Some(Self {
            version,
            connection: word(fixed, 0),
            capabilities,
            mariadb: if is_mysql { 0 } else { word(fixed, 27) },
            nonce: chunk(fixed, 4)?,
            nonce_length: fixed[20],
            rest,
        })
    }
}

/// The client's first packet, without its password (`Protocol::HandshakeResponse41`).
#[derive(Clone, Copy, Debug)]
pub struct HandshakeResponse<'a> {
    pub capabilities: u32,
    pub user: &'a [u8],
    /// What follows the name.
    rest: &'a [u8],
}

impl<'a> HandshakeResponse<'a> {
    /// Reads a payload: capabilities (4), longest packet (4), character set (1), filler (23), user (up to 0).
    pub fn read(payload: &'a [u8]) -> Self {
        let (user, at) = until_zero(payload, 32);
        Self { capabilities: word(payload, 0), user, rest: payload.get(at..).unwrap_or_default() }
    }

    /// Whether it is the request for TLS.
    pub fn is_ssl_request(payload: &[u8]) -> bool {
        payload.len() == SSL_REQUEST && word(payload, 0) & capability::SSL != 0
    }

    fn has(&self, flag: u32) -> bool {
        self.capabilities & flag != 0
    }

    /// The end of the password.
    fn password_end(&self) -> Option<usize> {
        Some(if self.has(capability::PLUGIN_AUTH_LENENC) {
            text(self.rest, 0)?.1
        } else if self.has(capability::SECURE_CONNECTION) {
            1 + usize::from(*self.rest.first()?)
        } else {
            until_zero(self.rest, 0).1
        })
    }

    /// The database that the connection begins with, if it names one.
    pub fn database(&self) -> Option<&'a [u8]> {
        let named = self.has(capability::CONNECT_WITH_DB).then(|| self.password_end())??;
        Some(until_zero(self.rest, named).0)
    }

    /// The client's name and version from its connection attributes.
    pub fn client(&self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let mut at = self.password_end()?;
        for flag in [capability::CONNECT_WITH_DB, capability::PLUGIN_AUTH] {
            if self.has(flag) {
                at = until_zero(self.rest, at).1;
            }
        }
        if !self.has(capability::CONNECT_ATTRS) {
            return None;
        }
        let (mut attributes, _) = text(self.rest, at)?;
        let (mut name, mut version) = (None, None);
        while !attributes.is_empty() {
            let (key, next) = text(attributes, 0)?;
            let (value, next) = text(attributes, next)?;
            attributes = attributes.get(next..)?;
            match key {
                b"_client_name" => name = Some(value),
                b"_client_version" => version = Some(value),
                _ => {}
            }
        }
        Some((name?, version))
    }
}
