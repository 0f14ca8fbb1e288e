//! All experiments. The help, the documentation and the test matrix are generated from this list.

use crate::prelude::*;
use kurabe_core::run::RunSpec;

/// All experiments, in the order in which they are listed.
pub static EXPERIMENTS: &[&Experiment] = &[
    &crate::session::SESSION,
    &crate::kv::KV,
    &crate::point::POINT_READ,
    &crate::point::POINT_WRITE,
    &crate::bind::BIND,
    &crate::connect::CONNECT,
    &crate::webapp::WEBAPP,
    &crate::footprint::FOOTPRINT,
    &crate::cache::CACHE_ASIDE,
    &crate::link::LINK,
    &crate::net::NET,
    &crate::reload::RELOAD,
    &crate::bulk::BULK,
    &crate::estimate::ESTIMATE,
    &crate::cpus::SCALING,
    &crate::copy::COPY,
];

/// The experiment that a run's spec names: a built-in one, or a custom workload.
pub fn of(spec: &RunSpec) -> Result<&'static Experiment> {
    spec.custom.as_ref().map_or_else(|| find(&spec.experiment), crate::custom::experiment)
}

/// The experiment of this name.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the nearest name, or all names.
pub fn find(name: &str) -> Result<&'static Experiment> {
    // The text may be a command of another program, with a password.
    if let Some((first, _)) = name.split_once(' ') {
        let is_word = first.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let shown = if is_word { format!("'{first} …'") } else { "a text with spaces".to_owned() };
        return Err(Error::usage(format!("{shown} is no experiment"))
            .hint("statements are in a file: kurabe run pgbench -f FILE.sql TARGET"));
    }
    let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.info.name).collect();
    crate::custom::position(name, &names, "experiment").map(|found| EXPERIMENTS[found])
}
