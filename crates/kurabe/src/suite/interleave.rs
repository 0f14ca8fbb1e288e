//! `--interleave`, and the options that it excludes.

use kurabe_core::run::MIN_INTERLEAVED_ROUNDS;
use kurabe_core::{Error, Result, units};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The allowed slice lengths.
const SLICES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);
/// The default slice length.
const DEFAULT: Duration = Duration::from_millis(10);

/// The value of the option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interleave {
    /// Separate trials only.
    Off,
    /// Slices of this length.
    Slices(Duration),
}

impl Interleave {
    /// Reads `off`, or the length of a slice.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let slice =
            units::parse_duration(text).map_err(|error| error.hint("or 'off' for separate trials"))?;
        if SLICES.contains(&slice) {
            return Ok(Self::Slices(slice));
        }
        Err(Error::usage("the slice length is out of range").hint("from 1ms to 10s; 10ms is recommended"))
    }
}

/// The slice length; `None` if trials are not interleaved. `open`: whether the loop is open; `fleet`: whether agents run the
/// clients.
pub(super) fn slice(
    asked: Option<Interleave>,
    rounds: u64,
    open: bool,
    fleet: bool,
) -> Result<Option<Duration>> {
    let enough = rounds >= u64::from(MIN_INTERLEAVED_ROUNDS);
    let slice = match asked {
        Some(Interleave::Off) => return Ok(None),
        None if open || !enough || fleet => return Ok(None),
        None => return Ok(Some(DEFAULT)),
        Some(Interleave::Slices(slice)) => slice,
    };
    if fleet {
        return Err(Error::usage("--interleave cannot be combined with --fleet")
            .hint("agents do not take turns in slices of a few milliseconds"));
    }
    if open {
        return Err(Error::usage("--interleave cannot be combined with --rate")
            .hint("in an open loop transactions are due at any time, not only in a trial's slices"));
    }
    if !enough {
        return Err(Error::usage(format!(
            "--interleave needs at least {MIN_INTERLEAVED_ROUNDS} rounds, not {rounds}"
        ))
        .hint("the first round consists of continuous trials, which are observed"));
    }
    Ok(Some(slice))
}
