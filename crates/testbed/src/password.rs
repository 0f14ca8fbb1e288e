//! The password of a throwaway server, which keeps other accounts of this machine out.

use std::fmt;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hmac, pbkdf2};
use serde::{Deserialize, Serialize};

use crate::TestbedError;

/// The bytes of a random password, of which each has two digits: 128 bits.
const RANDOM_BYTES: usize = 16;
/// The iterations of PostgreSQL's default, `scram_iterations`.
const ITERATIONS: u32 = 4_096;

/// A password. It is formatted as `***`; only [`Password::expose`] returns its text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Password(String);

impl Password {
    /// A chosen password.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A new password from the system's source of random numbers. It needs no escapes in URLs, files and statements.
    pub fn random() -> Result<Self, TestbedError> {
        random::<RANDOM_BYTES>().map(|bytes| Self(hex(&bytes).to_ascii_lowercase()))
    }

    /// The text: for a login, never for output.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Its SHA-256 digest in lower-case hexadecimal digits, which Redis accepts in its place.
    pub fn sha256(&self) -> String {
        hex(digest(&SHA256, self.0.as_bytes()).as_ref()).to_ascii_lowercase()
    }

    /// What `PASSWORD()` returns in MySQL 5.5 and MariaDB: the digest of a digest.
    pub fn native(&self) -> String {
        let once = digest(&SHA1_FOR_LEGACY_USE_ONLY, self.0.as_bytes());
        format!("*{}", hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, once.as_ref()).as_ref()))
    }

    /// PostgreSQL's secret of `scram-sha-256` (RFC 5803), from which a login cannot be made.
    pub fn scram(&self) -> Result<String, TestbedError> {
        Ok(self.scram_with(&random::<16>()?))
    }

    fn scram_with(&self, salt: &[u8]) -> String {
        let iterations = std::num::NonZeroU32::new(ITERATIONS).unwrap_or(std::num::NonZeroU32::MIN);
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, self.0.as_bytes(), &mut salted);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
        let client = hmac::sign(&key, b"Client Key");
        let stored = base64(digest(&SHA256, client.as_ref()).as_ref());
        let server = base64(hmac::sign(&key, b"Server Key").as_ref());
        format!("SCRAM-SHA-256${ITERATIONS}:{}${stored}:{server}", base64(salt))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Bytes from the system's source of random numbers.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], TestbedError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the system gives none").map_err(TestbedError::io("reading random numbers"))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default().to_ascii_uppercase();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Base64 with padding (RFC 4648).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().chain([&0; 2]).take(3).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        for at in 0..4 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]);
            text.push(if at <= group.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_passwords_differ_and_are_not_formatted() {
        let (one, other) = (Password::random().unwrap(), Password::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.expose().len(), 2 * RANDOM_BYTES);
        assert!(one.expose().bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(format!("{one:?}"), "***");
    }

    /// From `SELECT PASSWORD('hunter2')` of MariaDB, `sha256sum`, and the secret that PostgreSQL 15 stored.
    #[test]
    fn digests_are_those_of_servers() {
        let password = Password::new("hunter2");
        assert_eq!(password.native(), "*58815970BE77B3720276F63DB198B1FA42E5CC02");
        assert_eq!(password.sha256(), "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7");
        let salt =
            [0x57, 0x22, 0x5b, 0x47, 0x1c, 0x0c, 0x4d, 0x4e, 0x5d, 0x3a, 0x1d, 0x0f, 0x9f, 0x68, 0x3d, 0x6a];
        assert!(password.scram_with(&salt).starts_with("SCRAM-SHA-256$4096:VyJbRxwMTU5dOh0Pn2g9ag==$"));
    }

    #[test]
    fn base64_has_padding() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
