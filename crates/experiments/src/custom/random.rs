//! The distributions of pgbench's random functions, over Kurabe's own generator, and its permutation.

use crate::prelude::*;

/// The number of values from `least` to `most`.
fn width(least: i64, most: i64) -> Result<u64> {
    if least > most {
        return Err(Error::usage(format!("a range from {least} to {most} is empty")));
    }
    most.checked_sub(least)
        .and_then(|width| width.checked_add(1))
        .map(|width| width as u64)
        .ok_or_else(|| Error::usage("the range is too large"))
}

/// The uniform distribution.
pub(super) fn uniform(rng: &mut Rng, least: i64, most: i64) -> Result<i64> {
    width(least, most).map(|width| least + rng.below(width) as i64)
}

/// Maps a fraction from 0 to 1 to a value of a range.
fn within(least: i64, width: u64, part: f64) -> i64 {
    // The largest fraction can round up to the value after the range.
    least + ((width as f64 * part) as u64).min(width - 1) as i64
}

/// An exponential distribution, cut off at `parameter` and scaled to the range: the first value is the likeliest.
pub(super) fn exponential(rng: &mut Rng, least: i64, most: i64, parameter: f64) -> Result<i64> {
    let width = width(least, most)?;
    // Not above 0, or NaN.
    if parameter <= 0.0 || parameter.is_nan() {
        return Err(Error::usage(format!(
            "the parameter of random_exponential must be above 0, not {parameter}"
        )));
    }
    let cut = (-parameter).exp();
    // Inversion of the distribution function. The draw is in (0, 1], so that its logarithm exists.
    let draw = 1.0 - rng.unit_f64();
    Ok(within(least, width, -(1.0 - cut).mul_add(draw, cut).ln() / parameter))
}

/// A normal distribution, cut off at `parameter` standard deviations on both sides and scaled to the range.
pub(super) fn gaussian(rng: &mut Rng, least: i64, most: i64, parameter: f64) -> Result<i64> {
    let width = width(least, most)?;
    if parameter < 2.0 || parameter.is_nan() {
        return Err(Error::usage(format!(
            "the parameter of random_gaussian must be at least 2, not {parameter}"
        )));
    }
    loop {
        // Box and Muller 1958, the sine variant.
        let radius = (-2.0 * (1.0 - rng.unit_f64()).ln()).sqrt();
        let deviation = radius * (std::f64::consts::TAU * rng.unit_f64()).sin();
        if deviation.abs() < parameter {
            return Ok(within(least, width, (deviation + parameter) / (2.0 * parameter)));
        }
    }
}

/// A Zipf distribution over the range: the probability of the n-th value is proportional to n to the power of
/// −`exponent`.
///
/// Devroye, "Non-Uniform Random Variate Generation", 1986, chapter X.6, rejection from a Pareto distribution, as pgbench
/// does; hence an exponent above 1.
pub(super) fn zipfian(rng: &mut Rng, least: i64, most: i64, exponent: f64) -> Result<i64> {
    let width = width(least, most)?;
    if !(1.001..=1000.0).contains(&exponent) {
        return Err(Error::usage(format!(
            "the parameter of random_zipfian must be from 1.001 to 1000, not {exponent}"
        )));
    }
    if width == 1 {
        return Ok(least);
    }
    let power = exponent - 1.0;
    let bound = power.exp2();
    loop {
        let inverse = (1.0 - rng.unit_f64()).powf(-1.0 / power).floor();
        let accept = rng.unit_f64();
        let ratio = (1.0 + 1.0 / inverse).powf(power);
        if inverse <= width as f64 && accept * inverse * (ratio - 1.0) / (bound - 1.0) <= ratio / bound {
            return Ok(least + (inverse as u64).clamp(1, width) as i64 - 1);
        }
    }
}

/// The same for an exponent above 0 that pgbench refuses, such as 0.99 of YCSB.
///
/// Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", 1996.
pub(super) fn zipfian_below_one(rng: &mut Rng, least: i64, most: i64, exponent: f64) -> Result<i64> {
    let width = width(least, most)? as f64;
    let density = |x: f64| x.powf(-exponent);
    // The integral of the density from 1, and its inverse; for an exponent of 1 they are a logarithm and a power.
    let power = 1.0 - exponent;
    let is_one = power.abs() < 1e-9;
    let integral = |x: f64| if is_one { x.ln() } else { (power * x.ln()).exp_m1() / power };
    let inverse = |y: f64| if is_one { y.exp() } else { ((power * y).ln_1p() / power).exp() };
    let (above, below) = (integral(1.5) - 1.0, integral(width + 0.5));
    let sure = 2.0 - inverse(integral(2.5) - density(2.0));
    loop {
        let draw = (above - below).mul_add(rng.unit_f64(), below);
        let x = inverse(draw);
        let rank = (x + 0.5).floor().clamp(1.0, width);
        if rank - x <= sure || draw >= integral(rank + 0.5) - density(rank) {
            return Ok(least + rank as i64 - 1);
        }
    }
}

/// A number below `width`, the smaller the likelier: by Zipf's law, or evenly if the exponent is 0.
pub(crate) fn zipf(rng: &mut Rng, width: u64, exponent: f64) -> u64 {
    if exponent <= 0.0 || width <= 1 {
        return rng.below(width.max(1));
    }
    let most = i64::try_from(width - 1).unwrap_or(i64::MAX);
    zipfian_below_one(rng, 0, most, exponent).map_or(0, i64::unsigned_abs)
}

/// sysbench's default distribution ("special"). Three quarters of the draws fall, evenly, into the upper three
/// quarters of the hundredth in the middle of the range. The others are means of twelve uniform draws over the whole
/// range.
pub(super) fn special(rng: &mut Rng, least: i64, most: i64) -> Result<i64> {
    const OFTEN: f64 = 0.75;
    const HUNDREDTH: f64 = 0.01;
    const DRAWS: u32 = 12;
    let reach = (width(least, most)? - 1) as f64;
    let draw = rng.unit_f64();
    let offset = if draw < 1.0 - OFTEN {
        (0..DRAWS).map(|_| rng.unit_f64()).sum::<f64>() * reach / f64::from(DRAWS)
    } else {
        // sysbench scales the draw itself, which is at least a quarter here, to the hundredth.
        let middle = reach * HUNDREDTH;
        draw * (middle + 1.0) + (reach - middle) / 2.0
    };
    Ok(least + offset.min(reach) as i64)
}

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

/// pgbench's `permute`: the image of a number under a pseudorandom permutation of the numbers below a size. The same
/// seed gives the same permutation as pgbench (PostgreSQL 15 and later). Numbers of `size` or more are taken modulo the
/// size.
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
