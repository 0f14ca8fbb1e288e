//! E14, a cache in front of the store: reads look into the cache, and on a miss read the store and fill the cache; writes
//! change the store and then deal with the copy in the cache.
//!
//! The cell without a cache is the same work on the store alone, so that the verdict says whether the cache pays. Every
//! read is compared byte for byte with the version that it says it is; and where another version had been acknowledged
//! before it began, it counts as stale.

mod popularity;
mod store;
mod transaction;
mod versions;
mod workload;

use crate::axes::CLIENTS;
use kurabe_core::Result;
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::experiment::{Answer, Dataset, Experiment, ExperimentInfo, OperationInfo};
use kurabe_core::planned::PlannedCell;
use kurabe_core::run::RunSpec;

/// The experiment.
pub(crate) struct CacheAside;

/// The name of the experiment.
pub const NAME: &str = "cache-aside";
/// The name of its operation.
const REQUEST: &str = "request";
/// Records unless the user says otherwise.
const RECORDS: u64 = 10_000;

static INFO: ExperimentInfo = ExperimentInfo {
    name: NAME,
    question: "Does a cache in front of the store pay, how large must it be, and how old is what it answers?",
    about: "Reads records by identifiers, some more popular than others, through a cache (--cache up:memcached): looks \
            there first, on a miss reads the store and fills the cache. A share of the requests are writes, which change \
            the store and then remove the copy in the cache, replace it, or leave it to expire. The room of a throwaway \
            cache is chosen as a share of all records; it starts each trial as full as such requests leave it. Told are \
            hit ratio, what hits and misses cost, what the cache threw out, and how many reads gave an older version than \
            one already acknowledged. Any wrong byte fails the trial. After E14.",
    axes: &[
        AxisInfo {
            name: "room",
            help: "records that the cache has room for, in per cent of all",
            kind: AxisKind::CountOr {
                least: 1,
                most: 1_000,
                words: &[("none", "no cache, the store alone"), ("as-is", "a cache that is there, as it is")],
            },
            default: &["none", "100", "50", "10"],
        },
        AxisInfo {
            name: "after-write",
            help: "what a write does to the copy in the cache",
            kind: AxisKind::Choice(&[
                ("invalidate", "removes it"),
                ("replace", "puts the new version there (write-through)"),
                ("nothing", "leaves it until it expires or is thrown out (--cache with ?ttl=SECONDS)"),
            ]),
            default: &["invalidate"],
        },
        AxisInfo {
            name: "write-share",
            help: "share of requests that are writes",
            kind: AxisKind::Percent { least: 0, most: 100 },
            default: &["5%"],
        },
        AxisInfo {
            name: "skew",
            help: "how much more popular some records are: 100 times the exponent of Zipf's law, 0 where all are alike",
            kind: AxisKind::Count { least: 0, most: 400 },
            default: &["99"],
        },
        AxisInfo {
            name: "payload",
            help: "bytes of one record",
            kind: AxisKind::Size { least: 16, most: 900_000 },
            default: &["1k"],
        },
        AxisInfo { default: &["4"], ..CLIENTS },
    ],
    operations: &[OperationInfo {
        name: REQUEST,
        about: "read a record through the cache, or change one",
        requests: 20_000,
        writes: true,
    }],
    chart_axis: "clients",
    answer: Answer::Cost("room"),
    published: None,
};

impl Experiment for CacheAside {
    fn info(&self) -> &'static ExperimentInfo {
        &INFO
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        workload::CacheWorkload::plan(cell, dataset)
    }
}

/// A cache that a run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheWish {
    /// What stands in the names of its collections.
    pub name: String,
    /// Values that it must have room for, and the bytes of each; `None`: it is taken as it is.
    pub room: Option<(u64, u64)>,
}

/// The caches that a run of this experiment needs: one for each room, so that none has to be started anew between trials.
pub fn wishes(spec: &RunSpec) -> Vec<CacheWish> {
    let numbers = |axis: &str| spec.axes.get(axis).into_iter().flatten();
    let largest = numbers("payload").filter_map(|value| match value {
        AxisValue::Number(n) => Some(*n),
        AxisValue::Word(_) => None,
    });
    let payload = largest.max().unwrap_or_default();
    let records = spec.records.unwrap_or(RECORDS);
    numbers("room")
        .filter_map(|room| {
            let name = cache_name(room)?;
            let room = match room {
                AxisValue::Number(percent) => Some(((records * percent).div_ceil(100), payload)),
                AxisValue::Word(_) => None,
            };
            Some(CacheWish { name, room })
        })
        .collect()
}

/// The name of the cache of a room; none where there is no cache.
fn cache_name(room: &AxisValue) -> Option<String> {
    match room {
        AxisValue::Number(percent) => Some(percent.to_string()),
        AxisValue::Word(word) if word == "none" => None,
        AxisValue::Word(word) => Some(word.replace('-', "_")),
    }
}
