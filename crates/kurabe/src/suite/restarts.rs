//! `--restarts`, and the rounds that its blocks need.

use super::Request;
use kurabe_core::run::RunSpec;
use kurabe_core::target::is_throwaway;
use kurabe_core::{Error, Result};

/// The maximum number of restarts.
const MAX: u64 = 1_000;

impl Request {
    /// Adds restarts to the spec, with a number of rounds that can be divided into blocks.
    pub(super) fn with_restarts(&self, mut spec: RunSpec, urls: &[String]) -> Result<RunSpec> {
        let restarts = self.restarts.unwrap_or(0);
        if restarts == 0 {
            return Ok(spec);
        }
        if restarts > MAX {
            let error = Error::usage(format!("--restarts {restarts} is out of range"));
            return Err(error.hint(format!("from 0 to {MAX}")));
        }
        if !urls.iter().any(|url| is_throwaway(url)) {
            return Err(Error::usage(
                "--restarts: no target is a throwaway server, and Kurabe restarts no others",
            )
            .hint("use one, such as up:postgres"));
        }
        spec.restarts = restarts as u32;
        let rounds = spec.rounds_in_blocks(spec.rounds);
        if self.rounds.is_some() && rounds != spec.rounds {
            let least = if spec.slice_ns.is_some() { "3 rounds, one of them continuous" } else { "2 rounds" };
            return Err(Error::usage(format!(
                "{} rounds cannot be divided into {} blocks of equal length of at least {least}",
                spec.rounds,
                spec.blocks()
            ))
            .hint(format!("use --rounds {rounds}")));
        }
        spec.rounds = rounds;
        Ok(spec)
    }
}
