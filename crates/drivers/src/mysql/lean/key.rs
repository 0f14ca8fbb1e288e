//! Encryption of a password with the server's RSA key, for an unencrypted connection ("`Caching_sha2_password`
//! information", "RSA Public Key-based password exchange").
//!
//! `mysql_common` encrypts. Its key parser is not used because it panics on invalid keys.

use crate::wire::malformed;
use kurabe_core::{Error, ErrorKind, Result};
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use mysql_common::num_bigint::BigUint;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;

/// Overhead of OAEP with SHA-1 in a block, in bytes (RFC 8017, section 7.1.1).
const PADDING: usize = 42;

/// Masks the password with the nonce and encrypts it with the key.
pub(super) fn encrypt(password: &str, nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>> {
    let key = read(pem)?;
    let mut secret = [password.as_bytes(), b"\0"].concat();
    for (byte, mask) in secret.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
    if secret.len() + PADDING > key.num_octets() {
        return Err(Error::new(ErrorKind::Denied, "the password is too long for the server's RSA key")
            .hint("use tls=require or tls=verify"));
    }
    Ok(key.encrypt_block(secret, Pkcs1OaepPadding::new(GetRandom)))
}

/// Parses `SubjectPublicKeyInfo` (RFC 5280, section 4.1), which contains `RSAPublicKey` (RFC 8017, appendix A.1.1).
fn read(pem: &[u8]) -> Result<PublicKey> {
    let bad = || malformed("the server sent an invalid RSA public key");
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| bad())?;
    let (info, _) = element(&der, 0x30).ok_or_else(bad)?;
    let (_, after_algorithm) = element(info, 0x30).ok_or_else(bad)?;
    let (bits, _) = element(after_algorithm, 0x03).ok_or_else(bad)?;
    let (numbers, _) = element(bits.strip_prefix(&[0]).ok_or_else(bad)?, 0x30).ok_or_else(bad)?;
    let (modulus, rest) = element(numbers, 0x02).ok_or_else(bad)?;
    let (exponent, _) = element(rest, 0x02).ok_or_else(bad)?;
    let (modulus, exponent) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent));
    // Reject weak keys, and keys too large for reasonable computing time.
    if !(1_024..=16_384).contains(&modulus.bits()) || !(2..=64).contains(&exponent.bits()) {
        return Err(bad());
    }
    Ok(PublicKey::new(modulus, exponent))
}

/// Splits off the DER element of this kind at the start of `bytes`; returns its content and the remaining bytes.
fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    if first != kind {
        return None;
    }
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (usize::from(u16::from_be_bytes(*rest.first_chunk()?)), rest.get(2..)?),
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxSKOcxiet8lLMn8ImyUE
bGGKob5EdRz/4wdiw12ED0GfKKTKhVnodFCfm1mdy7bKOX5QxL9skrvYodpW43eR
R5bfOzIgy1qIB8RYb6qOXRBw1oA4snBDqtUjDv/lbHLJN+IbzM4oU+e3Lt9rXyLX
VY289ewONPweXHqSCnTL91w+wkU1peIFV2QhZ+upUCdCtwOn5hnJPNgxtbklFoya
C8W3Z7Xx7He2QDJsEWAqX197efw0L6j8X8Tyd8Uwb7zUB1tfMGhHfm9EwejPAtzx
4GztQNtNMtGS2oGZLQBLV9hib4dDL92iiZeckg2LAf4GsJofLLR8mcHCRoqVbQJ1
YQIDAQAB
-----END PUBLIC KEY-----
";

    #[test]
    fn encrypted_password_is_one_block() {
        assert_eq!(encrypt("secret", b"12345678901234567890", KEY.as_bytes()).unwrap().len(), 256);
        let error = encrypt(&"x".repeat(300), b"1", KEY.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
    }

    proptest! {
        #[test]
        fn damaged_key_never_panics(at in 0usize..450, byte: u8, bytes: Vec<u8>) {
            let mut pem = KEY.as_bytes().to_vec();
            let at = at % pem.len();
            pem[at] = byte;
            let _ = encrypt("secret", b"nonce", &pem);
            let _ = encrypt("secret", b"nonce", &bytes);
        }
    }
}
