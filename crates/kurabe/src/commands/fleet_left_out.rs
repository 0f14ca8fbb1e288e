//! What stands in for the fleet in a build without it: it refuses.

use crate::exit::Exit;
use crate::output::Output;
use crate::targets::Opened;
use clap::ArgMatches;
use kurabe_core::fleet::AgentRecord;
use kurabe_core::run::RunSpec;
use kurabe_core::{Error, Result};
use kurabe_engine::fleet::{Fleet, Order, Started};
use kurabe_engine::trial::Failure;
use std::sync::atomic::AtomicBool;

/// The agents of a run, of which there are none.
pub(super) enum Agents {}

impl Agents {
    pub(super) fn records(&self) -> Vec<AgentRecord> {
        match *self {}
    }
}

impl Fleet for Agents {
    fn begin(&self, _: &Order, _: &AtomicBool) -> Result<Box<dyn Started + '_>, Failure> {
        match *self {}
    }

    fn go_on_without_lost(&self) -> Option<String> {
        match *self {}
    }
}

pub(crate) fn shown(_: &str) -> Result<String> {
    Err(Error::not_built_in("--fleet"))
}

/// `None` for a run without a fleet. A recorded run may have had one.
pub(super) fn join(spec: &RunSpec, _: Option<&str>, _: bool, _: &Output) -> Result<Option<Agents>> {
    spec.fleet.as_ref().map(|_| Err(Error::not_built_in("--fleet"))).transpose()
}

pub(super) fn reach(agents: Agents, _: &mut Opened, _: &Output) -> Agents {
    agents
}

pub(super) fn agent(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
    Err(Error::not_built_in("kurabe agent").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli, exit};
    use kurabe_core::FULL_BUILD;

    #[test]
    fn fleet_is_refused_with_the_build_that_has_it() {
        let matches = cli::command().try_get_matches_from(["kurabe", "agent", "--stdio"]).unwrap();
        let error = agent(&matches, &Output::new(&matches)).unwrap_err();
        assert_eq!(exit::of(&error), exit::USAGE);
        for (text, part) in [
            (error.to_string(), "kurabe agent"),
            (shown("nats://broker").unwrap_err().to_string(), "--fleet"),
        ] {
            assert!(text.contains(&format!("{part} is not built into this program")), "{text}");
            assert!(text.contains(FULL_BUILD), "{text}");
        }
    }
}
