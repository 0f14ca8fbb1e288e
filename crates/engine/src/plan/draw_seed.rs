//! Seeds of the clients' random inputs.
//!
//! Two trials of one target with the same keys would measure a cache: the second one reads what the first one loaded
//! into the buffer pool. So each trial has its own seed, derived from everything that distinguishes it. The target is
//! not part of it: all targets get the same keys.

use kurabe_core::run::CellRecord;
use kurabe_stats::rng::{mix, mix_text};

/// The seed of one trial's random inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DrawSeed(u64);

impl DrawSeed {
    /// The seed of a cell's operation in a round. It depends on a cell's axis values, not on its position, so that
    /// targets with different cells agree. `rerun`: the trial replaces a disturbed one.
    pub(crate) fn new(run_seed: u64, round: u32, cell: &CellRecord, operation: &str, rerun: bool) -> Self {
        let mut seed = mix_text(mix(run_seed, u64::from(round) + 1), operation);
        for (axis, value) in cell.axes.values() {
            seed = mix_text(mix_text(seed, axis), &value.to_string());
        }
        Self(mix(seed, u64::from(cell.aa_control) | u64::from(rerun) << 1))
    }

    /// The seed of one probe of a rate search, counted from 0. A trial without a search is its probe 0.
    pub(crate) fn of_probe(self, probe: u32) -> u64 {
        mix(self.0, u64::from(probe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::axis::{AxisValue, Cell};
    use std::collections::HashSet;

    fn cell(target: usize, codec: &str, payload: u64, aa_control: bool) -> CellRecord {
        let axes = [
            ("codec".to_owned(), AxisValue::Word(codec.to_owned())),
            ("payload".to_owned(), AxisValue::Number(payload)),
        ];
        CellRecord { target, axes: Cell::new(axes), aa_control, ..CellRecord::default() }
    }

    #[test]
    fn seed_differs_by_round_cell_operation_probe_repeat_and_rerun() {
        let mut seeds = HashSet::new();
        let mut trials = 0;
        for round in 0..4 {
            for codec in ["json", "zstd"] {
                for payload in [100, 1_000] {
                    for (aa_control, rerun) in [(false, false), (false, true), (true, false), (true, true)] {
                        for operation in ["read", "write"] {
                            for probe in 0..3 {
                                let cell = cell(0, codec, payload, aa_control);
                                let seed = DrawSeed::new(7, round, &cell, operation, rerun);
                                seeds.insert(seed.of_probe(probe));
                                trials += 1;
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(seeds.len(), trials);
    }

    #[test]
    fn seed_is_equal_across_targets() {
        let seed = |target| DrawSeed::new(7, 3, &cell(target, "json", 100, false), "read", false).of_probe(0);
        assert_eq!(seed(0), seed(1));
    }

    #[test]
    fn seed_does_not_confuse_one_axis_with_its_neighbour() {
        let named = |axes: &[(&str, &str)]| {
            let axes =
                axes.iter().map(|(axis, value)| ((*axis).to_owned(), AxisValue::Word((*value).to_owned())));
            let cell = CellRecord { axes: Cell::new(axes), ..cell(0, "json", 1, false) };
            DrawSeed::new(7, 0, &cell, "read", false)
        };
        assert_ne!(named(&[("a", "b"), ("c", "")]), named(&[("a", ""), ("c", "b")]));
        assert_ne!(named(&[("a", "bc")]), named(&[("ab", "c")]));
    }
}
