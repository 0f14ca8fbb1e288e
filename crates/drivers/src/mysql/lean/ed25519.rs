//! MariaDB's `ed25519` (Knowledge Base, "Authentication Plugin - ed25519"): the client signs the server's nonce as
//! Ed25519 does (RFC 8032, section 5.1), with the password in place of the 32 random bytes of a private key.
//!
//! `ring` and other libraries take only 32 bytes, so the arithmetic is here. Neither memory accesses nor branches depend
//! on the password.

use ring::digest::{SHA512, digest};
use std::sync::OnceLock;

/// Signs `nonce`: 32 bytes of a point and 32 of a scalar.
pub(super) fn sign(password: &[u8], nonce: &[u8]) -> [u8; 64] {
    let hash = sha512(&[password]);
    let [mut secret, prefix] = halves(&hash);
    secret[0] &= 0xf8;
    secret[31] = secret[31] & 0x3f | 0x40;
    let public = Point::of_base(&secret).encoded();
    let random = reduced(&sha512(&[&prefix, nonce]));
    let point = Point::of_base(&random).encoded();
    let challenge = reduced(&sha512(&[&point, &public, nonce]));
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&point);
    signature[32..].copy_from_slice(&product_and_sum(&challenge, &secret, &random));
    signature
}

fn sha512(parts: &[&[u8]]) -> [u8; 64] {
    let mut out = [0; 64];
    out.copy_from_slice(digest(&SHA512, &parts.concat()).as_ref());
    out
}

fn halves(bytes: &[u8; 64]) -> [[u8; 32]; 2] {
    let mut halves = [[0; 32]; 2];
    halves[0].copy_from_slice(&bytes[..32]);
    halves[1].copy_from_slice(&bytes[32..]);
    halves
}

/// The order of the base point, 2^252 + 27742317777372353535851937790883648493, from the least byte on.
const ORDER: [i64; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// A number of 64 bytes modulo the order.
fn reduced(bytes: &[u8; 64]) -> [u8; 32] {
    modulo_order(bytes.map(i64::from))
}

/// `a × b + c` modulo the order.
fn product_and_sum(a: &[u8; 32], b: &[u8; 32], c: &[u8; 32]) -> [u8; 32] {
    let mut digits = [0; 64];
    for (digit, c) in digits.iter_mut().zip(c) {
        *digit = i64::from(*c);
    }
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            digits[i + j] += i64::from(*a) * i64::from(*b);
        }
    }
    modulo_order(digits)
}

/// Reduces a number whose digits, in base 256, may be larger than a byte.
fn modulo_order(mut digits: [i64; 64]) -> [u8; 32] {
    // 2^256 is −16 × (order − 2^252) modulo the order, so a digit of the upper half becomes twenty digits below it.
    for high in (32..64).rev() {
        let mut carry = 0;
        for low in high - 32..high - 12 {
            digits[low] += carry - 16 * digits[high] * ORDER[low + 32 - high];
            carry = (digits[low] + 128) >> 8;
            digits[low] -= carry << 8;
        }
        digits[high - 12] += carry;
        digits[high] = 0;
    }
    // What is above 2^252 is subtracted as multiples of the order; twice, since the first may borrow.
    let mut carry = 0;
    let above = digits[31] >> 4;
    for (digit, order) in digits.iter_mut().zip(ORDER) {
        *digit += carry - above * order;
        carry = *digit >> 8;
        *digit &= 255;
    }
    for (digit, order) in digits.iter_mut().zip(ORDER) {
        *digit -= carry * order;
    }
    let mut out = [0; 32];
    let mut carry = 0;
    for (byte, digit) in out.iter_mut().zip(digits) {
        let digit = digit + carry;
        *byte = (digit & 255) as u8;
        carry = digit >> 8;
    }
    out
}

/// A number modulo 2^255 − 19, in five digits of 51 bits, which may be a little larger between operations.
#[derive(Clone, Copy)]
struct Field([u64; 5]);

const DIGIT: u64 = (1 << 51) - 1;

impl Field {
    const ZERO: Self = Self([0; 5]);
    const ONE: Self = Self([1, 0, 0, 0, 0]);

    fn carried(mut digits: [u64; 5]) -> Self {
        let carries = digits.map(|digit| digit >> 51);
        for at in 0..5 {
            // 2^255 is 19.
            let carry = if at == 0 { 19 * carries[4] } else { carries[at - 1] };
            digits[at] = (digits[at] & DIGIT) + carry;
        }
        Self(digits)
    }

    fn plus(self, other: Self) -> Self {
        let mut sum = self.0;
        for (digit, add) in sum.iter_mut().zip(other.0) {
            *digit += add;
        }
        Self::carried(sum)
    }

    fn minus(self, other: Self) -> Self {
        // Sixteen times the modulus, so that no digit becomes negative.
        let mut difference = self.0;
        for (at, digit) in difference.iter_mut().enumerate() {
            let modulus = if at == 0 { DIGIT - 18 } else { DIGIT };
            *digit = *digit + 16 * modulus - other.0[at];
        }
        Self::carried(difference)
    }

    fn times(self, other: Self) -> Self {
        let mut sums = [0u128; 5];
        for (i, a) in self.0.into_iter().enumerate() {
            for (j, b) in other.0.into_iter().enumerate() {
                // From the sixth digit on, 2^255 is 19.
                let (at, b) = if i + j < 5 { (i + j, b) } else { (i + j - 5, 19 * b) };
                sums[at] += u128::from(a) * u128::from(b);
            }
        }
        let mut digits = [0; 5];
        let mut carry = 0;
        for (digit, sum) in digits.iter_mut().zip(sums) {
            let sum = sum + carry;
            *digit = sum as u64 & DIGIT;
            carry = sum >> 51;
        }
        digits[0] += 19 * carry as u64;
        Self::carried(digits)
    }

    /// `1 / self`, which is `self` to the power 2^255 − 21 (Fermat). All bits of that are ones, but for bits 2 and 4.
    fn inverse(self) -> Self {
        let mut power = self;
        for bit in (0..254).rev() {
            power = power.times(power);
            if bit != 2 && bit != 4 {
                power = power.times(self);
            }
        }
        power
    }

    /// The least non-negative number, from the least byte on.
    fn bytes(self) -> [u8; 32] {
        let mut digits = Self::carried(Self::carried(self.0).0).0;
        // Whether it is at least the modulus: then adding 19 carries out of 255 bits.
        let over = digits.iter().fold(19, |carry, digit| (digit + carry) >> 51);
        let mut carry = 19 * over;
        for digit in &mut digits {
            *digit += carry;
            carry = *digit >> 51;
            *digit &= DIGIT;
        }
        let mut out = [0; 32];
        let (mut bits, mut held, mut next) = (0u128, 0, 0);
        for digit in digits {
            bits |= u128::from(digit) << held;
            held += 51;
            while held >= 8 {
                out[next] = bits as u8;
                (bits, held, next) = (bits >> 8, held - 8, next + 1);
            }
        }
        out[31] = bits as u8;
        out
    }
}

/// A point of the curve in extended coordinates (RFC 8032, section 5.1.4): x = X/Z, y = Y/Z, x × y = T/Z.
#[derive(Clone, Copy)]
struct Point([Field; 4]);

impl Point {
    const ZERO: Self = Self([Field::ZERO, Field::ONE, Field::ONE, Field::ZERO]);

    const BASE: Self = Self([
        Field([
            0x6_2d60_8f25_d51a,
            0x4_12a4_b4f6_592a,
            0x7_5b71_71a4_b31d,
            0x1_ff60_5271_18fe,
            0x2_1693_6d3c_d6e5,
        ]),
        Field([
            0x6_6666_6666_6658,
            0x4_cccc_cccc_cccc,
            0x1_9999_9999_9999,
            0x3_3333_3333_3333,
            0x6_6666_6666_6666,
        ]),
        Field::ONE,
        Field([
            0x6_8ab3_a5b7_dda3,
            0x0_0eea_2a5e_adbb,
            0x2_af8d_f483_c27e,
            0x3_32b3_7527_4732,
            0x6_7875_f0fd_78b7,
        ]),
    ]);

    /// Twice the curve's constant `d`.
    const D2: Field = Field([
        0x6_9b94_26b2_f159,
        0x3_5050_762a_dd7a,
        0x3_cf44_c003_8052,
        0x6_738c_c740_7977,
        0x2_406d_9dc5_6dff,
    ]);

    /// The sum of any two points, which may be equal or zero (RFC 8032, section 5.1.4).
    fn plus(&self, other: &Self) -> Self {
        let [x1, y1, z1, t1] = self.0;
        let [x2, y2, z2, t2] = other.0;
        let less = y1.minus(x1).times(y2.minus(x2));
        let more = y1.plus(x1).times(y2.plus(x2));
        let turned = t1.times(Self::D2).times(t2);
        let scale = z1.times(z2.plus(z2));
        let (e, f, g, h) = (more.minus(less), scale.minus(turned), scale.plus(turned), more.plus(less));
        Self([e.times(f), g.times(h), f.times(g), e.times(h)])
    }

    /// A multiple of the base point: the sum of one table entry for each four bits of `scalar`.
    fn of_base(scalar: &[u8; 32]) -> Self {
        let mut sum = Self::ZERO;
        for (byte, [low, high]) in scalar.iter().zip(table()) {
            sum = sum.plus(&Self::chosen(low, byte & 15)).plus(&Self::chosen(high, byte >> 4));
        }
        sum
    }

    /// The entry with this number; all are read.
    fn chosen(row: &[Self; 16], number: u8) -> Self {
        let mut chosen = [Field::ZERO; 4];
        for (entry, at) in row.iter().zip(0u8..) {
            // All ones if it is the entry, else zero.
            let mask = u64::from(at ^ number).wrapping_sub(1) >> 63;
            let mask = mask.wrapping_neg();
            for (into, from) in chosen.iter_mut().zip(entry.0) {
                for (into, from) in into.0.iter_mut().zip(from.0) {
                    *into |= from & mask;
                }
            }
        }
        Self(chosen)
    }

    /// The coordinate y, with the lowest bit of x as the highest bit (RFC 8032, section 5.1.2).
    fn encoded(&self) -> [u8; 32] {
        let [x, y, z, _] = self.0;
        let inverse = z.inverse();
        let mut out = y.times(inverse).bytes();
        out[31] |= x.times(inverse).bytes()[0] << 7;
        out
    }
}

/// For each of 32 bytes, the multiples of the base point for its lower and its upper four bits. Made once, in a tenth of
/// a millisecond.
fn table() -> &'static [[[Point; 16]; 2]] {
    static TABLE: OnceLock<Vec<[[Point; 16]; 2]>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut base = Point::BASE;
        let mut row = || {
            let mut row = [Point::ZERO; 16];
            for at in 1..16 {
                row[at] = row[at - 1].plus(&base);
            }
            base = row[15].plus(&base);
            row
        };
        (0..32).map(|_| [row(), row()]).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::lean::tests::{bytes, digits};
    use proptest::prelude::*;
    use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};

    /// RFC 8032, section 7.1, tests 1 to 3: a private key is a password of 32 bytes.
    #[test]
    fn signatures_are_those_of_the_standard() {
        for (key, message, signature) in [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
            ),
        ] {
            assert_eq!(digits(&sign(&bytes(key), &bytes(message))), signature);
        }
    }

    /// Made by a program in Python with whole numbers and affine coordinates, which gives the signatures above too.
    #[test]
    fn password_of_another_length_signs() {
        let nonce: Vec<u8> = (0..32).collect();
        let expected = "395a5ad3e669c87001c38929fab0227498c6fe6069220c0e6419a0660a3c87fa\
                        14600b784b26a120f08decf975b43da5643fe9bc44be0d7b63322aeaf8660a01";
        assert_eq!(digits(&sign(b"pass word", &nonce)), expected);
    }

    proptest! {
        /// `ring` signs equally with 32 bytes, and accepts the signatures of any password.
        #[test]
        fn signatures_are_those_of_ring(
            key in prop::array::uniform32(any::<u8>()),
            password in prop::collection::vec(any::<u8>(), 0..80),
            nonce in prop::array::uniform32(any::<u8>()),
        ) {
            let pair = Ed25519KeyPair::from_seed_unchecked(&key).unwrap();
            let theirs = pair.sign(&nonce);
            prop_assert_eq!(&sign(&key, &nonce)[..], theirs.as_ref());
            let [mut secret, _] = halves(&sha512(&[&password]));
            secret[0] &= 0xf8;
            secret[31] = secret[31] & 0x3f | 0x40;
            let public = Point::of_base(&secret).encoded();
            UnparsedPublicKey::new(&ED25519, public).verify(&nonce, &sign(&password, &nonce)).unwrap();
        }
    }
}
