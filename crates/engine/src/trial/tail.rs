//! The 99th percentile over the course of a trial: coarse histograms of equal parts of the time.
//!
//! The length of a trial is not known before it ends. When it exceeds the last part, neighbouring parts are merged and
//! their length doubles. So memory is bounded for trials of any length, and nothing is allocated while measuring. Parts
//! are multiples of the same length in all threads, so that they can be added up.

use kurabe_core::run::TailCourse;
use serde::{Deserialize, Serialize};

/// The maximum number of parts. A trial of more than 32 ms has at least half as many.
const PARTS: usize = 32;
/// The maximum number of parts of each thread, in a trial of more threads than [`MANY`]: they need a kilobyte each.
const FEW_PARTS: usize = 8;
const MANY: usize = 64;
/// The initial length of a part is two to the power of this, in nanoseconds: about a millisecond.
const FIRST: u32 = 20;
/// Times below two to the power of this, in nanoseconds, are not distinguished.
const LOW: u32 = 8;
/// Two to the power of this is the number of buckets in which a doubling of the time is divided: an eighth each.
const FINE: u32 = 3;
/// The number of buckets; the last one includes all times above 2^40 ns, 18 minutes.
const BUCKETS: usize = 32 << FINE;
/// The minimum number of transactions of a part: of fewer, the percentile would be the maximum.
const MIN: u64 = 100;

/// Histograms of the parts of a trial, of all clients of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "Sparse", try_from = "Sparse")]
pub(crate) struct Tail {
    /// The buckets of each part, one part after the other; empty until it is opened.
    counts: Vec<u32>,
    /// The length of a part is two to the power of this.
    length: u32,
}

/// A course as it is sent: the binary logarithm of a part's length, and all counts that are not zero, with their positions.
type Sparse = (u32, Vec<(u32, u32)>);

impl From<Tail> for Sparse {
    fn from(tail: Tail) -> Self {
        let counts = tail.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        (tail.length, counts.map(|(at, count)| (at as u32, *count)).collect())
    }
}

impl TryFrom<Sparse> for Tail {
    type Error = &'static str;

    fn try_from((length, counts): Sparse) -> Result<Self, Self::Error> {
        if counts.is_empty() {
            return Ok(Self::default());
        }
        if !(FIRST..u64::BITS).contains(&length) {
            return Err("a part of the time has no such length");
        }
        let mut tail = Self { counts: vec![0; PARTS * BUCKETS], length };
        for (at, count) in counts {
            *tail.counts.get_mut(at as usize).ok_or("there is no such part of the time")? = count;
        }
        Ok(tail)
    }
}

impl Tail {
    /// Allocates the memory, for a trial of so many threads. Before, nothing is recorded.
    pub(crate) fn open(&mut self, threads: usize) {
        if self.counts.is_empty() {
            let parts = if threads > MANY { FEW_PARTS } else { PARTS };
            *self = Self { counts: vec![0; parts * BUCKETS], length: FIRST };
        }
    }

    fn parts(&self) -> usize {
        self.counts.len() / BUCKETS
    }

    /// Whether it records.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !self.counts.is_empty()
    }

    /// Counts so many transactions that ended at `at` and took `took`, both in nanoseconds.
    #[inline]
    pub(crate) fn record(&mut self, at: u64, took: u64, times: u64) {
        let mut part = at >> self.length;
        if part >= self.parts() as u64 {
            part = self.lengthen(at);
        }
        if let Some(count) = self.counts.get_mut(part as usize * BUCKETS + bucket(took)) {
            *count = count.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
        }
    }

    /// Merges parts until this time has one; returns its number.
    #[cold]
    fn lengthen(&mut self, at: u64) -> u64 {
        while self.is_open() && at >> self.length >= self.parts() as u64 {
            self.merge_neighbours();
        }
        at >> self.length
    }

    fn merge_neighbours(&mut self) {
        for part in 0..self.parts() {
            for bucket in 0..BUCKETS {
                let of = |part: usize| self.counts.get(part * BUCKETS + bucket).copied().unwrap_or(0);
                self.counts[part * BUCKETS + bucket] = of(2 * part).saturating_add(of(2 * part + 1));
            }
        }
        self.length += 1;
    }

    /// Adds the transactions of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        if !other.is_open() {
            return;
        }
        if !self.is_open() {
            *self = other.clone();
            return;
        }
        let mut other = other.clone();
        while self.length < other.length {
            self.merge_neighbours();
        }
        while other.length < self.length {
            other.merge_neighbours();
        }
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
    }

    /// The percentile in each part until the last transaction; `None` if no part has enough of them.
    pub(crate) fn course(&self) -> Option<TailCourse> {
        let mut p99_ns: Vec<Option<u64>> = Vec::new();
        let mut last = 0;
        for part in self.counts.chunks_exact(BUCKETS) {
            let count: u64 = part.iter().map(|count| u64::from(*count)).sum();
            p99_ns.push(if count < MIN { None } else { p99(part, count) });
            if count > 0 {
                last = p99_ns.len();
            }
        }
        p99_ns.truncate(last);
        let found = p99_ns.iter().any(Option::is_some);
        found.then_some(TailCourse { part_ns: 1 << self.length, p99_ns })
    }
}

/// The time that 99 % do not exceed (nearest rank): the longest of its bucket.
fn p99(counts: &[u32], count: u64) -> Option<u64> {
    let rank = count - count / 100;
    let mut seen = 0;
    let found = counts.iter().position(|count| {
        seen += u64::from(*count);
        seen >= rank
    });
    found.map(longest)
}

#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.max(1 << LOW);
    let octave = ns.ilog2();
    let fine = (ns >> (octave - FINE)) & ((1 << FINE) - 1);
    ((((octave - LOW) as usize) << FINE) | fine as usize).min(BUCKETS - 1)
}

/// The longest time of a bucket, in nanoseconds.
fn longest(bucket: usize) -> u64 {
    let octave = LOW + (bucket >> FINE) as u32;
    let fine = (bucket & ((1 << FINE) - 1)) as u64;
    (((1 << FINE) + fine + 1) << (octave - FINE)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_sent_has_all_that_was_recorded() {
        assert_eq!(Tail::try_from(Sparse::from(Tail::default())).unwrap(), Tail::default());
        let mut tail = open();
        for n in 0..10_000 {
            tail.record(n * MS, (n % 97) * 50_000, 1);
        }
        let (length, counts) = Sparse::from(tail.clone());
        let read = Tail::try_from((length, counts)).unwrap();
        assert_eq!((read.length, &read.counts), (tail.length, &tail.counts));
        assert!(tail.course().is_some() && read.course() == tail.course());
        for (length, at) in [(length, PARTS * BUCKETS), (64, 0), (FIRST - 1, 0)] {
            assert!(Tail::try_from((length, vec![(at as u32, 1)])).is_err());
        }
    }

    fn open() -> Tail {
        let mut tail = Tail::default();
        tail.open(2);
        tail
    }

    #[test]
    fn bucket_holds_the_time_and_is_at_most_an_eighth_too_long() {
        for exponent in 0..60 {
            for ns in [1_u64 << exponent, (1 << exponent) + 1, (3 << exponent) / 2, (2 << exponent) - 1] {
                let longest = longest(bucket(ns));
                if (256..1 << 40).contains(&ns) {
                    assert!(longest >= ns && (longest - ns) * 8 <= ns, "{ns}: {longest}");
                }
            }
        }
    }

    #[test]
    fn slow_part_of_a_trial_of_any_length_is_found_at_its_time() {
        for length in [40 * MS, 1_000 * MS, 300_000 * MS] {
            let mut tail = open();
            let each = length / 40_000;
            for n in 0..40_000 {
                let slow = (20_000..30_000).contains(&n) && n % 20 == 0;
                tail.record(n * each, if slow { 9 * MS } else { MS }, 1);
            }
            let course = tail.course().unwrap();
            let parts = course.p99_ns.len();
            assert!((16..=PARTS).contains(&parts), "{parts}");
            assert!(course.part_ns * parts as u64 >= length && course.part_ns * (parts as u64 - 1) <= length);
            for (n, p99) in course.p99_ns.iter().enumerate() {
                let (from, to) = (n as u64 * course.part_ns, (n as u64 + 1) * course.part_ns);
                let Some(p99) = *p99 else { continue };
                if from >= length / 2 && to <= length / 4 * 3 {
                    assert!(p99 >= 9 * MS, "{n}: {p99}");
                } else if to <= length / 2 || from >= length / 4 * 3 {
                    assert!(p99 < 2 * MS, "{n}: {p99}");
                }
            }
        }
    }

    #[test]
    fn threads_with_parts_of_different_length_are_added_up() {
        let (mut short, mut long) = (Tail::default(), open());
        short.open(MANY + 1);
        for n in 0..1_000 {
            short.record(n * 20_000, MS, 1);
            long.record(n * 2_000_000, 5 * MS, 10);
        }
        assert_eq!((short.parts(), long.parts()), (FEW_PARTS, PARTS));
        let mut sum = Tail::default();
        sum.merge(&short);
        sum.merge(&long);
        sum.merge(&Tail::default());
        let counted: u64 = sum.counts.iter().map(|count| u64::from(*count)).sum();
        assert_eq!(counted, 11_000);
        assert_eq!(sum.course().unwrap().part_ns, long.course().unwrap().part_ns);
    }

    #[test]
    fn parts_with_few_transactions_have_no_percentile() {
        let mut tail = open();
        tail.record(0, MS, 99);
        assert_eq!(tail.course(), None);
        tail.record(5 * MS, MS, 100);
        let course = tail.course().unwrap();
        assert_eq!(course.p99_ns.iter().flatten().count(), 1);
        assert!(course.p99_ns.last().unwrap().is_some());
        assert!(course.p99_ns[0].is_none());
        // Not opened.
        let mut closed = Tail::default();
        closed.record(1 << 50, MS, 1);
        assert_eq!(closed.course(), None);
    }
}
