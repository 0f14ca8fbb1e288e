//! E8, one database reads another's table.
//!
//! The table is read in ranges of its key, from its first row to its last and again. Two baselines are read in the same
//! run: a table of the target itself, and the remote's table by Kurabe's own client.

mod content;
mod info;
mod workload;

use crate::prelude::*;

pub(crate) static LINK: Experiment =
    Experiment { takes_remote: true, ..Experiment::new(&info::INFO, &workload::LinkWorkload::plan) };
