//! Which record a request is for: Zipf's law over a fixed order of the records that says nothing of their numbers.

use kurabe_stats::rng::{Rng, mix};
use std::sync::Arc;

/// How popular each record is.
#[derive(Debug)]
pub(super) struct Popularity {
    /// Of each rank, how likely one is no higher; empty where all records are alike.
    up_to: Vec<f64>,
    /// The record of each rank.
    records: Vec<u32>,
}

impl Popularity {
    /// The record of rank n is as likely as n to the power of −`exponent` is great.
    pub(super) fn new(seed: u64, records: u32, exponent: f64) -> Arc<Self> {
        let mut order: Vec<u32> = (0..records).collect();
        Rng::new(mix(seed, 0x0070_6f70_756c_6172)).shuffle(&mut order);
        let mut up_to = Vec::new();
        if exponent > 0.0 {
            let mut sum = 0.0;
            up_to.extend((1..=records).map(|rank| {
                sum += f64::from(rank).powf(-exponent);
                sum
            }));
            for part in &mut up_to {
                *part /= sum;
            }
        }
        Arc::new(Self { up_to, records: order })
    }

    /// Draws a record.
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let rank = if self.up_to.is_empty() {
            rng.below(self.records.len() as u64) as usize
        } else {
            let at = rng.unit_f64();
            self.up_to.partition_point(|part| *part <= at).min(self.records.len() - 1)
        };
        self.records[rank] as usize
    }

    /// Draws one of the records whose number leaves `own` when it is divided by `of`: no less popular for that.
    pub(super) fn draw_own(&self, rng: &mut Rng, own: usize, of: usize) -> usize {
        loop {
            let record = self.draw(rng);
            if record % of == own {
                return record;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_records_are_drawn_as_often_as_the_law_says() {
        let popularity = Popularity::new(7, 100, 1.0);
        let mut rng = Rng::new(1);
        let mut drawn = [0_u32; 100];
        for _ in 0..200_000 {
            drawn[popularity.draw(&mut rng)] += 1;
        }
        let harmonic: f64 = (1..=100).map(|n| 1.0 / f64::from(n)).sum();
        for rank in [1_u32, 2, 10, 50] {
            let expected = 200_000.0 / f64::from(rank) / harmonic;
            let found = f64::from(drawn[popularity.records[rank as usize - 1] as usize]);
            assert!((found - expected).abs() < 6.0 * expected.sqrt(), "rank {rank}: {found} of {expected}");
        }
    }

    #[test]
    fn without_skew_all_are_alike_and_own_records_are_own() {
        let popularity = Popularity::new(7, 50, 0.0);
        let mut rng = Rng::new(2);
        let mut drawn = [0_u32; 50];
        for _ in 0..50_000 {
            drawn[popularity.draw(&mut rng)] += 1;
        }
        assert!(drawn.iter().all(|times| (800..1_200).contains(times)), "{drawn:?}");
        let skewed = Popularity::new(7, 50, 2.0);
        assert!((0..1_000).all(|_| skewed.draw_own(&mut rng, 3, 7) % 7 == 3));
    }
}
