//! The course of a trial: when transactions were completed, and how long they took. The windows of a trial, its 99th
//! percentiles over time, and the throughput beside starving clients are read from it.
//!
//! The length of a trial is not known before it ends. When it exceeds the last part of [`TimesByPart`], neighbouring parts
//! are merged and their length doubles. So memory is bounded for trials of any length, and nothing is allocated while
//! measuring. TimesByPart are multiples of the same length in all threads, so that they can be added up.

use kurabe_core::run::TailCourse;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Times from an eighth of a millisecond to more than three months, in buckets of at most a 128th: those at which
/// transactions are made. A client that waits much longer than all others does not make the others' times less exact.
const WHEN: Scale = Scale { low: 17, fine: 7, octaves: 36 };
/// A transaction counts as so many shares, evenly over the time that it took: clients whose transactions end together
/// work evenly nevertheless.
const SHARES: u64 = 16;
/// By so many bits are buckets of [`WHEN`] wider in a trial of more threads than [`MANY`]: they need 5 kilobytes each.
const WIDER: u32 = 2;

/// The course of all clients of one thread, or of several threads together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Course {
    /// The shares of transactions by their time: one count of two to the power of `shift` neighbouring buckets of
    /// [`WHEN`]. Empty of an open loop, whose throughput is not read from it.
    #[serde(serialize_with = "sparse", deserialize_with = "dense")]
    shares: Vec<u32>,
    /// Shares of the same buckets that exceeded 32 bits; empty if none did.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "sparse",
        deserialize_with = "dense"
    )]
    more: Vec<u64>,
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "shift")]
    shift: u32,
    /// Transactions by the time that they took, in parts of the trial; `None` of interleaved trials.
    parts: Option<TimesByPart>,
}

impl Course {
    /// A course of one of so many threads, in a closed loop. `has_parts`: it records how long transactions take, too.
    pub(crate) fn new(threads: usize, has_parts: bool) -> Self {
        let shift = if threads > MANY { WIDER } else { 0 };
        let parts = has_parts.then(|| TimesByPart::new(threads));
        Self { shares: vec![0; WHEN.buckets() >> shift], more: Vec::new(), shift, parts }
    }

    /// A course of one of so many threads, in an open loop.
    pub(crate) fn of_open_loop(threads: usize) -> Self {
        Self { shares: Vec::new(), more: Vec::new(), shift: 0, parts: Some(TimesByPart::new(threads)) }
    }

    /// Counts so many transactions that ended at `at` and took `took`, both in nanoseconds.
    #[inline]
    pub(crate) fn record(&mut self, at: u64, took: u64, count: u64) {
        if took < at >> 8 {
            // Less than half of a bucket.
            self.share(at, count * SHARES);
        } else if !self.shares.is_empty() {
            self.spread(at, took, count);
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if let Some(parts) = &mut self.parts {
            parts.record(at, took, count);
        }
    }

    #[inline]
    fn share(&mut self, at: u64, shares: u64) {
        self.add(WHEN.bucket(at) >> self.shift, shares);
    }

    #[inline]
    fn add(&mut self, bucket: usize, shares: u64) {
        let Some(sum) = self.shares.get_mut(bucket) else { return };
        match u32::try_from(u64::from(*sum).saturating_add(shares)) {
            Ok(new) => *sum = new,
            Err(_) => self.exceed(bucket, shares),
        }
    }

    /// Adds shares to a bucket whose 32 bits they exceed.
    #[cold]
    fn exceed(&mut self, bucket: usize, shares: u64) {
        self.more.resize(self.shares.len(), 0);
        let before = std::mem::take(&mut self.shares[bucket]);
        self.more[bucket] = self.more[bucket].saturating_add(shares).saturating_add(before.into());
    }

    /// The shares of each bucket.
    fn sums(&self) -> impl Iterator<Item = u64> {
        let more = self.more.iter().copied().chain(std::iter::repeat(0));
        self.shares.iter().zip(more).map(|(sum, more)| u64::from(*sum).saturating_add(more))
    }

    /// Adds the shares of transactions that took longer, in at most as many pieces as they touch buckets.
    #[cold]
    fn spread(&mut self, at: u64, took: u64, count: u64) {
        let begin = at.saturating_sub(took);
        let buckets = (WHEN.bucket(at) >> self.shift) - (WHEN.bucket(begin) >> self.shift) + 1;
        let pieces = (buckets as u64).next_power_of_two().min(SHARES);
        let half = (at - begin) / (2 * pieces);
        for piece in 0..pieces {
            self.share(begin + half * (2 * piece + 1), count * SHARES / pieces);
        }
    }

    /// One of the same size without transactions.
    pub(crate) fn empty(&self) -> Self {
        let mut empty = self.clone();
        empty.clear();
        empty
    }

    /// Forgets all transactions.
    pub(crate) fn clear(&mut self) {
        self.shares.fill(0);
        self.more.fill(0);
        if let Some(parts) = &mut self.parts {
            parts.clear();
        }
    }

    /// Adds the transactions of other threads.
    pub(crate) fn merge(&mut self, other: &Self) {
        let shift = self.shift.max(other.shift);
        self.widen(shift);
        for (at, count) in other.sums().enumerate().filter(|(_, count)| *count > 0) {
            self.add(at >> (shift - other.shift), count);
        }
        match (&mut self.parts, &other.parts) {
            (Some(parts), Some(other)) => parts.merge(other),
            (parts, other) => *parts = parts.take().or_else(|| other.clone()),
        }
    }

    /// Merges neighbouring buckets of shares.
    fn widen(&mut self, shift: u32) {
        if shift > self.shift {
            let narrow: Vec<u64> = self.sums().collect();
            let wide = narrow.len() >> (shift - self.shift);
            (self.shares, self.more) = (vec![0; wide], Vec::new());
            narrow.iter().enumerate().for_each(|(at, count)| self.add(at >> (shift - self.shift), *count));
            self.shift = shift;
        }
    }

    /// The longest time of a bucket of shares, in nanoseconds.
    fn longest(&self, bucket: usize) -> u64 {
        WHEN.longest(((bucket + 1) << self.shift) - 1)
    }

    /// The end of the bucket that has this time, in nanoseconds, and how many transactions were made until then.
    pub(crate) fn made_with(&self, at: u64) -> (u64, f64) {
        let bucket = WHEN.bucket(at) >> self.shift;
        let shares = self.sums().take(bucket + 1).map(|count| count as f64);
        (self.longest(bucket), shares.sum::<f64>() / SHARES as f64)
    }

    /// Transactions made until this time, of a course that ended at `end`: interpolated linearly between the times of
    /// their shares.
    pub(crate) fn made_until(&self, at: f64, end: u64) -> f64 {
        let (mut before, mut made) = (0.0, 0.0);
        let all = self.sums().enumerate().take(WHEN.buckets() >> self.shift);
        for (bucket, count) in all.filter(|(_, count)| *count > 0) {
            let (until, count) = (self.longest(bucket).min(end) as f64, count as f64 / SHARES as f64);
            if at < until {
                return made + count * ((at - before) / (until - before)).max(0.0);
            }
            (before, made) = (until, made + count);
        }
        made
    }

    /// The 99th percentile in each part until the last transaction; `None` if no part has enough of them.
    pub(crate) fn tail(&self) -> Option<TailCourse> {
        self.parts.as_ref()?.tail()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(shift: &u32) -> bool {
    *shift == 0
}

fn shift<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let shift = u32::deserialize(from)?;
    (shift <= WIDER)
        .then_some(shift)
        .ok_or_else(|| D::Error::custom("the times of transactions have no such width"))
}

/// Times from a quarter of a microsecond to 18 minutes, in buckets of at most an eighth: those that transactions take.
const TIMES: Scale = Scale { low: 8, fine: 3, octaves: 32 };
/// The maximum number of parts. A trial of more than 32 ms has at least half as many.
const PARTS: usize = 32;
/// The maximum number of parts of each thread, in a trial of more threads than [`MANY`]: they need a kilobyte each.
const FEW_PARTS: usize = 8;
/// Threads of which each has fewer parts, and wider buckets.
const MANY: usize = 64;
/// The initial length of a part is two to the power of this, in nanoseconds: about a millisecond.
const FIRST: u32 = 20;
/// The minimum number of transactions of a part: of fewer, the percentile would be the maximum.
const MIN: u64 = 100;

/// The times of transactions in equal parts of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimesByPart {
    /// The buckets of each part, one part after the other.
    #[serde(serialize_with = "sparse", deserialize_with = "dense")]
    counts: Vec<u32>,
    /// The length of a part is two to the power of this, in nanoseconds.
    #[serde(deserialize_with = "length")]
    length: u32,
}

impl TimesByPart {
    fn new(threads: usize) -> Self {
        let parts = if threads > MANY { FEW_PARTS } else { PARTS };
        Self { counts: vec![0; parts * TIMES.buckets()], length: FIRST }
    }

    fn len(&self) -> usize {
        self.counts.len() / TIMES.buckets()
    }

    #[inline]
    fn record(&mut self, at: u64, took: u64, count: u32) {
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

    fn merge(&mut self, other: &Self) {
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
    fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// The 99th percentile in each part until the last transaction; `None` if no part has enough of them.
    fn tail(&self) -> Option<TailCourse> {
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
fn sparse<S: Serializer, N: Serialize + Default + PartialEq>(counts: &[N], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq((0_u32..).zip(counts).filter(|(_, count)| **count != N::default()))
}

fn dense<'de, D: Deserializer<'de>, N: Deserialize<'de> + Copy + Default>(
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

/// Buckets of times, each a part of a doubling.
struct Scale {
    /// Times below two to the power of this, in nanoseconds, are not distinguished.
    low: u32,
    /// Two to the power of this is the number of buckets in which a doubling of the time is divided.
    fine: u32,
    /// The number of doublings; the last bucket includes all times above.
    octaves: usize,
}

impl Scale {
    const fn buckets(&self) -> usize {
        self.octaves << self.fine
    }

    #[inline]
    fn bucket(&self, ns: u64) -> usize {
        let ns = ns.max(1 << self.low);
        let octave = ns.ilog2();
        let fine = (ns >> (octave - self.fine)) & ((1 << self.fine) - 1);
        ((((octave - self.low) as usize) << self.fine) | fine as usize).min(self.buckets() - 1)
    }

    /// The longest time of a bucket, in nanoseconds.
    fn longest(&self, bucket: usize) -> u64 {
        let octave = self.low + (bucket >> self.fine) as u32;
        let fine = (bucket & ((1 << self.fine) - 1)) as u64;
        (((1 << self.fine) + fine + 1) << (octave - self.fine)) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_sent_has_all_that_was_recorded() {
        let mut course = Course::new(2, true);
        for n in 0..10_000 {
            course.record(n * MS, (n % 97) * 50_000, 1);
        }
        let text = serde_json::to_string(&course).unwrap();
        let read: Course = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(course.tail().is_some() && read.tail() == course.tail());
        let completed = |course: &Course| course.made_until(4e12, u64::MAX).to_bits();
        assert_eq!(completed(&read), completed(&course));
        for wrong in [
            r#"{"shares":[[8192,1]],"parts":null}"#,
            r#"{"shares":[],"shift":3,"parts":null}"#,
            r#"{"shares":[],"parts":{"counts":[],"length":64}}"#,
            r#"{"shares":[],"parts":{"counts":[],"length":19}}"#,
        ] {
            assert!(serde_json::from_str::<Course>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bucket_holds_the_time_and_is_as_narrow_as_its_scale_says() {
        for (scale, part) in [(TIMES, 8), (WHEN, 128)] {
            for exponent in 0..60 {
                for ns in [1_u64 << exponent, (1 << exponent) + 1, (3 << exponent) / 2, (2 << exponent) - 1] {
                    let longest = scale.longest(scale.bucket(ns));
                    if (1 << scale.low..1 << (scale.low as usize + scale.octaves)).contains(&ns) {
                        assert!(longest >= ns && (longest - ns) * part <= ns, "{ns}: {longest}");
                    }
                }
            }
        }
    }

    #[test]
    fn slow_part_of_a_trial_of_any_length_is_found_at_its_time() {
        for length in [40 * MS, 1_000 * MS, 300_000 * MS] {
            let mut course = Course::new(2, true);
            let each = length / 40_000;
            for n in 0..40_000 {
                let slow = (20_000..30_000).contains(&n) && n % 20 == 0;
                course.record(n * each, if slow { 9 * MS } else { MS }, 1);
            }
            let tail = course.tail().unwrap();
            let parts = tail.p99_ns.len();
            assert!((16..=PARTS).contains(&parts), "{parts}");
            assert!(tail.part_ns * parts as u64 >= length && tail.part_ns * (parts as u64 - 1) <= length);
            for (n, p99) in tail.p99_ns.iter().enumerate() {
                let (from, to) = (n as u64 * tail.part_ns, (n as u64 + 1) * tail.part_ns);
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
        let (mut short, mut long) = (Course::new(MANY + 1, true), Course::new(2, true));
        for n in 0..1_000 {
            short.record(n * 20_000, MS, 1);
            long.record(n * 2_000_000, 5 * MS, 10);
        }
        let parts = |course: &Course| course.parts.as_ref().unwrap().len();
        assert_eq!((parts(&short), parts(&long)), (FEW_PARTS, PARTS));
        let mut sum = short;
        assert!(sum.shares.len() * 4 == long.shares.len());
        sum.merge(&long);
        sum.merge(&Course::new(2, false));
        let counts = &sum.parts.as_ref().unwrap().counts;
        assert_eq!(counts.iter().map(|count| u64::from(*count)).sum::<u64>(), 11_000);
        let whole = sum.made_until(f64::MAX, u64::MAX);
        assert!((whole - 11_000.0).abs() < 1e-6, "{whole}");
        assert_eq!(sum.tail().unwrap().part_ns, long.tail().unwrap().part_ns);
    }

    #[test]
    fn made_with_is_exact_at_the_end_of_a_bucket_of_few_and_many_threads() {
        for threads in [1, MANY + 1] {
            let mut course = Course::new(threads, false);
            for n in 1..=10_000 {
                course.record(n * MS, MS, 1);
            }
            for at in [777 * MS, 5_000 * MS, 9_600 * MS] {
                let (time, made) = course.made_with(at);
                assert!(time >= at && time <= at + at / 31, "{at}: {time}");
                assert!((made - time as f64 / MS as f64).abs() < 1.1, "{at}: {made}");
            }
        }
    }

    #[test]
    fn course_of_days_at_millions_a_second_is_even() {
        for threads in [1, MANY + 1] {
            let mut course = Course::new(threads, false);
            let hours = 168_u64;
            for minute in 1..=hours * 60 {
                course.record(minute * 60_000 * MS, 50_000, 60 * 5_000_000);
            }
            let end = hours * 3_600_000 * MS;
            for part in 1..=20_u64 {
                let found = course.made_until((end / 20 * part) as f64, end);
                let expected = (hours * 3_600 * 5_000_000 / 20 * part) as f64;
                assert!((found / expected - 1.0).abs() < 0.005, "{part}: {found} {expected}");
            }
            let text = serde_json::to_string(&course).unwrap();
            let mut twice: Course = serde_json::from_str(&text).unwrap();
            twice.merge(&course);
            let (found, once) = (twice.made_until(f64::MAX, end), course.made_until(f64::MAX, end));
            assert!((found / once - 2.0).abs() < 1e-9, "{found} {once}");
        }
    }

    #[test]
    fn parts_with_few_transactions_have_no_percentile() {
        let mut course = Course::new(2, true);
        course.record(0, MS, 99);
        assert_eq!(course.tail(), None);
        course.record(5 * MS, MS, 100);
        let tail = course.tail().unwrap();
        assert_eq!(tail.p99_ns.iter().flatten().count(), 1);
        assert!(tail.p99_ns.last().unwrap().is_some());
        assert!(tail.p99_ns[0].is_none());
        let mut without_parts = Course::new(2, false);
        without_parts.record(1 << 50, MS, 1);
        assert_eq!(without_parts.tail(), None);
    }

    #[test]
    fn transactions_are_known_at_any_time_and_forgotten() {
        let mut course = Course::new(1, false);
        for ms in 1..=1_000 {
            course.record(ms * MS, MS, 3);
        }
        for ms in [100, 333, 1_000] {
            let found = course.made_until((ms * MS) as f64, 1_000 * MS);
            assert!((found - 3.0 * ms as f64).abs() <= 0.01 * ms as f64 + 3.0, "{ms}: {found}");
        }
        course.clear();
        assert_eq!(course, Course::new(1, false));
    }
}
