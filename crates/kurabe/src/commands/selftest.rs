//! `kurabe selftest`: plants known causes or differences, and counts how many are named correctly.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::settings::option_of;
use crate::signals;
use crate::suite::{self, Interleave};
use crate::words::percentage;
use anyhow::Result;
use clap::ArgMatches;
use clap::parser::ValueSource;
use kurabe_core::{Error, units};
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_selftest::{EMBEDDED, causes, differences};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The default rounds of each comparison: as many as in the default run of one cell on two targets.
const ROUNDS: u32 = 16;
/// The time of each separate trial with planted differences.
const SHORT: Duration = Duration::from_millis(60);
/// The same for interleaved trials, for differences of a few per cent.
const LONGER: Duration = Duration::from_millis(300);

pub(super) fn selftest(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let number = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let several = |name: &str| matches.get_many::<String>(name).into_iter().flatten().map(String::as_str);
    let rounds = option_of(matches, "rounds", units::parse_count)?.unwrap_or_default();
    let time = option_of(matches, "duration", units::parse_duration)?.unwrap_or_default();
    if rounds == 0 {
        return Err(Error::usage("--rounds 0 is out of range").hint("use at least 1").into());
    }
    if time.is_zero() {
        return Err(Error::usage("--duration 0 is out of range")
            .hint("use some seconds: --duration 2s")
            .into());
    }
    let engines = kurabe_selftest::engines(&several("engine").collect::<Vec<_>>())?;
    let cancel = signals::watch(exit::INTERRUPTED, output)?;
    let tested = if let Some(text) = matches.get_one::<String>("differences") {
        let slice = match Interleave::parse(number("interleave"))? {
            Interleave::Slices(slice) => Some(slice),
            Interleave::Off => None,
        };
        let separate = matches.get_flag("separate");
        let plan = differences::Plan {
            writes: matches.get_flag("writes"),
            clients: several("clients")
                .map(|text| Ok(units::parse_count(text).map_err(|error| error.context("--clients"))?.max(1)))
                .collect::<Result<_>>()?,
            separate,
            budget: suite::BUDGET * 4,
            records: option_of(matches, "records", units::parse_count)?,
            slice,
            cpu_partition: slice.and_then(|_| CpuPartition::of_this_machine()),
            comparisons: units::parse_count(text)?,
            rounds: match matches.value_source("rounds") {
                Some(ValueSource::CommandLine) => u32::try_from(rounds).unwrap_or(u32::MAX).max(2),
                _ if separate => suite::ROUNDS,
                _ => ROUNDS,
            },
            effect: percentage(number("effect"))?.min(0.5),
            // Short trials suffice for many comparisons, unless the user sets a time.
            time: match matches.value_source("duration") {
                Some(ValueSource::CommandLine) => time,
                _ if slice.is_some() => LONGER,
                _ => SHORT,
            },
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
        let kinds: Vec<&str> = several("kind").collect();
        causes::test(&kinds, rounds, time, &engines, &cancel, output)?
    };
    output.result(&tested.table)?;
    if cancel.load(Ordering::SeqCst) {
        return Ok(exit::INTERRUPTED);
    }
    Ok(if tested.passed { exit::DONE } else { exit::INTERNAL })
}
