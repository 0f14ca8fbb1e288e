//! E14, a cache in front of the store.
//!
//! Every read is compared byte for byte with the version that it claims to be. A read counts as stale if a newer
//! version had been acknowledged before the read began.

mod info;
mod popularity;
mod store;
mod transaction;
mod workload;

use crate::prelude::*;
use info::INFO;

pub(crate) static CACHE_ASIDE: Experiment =
    Experiment { takes_cache: true, ..Experiment::new(&INFO, &workload::CacheWorkload::plan) };
