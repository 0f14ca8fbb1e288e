//! Proposes what clients do otherwise than the recorded ones: connections that are kept, statements that are prepared, a cache.

use crate::Kind;
use crate::change::{Change, Proposal};
use kurabe_core::units::{count, counted};
use kurabe_experiments::replay::{self, Reports};

/// The smallest share of the requests for which it is proposed.
const SHARE: f64 = 0.1;

/// What the recorded clients could do otherwise.
pub fn proposals(reports: &Reports, kinds: &[Kind]) -> Vec<Proposal> {
    let Reports { connections: [connections, most], unprepared, repeated, requests, .. } = *reports;
    let is_many = |number: u64| number as f64 >= SHARE * requests as f64 && number > 0;
    let of_all = |number| format!("{} of {}", count(number), counted(requests, "request"));
    let all = [
        (
            (Kind::Pool, replay::POOLED, is_many((connections - most) as u64)),
            format!("keep connections open, in a pool of {most}"),
            format!("{} are opened, at most {most} at once", counted(connections as u64, "connection")),
        ),
        (
            (Kind::Prepared, replay::PREPARED, is_many(unprepared)),
            "prepare statements once a connection".to_owned(),
            format!("{} are parsed and planned anew", of_all(unprepared)),
        ),
        (
            (Kind::Cache, replay::CACHE, is_many(repeated)),
            "cache reads".to_owned(),
            format!("{} read outside of transactions what was read before", of_all(repeated)),
        ),
    ];
    let apt = all.into_iter().filter(|((kind, _, is_apt), ..)| *is_apt && kinds.contains(kind));
    let costs = |axis| (axis == replay::CACHE).then(|| "a memcached, which commits have to empty".to_owned());
    apt.map(|((_, axis, _), words, reason)| Proposal {
        change: Change::Client { axis, words },
        reason,
        costs: costs(axis),
    })
    .collect()
}

/// Whether a proposal is a cache.
pub fn needs_cache(proposal: &Proposal) -> bool {
    matches!(proposal.change, Change::Client { axis: replay::CACHE, .. })
}
