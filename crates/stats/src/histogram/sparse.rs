//! The written form: only the buckets that hold something, and what is needed to refuse a damaged one.
//!
//! `{"layout":1,"min":…,"max":…,"sum":[high,low],"buckets":[[step,count],…]}` where each step is the distance
//! from the bucket before (from bucket 0 for the first) and the sum is cut into two words of 64 bits, because
//! not every format, nor every buffering reader, carries 128. An empty histogram has zeros and no buckets.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::Histogram;
use super::layout::{BUCKETS, highest_of, index_of, lowest_of};

/// Changes with every change of the buckets' bounds.
const LAYOUT: u32 = 1;

/// Why a written histogram was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HistogramError {
    /// It was written with other bucket bounds.
    #[error("histogram layout {0} is not known (this program reads layout {LAYOUT})")]
    Layout(u32),
    /// A bucket lies outside the layout, or not after the one before it.
    #[error("histogram buckets are out of order or out of range")]
    Order,
    /// A bucket is written although it holds nothing.
    #[error("histogram lists an empty bucket")]
    EmptyBucket,
    /// The counts do not fit into 64 bits together.
    #[error("histogram counts overflow")]
    Overflow,
    /// Minimum, maximum or sum contradict the buckets.
    #[error("histogram {0} contradicts its buckets")]
    Contradiction(&'static str),
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Histogram", deny_unknown_fields)]
struct Sparse {
    layout: u32,
    min: u64,
    max: u64,
    sum: (u64, u64),
    buckets: Vec<(u32, u64)>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut before = 0;
        let step = |(index, count): (usize, u64)| {
            let step = index - before;
            before = index;
            (step as u32, count)
        };
        Sparse {
            layout: LAYOUT,
            min: self.min().unwrap_or(0),
            max: self.max,
            sum: ((self.sum >> 64) as u64, self.sum as u64),
            buckets: self.filled().map(step).collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(Sparse::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl TryFrom<Sparse> for Histogram {
    type Error = HistogramError;

    fn try_from(sparse: Sparse) -> Result<Self, HistogramError> {
        if sparse.layout != LAYOUT {
            return Err(HistogramError::Layout(sparse.layout));
        }
        let mut histogram = Self::new();
        histogram.sum = (u128::from(sparse.sum.0) << 64) | u128::from(sparse.sum.1);
        let (mut index, mut first) = (0_usize, None);
        // The sums if every latency were the lowest, or the highest, that its bucket allows.
        let (mut least, mut most) = (0_u128, 0_u128);
        for (step, count) in sparse.buckets {
            if count == 0 {
                return Err(HistogramError::EmptyBucket);
            }
            index = index.saturating_add(step as usize);
            if index >= BUCKETS || (step == 0 && first.is_some()) {
                return Err(HistogramError::Order);
            }
            first = first.or(Some(index));
            histogram.count = histogram.count.checked_add(count).ok_or(HistogramError::Overflow)?;
            histogram.add(index, count);
            // 64 bits times 64 bits, summed over counts that fit into 64 bits together: never above 128.
            least += u128::from(count) * u128::from(lowest_of(index).max(sparse.min));
            most += u128::from(count) * u128::from(highest_of(index).min(sparse.max));
        }
        let Some(first) = first else {
            let blank = sparse.min == 0 && sparse.max == 0 && histogram.sum == 0;
            return if blank { Ok(histogram) } else { Err(HistogramError::Contradiction("summary")) };
        };
        (histogram.min, histogram.max) = (sparse.min, sparse.max);
        if index_of(sparse.min) != first || sparse.min > sparse.max {
            return Err(HistogramError::Contradiction("minimum"));
        }
        if index_of(sparse.max) != index || (histogram.count == 1 && sparse.min != sparse.max) {
            return Err(HistogramError::Contradiction("maximum"));
        }
        if histogram.sum < least || histogram.sum > most {
            return Err(HistogramError::Contradiction("sum"));
        }
        Ok(histogram)
    }
}
