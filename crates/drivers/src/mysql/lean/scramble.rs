//! Proofs of knowing a password ("Authentication Method"): hashes of the password and the server's nonce.

use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// `mysql_native_password`: `SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password)))`.
pub(super) fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    proof(&SHA1_FOR_LEGACY_USE_ONLY, password, |twice| [nonce, twice].concat())
}

/// `caching_sha2_password`: `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce)`.
pub(super) fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    proof(&SHA256, password, |twice| [twice, nonce].concat())
}

/// Empty for an empty password.
fn proof(
    algorithm: &'static Algorithm,
    password: &[u8],
    with_nonce: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = digest(algorithm, password);
    let twice = digest(algorithm, once.as_ref());
    let mask = digest(algorithm, &with_nonce(twice.as_ref()));
    once.as_ref().iter().zip(mask.as_ref()).map(|(byte, mask)| byte ^ mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::lean::tests::digits;

    /// Made by Python's `hashlib` with the formulas of MySQL's manual.
    #[test]
    fn proofs_are_those_of_the_manual() {
        let nonce = b"01234567890123456789";
        assert_eq!(digits(&native(b"secret", nonce)), "7abe1a8776b59e931059451f81e596a60dbbf7a8");
        assert_eq!(
            digits(&caching_sha2(b"secret", nonce)),
            "1a2da2573c2faa367e2afddb54cdfd11a95ed22eef0167151196a6fc8e3d3813"
        );
        assert!(native(b"", nonce).is_empty() && caching_sha2(b"", nonce).is_empty());
    }
}
