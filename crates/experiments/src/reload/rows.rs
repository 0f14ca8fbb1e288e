//! The rows of the table, and their digest.
//!
//! Row `i` of `n` is `(i / 10, i · s mod n)`, where `s` has no common factor with `n` and is near `n` divided by the
//! golden ratio. So `id2` has every number below `n` once, far apart for neighbours in the key.

use crate::prelude::*;
use kurabe_core::dump::RowOrder;

/// Rows with the same `id1`.
pub(super) const GROUP: u64 = 10;

/// The rows of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) count: u64,
    step: u64,
    pub(super) seed: u64,
}

impl Rows {
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let near = ((count as f64 * 0.618_033_988_75) as u64).max(1);
        // A number without a common factor is never far; the one below the count is one.
        let step = (near..=count).find(|step| gcd(*step, count) == 1).unwrap_or(1);
        Self { count, step, seed }
    }

    pub(super) fn row(&self, number: u64) -> [i64; 2] {
        let id2 = u128::from(number) * u128::from(self.step) % u128::from(self.count);
        [(number / GROUP) as i64, id2 as i64]
    }

    /// The numbers of all rows in this order.
    pub(super) fn in_order(&self, order: RowOrder) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.count as u32).collect();
        match order {
            RowOrder::Key => {}
            RowOrder::Index => {
                for number in 0..self.count {
                    numbers[self.row(number)[1] as usize] = number as u32;
                }
            }
            RowOrder::Random => Rng::new(self.seed).shuffle(&mut numbers),
        }
        numbers
    }

    pub(super) fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        (0..self.count).for_each(|number| digest.add(self.row(number)));
        digest
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The number of rows, and the sum of a hash of 128 bits of each, modulo 2^128. The order of the rows does not matter,
/// and one that is missing, doubled or changed does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) rows: u64,
    pub(super) sum: u128,
}

impl Digest {
    pub(super) fn add(&mut self, [id1, id2]: [i64; 2]) {
        let half = |salt| u128::from(mix(mix(salt, id1 as u64), id2 as u64));
        self.rows += 1;
        self.sum = self.sum.wrapping_add(half(1) << 64 | half(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(rows: &[[i64; 2]]) -> Digest {
        let mut digest = Digest::default();
        for row in rows {
            digest.add(*row);
        }
        digest
    }

    #[test]
    fn each_number_below_the_count_is_an_id2_once() {
        for count in [100, 101, 1_000, 50_000] {
            let rows = Rows::new(count, 1);
            let mut id2: Vec<i64> = (0..count).map(|number| rows.row(number)[1]).collect();
            let neighbours = id2.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < count / 4).count();
            assert_eq!(neighbours, 0, "{count}");
            id2.sort_unstable();
            assert!(id2.iter().copied().eq(0..count as i64), "{count}");
        }
    }

    #[test]
    fn orders_have_all_rows_and_are_sorted_by_their_field() {
        let rows = Rows::new(1_000, 7);
        let of = |order| -> Vec<[i64; 2]> {
            rows.in_order(order).into_iter().map(|number| rows.row(u64::from(number))).collect()
        };
        let (key, index, random) = (of(RowOrder::Key), of(RowOrder::Index), of(RowOrder::Random));
        assert!(key.is_sorted_by_key(|row| row[0]) && index.is_sorted_by_key(|row| row[1]));
        assert!(!random.is_sorted_by_key(|row| row[0]) && !random.is_sorted_by_key(|row| row[1]));
        for order in [key, index, random] {
            assert_eq!(digest_of(&order), rows.digest());
        }
    }

    #[test]
    fn digest_finds_missing_doubled_changed_and_swapped_values() {
        let rows = Rows::new(500, 1);
        let all: Vec<[i64; 2]> = (0..500).map(|number| rows.row(number)).collect();
        let changed = |change: fn(&mut Vec<[i64; 2]>)| {
            let mut changed = all.clone();
            change(&mut changed);
            digest_of(&changed)
        };
        assert_eq!(changed(|rows| rows.reverse()), rows.digest());
        let others = [
            changed(|rows| rows.truncate(499)),
            changed(|rows| rows[3] = rows[4]),
            changed(|rows| rows[9][1] += 1),
            // The sums of both columns stay.
            changed(|rows| (rows[10][1], rows[20][1]) = (rows[20][1], rows[10][1])),
        ];
        for other in others {
            assert_ne!(other, rows.digest());
        }
    }
}
