//! `kurabe selftest`: plants known causes or differences, and counts how many are named correctly.

use crate::exit::{self, Exit};
use crate::options::{Sourced, options, parsed};
use crate::output::Output;
use crate::signals;
use crate::suite;
use crate::words::percentage;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::{Error, units};
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_selftest::{EMBEDDED, causes, differences};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The default rounds of each comparison: as many as in the default run of one cell on two targets.
const ROUNDS: u32 = 16;
/// The time of each trial with planted differences of a few per cent.
const SHORT: Duration = Duration::from_millis(300);

options! {
    /// The options of `kurabe selftest`.
    SelftestOptions {
        engine: Vec<String>,
        kind: Vec<String>,
        rounds: Sourced<Option<String>>,
        differences: Option<String>,
        budget: Option<String>,
        clients: Vec<String>,
        separate: bool,
        records: Option<String>,
        writes: bool,
        effect: Option<String>,
        duration: Sourced<Option<String>>,
    }
}

pub(super) fn selftest(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let options = SelftestOptions::of(matches);
    let rounds = parsed("rounds", options.rounds.value.as_ref(), units::parse_count)?.unwrap_or_default();
    let time =
        parsed("duration", options.duration.value.as_ref(), units::parse_duration)?.unwrap_or_default();
    if rounds == 0 {
        return Err(Error::usage("--rounds 0 is out of range").hint("use at least 1").into());
    }
    if time.is_zero() {
        return Err(Error::usage("--duration 0 is out of range")
            .hint("use some seconds: --duration 2s")
            .into());
    }
    let engines = kurabe_selftest::engines(&words(&options.engine))?;
    let cancel = signals::watch(exit::INTERRUPTED, output)?;
    let tested = if let Some(text) = &options.differences {
        let separate = options.separate;
        let plan = differences::Plan {
            writes: options.writes,
            clients: options
                .clients
                .iter()
                .map(|text| Ok(units::parse_count(text).map_err(|error| error.context("--clients"))?.max(1)))
                .collect::<Result<_>>()?,
            separate,
            budget: parsed("budget", options.budget.as_ref(), units::parse_duration)?
                .unwrap_or(suite::BUDGET * 2),
            records: parsed("records", options.records.as_ref(), units::parse_count)?,
            slice: suite::DEFAULT_SLICE,
            cpu_partition: CpuPartition::of_this_machine(),
            comparisons: units::parse_count(text)?,
            rounds: match separate {
                _ if options.rounds.is_given() => u32::try_from(rounds).unwrap_or(u32::MAX).max(2),
                true => suite::ROUNDS,
                false => ROUNDS,
            },
            effect: percentage(options.effect.as_deref().unwrap_or_default())?.min(0.5),
            // Short trials suffice for many comparisons, unless the user sets a time.
            time: if options.duration.is_given() { time } else { SHORT },
        };
        if plan.comparisons == 0 {
            return Err(Error::usage("--differences 0 is out of range").into());
        }
        if separate && engines.iter().any(|engine| engine.name == EMBEDDED) {
            return Err(Error::usage(format!("--separate: {EMBEDDED} has no server"))
                .hint("name the engines, as in: kurabe selftest postgres mariadb")
                .into());
        }
        differences::test(&plan, &engines, &cancel, output)
    } else {
        causes::test(&words(&options.kind), rounds, time, &engines, &cancel, output)?
    };
    output.result(&tested.table)?;
    if cancel.load(Ordering::SeqCst) {
        return Ok(exit::INTERRUPTED);
    }
    Ok(if tested.passed { exit::DONE } else { exit::INTERNAL })
}

fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}
