//! What the experiment asks, what it varies and what it reports.

use crate::axes::{CLIENTS, writes};
use crate::metrics::{count, time};
use crate::prelude::*;

const REQUEST: &str = "request";
/// More than the memory of a throwaway server holds, which starts with little for this experiment.
pub(super) const RECORDS: u64 = 15_000;

pub(super) const fn share(name: &'static str, better: Better, about: &'static str) -> Metric {
    Metric::new(name, Unit::Share, better, about)
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
const METRICS: &[Metric] = &[
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

pub(super) static INFO: ExperimentInfo = ExperimentInfo {
    name: "cache-aside",
    question: "Does a cache in front of the store pay, how large must it be, and how stale are its answers?",
    about: "Reads records by identifiers, some more popular than others, through a cache (--cache \
            up:memcached): it looks there first, and on a miss reads the store and fills the cache. A share \
            of the requests are writes, which change the store and then remove the copy in the cache, \
            replace it, or leave it to expire. The size of a throwaway cache is chosen as a share of all \
            records; it starts each trial as full as such requests leave it. It reports the hit ratio, what hits \
            and misses cost, what the cache evicted, and how many reads returned an older version than one \
            already acknowledged. By default the store does not fit its server's memory: 15,000 records of 1 kB on a \
            throwaway MySQL, MariaDB or PostgreSQL that caches 6 MB; its own setting changes that: \
            'up:mysql?innodb_buffer_pool_size=128M'. Any wrong byte fails the trial. As in the published experiments.",
    axes: &[
        AxisInfo::new(
            "cache-size",
            "records that the cache can hold, in per cent of all",
            AxisKind::percent(1, 1_000)
                .or(&[("none", "no cache, the store alone"), ("as-is", "an existing cache, unchanged")]),
            &["none", "100%", "50%", "10%"],
        ),
        AxisInfo::new(
            "after-write",
            "what a write does to the copy in the cache",
            AxisKind::choice(&[
                ("invalidate", "removes it"),
                ("replace", "stores the new version there (write-through)"),
                ("nothing", "leaves it until it expires or is evicted (--cache with ?ttl=SECONDS)"),
            ]),
            &["invalidate"],
        ),
        AxisInfo::new("write-share", "share of requests that are writes", AxisKind::percent(0, 100), &["5%"]),
        AxisInfo::new(
            "zipf",
            "skew of the records' popularity: the exponent of Zipf's law; 0 means equal popularity",
            AxisKind::decimal(4),
            &["0.99"],
        ),
        AxisInfo::new("payload", "bytes of one record", AxisKind::size(16, 900_000), &["1k"]),
        AxisInfo { default: &["4"], ..CLIENTS },
    ],
    operations: &[writes(REQUEST, "read a record through the cache, or change one", 20_000)],
    metrics: METRICS,
    chart_axis: "clients",
    answer: Answer::Metrics,
    published: None,
};
