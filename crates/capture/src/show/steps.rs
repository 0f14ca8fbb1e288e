//! Which steps of a unit of work are an N+1.

use super::Statement;
use crate::units::{Node, What, flatten};

/// A loop of reads with this many repetitions is what "N+1" means.
pub(super) const MANY: u64 = 5;

/// Whether a loop of reads follows another statement.
pub(super) fn n_plus_one(nodes: &[Node], statements: &[Statement]) -> bool {
    let reads = |number: usize| statements.get(number).is_some_and(|one| one.does.reads);
    let only_reads = |node: &Node| {
        let key = flatten(std::slice::from_ref(node));
        key.into_iter().all(reads)
    };
    nodes.iter().skip(1).any(|node| node.most >= MANY && only_reads(node))
        || nodes.iter().any(|node| matches!(&node.what, What::Loop(body) if n_plus_one(body, statements)))
}
