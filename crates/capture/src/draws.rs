//! How an application draws a parameter: found from the values that it sent.
//!
//! A draw is named only if the values do not contradict it: a test of collisions and one of equal parts for the uniform one,
//! and for Zipf's law the frequencies of the head. What nothing fits stays a list of what was recorded.

use crate::forms::Value;
use std::collections::HashMap;

/// The least number of values by which a distribution is named.
const ENOUGH: usize = 30;
/// The same for Zipf's law, whose tail needs more.
const ENOUGH_OF_ZIPF: usize = 200;
/// The most values of a list of all that came.
const LIST: usize = 50;
/// The most values of a list that stands for a distribution that was not found.
const RECORDED: u64 = 200;
/// The standard deviations beyond which a test contradicts a draw: chance does it once in 100,000 times.
const TOO_FAR: f64 = 4.5;
/// The least exponent that is told from a uniform draw.
const LEAST_EXPONENT: f64 = 0.1;
/// The largest difference of a distribution to the values, as a share of them.
const CLOSE: f64 = 0.05;

/// A value, in the order of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) connection: u64,
    pub(crate) value: &'a Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Draw {
    Constant(Value),
    /// One after the other: the first, and the last that came.
    Sequence(i64, i64),
    /// Each number from the least to the most as often.
    Uniform(i64, i64),
    Zipf {
        least: i64,
        most: i64,
        exponent: f64,
        order: Order,
    },
    /// Each of these with its number.
    List(Vec<(Value, u64)>),
    /// No distribution was found: a sample of what came, and the number of different values.
    Recorded(Vec<(Value, u64)>, usize),
}

/// Which values are frequent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Rising,
    Falling,
    Scattered,
}

pub(crate) fn fit(seen: &[Seen<'_>]) -> Draw {
    let mut counts: HashMap<&Value, u64> = HashMap::new();
    for one in seen {
        *counts.entry(one.value).or_default() += 1;
    }
    let mut counts: Vec<(&Value, u64)> = counts.into_iter().collect();
    // The most frequent first; equals in an order that does not depend on chance.
    counts.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(two.0)));
    if let [(value, _)] = counts.as_slice() {
        return Draw::Constant((*value).clone());
    }
    let numbers: Option<Vec<(i64, u64)>> = counts
        .iter()
        .map(|(value, count)| if let Value::Int(n) = value { Some((*n, *count)) } else { None })
        .collect();
    let is_list = counts.len() <= LIST && seen.len() >= 10 * counts.len();
    let found = numbers
        .filter(|_| seen.len() >= ENOUGH)
        .and_then(|numbers| sequence(seen, numbers.len()).or_else(|| Numbers::of(&numbers)?.draw(is_list)));
    found.unwrap_or_else(|| {
        let listed = counts.iter().map(|(value, count)| ((*value).clone(), *count));
        if is_list {
            Draw::List(listed.collect())
        } else {
            Draw::Recorded(sample(counts.clone()), counts.len())
        }
    })
}

/// A systematic sample of values: of each part of their order as many as came.
fn sample(mut counts: Vec<(&Value, u64)>) -> Vec<(Value, u64)> {
    counts.sort();
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let (kept, mut before) = (all.min(RECORDED), 0);
    let mut found = Vec::new();
    for (value, count) in counts {
        let taken = (before + count) * kept / all - before * kept / all;
        before += count;
        if taken > 0 {
            found.push((value.clone(), taken));
        }
    }
    found
}

/// Numbers that rise with time, in the whole or on each connection, and never come twice.
fn sequence(seen: &[Seen<'_>], different: usize) -> Option<Draw> {
    if different < seen.len() {
        return None;
    }
    let mut before_there: HashMap<u64, i64> = HashMap::new();
    let (mut before, mut rises, mut rises_there, mut pairs_there) = (None, 0_usize, 0_usize, 0_usize);
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for one in seen {
        let Value::Int(n) = one.value else { return None };
        (least, most) = (least.min(*n), most.max(*n));
        rises += usize::from(before.replace(*n).is_some_and(|before| before < *n));
        if let Some(before) = before_there.insert(one.connection, *n) {
            pairs_there += 1;
            rises_there += usize::from(before < *n);
        }
    }
    // Requests of several connections may overtake each other.
    let nearly = |rises: usize, pairs: usize| pairs >= ENOUGH / 2 && rises * 20 >= pairs * 19;
    (nearly(rises, seen.len() - 1) || nearly(rises_there, pairs_there)).then_some(Draw::Sequence(least, most))
}

/// Numbers with how often each came, the most frequent first.
struct Numbers<'a> {
    counts: &'a [(i64, u64)],
    least: i64,
    most: i64,
    /// How many numbers there are from the least to the most.
    width: f64,
    all: f64,
}

impl<'a> Numbers<'a> {
    fn of(counts: &'a [(i64, u64)]) -> Option<Self> {
        let least = counts.iter().map(|(n, _)| *n).min()?;
        let most = counts.iter().map(|(n, _)| *n).max()?;
        let width = most.checked_sub(least)?.checked_add(1)? as f64;
        let all = counts.iter().map(|(_, count)| *count as f64).sum();
        Some(Self { counts, least, most, width, all })
    }

    fn draw(&self, is_list: bool) -> Option<Draw> {
        // Of a few numbers with gaps, a list says more.
        if is_list && (self.counts.len() as f64) < self.width {
            return None;
        }
        if self.is_uniform() {
            return Some(Draw::Uniform(self.least, self.most));
        }
        if self.all < ENOUGH_OF_ZIPF as f64 || self.counts.len() < 10 {
            return None;
        }
        // The exponent is that of the order which the values have.
        [Order::Rising, Order::Falling, Order::Scattered].into_iter().find_map(|order| {
            let scattered = order == Order::Scattered;
            let exponent = if scattered { self.by_collisions() } else { self.by_ranks(order) };
            let fits = exponent > LEAST_EXPONENT && self.fits(exponent, order);
            fits.then_some(Draw::Zipf { least: self.least, most: self.most, exponent, order })
        })
    }

    /// Pairs of equal numbers, divided by all pairs: without bias the sum of squared probabilities.
    fn collisions(&self) -> f64 {
        let pairs: f64 = self.counts.iter().map(|(_, count)| *count as f64 * (*count as f64 - 1.0)).sum();
        pairs / (self.all * (self.all - 1.0))
    }

    /// Whether a uniform draw is not contradicted: by numbers that come too often, or by a part of the range that comes more
    /// often than others.
    fn is_uniform(&self) -> bool {
        let pairs = self.all * (self.all - 1.0) / 2.0;
        let expected = pairs / self.width;
        // The number of pairs has the variance of a Poisson variable, nearly.
        let too_many = (self.collisions() * pairs - expected) / expected.max(1.0).sqrt();
        if too_many > TOO_FAR {
            return false;
        }
        let parts = self.width.min(self.all / 10.0).clamp(1.0, 50.0).floor();
        let part = |n: i64| ((n - self.least) as f64 * parts / self.width).floor().min(parts - 1.0);
        let mut found = vec![0.0; parts as usize];
        for (n, count) in self.counts {
            if let Some(sum) = found.get_mut(part(*n) as usize) {
                *sum += *count as f64;
            }
        }
        // The numbers of a part: those n of which n × parts ÷ width is between two whole numbers.
        let first = |part: f64| (part * self.width / parts).ceil();
        let squares: f64 = (0_u32..)
            .zip(&found)
            .map(|(number, found)| {
                let number = f64::from(number);
                let expected = self.all * (first(number + 1.0) - first(number)) / self.width;
                (found - expected).powi(2) / expected
            })
            .sum();
        let freedom = (parts - 1.0).max(1.0);
        squares < freedom + TOO_FAR * (2.0 * freedom).sqrt() + TOO_FAR * TOO_FAR
    }

    fn rank(&self, n: i64, order: Order) -> f64 {
        (if order == Order::Falling { self.most - n } else { n - self.least }) as f64 + 1.0
    }

    /// The exponent of the largest likelihood, where a number's rank is its place in the range.
    fn by_ranks(&self, order: Order) -> f64 {
        let logs: f64 =
            self.counts.iter().map(|(n, count)| *count as f64 * self.rank(*n, order).ln()).sum::<f64>()
                / self.all;
        // The mean logarithm of a rank falls as the exponent rises.
        bisect(|exponent| {
            let step = 1e-4;
            let (above, below) =
                (harmonic(self.width, exponent + step), harmonic(self.width, exponent - step));
            logs + (above.ln() - below.ln()) / (2.0 * step)
        })
    }

    /// The exponent that gives as many pairs of equal numbers, whatever their order.
    fn by_collisions(&self) -> f64 {
        let found = self.collisions();
        bisect(|exponent| {
            harmonic(self.width, 2.0 * exponent) / harmonic(self.width, exponent).powi(2) - found
        })
    }

    /// Whether Zipf's law gives the frequencies that came.
    fn fits(&self, exponent: f64, order: Order) -> bool {
        let whole = harmonic(self.width, exponent);
        let mut ranked: Vec<(f64, f64)> = if order == Order::Scattered {
            // A rank by frequency means something in the head only.
            let rank = |(n, (_, count)): (usize, &(i64, u64))| (n as f64 + 1.0, *count as f64);
            self.counts.iter().enumerate().map(rank).collect()
        } else {
            self.counts.iter().map(|(n, count)| (self.rank(*n, order), *count as f64)).collect()
        };
        ranked.sort_by(|one, two| one.0.total_cmp(&two.0));
        let (mut difference, mut from, mut left, mut left_found) = (0.0, 1.0, 1.0, self.all);
        let (mut bins, mut next) = (1.0, ranked.into_iter().peekable());
        while from <= self.width {
            let to = (2.0 * from - 1.0).min(self.width);
            if order == Order::Scattered && self.all * to.powf(-exponent) / whole < 8.0 {
                break;
            }
            let expected = (harmonic(to, exponent) - harmonic(from - 1.0, exponent)) / whole;
            let mut found = 0.0;
            while let Some((_, count)) = next.next_if(|(rank, _)| *rank <= to) {
                found += count;
            }
            difference += (found / self.all - expected).abs();
            (left, left_found, bins, from) = (left - expected, left_found - found, bins + 1.0, to + 1.0);
        }
        difference += (left_found / self.all - left).abs();
        let chance = 0.5 * (bins / self.all).sqrt();
        if order == Order::Scattered && (bins < 3.0 || !self.has_triples(exponent, whole)) {
            return false;
        }
        difference / 2.0 <= CLOSE + chance
    }

    /// Whether as many numbers came three times as Zipf's law gives: a uniform draw of some numbers of the range may have as
    /// many pairs, but has fewer of these.
    fn has_triples(&self, exponent: f64, whole: f64) -> bool {
        let triples = |count: f64| count * (count - 1.0) * (count - 2.0);
        let found: f64 = self.counts.iter().map(|(_, count)| triples(*count as f64)).sum();
        let expected = triples(self.all) * harmonic(self.width, 3.0 * exponent) / whole.powi(3);
        (0.6..1.6).contains(&(found / expected))
    }
}

/// The sum of k to the power of −exponent for k from 1 to `last`: the head is added up, the tail is its integral.
fn harmonic(last: f64, exponent: f64) -> f64 {
    const HEAD: f64 = 200.0;
    let head: f64 = (1..=last.min(HEAD) as u32).map(|k| f64::from(k).powf(-exponent)).sum();
    if last <= HEAD {
        return head;
    }
    let power = 1.0 - exponent;
    let (from, to) = (HEAD + 0.5, last + 0.5);
    head + if power.abs() < 1e-9 { (to / from).ln() } else { (to.powf(power) - from.powf(power)) / power }
}

/// The exponent at which a function that rises with it is 0.
fn bisect(rising: impl Fn(f64) -> f64) -> f64 {
    let (mut below, mut above) = (0.01, 8.0);
    for _ in 0..40 {
        let middle = f64::midpoint(below, above);
        if rising(middle) < 0.0 { below = middle } else { above = middle }
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_stats::Rng;

    fn drawn(count: usize, mut one: impl FnMut(usize) -> i64) -> Draw {
        let values: Vec<Value> = (0..count).map(|n| Value::Int(one(n))).collect();
        let seen = values.iter().enumerate().map(|(n, value)| Seen { connection: n as u64 % 3, value });
        fit(&seen.collect::<Vec<_>>())
    }

    /// Ranks by the table of the distribution function, and not as a workload draws them.
    fn zipf(width: usize, exponent: f64, seed: u64) -> impl FnMut() -> i64 {
        let mut sum = 0.0;
        let sums: Vec<f64> = (1..=width)
            .map(|k| {
                sum += (k as f64).powf(-exponent);
                sum
            })
            .collect();
        let mut rng = Rng::new(seed);
        move || {
            let wanted = rng.unit_f64() * sum;
            sums.partition_point(|sum| *sum <= wanted) as i64
        }
    }

    #[test]
    fn planted_draws_are_found() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            assert_eq!(drawn(50, |_| 7), Draw::Constant(Value::Int(7)));
            assert_eq!(drawn(500, |n| 1_000 + n as i64), Draw::Sequence(1_000, 1_499));
            // Each connection counts for itself.
            assert_eq!(
                drawn(300, |n| (3 - n as i64 % 3) * 1_000_000 + n as i64),
                Draw::Sequence(1_000_002, 3_000_297)
            );
            for (width, count) in
                [(4, 1_000), (10, 200), (1_000, 10_000), (100_000, 3_000), (1 << 40, 10_000)]
            {
                match drawn(count, |_| 5 + rng.below(width) as i64) {
                    Draw::Uniform(least, most) => {
                        assert!(least >= 5 && most < 5 + width as i64, "{width}");
                        assert!((most - least) as f64 > 0.9 * (width - 1) as f64, "{width}");
                    }
                    other => panic!("{count} of {width} with seed {seed}: {other:?}"),
                }
            }
            let colours = drawn(1_000, |_| [2, 3, 30][(rng.below(10) / 4) as usize]);
            assert!(matches!(&colours, Draw::List(values) if values.len() == 3), "{colours:?}");
        }
    }

    #[test]
    fn exponent_of_zipf_is_found_in_any_order() {
        for (seed, exponent) in [(1, 0.5), (2, 0.8), (3, 0.99), (4, 1.1), (5, 1.5), (6, 2.0)] {
            for (width, count) in [(50, 2_000), (1_000, 10_000), (100_000, 10_000)] {
                for wanted in [Order::Rising, Order::Falling, Order::Scattered] {
                    let mut next = zipf(width, exponent, seed);
                    let at = |rank: i64| match wanted {
                        Order::Rising => 100 + rank,
                        Order::Falling => 100 + width as i64 - rank,
                        // Prime to the widths, and far from 1.
                        Order::Scattered => 100 + (rank * 61_803 + 7) % width as i64,
                    };
                    let what = format!("{exponent} of {width}, {wanted:?}");
                    // So flat a head has no order that could be seen.
                    let is_flat = exponent < 0.6 && width > 1_000;
                    match drawn(count, |_| at(next())) {
                        Draw::Zipf { exponent: found, order, .. } => {
                            assert!((found / exponent - 1.0).abs() < 0.1, "{what}: {found}");
                            assert!(order == wanted || is_flat, "{what}: {order:?}");
                        }
                        other => assert!(is_flat || width == 50, "{what}: {other:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn uniform_draw_of_some_keys_is_not_called_zipf() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            // A third of the keys, without a pattern; and two groups of equally frequent keys.
            let sparse = drawn(10_000, |_| {
                loop {
                    let key = rng.below(100_000);
                    if kurabe_stats::mix(seed, key).is_multiple_of(3) {
                        return key as i64;
                    }
                }
            });
            let mut rng = Rng::new(seed);
            let groups = drawn(10_000, |_| {
                let hot = rng.below(10) < 3;
                if hot { rng.below(1_000) as i64 * 37 } else { rng.below(100_000) as i64 }
            });
            for found in [sparse, groups] {
                assert!(!matches!(found, Draw::Zipf { .. }), "seed {seed}: {found:?}");
            }
        }
    }
}
