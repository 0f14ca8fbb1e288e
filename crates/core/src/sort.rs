//! Sorting by code that is compiled once.
//!
//! The standard library's sort is compiled for each type and order: some 2,500 lines for LLVM, 5 kB of program. Those here
//! sort positions, for all types alike, and take some 100 lines each. What measures, or sorts millions, uses the standard
//! library's.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Sorts by an order; equal items keep theirs.
pub fn by<T>(items: &mut [T], mut order: impl FnMut(&T, &T) -> Ordering) {
    for (one, other) in swaps(items.len(), &mut |a, b| order(&items[a], &items[b])) {
        items.swap(one, other);
    }
}

/// Sorts by a key; items of equal keys keep their order.
pub fn by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    by(items, |one, other| key(one).cmp(&key(other)));
}

/// A map of these; of several values of a key, the last. Collecting into a map sorts.
pub fn btree_map<K: Ord, V>(entries: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(entries);
    map
}

/// These, sorted, each once.
pub fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    by(&mut items, Ord::cmp);
    items.dedup();
    items
}

/// The positions to swap, in turn, so that items in `order` are sorted.
fn swaps(items: usize, order: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut from: Vec<usize> = (0..items).collect();
    from.sort_by(|a, b| order(*a, *b));
    let mut swaps = Vec::new();
    for start in 0..items {
        // Each item of a circle of moves takes its place; the last one is there by then.
        let mut at = start;
        while from[at] != start {
            let next = from[at];
            swaps.push((at, next));
            from[at] = at;
            at = next;
        }
        from[at] = at;
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_sorted_as_by_the_standard_library() {
        let mut state = 1_u64;
        for items in 0..60_u32 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 60
            };
            // Few keys, so that many are equal, with the place that each had.
            let drawn: Vec<(u64, u32)> = (0..items).map(|place| (next(), place)).collect();
            let (mut ours, mut theirs) = (drawn.clone(), drawn.clone());
            by_key(&mut ours, |(key, _)| *key);
            theirs.sort_by_key(|(key, _)| *key);
            assert_eq!(ours, theirs);
            let mut ours = drawn.clone();
            by(&mut ours, |one, other| other.cmp(one));
            theirs.sort_by(|one, other| other.cmp(one));
            assert_eq!(ours, theirs);
            let keys = || drawn.iter().map(|(key, _)| *key);
            assert!(distinct(keys()).into_iter().eq(keys().collect::<std::collections::BTreeSet<_>>()));
            assert_eq!(btree_map(drawn.iter().copied()), drawn.iter().copied().collect());
        }
    }
}
