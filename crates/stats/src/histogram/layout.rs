//! Which bucket a latency falls into.
//!
//! Log-linear, after `HdrHistogram` (Tene, <https://hdrhistogram.org>): every octave from 2^7 to 2^42 ns is cut
//! into equal parts. 110 parts keep the relative error below 1 % and all counts of 32 bits within 16 KiB, where
//! 128, the next power of two, would not; the price is a multiplication. Below 128 ns each value is its own.

/// Parts of an octave.
const PARTS: u64 = 110;
/// The first octave that is cut into parts begins at 2^7; below, buckets are 1 ns wide.
const FIRST_OCTAVE: u32 = 7;
/// The last octave begins at 2^41.
const LAST_OCTAVE: u32 = 41;
const LINEAR: u64 = 1 << FIRST_OCTAVE;

/// How many buckets there are.
pub(super) const BUCKETS: usize =
    LINEAR as usize + (LAST_OCTAVE - FIRST_OCTAVE + 1) as usize * PARTS as usize;

/// From here on (2^42 ns − 1, 73 minutes) latencies are no longer told apart, except by the exact maximum.
pub const CLAMP_NS: u64 = (1 << (LAST_OCTAVE + 1)) - 1;

/// The most by which a quantile exceeds the latency that it stands for, as a fraction of it: 1 ÷ 110.
pub const RELATIVE_ERROR: f64 = 1.0 / PARTS as f64;

/// The bucket of a latency.
#[inline]
pub(super) fn index_of(ns: u64) -> usize {
    if ns < LINEAR {
        return ns as usize;
    }
    let ns = ns.min(CLAMP_NS);
    let octave = ns.ilog2();
    let part = ((ns - (1 << octave)) * PARTS) >> octave;
    (LINEAR + u64::from(octave - FIRST_OCTAVE) * PARTS + part) as usize
}

/// The lowest latency of a bucket, ns.
pub(super) fn lowest_of(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let (octave, part) = ((index - LINEAR) / PARTS, (index - LINEAR) % PARTS);
    let octave = octave as u32 + FIRST_OCTAVE;
    // The smallest x with x · PARTS ≥ part · 2^octave.
    (1 << octave) + (part << octave).div_ceil(PARTS)
}

/// The highest latency of a bucket, ns; the last has no end.
pub(super) fn highest_of(index: usize) -> u64 {
    if index + 1 >= BUCKETS { u64::MAX } else { lowest_of(index + 1) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap_and_hold_their_ends() {
        assert!(BUCKETS * size_of::<u32>() <= 16 * 1024);
        for index in 0..BUCKETS {
            assert!(lowest_of(index) <= highest_of(index), "{index}");
            assert_eq!(index_of(lowest_of(index)), index);
            assert_eq!(index_of(highest_of(index)), index);
        }
        assert_eq!(lowest_of(0), 0);
    }

    #[test]
    fn no_bucket_is_wider_than_the_stated_error() {
        for index in 0..BUCKETS - 1 {
            let (low, high) = (lowest_of(index) as f64, highest_of(index) as f64);
            assert!(high - low <= low * RELATIVE_ERROR, "{index}: {low} to {high}");
        }
        const { assert!(RELATIVE_ERROR < 0.01) };
    }

    #[test]
    fn an_hour_has_a_bucket_of_its_own_and_a_day_the_last() {
        assert!(index_of(3_600_000_000_000) < BUCKETS - 1);
        assert_eq!(index_of(86_400_000_000_000), BUCKETS - 1);
        assert_eq!(index_of(u64::MAX), BUCKETS - 1);
    }
}
