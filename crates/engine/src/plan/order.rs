//! The order of trials in a round: a random permutation, reproducible from the seed.

use kurabe_stats::rng::{Rng, mix};

/// Shuffles the trials of round `round`.
pub(crate) fn shuffle<T>(seed: u64, round: u32, trials: &mut [T]) {
    Rng::new(mix(seed, 0x6f72_6465_7200 + u64::from(round))).shuffle(trials);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_runs_every_trial_once_in_its_own_order() {
        let of_round = |round| {
            let mut order: Vec<usize> = (0..50).collect();
            shuffle(1, round, &mut order);
            order
        };
        let (first, second) = (of_round(0), of_round(1));
        assert_ne!(first, second);
        assert_eq!(first, of_round(0));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
