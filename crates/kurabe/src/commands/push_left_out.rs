//! What stands in for OpenTelemetry in a build without it: it refuses.

use crate::exit::Exit;
use crate::output::Output;
use clap::ArgMatches;
use kurabe_core::run::Run;
use kurabe_core::{Error, Result};

/// The collector of a run, of which there is none.
pub(super) enum Collector {}

/// `None` if the user names no collector.
pub(super) fn collector(matches: &ArgMatches) -> Result<Option<Collector>> {
    let url = matches.get_one::<String>("otlp").filter(|url| !url.is_empty());
    url.map(|_| Err(Error::not_built_in("--otlp"))).transpose()
}

pub(super) fn after(collector: Option<&Collector>, _: &Run, _: &Output) {
    if let Some(collector) = collector {
        match *collector {}
    }
}

pub(super) fn push(_: &ArgMatches, _: &Output) -> anyhow::Result<Exit> {
    Err(Error::not_built_in("kurabe runs push").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli, exit};
    use kurabe_core::FULL_BUILD;

    #[test]
    fn collector_and_push_are_refused_with_the_build_that_has_them() {
        let command = |words: &[&str]| cli::command().try_get_matches_from(words).unwrap();
        let run = command(&["kurabe", "run", "--again", "r", "--otlp", "http://localhost:4318"]);
        let error = collector(run.subcommand_matches("run").unwrap()).err().unwrap();
        assert_eq!(exit::of(&error.clone().into()), exit::USAGE);
        let text = error.to_string();
        assert!(text.contains("--otlp is not built into") && text.contains(FULL_BUILD), "{text}");
        let without = command(&["kurabe", "run", "--again", "r"]);
        assert!(collector(without.subcommand_matches("run").unwrap()).unwrap().is_none());

        let words = ["kurabe", "runs", "push", "r", "--otlp", "http://localhost:4318"];
        let matches = command(&words);
        let error = push(&matches, &Output::new(&matches)).unwrap_err();
        assert_eq!(exit::of(&error), exit::USAGE);
        assert!(error.to_string().contains(FULL_BUILD), "{error}");
    }
}
