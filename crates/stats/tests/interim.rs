//! Runs that are analysed repeatedly and end at the first verdict: their error rates must stay within the promise
//! too.
//!
//! Seeds are fixed, so a failure is a change of the rule.

use crate::normal;
use kurabe_stats::interim::{Analyses, at_analysis, further_rounds};
use kurabe_stats::{Decision, IntervalSettings, Mean, PairedRatio, Rng, judge, mix};

/// Rounds at the analyses of a run.
const PLANNED: [u32; 6] = [6, 9, 14, 21, 32, 48];
/// The maximum rounds of a run that is extended by a round or two after 21, repeatedly.
const PROLONGED: [u32; 10] = [22, 23, 24, 25, 26, 27, 28, 29, 30, 31];

#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Logarithms with heavy tails: one round in ten varies five times as much.
    Heavy,
}

/// The rates of one cell, around `rate`, varying by 3 %.
fn cell(rng: &mut Rng, noise: Noise, rounds: u32, rate: f64) -> Vec<f64> {
    (0..rounds)
        .map(|_| {
            let times = if matches!(noise, Noise::Heavy) && rng.below(10) == 0 { 5.0 } else { 1.0 };
            rate * (0.03 * times * normal(rng)).exp()
        })
        .collect()
}

/// The number of runs that satisfy `found` at any analysis. `ends`: the rounds after which they end or are extended.
/// `spending`: whether analyses share the 5 %.
fn runs_that(
    noise: Noise,
    comparisons: u32,
    factor: f64,
    (ends, spending): (&[u32], bool),
    found: fn(&PairedRatio) -> bool,
) -> f64 {
    const RUNS: u64 = 300;
    let analyses = Analyses::new(PLANNED[0], ends.iter().copied());
    let most = PLANNED[PLANNED.len() - 1];
    let mut runs = 0;
    for run in 0..RUNS {
        let mut rng = Rng::new(mix(mix(7, noise as u64), mix(u64::from(comparisons), run)));
        let pairs: Vec<(Vec<f64>, Vec<f64>)> = (0..comparisons)
            .map(|_| (cell(&mut rng, noise, most, 1_000.0 * factor), cell(&mut rng, noise, most, 1_000.0)))
            .collect();
        let any = analyses.rounds().take_while(|rounds| *rounds <= most).any(|rounds| {
            let once = IntervalSettings::default().for_comparisons(comparisons);
            let settings = if spending { at_analysis(once, analyses.number(rounds)) } else { once };
            let rounds = rounds as usize;
            pairs.iter().any(|(a, b)| {
                found(
                    &PairedRatio::from_rounds(&a[..rounds], &b[..rounds], Mean::Arithmetic, &settings)
                        .unwrap(),
                )
            })
        });
        runs += u64::from(any);
    }
    runs as f64 / RUNS as f64
}

fn called(ratio: &PairedRatio) -> bool {
    matches!(judge(ratio.estimate, 0.0), Decision::Above | Decision::Below)
}

#[test]
fn equals_are_called_different_in_at_most_five_percent_of_runs_that_end_at_the_first_difference() {
    for noise in [Noise::Normal, Noise::Heavy] {
        for comparisons in [1, 4] {
            let wrong = runs_that(noise, comparisons, 1.0, (&[], true), called);
            assert!(wrong <= 0.05, "{noise:?}, {comparisons} comparisons: {wrong}");
        }
    }
}

#[test]
fn repeatedly_extended_runs_keep_error_rate() {
    let wrong = runs_that(Noise::Normal, 1, 1.0, (&PROLONGED, true), called);
    assert!(wrong <= 0.05, "{wrong}");
}

#[test]
fn repeated_analysis_without_spending_exceeds_error_rate() {
    let wrong = runs_that(Noise::Normal, 1, 1.0, (&[], false), called);
    assert!(wrong > 0.08, "{wrong}");
}

#[test]
fn a_difference_beyond_the_margin_is_said_to_be_within_it_in_at_most_five_percent_of_runs() {
    for noise in [Noise::Normal, Noise::Heavy] {
        let wrong = runs_that(noise, 1, 1.051, (&[], true), |ratio| {
            ratio.estimate.high.is_some_and(|high| high <= 1.05)
        });
        assert!(wrong <= 0.05, "{noise:?}: {wrong}");
    }
}

#[test]
fn equal_and_five_percent_difference_both_become_conclusive() {
    for factor in [1.0, 1.08] {
        let share = runs_that(Noise::Normal, 1, factor, (&[], true), |ratio| {
            judge(ratio.estimate, 0.05) != Decision::Undecided
        });
        assert!(share >= 0.95, "×{factor}: {share}");
    }
    let faster = runs_that(Noise::Normal, 1, 1.08, (&[], true), |ratio| {
        judge(ratio.estimate, 0.05) == Decision::Above
    });
    assert!(faster >= 0.95, "{faster}");
}

#[test]
fn predicted_rounds_decide_most_comparisons() {
    const RUNS: u64 = 300;
    let (mut foreseen, mut conclusive) = (0, 0);
    for run in 0..RUNS {
        let mut rng = Rng::new(mix(11, run));
        let (a, b) =
            (cell(&mut rng, Noise::Normal, 400, 1_000.0), cell(&mut rng, Noise::Normal, 400, 1_000.0));
        let settings = IntervalSettings::default();
        let of = |rounds: usize| {
            PairedRatio::from_rounds(&a[..rounds], &b[..rounds], Mean::Arithmetic, &settings).unwrap()
        };
        let ratio = of(6);
        if judge(ratio.estimate, 0.03) != Decision::Undecided {
            continue;
        }
        let Some(more) = further_rounds(&ratio, 0.03, None, &settings) else { continue };
        // The estimate of the spread after six rounds is rough: the prediction may be wrong by half.
        let rounds = (6 + more + more / 2).min(400);
        foreseen += 1;
        conclusive += u64::from(judge(of(rounds).estimate, 0.03) != Decision::Undecided);
    }
    assert!(foreseen > RUNS / 2, "{foreseen}");
    assert!(conclusive * 2 >= foreseen, "{conclusive} of {foreseen}");
}
