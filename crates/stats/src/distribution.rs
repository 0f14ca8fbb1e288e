//! Quantiles of the normal and of Student's t distribution.

use crate::special::{incomplete_beta, ln_gamma};

/// The value below which a standard normal variable falls with probability `p`.
///
/// Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37(3),
/// 1988, routine PPND16: about 1e-16 relative. `p` ≤ 0 gives −∞, `p` ≥ 1 gives ∞, NaN gives NaN.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&CENTRE_A, r) / polynomial(&CENTRE_B, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-tail.ln()).sqrt();
    let size = if r <= 5.0 {
        polynomial(&MIDDLE_C, r - 1.6) / polynomial(&MIDDLE_D, r - 1.6)
    } else {
        polynomial(&FAR_E, r - 5.0) / polynomial(&FAR_F, r - 5.0)
    };
    size.copysign(q)
}

/// Horner's rule, highest coefficient first.
fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

const CENTRE_A: [f64; 8] = [
    2.509_080_928_730_122_7e3,
    3.343_057_558_358_813e4,
    6.726_577_092_700_87e4,
    4.592_195_393_154_987e4,
    1.373_169_376_550_946e4,
    1.971_590_950_306_551_3e3,
    1.331_416_678_917_843_8e2,
    3.387_132_872_796_366_5,
];
const CENTRE_B: [f64; 8] = [
    5.226_495_278_852_854e3,
    2.872_908_573_572_194_3e4,
    3.930_789_580_009_271e4,
    2.121_379_430_158_659_7e4,
    5.394_196_021_424_751e3,
    6.871_870_074_920_579e2,
    4.231_333_070_160_091e1,
    1.0,
];
const MIDDLE_C: [f64; 8] = [
    7.745_450_142_783_414e-4,
    2.272_384_498_926_918_4e-2,
    2.417_807_251_774_506e-1,
    1.270_458_252_452_368_4,
    3.647_848_324_763_204_5,
    5.769_497_221_460_691,
    4.630_337_846_156_546,
    1.423_437_110_749_683_5,
];
const MIDDLE_D: [f64; 8] = [
    1.050_750_071_644_416_9e-9,
    5.475_938_084_995_345e-4,
    1.519_866_656_361_645_7e-2,
    1.481_039_764_274_800_8e-1,
    6.897_673_349_851e-1,
    1.676_384_830_183_803_8,
    2.053_191_626_637_759,
    1.0,
];
const FAR_E: [f64; 8] = [
    2.010_334_399_292_288_1e-7,
    2.711_555_568_743_487_6e-5,
    1.242_660_947_388_078_4e-3,
    2.653_218_952_657_612_4e-2,
    2.965_605_718_285_048_7e-1,
    1.784_826_539_917_291_3,
    5.463_784_911_164_114,
    6.657_904_643_501_103,
];
const FAR_F: [f64; 8] = [
    2.044_263_103_389_939_8e-15,
    1.421_511_758_316_446e-7,
    1.846_318_317_510_054_8e-5,
    7.868_691_311_456_133e-4,
    1.487_536_129_085_061_5e-2,
    1.369_298_809_227_358e-1,
    5.998_322_065_558_88e-1,
    1.0,
];

/// The probability that a t variable with `df` degrees of freedom exceeds `t` ≥ 0.
///
/// DLMF 8.17 with Abramowitz and Stegun 26.7.1: half of `I_x(df/2, 1/2)` at x = df ÷ (df + t²).
fn upper_tail(t: f64, df: f64) -> f64 {
    let x = df / (df + t * t);
    let y = t * t / (df + t * t);
    0.5 * incomplete_beta(0.5 * df, 0.5, x, y)
}

/// The value below which Student's t variable with `df` degrees of freedom falls with probability `p`.
///
/// The upper tail is the regularised incomplete beta function, and its inverse is found by Newton's method on
/// ln(tail) as a function of ln(t): nearly a straight line both far out and close in, so that it converges in a
/// few steps, to better than 1e-9 relative. For a far upper quantile ask for −t of the lower one, which has no
/// cancellation. `p` ≤ 0 gives −∞, `p` ≥ 1 gives ∞; NaN, or `df` that is not positive, gives NaN; an infinite
/// `df` is the normal distribution.
#[must_use]
pub fn student_t_quantile(p: f64, df: f64) -> f64 {
    if p.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    let z = normal_quantile(p);
    if df.is_infinite() || z.is_infinite() || z == 0.0 {
        return z;
    }
    let tail = if p < 0.5 { p } else { 1.0 - p };
    let ln_density_front =
        ln_gamma(0.5 * (df + 1.0)) - ln_gamma(0.5 * df) - 0.5 * (df * std::f64::consts::PI).ln();
    let mut ln_t = z.abs().ln();
    for _ in 0..100 {
        let t = ln_t.exp();
        let now = upper_tail(t, df);
        let density = (ln_density_front - 0.5 * (df + 1.0) * (t * t / df).ln_1p()).exp();
        // d ln(tail) / d ln(t) = −t · density / tail.
        let step = (now / tail).ln() * now / (t * density);
        if !step.is_finite() {
            break;
        }
        ln_t += step;
        if step.abs() < 1e-12 {
            break;
        }
    }
    ln_t.exp().copysign(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance * wanted.abs(), "found {found}, wanted {wanted}");
    }

    #[test]
    fn normal_quantiles_of_the_published_check_values() {
        // The three check values of AS 241, one for each of its regions.
        assert_close(normal_quantile(0.25), -0.674_489_750_196_081_7, 1e-15);
        assert_close(normal_quantile(0.001), -3.090_232_306_167_813_7, 1e-15);
        assert_close(normal_quantile(1e-20), -9.262_340_089_798_408, 1e-15);
        assert_close(normal_quantile(0.975), 1.959_963_984_540_054, 1e-14);
        assert!(normal_quantile(0.5).abs() < 1e-300);
        assert!(normal_quantile(0.0).is_infinite() && normal_quantile(1.0).is_infinite());
        assert!(normal_quantile(f64::NAN).is_nan());
    }

    #[test]
    fn t_quantiles_of_the_nist_table() {
        // NIST/SEMATECH e-Handbook, 1.3.6.7.2, three decimals.
        for (p, df, wanted) in [
            (0.975, 1.0, 12.706),
            (0.975, 4.0, 2.776),
            (0.99, 6.0, 3.143),
            (0.999, 9.0, 4.297),
            (0.95, 30.0, 1.697),
            (0.995, 100.0, 2.626),
        ] {
            let found = student_t_quantile(p, df);
            assert!((found - wanted).abs() <= 0.000_5, "t({p}, {df}) = {found}, table {wanted}");
        }
    }

    #[test]
    fn t_quantiles_agree_with_their_closed_forms() {
        // One degree of freedom: tan(π(p − 1/2)). Two: (2p − 1)·√(2 ÷ (4p(1 − p))).
        // Four: Shaw, "Sampling Student's T distribution", J. Computational Finance 9(4), 2006.
        for p in [1e-8_f64, 1e-5, 0.000_625, 0.01, 0.025, 0.2, 0.4, 0.499, 0.6, 0.975, 0.999_375] {
            let (pi, a) = (std::f64::consts::PI, 4.0 * p * (1.0 - p));
            let one = if p < 0.5 { -1.0 / (pi * p).tan() } else { 1.0 / (pi * (1.0 - p)).tan() };
            let two = (2.0 * p - 1.0) * (2.0 / a).sqrt();
            let four = 2.0 * ((a.sqrt().acos() / 3.0).cos() / a.sqrt() - 1.0).sqrt().copysign(p - 0.5);
            assert_close(student_t_quantile(p, 1.0), one, 1e-9);
            assert_close(student_t_quantile(p, 2.0), two, 1e-9);
            // Shaw's form itself loses digits where it subtracts 1.
            assert_close(student_t_quantile(p, 4.0), four, 1e-8);
        }
    }

    #[test]
    fn t_becomes_normal_and_stays_monotone() {
        assert_close(student_t_quantile(0.975, 1e7), normal_quantile(0.975), 1e-6);
        assert_close(student_t_quantile(0.975, f64::INFINITY), normal_quantile(0.975), 1e-15);
        let by_df: Vec<f64> = (1..60).map(|df| student_t_quantile(0.999, f64::from(df))).collect();
        assert!(by_df.windows(2).all(|w| w[0] > w[1]));
        assert!(student_t_quantile(0.5, 3.0).abs() < 1e-300);
        assert!(student_t_quantile(0.9, 0.0).is_nan() && student_t_quantile(f64::NAN, 3.0).is_nan());
    }
}
