//! Quantiles of the normal and of Student's t distribution, and tails of the binomial one, by `statrs`; defined for every
//! argument.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, FisherSnedecor, Normal, StudentsT};

/// The value below which a standard normal variable falls with probability `p`: about 1e-9 relative. `p` ≤ 0 gives −∞, `p` ≥ 1
/// gives ∞, NaN gives NaN.
pub fn normal_quantile(p: f64) -> f64 {
    if p.is_nan() {
        return f64::NAN;
    }
    Normal::standard().inverse_cdf(p.clamp(0.0, 1.0))
}

/// Above so many degrees of freedom the normal distribution is taken: it differs by (z² + 1) ÷ 4 df, relative, and the inverse of
/// `statrs` 0.19 loses its digits there (1.83 for 1.96 with 1e7).
const NORMAL_FROM: f64 = 1e5;

/// The value below which Student's t variable with `df` degrees of freedom falls with probability `p`: to about 1e-5 relative
/// for tails from 1e-6 on. For a far upper quantile ask for −t of the lower one, which has no cancellation. `p` ≤ 0 gives −∞, `p` ≥ 1
/// gives ∞; NaN, or `df` that is not positive, gives NaN.
pub fn student_t_quantile(p: f64, df: f64) -> f64 {
    if df >= NORMAL_FROM {
        return normal_quantile(p);
    }
    match StudentsT::new(0.0, 1.0, df) {
        Ok(distribution) if !p.is_nan() => distribution.inverse_cdf(p.clamp(0.0, 1.0)),
        _ => f64::NAN,
    }
}

/// The probability that at most `found` of `all` independent trials have a property that each has with probability `share`; NaN
/// if `share` is not one.
pub fn binomial_at_most(found: u64, all: u64, share: f64) -> f64 {
    Binomial::new(share, all).map_or(f64::NAN, |distribution| distribution.cdf(found))
}

/// The probability that a variable of Fisher's F distribution, with these degrees of freedom of its numerator and its denominator,
/// exceeds `ratio`; NaN if they are not positive.
pub fn f_tail(ratio: f64, numerator: f64, denominator: f64) -> f64 {
    FisherSnedecor::new(numerator, denominator)
        .map_or(f64::NAN, |distribution| distribution.sf(ratio.max(0.0)))
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
        assert_close(normal_quantile(0.25), -0.674_489_750_196_081_7, 1e-9);
        assert_close(normal_quantile(0.001), -3.090_232_306_167_813_7, 1e-9);
        assert_close(normal_quantile(1e-20), -9.262_340_089_798_408, 1e-9);
        assert_close(normal_quantile(0.975), 1.959_963_984_540_054, 1e-9);
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
        for p in [1e-6_f64, 1e-5, 0.000_625, 0.01, 0.025, 0.2, 0.4, 0.499, 0.6, 0.975, 0.999_375] {
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
    fn binomial_tails_agree_with_their_closed_forms() {
        let (share, all) = (0.01_f64, 600.0_f64);
        let none = (1.0 - share).powf(all);
        assert_close(binomial_at_most(0, 600, share), none, 1e-9);
        assert_close(
            binomial_at_most(1, 600, share),
            none + all * share * (1.0 - share).powf(all - 1.0),
            1e-9,
        );
        assert_close(binomial_at_most(7, 7, 0.3), 1.0, 1e-12);
        assert!(binomial_at_most(1, 2, 1.5).is_nan() && binomial_at_most(1, 2, f64::NAN).is_nan());
    }

    #[test]
    fn t_becomes_normal_and_stays_monotone() {
        assert_close(student_t_quantile(0.975, 1e7), normal_quantile(0.975), 1e-6);
        assert_close(student_t_quantile(0.975, f64::INFINITY), normal_quantile(0.975), 1e-15);
        // The first term of Cornish and Fisher's expansion, whose next one is below 1e-7 here.
        for df in [3e3, 1e4, 9.9e4] {
            let z = normal_quantile(0.975);
            assert_close(student_t_quantile(0.975, df), z + (z.powi(3) + z) / (4.0 * df), 1e-6);
        }
        let by_df: Vec<f64> = (1..60).map(|df| student_t_quantile(0.999, f64::from(df))).collect();
        assert!(by_df.windows(2).all(|w| w[0] > w[1]));
        assert!(student_t_quantile(0.5, 3.0).abs() < 1e-300);
        assert!(student_t_quantile(0.9, 0.0).is_nan() && student_t_quantile(f64::NAN, 3.0).is_nan());
    }
}
