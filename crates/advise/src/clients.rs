//! Proposes what clients do otherwise than the recorded ones: connections that are kept, statements that are prepared, a cache.

use crate::Kind;
use crate::change::Change;
use crate::proposal::Proposal;
use kurabe_core::units::{count, counted};
use kurabe_experiments::replay::{self, Reports};

/// The smallest share of the requests for which it is proposed.
const SHARE: f64 = 0.1;

/// What the recorded clients could do otherwise.
pub fn proposals(reports: &Reports, kinds: &[Kind]) -> Vec<Proposal> {
    let Reports { connections: [connections, most], unprepared, repeated, requests, .. } = *reports;
    let is_many = |number: u64| number as f64 >= SHARE * requests as f64 && number > 0;
    let of_all = |number| format!("{} of {}", count(number), counted(requests, "request"));
    let pool = (
        Kind::Pool,
        is_many((connections - most) as u64),
        replay::POOLED,
        format!("keep connections open, in a pool of {most}"),
        format!("{} are opened, at most {most} at once", counted(connections as u64, "connection")),
        None,
    );
    let prepared = (
        Kind::Prepared,
        is_many(unprepared),
        replay::PREPARED,
        "prepare each statement once a connection".to_owned(),
        format!("{} are parsed and planned anew", of_all(unprepared)),
        None,
    );
    let cache = (
        Kind::Cache,
        is_many(repeated),
        replay::CACHE,
        "cache reads outside of transactions, until a commit changes their tables".to_owned(),
        format!("{} read again what was read before", of_all(repeated)),
        Some(
            "a server of memcached, and of each change that it empties the cache of what it makes wrong"
                .to_owned(),
        ),
    );
    let all =
        [pool, prepared, cache].into_iter().filter(|(kind, is_apt, ..)| *is_apt && kinds.contains(kind));
    all.map(|(.., axis, words, reason, costs)| Proposal {
        change: Change::Client { axis, words },
        reason,
        costs,
    })
    .collect()
}

/// Whether a proposal is a cache.
pub fn needs_cache(proposal: &Proposal) -> bool {
    matches!(proposal.change, Change::Client { axis: replay::CACHE, .. })
}
