//! The kinds of units that become transactions of a model.

use crate::show::{Analysis, Kind, Occurrence, Sample};
use crate::units::{Node, What, flatten};
use kurabe_core::sort;
use std::collections::BTreeMap;

/// The maximum number of kinds of transactions. Statements outside of transactions that belong to more become kinds alone.
const KINDS: usize = 30;
/// Parts from which a unit outside of a transaction that hardly ever came again is taken apart.
const RARE_PARTS: usize = 8;
/// A kind is left out that has less than one of so many transactions, and less than this share of the time.
const RARE: u64 = 1_000;
const RARE_TIME: f64 = 0.01;

pub(super) fn chosen(analysis: &Analysis) -> Vec<Kind> {
    let mut kept = Vec::new();
    let mut alone: BTreeMap<usize, Kind> = BTreeMap::new();
    for kind in &analysis.kinds {
        let key = flatten(&kind.nodes);
        let is_rare = kept.len() >= KINDS || (kind.calls <= 2 && key.len() > RARE_PARTS);
        if kind.transaction || (key.len() > 1 && !is_rare) {
            if kept.len() < KINDS {
                kept.push(kind.clone());
            }
            continue;
        }
        // Each statement alone: the mix stays, the order goes.
        let per_sample = kind.calls as f64 / kind.samples.len().max(1) as f64;
        let calls: usize = kind.samples.iter().map(|sample| sample.calls.len()).sum();
        for sample in &kind.samples {
            for (_, call) in &sample.calls {
                let one = alone.entry(call.statement).or_default();
                one.samples.push(single(sample, call));
                one.total_ns += (kind.total_ns as f64 / calls.max(1) as f64) as u64;
            }
        }
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, call) in kind.samples.iter().flat_map(|sample| &sample.calls) {
            *numbers.entry(call.statement).or_default() += 1;
        }
        for (statement, number) in numbers {
            if let Some(one) = alone.get_mut(&statement) {
                one.nodes = vec![Node { what: What::Statement(statement), least: 1, most: 1 }];
                one.calls += (number as f64 * per_sample).round() as u64;
            }
        }
    }
    kept.extend(alone.into_values());
    sort::by_key(&mut kept, |kind| std::cmp::Reverse(kind.total_ns));
    // What hardly ever comes is often what a program does as it starts.
    let (calls, time) = kept.iter().fold((0, 0), |sum, kind| (sum.0 + kind.calls, sum.1 + kind.total_ns));
    kept.retain(|kind| kind.calls * RARE >= calls || kind.total_ns as f64 >= RARE_TIME * time as f64);
    kept
}

fn single(sample: &Sample, call: &Occurrence) -> Sample {
    Sample { calls: vec![(0, call.clone())], counts: Vec::new(), ..*sample }
}
