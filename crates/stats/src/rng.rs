//! The one pseudo-random generator: small, fast, and the same on every machine.
//!
//! xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47(4),
//! 2021; reference code <https://prng.di.unimi.it/xoshiro256plusplus.c>, public domain), its state filled by
//! `SplitMix64` (<https://prng.di.unimi.it/splitmix64.c>, public domain) as its authors recommend.
//!
//! The streams are part of what a recorded run means (data sets and resamples follow from them): a change of
//! any output is a change of format. It is no generator for secrets.

/// 2^64 divided by the golden ratio, made odd: the increment of `SplitMix64`.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of `SplitMix64` (variant 13 of Stafford's mixers): a bijection that spreads every input bit.
#[inline]
const fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A hash of two words into one; `mix(a, b)` differs from `mix(b, a)`.
///
/// It turns (seed, key) into a seed of its own, so that the value of one row, client or round can be generated
/// without generating those before it. For a fixed first word it is a bijection of the second: no two keys of
/// one seed collide.
#[inline]
pub const fn mix(a: u64, b: u64) -> u64 {
    finalise(finalise(a.wrapping_add(GOLDEN)).wrapping_add(b).wrapping_add(GOLDEN))
}

/// A hash of a word and a text into one word; texts of different lengths do not collide by their padding.
pub fn mix_text(seed: u64, text: &str) -> u64 {
    let mut hash = mix(seed, text.len() as u64);
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    hash
}

/// A deterministic generator of uniform 64-bit words with a period of 2^256 − 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of a seed; every seed is good, also 0.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // Four outputs of one SplitMix64 stream are never all zero, the one state that xoshiro cannot leave.
        Self {
            state: [
                finalise(seed.wrapping_add(GOLDEN)),
                finalise(seed.wrapping_add(GOLDEN.wrapping_mul(2))),
                finalise(seed.wrapping_add(GOLDEN.wrapping_mul(3))),
                finalise(seed.wrapping_add(GOLDEN.wrapping_mul(4))),
            ],
        }
    }

    /// The next word, uniform over all of `u64`.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let t = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= t;
        *s3 = s3.rotate_left(45);
        result
    }

    /// A whole number from 0 to `n − 1`, each exactly equally likely; 0 when `n` is 0.
    ///
    /// Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29(1), 2019, algorithm 5: one
    /// multiplication, and a division only in the rare case that a draw might have to be rejected.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        let mut product = self.next_u64() as u128 * n as u128;
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = self.next_u64() as u128 * n as u128;
            }
        }
        (product >> 64) as u64
    }

    /// A number in [0, 1): one of the 2^53 multiples of 2^−53, each equally likely.
    #[inline]
    pub const fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Puts a slice into an order drawn uniformly from all orders (Durstenfeld 1964, the Fisher-Yates shuffle).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_of_a_text_depends_on_its_seed_its_length_and_each_byte() {
        let texts = ["", "a", "b", "a\0", "12345678", "12345679", "123456789", "12345678\0"];
        let hashes: std::collections::BTreeSet<u64> =
            texts.iter().flat_map(|text| [1, 2].map(|seed| mix_text(seed, text))).collect();
        assert_eq!(hashes.len(), 2 * texts.len());
    }

    #[test]
    fn splitmix_gives_its_published_vector() {
        let seed = 1_234_567_u64;
        let outputs: Vec<u64> =
            (1..=5).map(|i| finalise(seed.wrapping_add(GOLDEN.wrapping_mul(i)))).collect();
        let published = [
            6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
            4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
        ];
        assert_eq!(outputs, published, "https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64");
        assert_eq!(Rng::new(seed).state, published[..4]);
    }

    #[test]
    fn xoshiro_gives_the_vector_of_the_reference_code() {
        // State 1, 2, 3, 4, as in the tests of the rand_xoshiro crate, which took them from the C code.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let published = [
            41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205,
            9_973_669_472_204_895_162, 14_011_001_112_246_962_877, 12_406_186_145_184_390_807,
            15_849_039_046_786_891_736, 10_450_023_813_501_588_000,
        ];
        for word in published {
            assert_eq!(rng.next_u64(), word);
        }
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut rng = Rng::new(7);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[rng.below(6) as usize] += 1;
        }
        // Chi-squared with 5 degrees of freedom: 20.5 is its 99.9 % quantile.
        let chi: f64 = seen.iter().map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 20.5, "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn below_has_no_bias_where_a_remainder_would_have_one() {
        // n = 3/4 of 2^64: a remainder would draw the lower third twice as often as the rest.
        let n = 3_u64 << 62;
        let mut rng = Rng::new(8);
        let low = (0..30_000).filter(|_| rng.below(n) < n / 3).count();
        assert!((9_700..10_300).contains(&low), "{low}");
    }

    #[test]
    fn unit_is_in_range_with_the_right_mean() {
        let mut rng = Rng::new(9);
        let draws: Vec<f64> = (0..20_000).map(|_| rng.unit_f64()).collect();
        assert!(draws.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }

    #[test]
    fn shuffle_draws_every_order_equally_often() {
        let mut rng = Rng::new(10);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            rng.shuffle(&mut items);
            *seen.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|n| (850..1150).contains(n)), "{seen:?}");
    }

    #[test]
    fn a_seeded_stream_stays_what_it_was() {
        let mut rng = Rng::new(42);
        assert_eq!((rng.next_u64(), rng.below(1_000)), (15_021_278_609_987_233_951, 318));
        let mut items = [0, 1, 2, 3, 4, 5, 6, 7];
        rng.shuffle(&mut items);
        assert_eq!(items, [5, 3, 1, 0, 2, 6, 4, 7]);
    }

    #[test]
    fn mix_separates_its_words_and_stays_what_it_was() {
        assert_ne!(mix(1, 2), mix(2, 1));
        assert_ne!(mix(0, 0), 0);
        let keys: std::collections::BTreeSet<u64> = (0..10_000).map(|key| mix(3, key)).collect();
        assert_eq!(keys.len(), 10_000);
        // Golden: recorded runs depend on it.
        assert_eq!(mix(1, 2), 13_608_149_317_741_381_227);
    }
}
