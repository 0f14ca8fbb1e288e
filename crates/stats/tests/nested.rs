//! The effect of server instances on verdicts, and of restarting servers between blocks of rounds.
//!
//! Seeds are fixed, so a failure is a change of the rule.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use kurabe_stats::distribution::normal_quantile;
use kurabe_stats::nested::means_of_blocks;
use kurabe_stats::{Direction, IntervalSettings, PairedRatio, Rng, Verdict, judge, mix, noise_floor};

const RUNS: u64 = 500;

fn standard_normal(rng: &mut Rng) -> f64 {
    normal_quantile(rng.unit_f64().max(f64::MIN_POSITIVE))
}

/// The values of one side by round: each instance of the server, one per block, has its own speed.
fn side(rng: &mut Rng, blocks: u32, length: u32, between: f64, within: f64) -> Vec<(u32, f64)> {
    let mut figures = Vec::new();
    for block in 0..blocks {
        let start = 1000.0 * (between * standard_normal(rng)).exp();
        for round in 0..length {
            figures.push((block * length + round, start * (within * standard_normal(rng)).exp()));
        }
    }
    figures
}

/// For runs of two equal servers: how often they are called different, with blocks and with rounds as samples, and
/// with or without a noise floor from a second instance.
fn called_different(blocks: u32, length: u32, between: f64, within: f64, floor: bool) -> [u64; 2] {
    let mut called = [0; 2];
    for run in 0..RUNS {
        let mut rng = Rng::new(mix(mix(u64::from(blocks), u64::from(length)), run));
        let sides = [(); 4].map(|()| side(&mut rng, blocks, length, between, within));
        for (nested, called) in [true, false].into_iter().zip(&mut called) {
            let block = |round: u32| if nested { round / length } else { round };
            let samples = |at: usize| means_of_blocks(sides[at].iter().copied(), block);
            let settings = IntervalSettings { resamples: 400, ..IntervalSettings::new(run) };
            let ratio = |a: usize, b: usize| PairedRatio::of(&samples(a), &samples(b), &settings).unwrap();
            // Each side has a second instance of its own; the larger floor counts.
            let floor = if floor { noise_floor(&[ratio(2, 0), ratio(3, 1)]).unwrap_or(0.0) } else { 0.0 };
            let verdict = judge(&ratio(0, 1), floor, Direction::HigherIsBetter);
            *called += u64::from(verdict != Verdict::Indistinguishable);
        }
    }
    called
}

#[test]
fn equal_servers_with_differing_instances_need_blocks_as_samples() {
    for (blocks, length) in [(2, 3), (3, 2), (5, 4)] {
        let [nested, flat] = called_different(blocks, length, 0.03, 1e-6, false);
        assert!(nested * 20 <= RUNS, "{blocks} blocks of {length}: {nested} of {RUNS}");
        assert!(
            flat * 10 >= RUNS,
            "{blocks} blocks of {length}: {flat} of {RUNS} where rounds are the samples"
        );
        assert!(flat >= 3 * nested, "{blocks} blocks of {length}: {nested} and {flat} of {RUNS}");
    }
}

#[test]
fn single_instances_are_called_different_for_any_rounds() {
    let [_, flat] = called_different(1, 6, 0.03, 0.001, false);
    assert!(flat * 10 >= 9 * RUNS, "{flat} of {RUNS}");
}

#[test]
fn second_instance_suppresses_most_differences_of_instances() {
    let [_, without] = called_different(1, 6, 0.03, 0.001, false);
    let [_, with] = called_different(1, 6, 0.03, 0.001, true);
    // Three differences of two instances each: the first is the largest in a third of cases.
    assert!(
        with * 100 <= 40 * RUNS && without >= 2 * with,
        "{with} with a floor, {without} without, of {RUNS}"
    );
}

#[test]
fn equal_servers_with_equal_instances_are_not_called_different() {
    let [nested, flat] = called_different(3, 3, 0.0, 0.03, false);
    // Of rounds, exactly 5 % are expected, and by chance a few more.
    assert!(nested * 20 <= RUNS && flat * 100 <= 7 * RUNS, "{nested} and {flat} of {RUNS}");
}
