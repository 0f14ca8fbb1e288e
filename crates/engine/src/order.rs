//! The order of a round: every trial once, in a random order of its own that the seed repeats.

use kurabe_stats::rng::{Rng, mix};

/// The positions `0..trials` in the order in which round `round` makes them.
pub(crate) fn of_round(seed: u64, round: u32, trials: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..trials).collect();
    Rng::new(mix(seed, 0x6f72_6465_7200 + u64::from(round))).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_makes_every_trial_once_in_an_order_of_its_own() {
        let (first, second) = (of_round(1, 0, 50), of_round(1, 1, 50));
        assert_ne!(first, second);
        assert_eq!(first, of_round(1, 0, 50));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
