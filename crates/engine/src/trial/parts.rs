//! The times of transactions in equal parts of a trial.
//!
//! The length of a trial is not known before it ends. When it exceeds the last part, neighbouring parts are merged and
//! their length doubles. So memory is bounded for trials of any length, and nothing is allocated while measuring. Parts
//! are multiples of the same length in all threads, so that they can be added up.

use crate::trial::scale::Scale;
use kurabe_core::run::TailCourse;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Times from a quarter of a microsecond to 18 minutes, in buckets of at most an eighth: those that transactions take.
pub(super) const TIMES: Scale = Scale { low: 8, fine: 3, octaves: 32 };
/// The maximum number of parts. A trial of more than 32 ms has at least half as many.
pub(super) const PARTS: usize = 32;
/// The maximum number of parts of each thread, in a trial of more threads than [`MANY`]: they need a kilobyte each.
pub(super) const FEW_PARTS: usize = 8;
/// Threads of which each has fewer parts, and wider buckets.
pub(super) const MANY: usize = 64;
/// The initial length of a part is two to the power of this, in nanoseconds: about a millisecond.
const FIRST: u32 = 20;
/// The minimum number of transactions of a part: of fewer, the percentile would be the maximum.
const MIN: u64 = 100;

/// The times of transactions in equal parts of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parts {
    /// The buckets of each part, one part after the other.
    #[serde(serialize_with = "sparse", deserialize_with = "dense")]
    pub(super) counts: Vec<u32>,
    /// The length of a part is two to the power of this, in nanoseconds.
    #[serde(deserialize_with = "length")]
    length: u32,
}

impl Parts {
    pub(super) fn new(threads: usize) -> Self {
        let parts = if threads > MANY { FEW_PARTS } else { PARTS };
        Self { counts: vec![0; parts * TIMES.buckets()], length: FIRST }
    }

    pub(super) fn len(&self) -> usize {
        self.counts.len() / TIMES.buckets()
    }

    #[inline]
    pub(super) fn record(&mut self, at: u64, took: u64, count: u32) {
        let mut part = at >> self.length;
        if part >= self.len() as u64 {
            part = self.lengthen(at);
        }
        add(&mut self.counts, part as usize * TIMES.buckets() + TIMES.bucket(took), count);
    }

    /// Merges parts until this time has one; returns its number.
    #[cold]
    fn lengthen(&mut self, at: u64) -> u64 {
        while at >> self.length >= self.len() as u64 {
            self.merge_neighbours();
        }
        at >> self.length
    }

    fn merge_neighbours(&mut self) {
        for part in 0..self.len() {
            for bucket in 0..TIMES.buckets() {
                let of = |part| self.counts.get(part * TIMES.buckets() + bucket).copied().unwrap_or(0);
                self.counts[part * TIMES.buckets() + bucket] = of(2 * part).saturating_add(of(2 * part + 1));
            }
        }
        self.length += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.length < other.length {
            self.merge_neighbours();
        }
        while other.length < self.length {
            other.merge_neighbours();
        }
        merge(&mut self.counts, &other.counts);
    }

    /// Forgets all transactions.
    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// The 99th percentile in each part until the last transaction; `None` if no part has enough of them.
    pub(super) fn tail(&self) -> Option<TailCourse> {
        let mut p99_ns: Vec<Option<u64>> = Vec::new();
        let mut last = 0;
        for part in self.counts.chunks_exact(TIMES.buckets()) {
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

#[inline]
fn add(counts: &mut [u32], at: usize, more: u32) {
    if let Some(count) = counts.get_mut(at) {
        *count = count.saturating_add(more);
    }
}

fn merge(counts: &mut Vec<u32>, other: &[u32]) {
    counts.resize(counts.len().max(other.len()), 0);
    other.iter().enumerate().for_each(|(at, more)| add(counts, at, *more));
}

/// The time that 99 % do not exceed (nearest rank): the longest of its bucket.
fn p99(counts: &[u32], count: u64) -> Option<u64> {
    let rank = count - count / 100;
    let mut seen = 0;
    let found = counts.iter().position(|count| {
        seen += u64::from(*count);
        seen >= rank
    });
    found.map(|bucket| TIMES.longest(bucket))
}
/// Counts are sent as those that are not zero, with their positions.
pub(super) fn sparse<S: Serializer, N: Serialize + Default + PartialEq>(
    counts: &[N],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq((0_u32..).zip(counts).filter(|(_, count)| **count != N::default()))
}

pub(super) fn dense<'de, D: Deserializer<'de>, N: Deserialize<'de> + Copy + Default>(
    from: D,
) -> Result<Vec<N>, D::Error> {
    let mut counts = vec![N::default(); PARTS * TIMES.buckets()];
    for (at, count) in Vec::<(u32, N)>::deserialize(from)? {
        let unknown = || D::Error::custom("there is no such part of the time");
        *counts.get_mut(at as usize).ok_or_else(unknown)? = count;
    }
    Ok(counts)
}

fn length<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let length = u32::deserialize(from)?;
    let is_known = (FIRST..u64::BITS).contains(&length);
    is_known.then_some(length).ok_or_else(|| D::Error::custom("a part of the time has no such length"))
}
