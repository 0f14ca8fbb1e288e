//! Rounds in blocks, between which servers are restarted.
//!
//! Each instance of a server can be faster or slower than the next one for its whole lifetime: memory and files are
//! laid out differently, other plans are chosen. Rounds of one instance then agree with each other, and more of them
//! say little about other instances. If servers are restarted between blocks of rounds, the samples are therefore the
//! means of the blocks, one per instance, and more rounds only make each mean more precise (T. Kalibera and R. Jones,
//! "Rigorous benchmarking in reasonable time", ISMM 2013: the variance of a mean of means is estimated at the highest
//! level of repetition). The variance of the blocks' means includes that of the rounds, so that no choice between the
//! two is needed. If instances do not differ, intervals are wider than necessary, because there are fewer samples,
//! and never too narrow.
//!
//! `tests/nested.rs` shows both on simulated runs.

use crate::Mean;

/// The mean of each block of values, in the order of the blocks; `block` returns the block of a round. Values that
/// are not all positive have no geometric mean, and so an arithmetic one.
pub fn means_of_blocks(
    figures: impl IntoIterator<Item = (u32, f64)>,
    mean: Mean,
    block: impl Fn(u32) -> u32,
) -> Vec<f64> {
    let figures: Vec<(u32, f64)> = figures.into_iter().collect();
    let geometric = mean == Mean::Geometric && figures.iter().all(|(_, figure)| *figure > 0.0);
    let mean = |of_block: &[(u32, f64)]| {
        let sum: f64 = of_block.iter().map(|(_, figure)| if geometric { figure.ln() } else { *figure }).sum();
        let mean = sum / of_block.len() as f64;
        if geometric { mean.exp() } else { mean }
    };
    figures.chunk_by(|(a, _), (b, _)| block(*a) == block(*b)).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_of_means_is_the_mean_of_ratios() {
        let a = [(0, 100.0), (1, 400.0), (2, 300.0)];
        let b = [(0, 50.0), (1, 100.0), (2, 100.0)];
        let block = |round: u32| round / 2;
        let (a, b) = (means_of_blocks(a, Mean::Geometric, block), means_of_blocks(b, Mean::Geometric, block));
        assert_eq!(a.len(), 2);
        assert!((a[0] - 200.0).abs() < 1e-9 && (a[1] - 300.0).abs() < 1e-9, "{a:?}");
        assert!((a[0] / b[0] - 8.0_f64.sqrt()).abs() < 1e-9, "{b:?}");
    }

    #[test]
    fn figures_that_are_not_all_positive_have_arithmetic_means() {
        let means = |figures: &[(u32, f64)], mean| means_of_blocks(figures.to_vec(), mean, |round| round / 2);
        assert_eq!(means(&[(0, -1.0), (1, 3.0), (5, 0.0)], Mean::Geometric), [1.0, 0.0]);
        assert_eq!(means(&[(0, 0.0), (1, 2.0)], Mean::Geometric), [1.0]);
        assert_eq!(means(&[(0, 1.0), (1, 4.0), (2, 5.0)], Mean::Arithmetic), [2.5, 5.0]);
        assert!(means(&[], Mean::Geometric).is_empty());
    }
}
