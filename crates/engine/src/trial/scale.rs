//! Buckets of times in which a course counts: their width grows with the time.

/// Buckets of times, each a part of a doubling.
pub(super) struct Scale {
    /// Times below two to the power of this, in nanoseconds, are not distinguished.
    pub(super) low: u32,
    /// Two to the power of this is the number of buckets in which a doubling of the time is divided.
    pub(super) fine: u32,
    /// The number of doublings; the last bucket includes all times above.
    pub(super) octaves: usize,
}

impl Scale {
    pub(super) const fn buckets(&self) -> usize {
        self.octaves << self.fine
    }

    #[inline]
    pub(super) fn bucket(&self, ns: u64) -> usize {
        let ns = ns.max(1 << self.low);
        let octave = ns.ilog2();
        let fine = (ns >> (octave - self.fine)) & ((1 << self.fine) - 1);
        ((((octave - self.low) as usize) << self.fine) | fine as usize).min(self.buckets() - 1)
    }

    /// The longest time of a bucket, in nanoseconds.
    pub(super) fn longest(&self, bucket: usize) -> u64 {
        let octave = self.low + (bucket >> self.fine) as u32;
        let fine = (bucket & ((1 << self.fine) - 1)) as u64;
        (((1 << self.fine) + fine + 1) << (octave - self.fine)) - 1
    }
}
