//! A latency histogram: small, of fixed layout, exact where it can be and within 1 % elsewhere.
//!
//! Every client owns one and records into it after each operation, so [`Histogram::record`] costs a few
//! nanoseconds and never allocates (but once in 2^32 records of one bucket). The buckets are a zeroed block of
//! 15.6 KiB, of which a client touches the few cache lines around its own latencies: five thousand clients cost
//! some tens of megabytes at most. All reading is confined to the buckets between minimum and maximum, so that
//! it too leaves untouched memory alone.

mod layout;
mod sparse;

use layout::{BUCKETS, highest_of, index_of, lowest_of};
pub use layout::{CLAMP_NS, RELATIVE_ERROR};
pub use sparse::HistogramError;

/// Counts of latencies in nanoseconds.
///
/// Count, sum, minimum and maximum are exact; a quantile is at most [`RELATIVE_ERROR`] too high and never too
/// low. Serialised, it is a sparse list that gives back an equal histogram.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    /// The lower 32 bits of each bucket's count.
    counts: Box<[u32]>,
    /// Buckets that passed 2^32, in order, with how often: rarer than anything, so kept apart.
    carries: Vec<(usize, u32)>,
    count: u64,
    /// Wide enough that no sequence of `u64` latencies can overflow it.
    sum: u128,
    /// `u64::MAX` while empty.
    min: u64,
    /// 0 while empty.
    max: u64,
}

/// One bucket that holds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest latency that falls into it, ns.
    pub low: u64,
    /// The highest latency that falls into it, ns; `u64::MAX` for the last bucket.
    pub high: u64,
    /// How many latencies fell into it; never 0.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Histogram {
    /// The summary, not four thousand zeros.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("sum", &self.sum)
            .field("min", &self.min())
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

impl Histogram {
    /// An empty histogram; the only place that allocates.
    #[must_use]
    pub fn new() -> Self {
        // A zeroed vector comes from the allocator's zeroed pages where it has them: untouched until used.
        let counts = vec![0; BUCKETS].into_boxed_slice();
        Self { counts, carries: Vec::new(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one latency of `ns` nanoseconds.
    ///
    /// Above [`CLAMP_NS`] it falls into the last bucket, and still counts exactly in sum and maximum.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum += u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        let index = index_of(ns);
        let (next, wrapped) = self.counts[index].overflowing_add(1);
        self.counts[index] = next;
        if wrapped {
            self.carry(index, 1);
        }
    }

    /// Counts so many latencies of `ns` nanoseconds each.
    #[inline]
    pub fn record_many(&mut self, ns: u64, times: u64) {
        if times == 1 {
            self.record(ns);
        } else if times > 0 {
            self.count = self.count.saturating_add(times);
            self.sum = self.sum.saturating_add(u128::from(ns) * u128::from(times));
            self.min = self.min.min(ns);
            self.max = self.max.max(ns);
            self.add(index_of(ns), times);
        }
    }

    /// Adds all that another histogram counted, as if it had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        for (index, count) in other.filled() {
            self.add(index, count);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many latencies were recorded.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The shortest latency, ns, exact; `None` when empty.
    #[must_use]
    pub const fn min(&self) -> Option<u64> {
        if self.is_empty() { None } else { Some(self.min) }
    }

    /// The longest latency, ns, exact; `None` when empty.
    #[must_use]
    pub const fn max(&self) -> Option<u64> {
        if self.is_empty() { None } else { Some(self.max) }
    }

    /// The sum of all latencies, ns, exact.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean latency, ns, from the exact sum; `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        if self.is_empty() { None } else { Some(self.sum as f64 / self.count as f64) }
    }

    /// The latency, ns, that the fraction `q` of all latencies do not exceed; `None` when empty or `q` is NaN.
    ///
    /// Nearest rank: of the sorted latencies it is the one at rank ⌈q · count⌉, at least the first and at most
    /// the last, reported as the highest latency of its bucket, but not above the maximum. It is thus never
    /// below that latency and at most [`RELATIVE_ERROR`] above; the first and the last are exact. (Latencies
    /// between [`CLAMP_NS`] and the maximum share one bucket and are reported as the maximum.)
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.is_empty() || q.is_nan() {
            return None;
        }
        let rank = nearest_rank(q, self.count);
        if rank == 1 {
            return Some(self.min);
        }
        let mut seen = 0;
        for (index, count) in self.filled() {
            seen += count;
            if seen >= rank {
                return Some(highest_of(index).min(self.max));
            }
        }
        Some(self.max)
    }

    /// The buckets that hold something, from the shortest latencies to the longest.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.filled().map(|(index, count)| Bucket { low: lowest_of(index), high: highest_of(index), count })
    }

    /// Forgets everything recorded and keeps the memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.counts[index_of(self.min)..=index_of(self.max)].fill(0);
        }
        self.carries.clear();
        (self.count, self.sum, self.min, self.max) = (0, 0, u64::MAX, 0);
    }

    /// Index and full count of every bucket that holds something, in order.
    fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let range = if self.is_empty() { 0..0 } else { index_of(self.min)..index_of(self.max) + 1 };
        range.map(|index| (index, self.count_of(index))).filter(|&(_, count)| count > 0)
    }

    fn count_of(&self, index: usize) -> u64 {
        let low = u64::from(self.counts[index]);
        if self.carries.is_empty() {
            return low;
        }
        match self.carries.binary_search_by_key(&index, |&(i, _)| i) {
            Ok(at) => low + (u64::from(self.carries[at].1) << 32),
            Err(_) => low,
        }
    }

    /// Adds to one bucket only; the caller keeps count, sum, minimum and maximum.
    fn add(&mut self, index: usize, count: u64) {
        let (next, wrapped) = self.counts[index].overflowing_add(count as u32);
        self.counts[index] = next;
        let times = (count >> 32) as u32 + u32::from(wrapped);
        if times > 0 {
            self.carry(index, times);
        }
    }

    /// Notes that a bucket passed 2^32, so that no count is ever lost or capped.
    #[cold]
    fn carry(&mut self, index: usize, times: u32) {
        match self.carries.binary_search_by_key(&index, |&(i, _)| i) {
            Ok(at) => self.carries[at].1 = self.carries[at].1.saturating_add(times),
            Err(at) => self.carries.insert(at, (index, times)),
        }
    }
}

/// ⌈q · count⌉ between 1 and `count`.
///
/// A product such as 0.07 · 100 = 7.000000000000001 must not round up to the next rank, so what lies within the
/// product's own rounding error of a whole number counts as that number.
fn nearest_rank(q: f64, count: u64) -> u64 {
    let exact = q.clamp(0.0, 1.0) * count as f64;
    let whole = exact.round();
    let rank = if (exact - whole).abs() <= exact * 2.0 * f64::EPSILON { whole } else { exact.ceil() };
    (rank as u64).clamp(1, count)
}
