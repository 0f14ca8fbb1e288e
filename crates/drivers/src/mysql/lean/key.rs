//! Encryption of a password with the server's RSA key, for an unencrypted connection ("`Caching_sha2_password`
//! information", "RSA Public Key-based password exchange").

use super::rsa::{PADDING, PublicKey};
use crate::prelude::*;
use crate::wire::malformed;
use ring::rand::{SystemRandom, generate};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;

/// Masks the password with the nonce and encrypts it with the key.
pub(super) fn encrypt(password: &str, nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>> {
    let key = read(pem)?;
    let mut secret = [password.as_bytes(), b"\0"].concat();
    for (byte, mask) in secret.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
    if secret.len() + PADDING > key.length() {
        return Err(Error::new(ErrorKind::Denied, "the password is too long for the server's RSA key")
            .hint("use tls=verify"));
    }
    let failed = |_| Error::new(ErrorKind::Environment, "the system gives no random bytes");
    let random = generate(&SystemRandom::new()).map_err(failed)?.expose();
    Ok(key.encrypt(&secret, random))
}

fn read(pem: &[u8]) -> Result<PublicKey> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok();
    let key = der.and_then(|der| PublicKey::parse(&der)).filter(|key| {
        // Weak keys, and keys too large for reasonable computing time, are rejected.
        (1_024..=16_384).contains(&key.modulus_bits()) && (2..=64).contains(&key.exponent_bits())
    });
    key.ok_or_else(|| malformed("the server sent an invalid RSA public key"))
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
