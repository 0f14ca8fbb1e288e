//! The record that each request reads or writes: Zipf's law over a fixed random order of the records.

use crate::prelude::*;

#[derive(Debug)]
pub(super) struct Popularity {
    exponent: f64,
    /// The records with their ranks among all records, the most popular first.
    ranked: Vec<(u32, u32)>,
    /// For each record, the probability of drawing it or a more popular one; empty if all records are equally
    /// popular.
    up_to: Vec<f64>,
}

impl Popularity {
    /// The probability of the record of rank n is proportional to n to the power of −`exponent`.
    pub(super) fn new(seed: u64, records: u32, exponent: f64) -> Arc<Self> {
        let mut order: Vec<u32> = (0..records).collect();
        Rng::new(mix(seed, 0x0070_6f70_756c_6172)).shuffle(&mut order);
        Arc::new(Self::ranked((1..).zip(order).collect(), exponent))
    }

    /// The records whose number modulo `of` is `own`, with the same relative popularity. It contains at least one
    /// record if there are at least `of` records.
    pub(super) fn owned(&self, own: usize, of: usize) -> Self {
        let is_own = |(_, record): &&(u32, u32)| *record as usize % of == own;
        Self::ranked(self.ranked.iter().filter(is_own).copied().collect(), self.exponent)
    }

    fn ranked(ranked: Vec<(u32, u32)>, exponent: f64) -> Self {
        let mut up_to = Vec::new();
        if exponent > 0.0
            && let Some((first, _)) = ranked.first()
        {
            // Relative to the first of them, so that the sum is never 0, however steep the law.
            let mut sum = 0.0;
            up_to.extend(ranked.iter().map(|(rank, _)| {
                sum += (f64::from(*rank) / f64::from(*first)).powf(-exponent);
                sum
            }));
            for part in &mut up_to {
                *part /= sum;
            }
        }
        Self { exponent, ranked, up_to }
    }

    /// Draws a record by binary search.
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let at = if self.up_to.is_empty() {
            rng.below(self.ranked.len() as u64) as usize
        } else {
            let at = rng.unit_f64();
            self.up_to.partition_point(|part| *part <= at).min(self.ranked.len() - 1)
        };
        self.ranked[at].1 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draw_frequencies_follow_zipfs_law() {
        let popularity = Popularity::new(7, 100, 1.0);
        let mut rng = Rng::new(1);
        let mut drawn = [0_u32; 100];
        for _ in 0..200_000 {
            drawn[popularity.draw(&mut rng)] += 1;
        }
        let harmonic: f64 = (1..=100).map(|n| 1.0 / f64::from(n)).sum();
        for rank in [1_u32, 2, 10, 50] {
            let expected = 200_000.0 / f64::from(rank) / harmonic;
            let found = f64::from(drawn[popularity.ranked[rank as usize - 1].1 as usize]);
            assert!((found - expected).abs() < 6.0 * expected.sqrt(), "rank {rank}: {found} of {expected}");
        }
    }

    #[test]
    fn without_skew_records_are_equally_popular_and_clients_disjoint() {
        let popularity = Popularity::new(7, 50, 0.0);
        let mut rng = Rng::new(2);
        let mut drawn = [0_u32; 50];
        for _ in 0..50_000 {
            drawn[popularity.draw(&mut rng)] += 1;
        }
        assert!(drawn.iter().all(|times| (800..1_200).contains(times)), "{drawn:?}");
        let skewed = Popularity::new(7, 50, 2.0).owned(3, 7);
        assert!((0..1_000).all(|_| skewed.draw(&mut rng) % 7 == 3));
    }

    #[test]
    fn clients_own_records_keep_their_proportions() {
        let all = Popularity::new(7, 60, 1.0);
        let (mut rng, mut own) = (Rng::new(4), [0_u32; 60]);
        let mine = all.owned(1, 3);
        for _ in 0..100_000 {
            own[mine.draw(&mut rng)] += 1;
        }
        let ranks: Vec<(u32, u32)> =
            all.ranked.iter().copied().filter(|(_, record)| record % 3 == 1).collect();
        let sum: f64 = ranks.iter().map(|(rank, _)| 1.0 / f64::from(*rank)).sum();
        for (rank, record) in ranks {
            let expected = 100_000.0 / f64::from(rank) / sum;
            let found = f64::from(own[record as usize]);
            assert!((found - expected).abs() < 6.0 * expected.sqrt(), "rank {rank}: {found} of {expected}");
        }
    }

    #[test]
    fn every_client_draws_at_once_however_steep_the_law() {
        for exponent in [5.0, 100.0, 1_000.0] {
            let popularity = Popularity::new(7, 1_000, exponent);
            let mut rng = Rng::new(3);
            for client in 0..100 {
                let own = popularity.owned(client, 100);
                assert!((0..100).all(|_| own.draw(&mut rng) % 100 == client));
            }
        }
    }
}
