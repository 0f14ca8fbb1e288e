//! Encryption with an RSA public key (RFC 8017, sections 5.1.1 and 7.1.1): OAEP with SHA-1, as MySQL's servers decrypt.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA1_OUTPUT_LEN, digest};

/// Overhead of OAEP in a block, in bytes.
pub(super) const PADDING: usize = 2 * SHA1_OUTPUT_LEN + 2;

/// The object identifier `rsaEncryption`, 1.2.840.113549.1.1.1 (RFC 8017, appendix A.1).
const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";

pub(super) struct PublicKey {
    /// Odd, in digits of 64 bits from the least on; the last is not zero.
    modulus: Vec<u64>,
    exponent: u64,
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo` (RFC 5280, section 4.1); `None` if it is invalid, or if the exponent is larger than
    /// 64 bits.
    pub(super) fn parse(der: &[u8]) -> Option<Self> {
        let info = &mut Der(der).whole(0x30)?;
        if info.element(0x30)?.element(6)?.0 != RSA {
            return None;
        }
        // A string of bits begins with the number of unused bits in its last byte.
        let key = Der(info.whole(3)?.0.strip_prefix(&[0])?);
        let numbers = &mut { key }.whole(0x30)?;
        let (modulus, exponent) = (numbers.number()?, numbers.number()?);
        let exponent = exponent
            .iter()
            .try_fold(0u64, |all, byte| (all.leading_zeros() >= 8).then_some(all << 8 | u64::from(*byte)))?;
        let digit = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let modulus: Vec<u64> = modulus.rchunks(8).map(digit).collect();
        let is_odd = modulus.first().is_some_and(|digit| digit % 2 == 1);
        (is_odd && numbers.0.is_empty()).then_some(Self { modulus, exponent })
    }

    pub(super) fn modulus_bits(&self) -> usize {
        self.modulus.last().map_or(0, |last| 64 * self.modulus.len() - last.leading_zeros() as usize)
    }

    pub(super) fn exponent_bits(&self) -> u32 {
        u64::BITS - self.exponent.leading_zeros()
    }

    /// Length of a block, in bytes.
    pub(super) fn length(&self) -> usize {
        self.modulus_bits().div_ceil(8)
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
        let number = self.power(&digits_of(&block, self.modulus.len()));
        let bytes: Vec<u8> = number.iter().flat_map(|digit| digit.to_le_bytes()).take(length).collect();
        bytes.into_iter().rev().collect()
    }

    /// `base` to the power of the exponent, modulo the modulus.
    fn power(&self, base: &[u64]) -> Vec<u64> {
        let montgomery = Montgomery::new(&self.modulus);
        // Factors have a factor R of their own while they are multiplied.
        let base = montgomery.product(base, &montgomery.r_squared());
        let mut power = base.clone();
        for bit in (0..self.exponent_bits().saturating_sub(1)).rev() {
            power = montgomery.product(&power, &power);
            if self.exponent >> bit & 1 == 1 {
                power = montgomery.product(&power, &base);
            }
        }
        let mut one = vec![0; base.len()];
        one[0] = 1;
        montgomery.product(&power, &one)
    }
}

/// A big-endian number in `count` digits of 64 bits.
fn digits_of(bytes: &[u8], count: usize) -> Vec<u64> {
    let digit = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let mut digits: Vec<u64> = bytes.rchunks(8).map(digit).collect();
    digits.resize(count, 0);
    digits
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

/// Products modulo an odd number (Montgomery, "Modular Multiplication Without Trial Division"; Koç and others, "Analyzing
/// and Comparing Montgomery Multiplication Algorithms", CIOS). R is 2^64 to the power of the number of digits.
struct Montgomery<'a> {
    modulus: &'a [u64],
    /// `-1 / modulus` modulo 2^64.
    inverse: u64,
}

impl<'a> Montgomery<'a> {
    fn new(modulus: &'a [u64]) -> Self {
        // Each step of Newton's method doubles the number of correct bits, of which an odd number's own inverse modulo 8
        // gives three.
        let inverse = (0..5).fold(modulus[0], |inverse, _| {
            inverse.wrapping_mul(2u64.wrapping_sub(modulus[0].wrapping_mul(inverse)))
        });
        Self { modulus, inverse: inverse.wrapping_neg() }
    }

    /// `a × b / R` modulo the modulus, for factors that are less than it, or one that is and one that is less than R.
    fn product(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let count = self.modulus.len();
        let mut sum = vec![0; count + 2];
        for factor in b {
            add_product(&mut sum, a, *factor);
            // Makes the least digit zero, which is then dropped.
            let multiple = sum[0].wrapping_mul(self.inverse);
            add_product(&mut sum, self.modulus, multiple);
            sum.copy_within(1.., 0);
            sum[count + 1] = 0;
        }
        sum.truncate(count + 1);
        self.reduce(&mut sum);
        sum.truncate(count);
        sum
    }

    /// `R × R` modulo the modulus, by doublings from 1 on.
    fn r_squared(&self) -> Vec<u64> {
        let count = self.modulus.len();
        let mut number = vec![0; count + 1];
        number[0] = 1;
        for _ in 0..2 * 64 * count {
            let mut carry = 0;
            for digit in &mut number {
                (*digit, carry) = (*digit << 1 | carry, *digit >> 63);
            }
            self.reduce(&mut number);
        }
        number.truncate(count);
        number
    }

    /// Subtracts the modulus from a number below twice the modulus, which has one digit more, unless it is less.
    fn reduce(&self, number: &mut [u64]) {
        let is_less = number.iter().rev().lt(std::iter::once(&0).chain(self.modulus.iter().rev()));
        if is_less {
            return;
        }
        let mut borrow = false;
        for (digit, subtract) in number.iter_mut().zip(self.modulus.iter().chain(&[0])) {
            let (difference, first) = digit.overflowing_sub(*subtract);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            (*digit, borrow) = (difference, first || second);
        }
    }
}

/// Adds `number × factor` to a sum, which has two digits more.
fn add_product(sum: &mut [u64], number: &[u64], factor: u64) {
    let mut carry = 0;
    for (digit, other) in sum.iter_mut().zip(number.iter().chain(&[0, 0])) {
        let all = u128::from(*other) * u128::from(factor) + u128::from(*digit) + u128::from(carry);
        (*digit, carry) = (all as u64, (all >> 64) as u64);
    }
}

/// What is left of a text in the Distinguished Encoding Rules (X.690).
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The contents of the next element, which has this tag.
    fn element(&mut self, tag: u8) -> Option<Self> {
        let (head, rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match *head {
            [found, _] if found != tag => return None,
            [_, length @ 0..=0x7f] => (usize::from(length), rest),
            [_, 0x81] => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
            [_, 0x82] => {
                rest.split_first_chunk().map(|(length, rest)| (u16::from_be_bytes(*length).into(), rest))?
            }
            _ => return None,
        };
        let (contents, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Self(contents))
    }

    /// The contents of the last element.
    fn whole(&mut self, tag: u8) -> Option<Self> {
        self.element(tag).filter(|_| self.0.is_empty())
    }

    /// The next element, a positive whole number, without zeros before it.
    fn number(&mut self) -> Option<&'a [u8]> {
        let bytes = self.element(2)?.0;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_negative = bytes.first().is_some_and(|first| *first >= 0x80);
        Some(&bytes[zeros..]).filter(|bytes| !bytes.is_empty() && !is_negative)
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

    #[test]
    fn product_of_large_digits_carries() {
        // (n − 1)² is 1 modulo n.
        let modulus = [u64::MAX, u64::MAX, u64::MAX];
        let montgomery = Montgomery::new(&modulus);
        let minus_one = [u64::MAX - 1, u64::MAX, u64::MAX];
        let with_r = montgomery.product(&minus_one, &montgomery.r_squared());
        let square = montgomery.product(&with_r, &with_r);
        assert_eq!(montgomery.product(&square, &[1, 0, 0]), [1, 0, 0]);
    }
}
