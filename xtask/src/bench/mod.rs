//! `cargo xtask bench NAME`: reproduces the numbers in the documentation. Each prints its tables.
//!
//! `overhead`: what the tool itself costs per operation (the same as `cargo bench -p kurabe-engine`).
//! `aa [REPEATS] [EXPERIMENT TARGET TARGET OPTIONS …]`: how often a run calls one of two identical targets faster.
//! `aa --tools [--pairs N] [--engines LIST]`: the same for single runs of pgbench or sysbench, compared with ours.
//! `advise`: what `kurabe advise` finds of what was planted, and what it calls a gain where nothing helps.
//! `build [--base REV] [--features LIST]`: the release build from nothing, at a commit and now.
//! `gate`: how often a gate finds a planted slowdown, and fails without one, beside other load.
//! `engines`: every experiment on every engine, as docs/engines.md.
//! `drivers`: what drivers of other languages send before the first own statement.
//!
//! Those of programs that take turns ([`contest`]); each has a description in its file:
//! `app`: what the web tier itself costs for a request.
//! `bulk`: the client's CPU time to read a whole table, beside psql and mariadb.
//! `copy`: a table copied from MySQL to PostgreSQL, beside pgloader.
//! `fleet`: the rate of one agent of a fleet beside that of a run without a fleet; and what 1,000 simulated agents cost.
//! `net`: experiment net beside iperf3.
//! `profiles`: the program as people build it, beside the published one.
//! `peers`: point reads beside sysbench, pgbench and memcaslap.
//! `stacks`: the rate of application stacks, beside ab.
//! `suites`: whole transactions compared with pgbench and sysbench: traffic, and transactions per second.

mod aa;
mod advise;
mod app;
mod build;
mod bulk;
mod capture;
mod contest;
mod copy;
mod csv;
pub mod drivers;
mod engines;
mod fleet;
mod floor;
mod gate;
mod net;
pub(crate) mod options;
mod pairs;
mod peers;
mod process;
mod profiles;
pub(crate) mod run;
mod server;
mod serving;
mod stacks;
mod suites;

use crate::shell::Outcome;

type Benchmark = fn(&[String]) -> Outcome;

/// The benchmarks, by name.
const ALL: [(&str, Benchmark); 17] = [
    ("overhead", |_| run::cargo(&["bench", "--package", "kurabe-engine", "--bench", "overhead"])),
    ("aa", aa::run),
    ("advise", advise::run),
    ("app", app::run),
    ("build", build::run),
    ("bulk", bulk::run),
    ("capture", capture::run),
    ("copy", copy::run),
    ("drivers", drivers::run),
    ("engines", engines::run),
    ("fleet", fleet::run),
    ("gate", gate::run),
    ("net", net::run),
    ("peers", peers::run),
    ("profiles", profiles::run),
    ("stacks", stacks::run),
    ("suites", suites::run),
];

pub fn run(args: &[String]) -> Outcome {
    let found = args
        .split_first()
        .and_then(|(name, rest)| Some((ALL.iter().find(|(known, _)| known == name)?, rest)));
    let Some(((_, run), rest)) = found else {
        return Err(format!("unknown benchmark; there are: {}", ALL.map(|(name, _)| name).join(", ")));
    };
    run(rest)
}
