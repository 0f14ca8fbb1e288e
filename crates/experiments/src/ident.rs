//! Identifiers of records: 32 hexadecimal digits, a pure pseudorandom function of (seed, number).

use crate::prelude::*;

/// Bytes of an identifier.
const LENGTH: usize = 32;

/// An identifier in an array, so that making one allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ident([u8; LENGTH]);

impl Ident {
    /// The identifier of record `number`.
    #[inline]
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        let mut digits = [0; LENGTH];
        hex16(mix(seed, number), &mut digits, 0);
        hex16(mix(!seed, number), &mut digits, 16);
        Self(digits)
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        // Hexadecimal digits are UTF-8; the empty text is never returned.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// The numbers of the records that a client adds, from `first` on, distinct from those of the other clients.
pub(crate) fn own(first: u64, client: Client) -> std::iter::StepBy<std::ops::RangeFrom<u64>> {
    (first + client.index as u64..).step_by(client.count.max(1))
}

/// Writes the sixteen hexadecimal digits of `word` at `out[at..at + 16]`.
#[inline]
pub(crate) fn hex16(word: u64, out: &mut [u8], at: usize) {
    // Spreads eight digits at a time to one nibble per byte, and converts them to letters without a table.
    for (i, half) in [(word >> 32) as u32, word as u32].into_iter().enumerate() {
        let mut x = u64::from(half);
        x = (x | x << 16) & 0x0000_ffff_0000_ffff;
        x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
        x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
        let letters = ((x + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
        let digits = x + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10);
        out[at + i * 8..at + i * 8 + 8].copy_from_slice(&digits.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn identifiers_differ_and_repeat_for_their_seed() {
        let all: HashSet<String> = (0..10_000).map(|n| Ident::of(7, n).as_str().to_owned()).collect();
        assert_eq!(all.len(), 10_000);
        assert_eq!(Ident::of(7, 3), Ident::of(7, 3));
        assert_ne!(Ident::of(7, 3), Ident::of(8, 3));
    }

    proptest! {
        #[test]
        fn sixteen_digits_are_the_hexadecimal_word(word: u64) {
            let mut out = [0; 16];
            hex16(word, &mut out, 0);
            prop_assert_eq!(std::str::from_utf8(&out).unwrap(), format!("{word:016x}"));
        }
    }
}
