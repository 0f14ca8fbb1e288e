//! The largest resident memory of this process during a job, as the kernel records it.

use crate::prelude::*;
use std::fs;

pub(super) const PEAK_MEMORY: Metric = Metric::new(
    "peak memory",
    Unit::Bytes,
    Better::Lower,
    "largest resident memory of the client, with an embedded database",
);
pub(super) const PEAK_MEMORY_ADDED: Metric = Metric::new(
    "peak memory added",
    Unit::Bytes,
    Better::Lower,
    "of that, what was not resident when the trial started",
);

/// A measurement of the peak that has started.
pub(super) struct PeakMemory {
    /// Resident bytes at the start.
    before: u64,
}

impl PeakMemory {
    /// Resets the kernel's record; `None` if this kernel does not allow it.
    ///
    /// Writing 5 to `clear_refs` sets the peak to the current resident memory (proc(5)).
    pub(super) fn start() -> Option<Self> {
        fs::write("/proc/self/clear_refs", "5").ok()?;
        Some(Self { before: read("VmRSS:")? })
    }

    /// The peak since then; empty if it cannot be read.
    pub(super) fn end(self) -> Vec<(Metric, f64)> {
        let Some(peak) = read("VmHWM:") else { return Vec::new() };
        let added = peak.saturating_sub(self.before);
        vec![(PEAK_MEMORY, peak as f64), (PEAK_MEMORY_ADDED, added as f64)]
    }
}

/// A line of `/proc/self/status`, in bytes.
fn read(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_freed_before_the_end_is_part_of_the_peak() {
        const BYTES: usize = 64 << 20;
        let Some(memory) = PeakMemory::start() else { return };
        // Touched, so that it is resident; large, so that it is returned to the kernel when it is freed.
        let block = vec![1_u8; BYTES];
        assert_eq!(std::hint::black_box(&block)[BYTES / 2], 1);
        drop(block);
        let values = memory.end();
        let [(_, peak), (_, added)] = values[..] else { panic!("{values:?}") };
        assert!(peak >= BYTES as f64 && added >= 0.9 * BYTES as f64, "{values:?}");
    }
}
