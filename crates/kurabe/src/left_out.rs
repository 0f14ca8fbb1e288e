//! What stands in for the fleet, OpenTelemetry and Parquet in a build without them: it refuses.

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

pub(crate) mod push {
    use crate::exit::Exit;
    use crate::output::Output;
    use clap::ArgMatches;
    use kurabe_core::run::Run;
    use kurabe_core::{Error, Result};

    /// The collector of a run, of which there is none.
    pub(crate) enum Collector {}

    /// `None` if the user names no collector.
    pub(crate) fn collector(matches: &ArgMatches) -> Result<Option<Collector>> {
        let url = matches.get_one::<String>("otlp").filter(|url| !url.is_empty());
        url.map(|_| Err(Error::not_built_in("--otlp"))).transpose()
    }

    pub(crate) fn after(collector: Option<&Collector>, _: &Run, _: &Output) {
        if let Some(collector) = collector {
            match *collector {}
        }
    }

    pub(crate) fn push(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
        Err(Error::not_built_in("kurabe runs push").into())
    }
}

pub(crate) mod parquet {
    use kurabe_core::run::Run;
    use kurabe_core::{Error, Result};

    pub(crate) fn render(_: &Run) -> Result<Vec<u8>> {
        Err(refusal())
    }

    pub(super) fn refusal() -> Error {
        Error::not_built_in("--format parquet")
    }
}

#[cfg(test)]
mod tests {
    use super::{fleet, parquet, push};
    use crate::output::Output;
    use crate::{cli, exit};
    use kurabe_core::FULL_BUILD;

    #[test]
    fn what_a_build_lacks_is_refused_with_the_build_that_has_it() {
        let command = |words: &[&str]| cli::command().try_get_matches_from(words).unwrap();
        let run = command(&["kurabe", "run", "--again", "r", "--otlp", "http://localhost:4318"]);
        let without = command(&["kurabe", "run", "--again", "r"]);
        assert!(push::collector(without.subcommand_matches("run").unwrap()).unwrap().is_none());
        let output = Output::new(&without);
        for (error, part) in [
            (fleet::agent(&without, &output).unwrap_err(), "kurabe agent"),
            (fleet::shown("nats://broker").unwrap_err().into(), "--fleet"),
            (push::collector(run.subcommand_matches("run").unwrap()).err().unwrap().into(), "--otlp"),
            (push::push(&without, &output).unwrap_err(), "kurabe runs push"),
            (parquet::refusal().into(), "--format parquet"),
        ] {
            let text = error.to_string();
            assert_eq!(exit::of(&error), exit::USAGE, "{text}");
            assert!(text.contains(&format!("{part} is not built into this program")), "{text}");
            assert!(text.contains(FULL_BUILD), "{text}");
        }
    }
}
