//! What stands in for the fleet in a build without it: it refuses.

pub(crate) mod fleet {
    use crate::exit::Exit;
    use crate::output::Output;
    use clap::ArgMatches;
    use kurabe_core::fleet::AgentRecord;
    use kurabe_core::run::RunSpec;
    use kurabe_core::{Error, Result};
    use kurabe_engine::fleet::{Fleet, Order, Started};
    use kurabe_engine::trial::Failure;
    use kurabe_targets::Opened;
    use std::sync::atomic::AtomicBool;

    /// The agents of a run, of which there are none.
    pub(crate) enum Agents {}

    impl Agents {
        pub(crate) fn records(&self) -> Vec<AgentRecord> {
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
    pub(crate) fn join(spec: &RunSpec, _: Option<&str>, _: bool, _: &Output) -> Result<Option<Agents>> {
        spec.fleet.as_ref().map(|_| Err(Error::not_built_in("--fleet"))).transpose()
    }

    pub(crate) fn reach(agents: Agents, _: &mut Opened, _: &Output) -> Agents {
        agents
    }

    pub(crate) fn agent(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
        Err(Error::not_built_in("kurabe agent").into())
    }
}

#[cfg(test)]
mod tests {
    use super::fleet;
    use crate::output::Output;
    use crate::{cli, exit};
    use kurabe_core::FULL_BUILD;

    #[test]
    fn what_a_build_lacks_is_refused_with_the_build_that_has_it() {
        let without = cli::command().try_get_matches_from(["kurabe", "run", "--again", "r"]).unwrap();
        let output = Output::new(&without);
        for (error, part) in [
            (fleet::agent(&without, &output).unwrap_err(), "kurabe agent"),
            (fleet::shown("nats://broker").unwrap_err().into(), "--fleet"),
        ] {
            let text = error.to_string();
            assert_eq!(exit::of(&error), exit::USAGE, "{text}");
            assert!(text.contains(&format!("{part} is not built into this program")), "{text}");
            assert!(text.contains(FULL_BUILD), "{text}");
        }
    }
}
