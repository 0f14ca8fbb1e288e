//! pgbench's `permute`: a pseudorandom permutation of the numbers below a size. The same seed gives the same
//! permutation as pgbench (PostgreSQL 15 and later).

/// Blackman and Vigna's xoroshiro128**, seeded by `SplitMix64`: the generator of pgbench's permutation.
struct Generator(u64, u64);

impl Generator {
    fn new(mut seed: u64) -> Self {
        let mut split = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        };
        // Two successive words of SplitMix64 are never both 0.
        Self(split(), split())
    }

    fn next(&mut self) -> u64 {
        let Self(first, second) = *self;
        let mixed = first ^ second;
        *self = Self(first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37));
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A number below `size`, which is at least 2.
    fn below(&mut self, size: u64) -> u64 {
        let shift = (size - 1).leading_zeros();
        loop {
            let number = self.next() >> shift;
            if number < size {
                return number;
            }
        }
    }
}

/// The image of a number under the permutation. Numbers of `size` or more are taken modulo the size.
pub(super) fn permute(value: u64, size: u64, seed: u64) -> u64 {
    if size < 2 {
        return 0;
    }
    let mut generator = Generator::new(seed);
    // The largest power of two within the size. At least half of the numbers are below it, and each step permutes
    // those, first from the lower end and then from the upper.
    let bits = size.ilog2();
    let mask = (1 << bits) - 1;
    let scramble = |number: u64, generator: &mut Generator| {
        let factor = (generator.next() & mask) | 1;
        let flip = generator.next() & mask;
        if number > mask {
            return number;
        }
        let number = (number.wrapping_mul(factor) ^ flip) & mask;
        ((number << 1) & mask) | (number >> (bits - 1))
    };
    let mut value = value % size;
    for _ in 0..6 {
        value = scramble(value, &mut generator);
        value = size - 1 - scramble(size - 1 - value, &mut generator);
        value = ((u128::from(value) + u128::from(generator.below(size))) % u128::from(size)) as u64;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_is_bijective() {
        for size in [1, 2, 3, 7, 8, 9, 100, 1_000] {
            for seed in 0..5 {
                let mut hit: Vec<u64> = (0..size).map(|value| permute(value, size, seed)).collect();
                hit.sort_unstable();
                assert!(hit.into_iter().eq(0..size), "{size} with seed {seed}");
            }
        }
    }
}
