//! The distributions of pgbench's random functions, over Kurabe's own generator.

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
