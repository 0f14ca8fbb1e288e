//! The order of trials in a round: a random permutation, reproducible from the seed.

use kurabe_stats::rng::{Rng, mix};

/// Shuffles the groups of round `round`, and the trials of each: groups of one length have orders of their own.
pub(crate) fn shuffle<T>(seed: u64, round: u32, groups: &mut [Vec<T>]) {
    let mut rng = Rng::new(mix(seed, 0x6f72_6465_7200 + u64::from(round)));
    rng.shuffle(groups);
    for group in groups {
        rng.shuffle(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_runs_every_trial_once_in_its_own_order() {
        let of_round = |round| {
            let mut groups: Vec<Vec<usize>> = (0..50).map(|trial| vec![trial]).collect();
            shuffle(1, round, &mut groups);
            groups.concat()
        };
        let (first, second) = (of_round(0), of_round(1));
        assert_ne!(first, second);
        assert_eq!(first, of_round(0));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn groups_of_one_length_have_orders_of_their_own() {
        let alike = |round: &u32| {
            let mut groups: Vec<Vec<(usize, usize)>> =
                (0..2).map(|group| (0..4).map(|trial| (group, trial)).collect()).collect();
            shuffle(1, *round, &mut groups);
            let order = |at: usize| groups[at].iter().map(|(_, trial)| *trial).collect::<Vec<_>>();
            order(0) == order(1)
        };
        // One of 24 orders is the same by chance.
        assert!((0..48).filter(alike).count() < 12);
    }
}
