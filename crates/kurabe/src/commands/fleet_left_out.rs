//! What stands in for the fleet in a build without it: it refuses.

use crate::exit::Exit;
use crate::output::Output;
use crate::targets::Opened;
use clap::ArgMatches;
use kurabe_core::experiment::ExperimentInfo;
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

/// No worker starts this program.
#[expect(clippy::unnecessary_wraps, reason = "as in a build with the fleet")]
pub(super) fn end_with_worker() -> Result<()> {
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "as in a build with the fleet")]
pub(super) fn check_submitted(_: &RunSpec, _: &ExperimentInfo) -> Result<()> {
    Ok(())
}

pub(super) fn agent(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
    Err(Error::not_built_in("kurabe agent").into())
}

pub(super) fn submit(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
    Err(Error::not_built_in("kurabe submit").into())
}

pub(super) fn list(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
    Err(Error::not_built_in("kurabe runs ls --broker").into())
}

pub(super) fn fetch(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
    Err(Error::not_built_in("kurabe runs fetch").into())
}

pub(super) fn cancel(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
    Err(Error::not_built_in("kurabe runs cancel").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli, exit};
    use kurabe_core::FULL_BUILD;

    #[test]
    fn every_command_of_the_fleet_is_refused_with_the_build_that_has_it() {
        let command = |words: &[&str]| cli::command().try_get_matches_from(words).unwrap();
        let refused = |words: &[&str], execute: fn(&ArgMatches, &Output) -> anyhow::Result<Exit>| {
            let matches = command(words);
            let output = Output::new(&matches);
            let error = execute(&matches, &output).unwrap_err();
            assert_eq!(exit::of(&error), exit::USAGE, "{words:?}");
            let text = error.to_string();
            assert!(text.contains("is not built into this program") && text.contains(FULL_BUILD), "{text}");
            text
        };
        let url = "nats://broker:4222";
        assert!(refused(&["kurabe", "agent", "--stdio"], agent).contains("kurabe agent"));
        assert!(refused(&["kurabe", "submit", "s.toml", "--broker", url], submit).contains("submit"));
        assert!(refused(&["kurabe", "runs", "ls", "--broker", url], list).contains("runs ls --broker"));
        assert!(refused(&["kurabe", "runs", "fetch", "r", "--broker", url], fetch).contains("fetch"));
        assert!(refused(&["kurabe", "runs", "cancel", "r", "--broker", url], cancel).contains("cancel"));
        let error = shown(url).unwrap_err().to_string();
        assert!(error.contains("--fleet is not built") && error.contains(FULL_BUILD), "{error}");
        end_with_worker().unwrap();
    }
}
