//! `--restarts`, and the rounds that its blocks need.

use super::Request;
use crate::targets::UP;
use kurabe_core::run::RunSpec;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};

/// The maximum number of restarts.
const MOST: u64 = 1_000;

impl Request {
    /// Adds restarts to the spec, with a number of rounds that can be divided into blocks.
    pub(super) fn with_restarts(&self, mut spec: RunSpec, urls: &[String]) -> Result<RunSpec> {
        let restarts = self.restarts.unwrap_or(0);
        if restarts == 0 {
            return Ok(spec);
        }
        if restarts > MOST {
            let error = Error::usage(format!("--restarts {restarts} is out of range"));
            return Err(error.hint(format!("from 0 to {MOST}")));
        }
        if spec.until.is_some() {
            return Err(Error::usage("--restarts cannot be combined with --until")
                .hint("blocks of equal length need a fixed number of rounds"));
        }
        let is_throwaway = |url: &String| TargetUrl::parse(url).is_ok_and(|url| url.scheme == UP);
        if !urls.iter().any(is_throwaway) {
            return Err(Error::usage(
                "--restarts: no target is a throwaway server, and Kurabe restarts no others",
            )
            .hint("use one, such as up:postgres"));
        }
        spec.restarts = restarts as u32;
        let rounds = spec.rounds_in_blocks(spec.rounds);
        if self.rounds.is_some() && rounds != spec.rounds {
            let first = if spec.slice_ns.is_some() { " after the first, which is not compared" } else { "" };
            return Err(Error::usage(format!(
                "{} rounds cannot be divided into {} blocks of equal length of at least 2 rounds{first}",
                spec.rounds,
                spec.blocks()
            ))
            .hint(format!("use --rounds {rounds}")));
        }
        spec.rounds = rounds;
        Ok(spec)
    }
}
