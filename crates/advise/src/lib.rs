//! What would make an application's traffic faster, proven: `kurabe advise`.
//!
//! [`shapes`] says what statements ask of their tables, [`indexes`], [`settings`] and [`clients`] propose changes, [`search`] tries them by halving and
//! confirms the best, [`bench`](mod@bench) measures for it on throwaway servers, [`decide`] says what is a gain, and [`advice`] has the answer.

pub mod advice;
pub mod bench;
pub mod change;
pub mod clients;
pub mod decide;
pub mod indexes;
pub mod search;
pub mod settings;
pub mod shapes;
mod table;

use advice::Advice;
use bench::Bench;
use indexes::Known;
use kurabe_capture::statements::statements;
use kurabe_copy::engines;
use kurabe_core::target::{SETUP, TargetUrl, UP};
use kurabe_core::{Error, Result};
use kurabe_experiments::replay;
use kurabe_targets::Reporter;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub use table::{costs, factor, share};

/// What is asked for.
pub struct AdviceRequest<'a> {
    pub capture: &'a Path,
    /// The throwaway server, such as `up:postgres`.
    pub target: &'a str,
    /// A file with schema and data, or `copy:URL`.
    pub data: Option<&'a str>,
    /// What is tried, of [`KINDS`].
    pub kinds: &'a [Kind],
    /// How long it may take, about.
    pub budget: Duration,
}

/// A kind of proposals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Indexes,
    Settings,
    /// Connections that are kept, where the recording opens one after the other.
    Pool,
    /// Statements that are prepared, where the recording has none.
    Prepared,
    /// A cache of reads in front of the server.
    Cache,
    /// Settings that change what an acknowledged write survives.
    Durability,
}

/// The kinds of proposals, by the words that ask for them.
pub const KINDS: [(&str, Kind); 6] = [
    ("indexes", Kind::Indexes),
    ("settings", Kind::Settings),
    ("pool", Kind::Pool),
    ("prepared", Kind::Prepared),
    ("cache", Kind::Cache),
    ("durability", Kind::Durability),
];

/// MariaDB among the engines that the testbed starts.
const MARIADB: &str = "mariadb";
/// The most indexes that are tried.
const INDEXES: usize = 24;

/// Says what would make the traffic of a capture faster. What is known when the user stops it is returned.
///
/// # Errors
/// If the target is no throwaway server of the capture's protocol, or the capture cannot be replayed there with these data.
pub fn advise(request: &AdviceRequest<'_>, cancel: &AtomicBool, reporter: &dyn Reporter) -> Result<Advice> {
    let began = Instant::now();
    let url = TargetUrl::parse(request.target)?;
    refuse(&url, request.data)?;
    let mut around =
        replay::Around { write: true, restored: true, throwaway: true, halves: true, ..Default::default() };
    let workload = replay::workload(request.capture, around)?;
    let engine_name = kurabe_targets::engine(&url).to_owned();
    let schemes = replay::schemes(&workload)?;
    if !schemes.contains(&engine_name.as_str()) {
        return Err(Error::usage(format!("{url} cannot replay {}", request.capture.display())).hint(
            format!(
                "it is of one of: {}",
                schemes.iter().map(|name| format!("up:{name}")).collect::<Vec<_>>().join(", ")
            ),
        ));
    }
    let engine = engines::of_scheme(&engine_name).map_err(|_| {
        Error::unsupported(format!("there is no advice for {engine_name}"))
            .hint("there is for up:postgres, up:mysql and up:mariadb")
    })?;
    let reports = replay::reports(&workload)?;
    let asked = statements(request.capture)?;
    let mut bench = Bench {
        url: request.target,
        is_mariadb: engine_name == MARIADB,
        engine,
        data: request.data,
        workload,
        reports,
        proposals: Vec::new(),
        budget: request.budget,
        began,
        cancel,
        reporter,
        pace: None,
        costs: Vec::new(),
        replays: 0,
    };
    let database = bench.schemas()?;
    let dialect = asked.language.dialect();
    let shapes: Vec<_> = asked.all.iter().map(|one| shapes::shapes(one, dialect, &database.tables)).collect();
    let known = Known {
        engine,
        has_expressions: engine_name != MARIADB,
        dialect,
        schemas: &database,
        asked: &asked.all,
        shapes: &shapes,
    };
    let has = |kind| request.kinds.contains(&kind);
    if has(Kind::Indexes) {
        bench.proposals.extend(indexes::missing(&known).into_iter().take(INDEXES));
        bench.proposals.extend(indexes::unused(&known));
    }
    bench.proposals.extend(clients::proposals(&bench.reports, request.kinds));
    if bench.proposals.iter().any(clients::needs_cache) {
        around.throwaway_cache = Some(true);
        bench.workload = replay::workload(request.capture, around)?;
    }
    let of_settings = if change::is_postgres(engine) { "postgres" } else { "mysql" };
    for (kind, durability) in [(Kind::Settings, false), (Kind::Durability, true)] {
        if has(kind) {
            bench.proposals.extend(settings::settings(of_settings, &url, durability)?);
        }
    }
    reporter.note(&format!(
        "trying {} proposals on throwaway servers, for about {}",
        bench.proposals.len(),
        kurabe_core::units::time(request.budget)
    ));
    let proposals = bench.proposals.len();
    let found = search::search(&mut bench, proposals);
    match found.ended {
        // Nothing is known: why is the answer.
        Some(error) if found.states.iter().all(|state| *state == search::ProposalState::NotTried) => {
            Err(error)
        }
        _ => Ok(Advice::new(request, &asked, &bench, found)),
    }
}

/// Refuses what is no throwaway server, or has no data.
fn refuse(url: &TargetUrl, data: Option<&str>) -> Result<()> {
    if url.scheme != UP {
        return Err(Error::usage(format!("{url} is no throwaway server: advice makes indexes and changes settings, and never on a server of yours"))
            .hint("write up:postgres with --data shop.sql, or with --data copy:URL, which only reads yours"));
    }
    if data.is_none() && url.option(SETUP).is_none() {
        return Err(Error::usage(format!("{url} has no data")).hint(
            "add --data FILE with a dump from when the capture began, or --data copy:URL; without rows every index is useless",
        ));
    }
    Ok(())
}
