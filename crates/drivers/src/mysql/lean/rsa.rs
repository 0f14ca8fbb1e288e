//! Encryption with an RSA public key (RFC 8017, sections 5.1.1 and 7.1.1): OAEP with SHA-1, as MySQL's servers decrypt.

use crate::der::element;
use num_bigint::BigUint;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA1_OUTPUT_LEN, digest};

/// Overhead of OAEP in a block, in bytes.
pub(super) const PADDING: usize = 2 * SHA1_OUTPUT_LEN + 2;

/// The object identifier `rsaEncryption`, 1.2.840.113549.1.1.1 (RFC 8017, appendix A.1).
const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";

pub(super) struct PublicKey {
    /// Odd.
    modulus: BigUint,
    exponent: BigUint,
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo` (RFC 5280, section 4.1); `None` if it is invalid.
    pub(super) fn parse(der: &[u8]) -> Option<Self> {
        let (algorithm, key) = element(whole(der, 0x30)?, 0x30)?;
        if element(algorithm, 6)?.0 != RSA {
            return None;
        }
        // A string of bits begins with the number of unused bits in its last byte.
        let key = whole(key, 3)?.strip_prefix(&[0])?;
        let (modulus, rest) = number(whole(key, 0x30)?)?;
        let (exponent, rest) = number(rest)?;
        (modulus.bit(0) && rest.is_empty()).then_some(Self { modulus, exponent })
    }

    pub(super) fn modulus_bits(&self) -> u64 {
        self.modulus.bits()
    }

    pub(super) fn exponent_bits(&self) -> u64 {
        self.exponent.bits()
    }

    /// Length of a block, in bytes.
    pub(super) fn length(&self) -> usize {
        self.modulus_bits().div_ceil(8) as usize
    }

    /// Encrypts a message, which is at least [`PADDING`] shorter than a block. `seed` is random.
    pub(super) fn encrypt(&self, message: &[u8], seed: [u8; SHA1_OUTPUT_LEN]) -> Vec<u8> {
        let length = self.length();
        let mut block = vec![0; length];
        let (head, data) = block.split_at_mut(1 + SHA1_OUTPUT_LEN);
        let masked_seed = &mut head[1..];
        masked_seed.copy_from_slice(&seed);
        data[..SHA1_OUTPUT_LEN].copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, b"").as_ref());
        let start = data.len() - message.len();
        data[start - 1] = 1;
        data[start..].copy_from_slice(message);
        mask(data, &seed);
        mask(masked_seed, data);
        let number = BigUint::from_bytes_be(&block).modpow(&self.exponent, &self.modulus).to_bytes_be();
        [vec![0; length - number.len()], number].concat()
    }
}

/// The content of a DER element that has this tag, and that nothing follows.
fn whole(der: &[u8], tag: u8) -> Option<&[u8]> {
    element(der, tag).filter(|(_, rest)| rest.is_empty()).map(|(content, _)| content)
}

/// The first DER element, a whole number that is not negative, and what follows it.
fn number(der: &[u8]) -> Option<(BigUint, &[u8])> {
    let (bytes, rest) = element(der, 2)?;
    bytes.first().is_some_and(|first| *first < 0x80).then(|| (BigUint::from_bytes_be(bytes), rest))
}

/// Masks bytes with those that MGF1 makes of a seed (RFC 8017, appendix B.2.1).
fn mask(bytes: &mut [u8], seed: &[u8]) {
    for (piece, counter) in bytes.chunks_mut(SHA1_OUTPUT_LEN).zip(0u32..) {
        let mask = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[seed, &counter.to_be_bytes()].concat());
        for (byte, mask) in piece.iter_mut().zip(mask.as_ref()) {
            *byte ^= mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::lean::tests::digits;
    use rustls::pki_types::SubjectPublicKeyInfoDer;
    use rustls::pki_types::pem::PemObject as _;

    /// Keys by `openssl genpkey`; blocks by a program in Python with whole numbers, of the message `kurabe` and the seed
    /// 0, 1, … 19, and decrypted by `openssl pkeyutl -decrypt -pkeyopt rsa_padding_mode:oaep`.
    #[test]
    fn block_is_the_one_that_openssl_decrypts() {
        let seed = std::array::from_fn(|n| n as u8);
        for (bits, exponent_bits, key, block) in [
            (
                1_024,
                17,
                "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDfa8OHRe1KuCvcxuAUwdqhtl05\n\
                 G2bELLgxhrzlAsdqCYfLo+vQPdMB4tJm1yFJANGsO4TYGem+xcrqPbRcLNAItXpj\n\
                 kWkYhcxOAwp0DEwv3yMiX8LaEaFHUfby4Ro+XGt919hZUGyZvUmf1qzQJ10m65eo\n\
                 trcRUKW0GWKFwQ2M+wIDAQAB",
                "b40841ba9210b2d4a0c132a0aa29d3930ee0af8920c9d86efe51104f12ea3f60ad2e9c538aacc1aaea6f9d9e50e7d716\
                 16c6631a54ebfea5da9e86dbc873249cf29885423148516c4a9ae1f19f34c4db2e79b4a62768cfedc71733cac6a6616d\
                 8b27414da6dde674039f79c713694aa3528e7b742d3008be3700b8ed4d6eecb2",
            ),
            (
                2_048,
                2,
                "MIIBIDANBgkqhkiG9w0BAQEFAAOCAQ0AMIIBCAKCAQEAzGYy3C/bxE9seimJjbwd\n\
                 5K0h8WKUrl5Tfa+c+Xqj/oRkd/nM0z3fgzcPx54rZg6htPkPgpetyTgCOkKiEULJ\n\
                 eVapBwfIqf31MSN8aG5EUy/pG+jGBppqqrU5GYgybdYPOtR8qtCSYUpjeCel2bGP\n\
                 u5ETcCDnSYWRK8seESl5HmJRP/cwoBVE6Jh5jDpiG0vIpSlgmETG4oRfPOv0zRM2\n\
                 bCGkagYHHwts6NWCnANItZR500YtYz+zsJ7uKULKJMsZXnSGcvKNnqH7j9ffGZdc\n\
                 PiYbDSUoJij9lawuvdk4/Rlfv0OkOKbBPdFbqEQjdDeowVZ+7bOUvi9IDbta/MlC\n\
                 gwIBAw==",
                "c189d4e717a18ac32eccc8f44f78deb0fcba36c4e7f0ba3fcd58db934e28cd5fdbb01d6889da3f24e7c289f79e6a6e6b\
                 b20a9561718f473d6cbd84f629493c660af8298a7f7c3dfc9cfce680547a3d5b8cbc2668c4e793e3936d0f7953c13ccd\
                 d99b43284c0824f3e49857032e89851a8f3e152d695703dc245eeb700abc5ce5eb2ac6d8600d125a61ec8138fbf1efab\
                 3813d0f8a8961676026d171bd86834aa445bc018f0b7da670217164d88c9fd8344e412f3a147f67f933e35be861b2500\
                 bc23f6c55967b5ea728c9e6a505183f78d53e6bc50ed140e141952ec7bbc51a97c64395464552b789603bf379ccb6088\
                 2b16f7ae0efbae91b776e03754741263",
            ),
            (
                1_096,
                17,
                "MIGoMA0GCSqGSIb3DQEBAQUAA4GWADCBkgKBigCcuIWEHrilzoyGBMIGQzlCRIac\n\
                 azRuEttzKmaeo74wWyju8Ig4kqklFMJDc06dD6G/z881YwsULBeYIKU+pNb0kKJf\n\
                 gozyDp+3R5ossmaRYgDgl55mfeTRE+h4hJcqHO7ln5TjQBvFOpnKv9o6d2LAtpz0\n\
                 WGGElzrDa7E1iXS0CGJwJxdwwGlNwwIDAQAB",
                "8569920131270abb11aa7f369c0465eb49e4fe656c23e58dd2a753a444781c1eda311d0b2f9bcc731582198e8b2f3248\
                 7ca7d8f818225452f29121c8dcfa27116f8d7df7374df71afc3ace6d9f9f3449775f9306a202853c4b33c7b6563c3571\
                 22c903938b02997e823cc9b79139938fcf56d4d2d979fe839987c107fa05c9ec0ef14433c76af8cc25",
            ),
        ] {
            let pem = format!("-----BEGIN PUBLIC KEY-----\n{key}\n-----END PUBLIC KEY-----\n");
            let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).unwrap();
            let key = PublicKey::parse(&der).unwrap();
            assert_eq!((key.modulus_bits(), key.exponent_bits()), (bits, exponent_bits));
            assert_eq!(digits(&key.encrypt(b"kurabe", seed)), block.replace(['\n', ' '], ""), "{bits}");
        }
    }
}
