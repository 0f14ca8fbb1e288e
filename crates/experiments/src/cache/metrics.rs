//! The metrics of a `cache-aside` trial.

use crate::prelude::*;

const fn share(name: &'static str, better: Better, about: &'static str) -> Metric {
    Metric::new(name, Unit::Share, better, about)
}

const fn time(name: &'static str, about: &'static str) -> Metric {
    Metric::new(name, Unit::Nanoseconds, Better::Lower, about)
}

const fn count(name: &'static str, about: &'static str) -> Metric {
    Metric::new(name, Unit::Count, Better::Neither, about)
}

pub(super) const HIT_RATIO: Metric =
    share("hit ratio", Better::Higher, "share of reads that the cache answered").primary();
pub(super) const STALE_SHARE: Metric =
    share("stale share", Better::Lower, "stale reads as a share of all reads").primary();
pub(super) const HITS_REPORTED: Metric =
    share("server-reported", Better::Neither, "the hit ratio that the cache itself reports");
pub(super) const HIT: Metric = time("hit", "mean time of a read that the cache answered");
pub(super) const MISS: Metric =
    time("miss", "mean time of a read that missed: cache lookup, store read, cache fill");
pub(super) const CHANGE: Metric = time("change", "mean time to change a record in the store");
pub(super) const AFTER_CHANGE: Metric =
    time("then cache", "mean time to remove or replace its copy in the cache");
pub(super) const STALE: Metric = count(
    "stale",
    "reads in a trial that returned an older version than one whose write had been acknowledged before they \
     began",
);
pub(super) const EVICTIONS: Metric = count("evictions", "values that the cache evicted in a trial");
pub(super) const REFUSED: Metric =
    count("refused", "copies that the cache refused to store for lack of free memory");
pub(super) const CACHED: Metric = count("cached", "values in the cache at the end");

/// All metrics, in the order in which reports show them.
pub(super) const ALL: &[Metric] = &[
    Metric::cost("cache-size", "time per request beyond that without a cache"),
    HIT_RATIO,
    HITS_REPORTED,
    HIT,
    MISS,
    CHANGE,
    AFTER_CHANGE,
    STALE,
    STALE_SHARE,
    EVICTIONS,
    REFUSED,
    CACHED,
];
