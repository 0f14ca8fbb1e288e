//! Properties of every interval and verdict, for any values.

use kurabe_stats::{
    Decision, Estimate, IntervalSettings, Mean, PairedRatio, instance_variance, interval_of_mean, judge,
    minimum_detectable_ratio, noise_floor,
};
use proptest::prelude::*;

const ONE: IntervalSettings = IntervalSettings { confidence: 0.95, comparisons: 1 };

fn rounds() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    prop::collection::vec((1e-3..1e9_f64, 1e-3..1e9_f64), 1..12).prop_map(|pairs| pairs.into_iter().unzip())
}

fn means() -> impl Strategy<Value = Mean> {
    prop::sample::select(vec![Mean::Arithmetic, Mean::Geometric])
}

fn close(a: f64, b: f64) -> bool {
    (a.ln() - b.ln()).abs() <= 1e-9 * a.ln().abs().max(1.0)
}

fn close_pairs(a: &PairedRatio, b: &PairedRatio) -> bool {
    let ends = |p: &PairedRatio| p.estimate.ends().unwrap_or((1.0, 1.0));
    let ((a_low, a_high), (b_low, b_high)) = (ends(a), ends(b));
    close(a.estimate.value, b.estimate.value)
        && close(a_low, b_low)
        && close(a_high, b_high)
        && a.rounds == b.rounds
}

proptest! {
    #[test]
    fn the_interval_contains_the_ratio((a, b) in rounds(), mean in means(), comparisons in 1..100_u32) {
        let pair = PairedRatio::from_rounds(&a, &b, mean, &ONE.for_comparisons(comparisons)).unwrap();
        prop_assert_eq!(pair.estimate.ends().is_some(), a.len() >= 2);
        if let Some((low, high)) = pair.estimate.ends() {
            prop_assert!(low <= pair.estimate.value && pair.estimate.value <= high, "{:?}", pair);
            prop_assert!(low > 0.0 && high.is_finite());
        }
    }

    #[test]
    fn the_unit_does_not_matter((a, b) in rounds(), mean in means(), scale in 1e-3..1e3_f64) {
        let scaled = |figures: &[f64]| figures.iter().map(|x| x * scale).collect::<Vec<_>>();
        let pair = PairedRatio::from_rounds(&a, &b, mean, &ONE).unwrap();
        prop_assert!(close_pairs(&pair, &PairedRatio::from_rounds(&scaled(&a), &scaled(&b), mean, &ONE).unwrap()));
        let cell = interval_of_mean(&a, mean, &ONE).unwrap();
        let other = interval_of_mean(&scaled(&a), mean, &ONE).unwrap();
        prop_assert!(close(cell.value * scale, other.value), "{:?} {:?}", cell, other);
    }

    #[test]
    fn swapping_the_sides_inverts_ratio_and_interval((a, b) in rounds(), mean in means()) {
        let forth = PairedRatio::from_rounds(&a, &b, mean, &ONE).unwrap();
        let back = PairedRatio::from_rounds(&b, &a, mean, &ONE).unwrap();
        let inverse = PairedRatio { estimate: forth.estimate.inverse(), ..forth };
        prop_assert!(close_pairs(&inverse, &back), "{:?} {:?}", forth, back);
        let swapped = match judge(back.estimate, 0.05) {
            Decision::Above => Decision::Below,
            Decision::Below => Decision::Above,
            other => other,
        };
        prop_assert_eq!(judge(forth.estimate, 0.05), swapped);
    }

    #[test]
    fn more_comparisons_never_narrow_an_interval((a, b) in rounds(), mean in means()) {
        let one = PairedRatio::from_rounds(&a, &b, mean, &ONE).unwrap();
        let many = PairedRatio::from_rounds(&a, &b, mean, &ONE.for_comparisons(40)).unwrap();
        if let (Some(one), Some(many)) = (one.estimate.ends(), many.estimate.ends()) {
            prop_assert!(many.0 <= one.0 && many.1 >= one.1);
        }
    }

    #[test]
    fn a_cell_lies_within_its_interval_and_two_cells_have_the_ratio_of_their_pair((a, b) in rounds(), mean in means()) {
        let [subject, baseline] = [&a, &b].map(|values| interval_of_mean(values, mean, &ONE).unwrap());
        let ends = subject.ends();
        prop_assert_eq!(ends.is_some(), a.len() > 1);
        let holds = |(low, high)| low <= subject.value && subject.value <= high;
        prop_assert!(ends.is_none_or(holds), "{:?}", subject);
        let pair = PairedRatio::from_rounds(&a, &b, mean, &ONE).unwrap();
        prop_assert!(close(subject.value / baseline.value, pair.estimate.value), "{:?} {:?}", subject, baseline);
    }

    #[test]
    fn a_called_difference_was_detectable((a, b) in rounds(), mean in means()) {
        let pair = PairedRatio::from_rounds(&a, &b, mean, &ONE).unwrap();
        let far = pair.estimate.value.ln().abs();
        match (judge(pair.estimate, 0.0), minimum_detectable_ratio(pair.estimate)) {
            (Decision::Undecided, None) => prop_assert_eq!(pair.rounds, 1),
            (Decision::Undecided | Decision::Within, Some(least)) => prop_assert!(far <= least.ln() + 1e-9),
            (_, Some(least)) => prop_assert!(far >= least.ln() - 1e-9),
            (verdict, least) => prop_assert!(false, "{:?} with {:?}", verdict, least),
        }
    }
}

/// A ratio of five rounds with the interval from `ratio ÷ reach` to `ratio · reach`.
fn pair(ratio: f64, reach: f64) -> PairedRatio {
    PairedRatio::new(ratio.ln(), Some(reach.ln() / ONE.student(4.0)), 4.0, 5, &ONE)
}

#[test]
fn a_verdict_needs_an_interval_without_1() {
    assert_eq!(judge(pair(1.2, 1.1).estimate, 0.05), Decision::Above);
    assert_eq!(judge(pair(0.8, 1.1).estimate, 0.05), Decision::Below);
    assert_eq!(judge(pair(1.2, 1.25).estimate, 0.05), Decision::Undecided, "the interval holds 1");
    assert_eq!(judge(pair(1.02, 1.01).estimate, 0.0), Decision::Above);
}

#[test]
fn interval_within_the_margin_is_equal_whether_it_has_1_or_not() {
    assert_eq!(judge(pair(1.02, 1.01).estimate, 0.05), Decision::Within);
    assert_eq!(judge(pair(0.98, 1.01).estimate, 0.05), Decision::Within);
    assert_eq!(judge(pair(1.0, 1.04).estimate, 0.05), Decision::Within);
    assert_eq!(judge(pair(1.045, 1.01).estimate, 0.05), Decision::Above, "it reaches beyond the margin");
    assert_eq!(judge(pair(0.955, 1.01).estimate, 0.05), Decision::Below);
}

#[test]
fn interval_that_ends_at_1_is_undecided() {
    let ends = |low, high| Estimate { value: 1.0, low: Some(low), high: Some(high) };
    assert_eq!(judge(ends(1.0, 1.5), 0.05), Decision::Undecided);
    assert_eq!(judge(ends(0.5, 1.0), 0.05), Decision::Undecided);
}

#[test]
fn only_what_is_above_or_below_lies_outside() {
    use Decision::{Above, Below, NotTestable, Undecided, Within};
    let outside = [Above, Below, Within, Undecided, NotTestable].map(Decision::is_outside);
    assert_eq!(outside, [true, true, false, false, false]);
    let ratio = Some(Estimate { value: 0.5, low: Some(0.4), high: Some(0.8) });
    let inverse = Some(Estimate { value: 2.0, low: Some(1.25), high: Some(2.5) });
    let gains = [Above, Below, Within, Undecided, NotTestable].map(|decision| decision.gain(ratio));
    assert_eq!(gains, [ratio, inverse, None, None, None]);
}

#[test]
fn noise_floor_is_what_two_instances_may_differ_by() {
    // Two standard errors of a difference of two values with this variance: 2 · √(2 · 0.0002) = 0.04.
    assert!((noise_floor(0.0002, 2.0) - 0.04_f64.exp_m1()).abs() < 1e-12);
    assert!(noise_floor(0.0, 2.0).abs() < 1e-12);
}

#[test]
fn one_round_is_inconclusive() {
    let pair = PairedRatio::from_rounds(&[200.0], &[100.0], Mean::Geometric, &ONE).unwrap();
    assert!((pair.estimate.value - 2.0).abs() < 1e-12);
    assert_eq!(pair.estimate.ends(), None);
    assert_eq!(judge(pair.estimate, 0.0), Decision::Undecided);
    assert_eq!(minimum_detectable_ratio(pair.estimate), None);
    let cell = interval_of_mean(&[200.0], Mean::Geometric, &ONE).unwrap();
    assert!(close(cell.value, 200.0) && cell.ends().is_none());
}

#[test]
fn instances_vary_by_what_their_rounds_do_not_explain() {
    // Two pairs of instances, 3 and 4 % apart, whose rounds explain 1 % each.
    let [one, other] = [0.03_f64, -0.04].map(|log| PairedRatio::new(log, Some(0.01), 4.0, 5, &ONE));
    let variance = instance_variance(&[one, other]).unwrap();
    assert!((variance - (0.0009 + 0.0016 - 0.0002) / 2.0).abs() < 1e-12, "{variance}");
    assert_eq!(instance_variance(&[pair(1.01, 1.05)]), Some(0.0), "the rounds explain it");
    assert_eq!(instance_variance(&[]), None);
    let open = PairedRatio { error: None, ..one };
    assert_eq!(instance_variance(&[one, open]), None, "a pair of unknown noise leaves it unknown");
}

#[test]
fn figures_without_logarithm_and_sides_without_partner_are_refused() {
    let pairs: [(&[f64], &[f64]); 4] =
        [(&[], &[]), (&[1.0, 2.0], &[1.0]), (&[1.0, 0.0], &[1.0, 1.0]), (&[1.0], &[f64::NAN])];
    for (a, b) in pairs {
        for mean in [Mean::Arithmetic, Mean::Geometric] {
            assert_eq!(PairedRatio::from_rounds(a, b, mean, &ONE), None, "{a:?} {b:?}");
        }
    }
    assert_eq!(interval_of_mean(&[f64::INFINITY], Mean::Geometric, &ONE), None);
}

#[test]
fn a_huge_widening_stays_finite() {
    let settings = ONE.for_comparisons(10_000);
    let pair = PairedRatio::from_rounds(&[1.0, 1e9], &[1e9, 1.0], Mean::Geometric, &settings).unwrap();
    let (low, high) = pair.estimate.ends().unwrap();
    assert!(low > 0.0 && high.is_finite());
}
