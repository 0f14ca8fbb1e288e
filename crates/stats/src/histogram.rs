//! A latency histogram: the one of the crate `hdrhistogram`, with exact sum, minimum and maximum.
//!
//! Every client has its own and records into it after each operation. It counts in 32 bits with two significant
//! digits, which takes 18 KiB; [`Histogram::record`] allocates nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// From here on (2^42 ns − 1, 73 minutes) latencies are no longer distinguished, except by the exact maximum.
pub const CLAMP_NS: u64 = (1 << 42) - 1;

/// The maximum relative error of a quantile.
pub const RELATIVE_ERROR: f64 = 1.0 / 128.0;

/// The minimum number of significant digits of latencies.
const DIGITS: u8 = 2;

/// Counts of latencies in nanoseconds.
///
/// Count, sum, minimum and maximum are exact; a quantile is at most [`RELATIVE_ERROR`] too high and never too
/// low. A bucket counts up to 2^32 − 1.
///
/// Serialised, it is `{"min":…,"max":…,"sum":[high,low],"hdr":"HISTFAAA…"}`: the sum is cut into two words of 64 bits, since not every
/// reader of JSON carries 128, and `hdr` is the compressed V2 format of `HdrHistogram` in Base64, which its tools read.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct Histogram {
    buckets: Hdr<u32>,
    /// Wide enough that no sequence of `u64` latencies can overflow it.
    sum: u128,
    /// `u64::MAX` while empty.
    min: u64,
    /// 0 while empty.
    max: u64,
}

/// One non-empty bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest latency that falls into it, ns.
    pub low: u64,
    /// The highest latency that falls into it, ns.
    pub high: u64,
    /// The number of its latencies; never 0.
    pub count: u64,
}

/// One step of a distribution of percentiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    /// The latency that this share does not exceed, ns.
    pub value: u64,
    /// The share of all latencies, 0 to 1.
    pub quantile: f64,
    /// The number of these latencies.
    pub count: u64,
}

/// Why a written histogram was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HistogramError {
    /// It is not the V2 format of `HdrHistogram`, in Base64.
    #[error("a histogram is not in HdrHistogram's V2 format")]
    Format,
    /// It was written with other bucket bounds.
    #[error("a histogram has other buckets than this program's")]
    Layout,
    /// Minimum, maximum or sum contradict the buckets.
    #[error("histogram {0} contradicts its buckets")]
    Contradiction(&'static str),
}

/// The form in files.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename = "Histogram", deny_unknown_fields)]
struct Written {
    min: u64,
    max: u64,
    sum: (u64, u64),
    hdr: String,
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
            .field("count", &self.count())
            .field("sum", &self.sum)
            .field("min", &self.min())
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

impl Histogram {
    /// An empty histogram; the only place that allocates.
    ///
    /// # Panics
    /// Never: the bounds are valid ones.
    #[must_use]
    pub fn new() -> Self {
        #[allow(clippy::expect_used, reason = "constants that a test covers")]
        let buckets = Hdr::new_with_bounds(1, CLAMP_NS, DIGITS).expect("valid bounds");
        Self { buckets, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one latency of `ns` nanoseconds.
    ///
    /// Above [`CLAMP_NS`] it falls into the last bucket, and still counts exactly in sum and maximum.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.buckets.saturating_record(ns);
        self.sum += u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Counts so many latencies of `ns` nanoseconds each.
    #[inline]
    pub fn record_many(&mut self, ns: u64, times: u64) {
        if times > 0 {
            self.buckets.saturating_record_n(ns, u32::try_from(times).unwrap_or(u32::MAX));
            self.sum = self.sum.saturating_add(u128::from(ns) * u128::from(times));
            self.min = self.min.min(ns);
            self.max = self.max.max(ns);
        }
    }

    /// Adds all that another histogram counted, as if it had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        // Fails only where the other one has other bounds, which none has.
        let _ = self.buckets.add(&other.buckets);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The shortest latency, ns, exact; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        if self.is_empty() { None } else { Some(self.min) }
    }

    /// The longest latency, ns, exact; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        if self.is_empty() { None } else { Some(self.max) }
    }

    /// The sum of all latencies, ns, exact.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean latency, ns, from the exact sum; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        if self.is_empty() { None } else { Some(self.sum as f64 / self.count() as f64) }
    }

    /// The latency, ns, that the fraction `q` of all latencies do not exceed; `None` when empty or `q` is NaN.
    ///
    /// Nearest rank: of the sorted latencies it is the one at rank ⌈q · count⌉, at least the first and at most
    /// the last, reported as the highest latency of its bucket, but not above the maximum. It is thus never
    /// below that latency and at most [`RELATIVE_ERROR`] above; the first and the last are exact. (Latencies
    /// between [`CLAMP_NS`] and the maximum share one bucket and are reported as the maximum.)
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.is_empty() || q.is_nan() {
            return None;
        }
        // The crate rounds q · count up, and so 0.07 · 100 to 8. A full bucket holds less than was counted.
        let held = self.buckets().map(|bucket| bucket.count).sum();
        let rank = nearest_rank(q, held);
        if rank == 1 {
            return Some(self.min);
        }
        let mut seen = 0;
        for bucket in self.buckets() {
            seen += bucket.count;
            if seen >= rank {
                return Some(if bucket.high >= CLAMP_NS { self.max } else { bucket.high.min(self.max) });
            }
        }
        Some(self.max)
    }

    /// The buckets that hold something, from the shortest latencies to the longest.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.buckets.iter_recorded().map(|step| {
            let high = step.value_iterated_to();
            let count = u64::from(step.count_at_value());
            Bucket {
                low: self.buckets.lowest_equivalent(high),
                high: self.buckets.highest_equivalent(high),
                count,
            }
        })
    }

    /// How many latencies may have been `ns` nanoseconds or longer: those of all buckets that reach it.
    pub fn count_from(&self, ns: u64) -> u64 {
        if self.max < ns {
            return 0;
        }
        self.buckets().filter(|bucket| bucket.high >= ns.min(CLAMP_NS)).map(|bucket| bucket.count).sum()
    }

    /// The distribution of percentiles as the tools of `HdrHistogram` draw it: five steps each time that the distance to 100 % halves.
    pub fn percentiles(&self) -> impl Iterator<Item = Percentile> + '_ {
        let mut count = 0;
        self.buckets.iter_quantiles(5).map(move |step| {
            count += step.count_since_last_iteration();
            let value = step.value_iterated_to().min(self.max);
            Percentile { value, quantile: step.quantile_iterated_to(), count }
        })
    }

    /// The standard deviation, ns, each latency taken for the middle of its bucket; 0 when empty.
    pub fn deviation(&self) -> f64 {
        self.buckets.stdev()
    }

    /// Forgets everything recorded and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.reset();
        (self.sum, self.min, self.max) = (0, u64::MAX, 0);
    }

    /// The V2 format of `HdrHistogram`, compressed, in Base64.
    pub fn to_hdr(&self) -> String {
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = V2DeflateSerializer::new().serialize(&self.buckets, &mut bytes);
        STANDARD.encode(bytes)
    }
}

impl From<Histogram> for Written {
    fn from(histogram: Histogram) -> Self {
        Self {
            min: histogram.min().unwrap_or(0),
            max: histogram.max,
            sum: ((histogram.sum >> 64) as u64, histogram.sum as u64),
            hdr: histogram.to_hdr(),
        }
    }
}

impl TryFrom<Written> for Histogram {
    type Error = HistogramError;

    fn try_from(written: Written) -> Result<Self, HistogramError> {
        let bytes = STANDARD.decode(&written.hdr).map_err(|_| HistogramError::Format)?;
        let read: Hdr<u32> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|_| HistogramError::Format)?;
        if (read.low(), read.high(), read.sigfig()) != (1, CLAMP_NS, DIGITS) {
            return Err(HistogramError::Layout);
        }
        let mut histogram = Self { buckets: read, ..Self::new() };
        histogram.sum = (u128::from(written.sum.0) << 64) | u128::from(written.sum.1);
        let (Some(first), Some(last)) = (histogram.buckets().next(), histogram.buckets().last()) else {
            let blank = written.min == 0 && written.max == 0 && histogram.sum == 0;
            return if blank { Ok(histogram) } else { Err(HistogramError::Contradiction("summary")) };
        };
        (histogram.min, histogram.max) = (written.min, written.max);
        let holds = |bucket: Bucket, ns: u64| (bucket.low..=bucket.high).contains(&ns.min(CLAMP_NS));
        if !holds(first, written.min) || written.min > written.max {
            return Err(HistogramError::Contradiction("minimum"));
        }
        if !holds(last, written.max) {
            return Err(HistogramError::Contradiction("maximum"));
        }
        let bound = |ns: fn(&Bucket, &Written) -> u64| -> u128 {
            histogram
                .buckets()
                .map(|bucket| u128::from(bucket.count) * u128::from(ns(&bucket, &written)))
                .sum()
        };
        let at_least = bound(|bucket, written| bucket.low.max(written.min));
        let at_most = bound(
            |bucket, written| {
                if bucket.high >= CLAMP_NS { written.max } else { bucket.high.min(written.max) }
            },
        );
        // A bucket that is full counts less than was recorded.
        let full = histogram.buckets().any(|bucket| bucket.count == u64::from(u32::MAX));
        if histogram.sum < at_least || (histogram.sum > at_most && !full) {
            return Err(HistogramError::Contradiction("sum"));
        }
        Ok(histogram)
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
