//! Properties of every interval and verdict, for any values.

use kurabe_stats::{
    Direction, Interval, IntervalSettings, PairedRatio, StatsError, Verdict, interval_of_mean,
    interval_of_median, judge, minimum_detectable_ratio, noise_floor,
};
use proptest::prelude::*;

/// The properties hold for any number of resamples; few keep the tests quick.
fn settings(seed: u64) -> IntervalSettings {
    IntervalSettings { resamples: 100, ..IntervalSettings::new(seed) }
}

fn rounds() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    prop::collection::vec((1e-3..1e9_f64, 1e-3..1e9_f64), 1..12).prop_map(|pairs| pairs.into_iter().unzip())
}

fn close(a: f64, b: f64) -> bool {
    (a.ln() - b.ln()).abs() <= 1e-9 * a.ln().abs().max(1.0)
}

fn close_pairs(a: &PairedRatio, b: &PairedRatio) -> bool {
    let ends = |p: &PairedRatio| p.interval.map_or((1.0, 1.0), |i| (i.low, i.high));
    let ((a_low, a_high), (b_low, b_high)) = (ends(a), ends(b));
    close(a.ratio, b.ratio) && close(a_low, b_low) && close(a_high, b_high) && a.rounds == b.rounds
}

proptest! {
    #[test]
    fn the_interval_contains_the_ratio((a, b) in rounds(), seed in any::<u64>(), comparisons in 1..100_u32) {
        let pair = PairedRatio::of(&a, &b, &settings(seed).for_comparisons(comparisons)).unwrap();
        prop_assert_eq!(pair.interval.is_some(), a.len() >= 2);
        if let Some(interval) = pair.interval {
            prop_assert!(interval.contains(pair.ratio), "{:?}", pair);
            prop_assert!(interval.low > 0.0 && interval.high.is_finite());
        }
    }

    #[test]
    fn the_unit_does_not_matter((a, b) in rounds(), scale in 1e-3..1e3_f64, seed in any::<u64>()) {
        let scaled = |figures: &[f64]| figures.iter().map(|x| x * scale).collect::<Vec<_>>();
        let pair = PairedRatio::of(&a, &b, &settings(seed)).unwrap();
        prop_assert!(close_pairs(&pair, &PairedRatio::of(&scaled(&a), &scaled(&b), &settings(seed)).unwrap()));
        let cell = interval_of_median(&a, &settings(seed)).unwrap();
        let other = interval_of_median(&scaled(&a), &settings(seed)).unwrap();
        prop_assert!(close(cell.value * scale, other.value), "{:?} {:?}", cell, other);
    }

    #[test]
    fn swapping_the_sides_inverts_ratio_and_interval((a, b) in rounds(), seed in any::<u64>()) {
        let forth = PairedRatio::of(&a, &b, &settings(seed)).unwrap();
        let back = PairedRatio::of(&b, &a, &settings(seed)).unwrap();
        prop_assert!(close_pairs(&forth.inverse(), &back), "{:?} {:?}", forth, back);
        let (up, down) = (Direction::HigherIsBetter, Direction::LowerIsBetter);
        prop_assert_eq!(judge(&forth, 0.03, up), judge(&back, 0.03, down));
    }

    #[test]
    fn the_same_seed_gives_the_same_interval((a, b) in rounds(), seed in any::<u64>()) {
        prop_assert_eq!(PairedRatio::of(&a, &b, &settings(seed)), PairedRatio::of(&a, &b, &settings(seed)));
    }

    #[test]
    fn more_comparisons_never_narrow_an_interval((a, b) in rounds(), seed in any::<u64>()) {
        let one = PairedRatio::of(&a, &b, &settings(seed)).unwrap();
        let many = PairedRatio::of(&a, &b, &settings(seed).for_comparisons(40)).unwrap();
        if let (Some(one), Some(many)) = (one.interval, many.interval) {
            prop_assert!(many.low <= one.low && many.high >= one.high);
        }
    }

    #[test]
    fn a_cell_lies_within_its_interval((a, _) in rounds(), seed in any::<u64>()) {
        for cell in [interval_of_median(&a, &settings(seed)), interval_of_mean(&a, &settings(seed))] {
            let cell = cell.unwrap();
            prop_assert!(cell.low <= cell.value && cell.value <= cell.high, "{:?}", cell);
            prop_assert_eq!(cell.rounds, a.len());
        }
    }

    #[test]
    fn a_ratio_is_written_and_read_back((a, b) in rounds()) {
        let pair = PairedRatio::of(&a, &b, &settings(1).for_comparisons(1_000)).unwrap();
        let text = serde_json::to_string(&pair).unwrap();
        prop_assert!(close_pairs(&serde_json::from_str::<PairedRatio>(&text).unwrap(), &pair));
    }

    #[test]
    fn a_called_difference_was_detectable((a, b) in rounds(), floor in 0.0..0.5_f64) {
        let pair = PairedRatio::of(&a, &b, &settings(1)).unwrap();
        let far = pair.ratio.ln().abs();
        match (judge(&pair, floor, Direction::HigherIsBetter), minimum_detectable_ratio(&pair, floor)) {
            (Verdict::Inconclusive, None) => prop_assert_eq!(pair.rounds, 1),
            (Verdict::Indistinguishable, Some(least)) => prop_assert!(far <= least.ln() + 1e-9),
            (_, Some(least)) => prop_assert!(far >= floor.ln_1p() && least >= 1.0 + floor - 1e-12),
            (verdict, least) => prop_assert!(false, "{:?} with {:?}", verdict, least),
        }
    }
}

fn pair(ratio: f64, low: f64, high: f64) -> PairedRatio {
    PairedRatio { ratio, interval: Some(Interval { low, high }), rounds: 5, confidence: 0.95, comparisons: 1 }
}

#[test]
fn a_verdict_needs_the_interval_and_the_noise_floor() {
    let up = Direction::HigherIsBetter;
    assert_eq!(judge(&pair(1.2, 1.1, 1.3), 0.03, up), Verdict::Faster);
    assert_eq!(judge(&pair(0.8, 0.7, 0.9), 0.03, up), Verdict::Slower);
    assert_eq!(judge(&pair(1.2, 1.1, 1.3), 0.03, Direction::LowerIsBetter), Verdict::Slower);
    assert_eq!(judge(&pair(1.2, 0.99, 1.4), 0.03, up), Verdict::Indistinguishable, "the interval holds 1");
    assert_eq!(judge(&pair(1.02, 1.01, 1.03), 0.03, up), Verdict::Indistinguishable, "within the noise");
    assert_eq!(judge(&pair(1.02, 1.01, 1.03), 0.0, up), Verdict::Faster);
    assert_eq!(judge(&pair(1.2, 1.1, 1.3), f64::NAN, up), Verdict::Inconclusive);
}

#[test]
fn one_round_is_inconclusive() {
    let pair = PairedRatio::of(&[200.0], &[100.0], &settings(1)).unwrap();
    assert!((pair.ratio - 2.0).abs() < 1e-12);
    assert_eq!((pair.low(), pair.high()), (None, None));
    assert_eq!(judge(&pair, 0.0, Direction::HigherIsBetter), Verdict::Inconclusive);
    assert_eq!(minimum_detectable_ratio(&pair, 0.0), None);
    let cell = interval_of_median(&[200.0], &settings(1)).unwrap();
    assert_eq!(cell.rounds, 1);
    assert!(close(cell.low, 200.0) && close(cell.high, 200.0));
}

#[test]
fn the_noise_floor_is_the_farthest_end_in_either_direction() {
    let floor = noise_floor(&[pair(1.0, 0.98, 1.03), pair(0.99, 0.95, 1.01)]).unwrap();
    assert!((floor - (1.0 / 0.95 - 1.0)).abs() < 1e-12, "{floor}");
    assert_eq!(noise_floor(&[]), None);
    let open = PairedRatio { interval: None, ..pair(1.0, 1.0, 1.0) };
    assert_eq!(noise_floor(&[pair(1.0, 0.9, 1.1), open]), None, "a pair of unknown noise leaves it unknown");
}

#[test]
fn the_smallest_visible_difference_is_that_of_the_wider_half_or_of_the_floor() {
    let least = minimum_detectable_ratio(&pair(1.0, 0.8, 1.1), 0.03).unwrap();
    assert!((least - 1.25).abs() < 1e-12);
    let least = minimum_detectable_ratio(&pair(1.0, 0.99, 1.01), 0.03).unwrap();
    assert!((least - 1.03).abs() < 1e-12);
}

#[test]
fn figures_without_logarithm_and_sides_without_partner_are_refused() {
    let of = |a: &[f64], b: &[f64]| PairedRatio::of(a, b, &settings(1)).unwrap_err();
    assert_eq!(of(&[], &[]), StatsError::Empty);
    assert_eq!(of(&[1.0, 2.0], &[1.0]), StatsError::UnequalRounds { left: 2, right: 1 });
    assert_eq!(of(&[1.0, 0.0], &[1.0, 1.0]), StatsError::NotPositive { round: 1, value: 0.0 });
    assert!(matches!(of(&[1.0], &[f64::NAN]), StatsError::NotPositive { round: 0, .. }));
    assert!(interval_of_mean(&[f64::INFINITY], &settings(1)).is_err());
    let bad = IntervalSettings { confidence: 1.0, ..settings(1) };
    assert_eq!(interval_of_median(&[1.0], &bad), Err(StatsError::Confidence(1.0)));
    assert!(interval_of_median(&[1.0], &settings(1).for_comparisons(0)).is_err());
    assert!(interval_of_median(&[1.0], &IntervalSettings { resamples: 0, ..settings(1) }).is_err());
}

#[test]
fn verdicts_have_stable_names_in_files() {
    let written = |v: &Verdict| serde_json::to_string(v).unwrap();
    assert_eq!(written(&Verdict::Faster), r#"{"verdict":"faster"}"#);
    let reason = Verdict::NotComparable { reason: "durability differs".into() };
    assert_eq!(written(&reason), r#"{"verdict":"not-comparable","reason":"durability differs"}"#);
    assert_eq!(serde_json::from_str::<Verdict>(&written(&reason)).unwrap(), reason);
}

#[test]
fn a_huge_widening_stays_finite() {
    let settings = settings(1).for_comparisons(10_000);
    let pair = PairedRatio::of(&[1.0, 1e9], &[1e9, 1.0], &settings).unwrap();
    assert!(pair.low().unwrap() > 0.0 && pair.high().unwrap().is_finite());
}
