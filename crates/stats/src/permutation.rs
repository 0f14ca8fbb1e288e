//! A seeded random order of the numbers from 0 to n − 1, worked out without a table.
//!
//! A Feistel network permutes all numbers of the least power of two that is not below n (Luby and Rackoff, "How to
//! Construct Pseudorandom Permutations from Pseudorandom Functions", 1988), and a result beyond the range is permuted
//! again until it falls within ("cycle walking"; Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).

use crate::rng::mix;

/// Rounds of the network: each half is changed twice.
const ROUNDS: usize = 4;

/// A permutation of the numbers below its length.
#[derive(Clone, Debug)]
pub struct Permutation {
    length: u64,
    /// Bits of the lower half.
    low_bits: u32,
    low: u64,
    high: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of the numbers from 0 to `length − 1` that belongs to this seed.
    #[must_use]
    pub fn new(seed: u64, length: u64) -> Self {
        let bits = u64::BITS - length.saturating_sub(1).leading_zeros();
        let low_bits = bits.div_ceil(2);
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let keys = std::array::from_fn(|round| mix(seed, 0x7065_726d + round as u64));
        Self { length, low_bits, low: mask(low_bits), high: mask(bits - low_bits), keys }
    }

    /// How many numbers it permutes.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The number at this position of the order. Positions from `length` on repeat the order.
    #[inline]
    pub fn at(&self, place: u64) -> u64 {
        if self.length <= 1 {
            return 0;
        }
        let mut number = place % self.length;
        loop {
            number = self.permute(number);
            if number < self.length {
                return number;
            }
        }
    }

    #[inline]
    fn permute(&self, number: u64) -> u64 {
        let (mut low, mut high) = (number & self.low, number >> self.low_bits);
        for keys in self.keys.chunks_exact(2) {
            high ^= mix(keys[0], low) & self.high;
            low ^= mix(keys[1], high) & self.low;
        }
        (high << self.low_bits) | low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_comes_exactly_once(seed: u64, length in 1u64..3_000) {
            let permutation = Permutation::new(seed, length);
            let mut seen = vec![false; length as usize];
            for place in 0..length {
                let number = permutation.at(place);
                prop_assert!(!std::mem::replace(&mut seen[number as usize], true), "{} comes twice", number);
                prop_assert_eq!(permutation.at(place + length), number);
            }
        }
    }

    #[test]
    fn the_first_numbers_of_an_order_are_spread_evenly() {
        for seed in 0..20 {
            let permutation = Permutation::new(seed, 100_000);
            let low = (0..1_000).filter(|place| permutation.at(*place) < 50_000).count();
            // 500 expected, with a standard deviation of 16.
            assert!(low.abs_diff(500) < 80, "seed {seed}: {low}");
        }
    }

    #[test]
    fn order_of_a_seed_is_that_of_earlier_versions() {
        let order: Vec<u64> = (0..10).map(|place| Permutation::new(7, 10).at(place)).collect();
        assert_eq!(order, [0, 1, 8, 6, 7, 4, 9, 3, 2, 5]);
    }

    #[test]
    fn seeds_give_different_orders() {
        let order = |seed| (0..50).map(|place| Permutation::new(seed, 50).at(place)).collect::<Vec<_>>();
        assert!((1..100).all(|seed| order(seed) != order(0)));
    }
}
