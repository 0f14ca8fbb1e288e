//! `kurabe list`: experiments and targets, from the registries.

use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::{FULL_BUILD, units};
use kurabe_drivers::registry::{DRIVERS, LEFT_OUT};
use kurabe_experiments::registry::EXPERIMENTS;
use std::fmt::Write;

options! {
    /// The options of `kurabe list`.
    ListOptions { all: bool }
}

pub(super) fn list(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let text = if ListOptions::of(matches).all { experiments() + "\n" + &targets() } else { brief() };
    output.list(&(text + &left_out()))?;
    Ok(exit::DONE)
}

/// A line for each experiment, and the kinds of targets.
fn brief() -> String {
    let mut text = String::from("Experiments: kurabe run NAME [TARGET…]\n");
    for experiment in EXPERIMENTS {
        let _ = writeln!(text, "  {:<12} {}", experiment.info.name, experiment.info.question);
    }
    let _ = writeln!(text, "  {:<12} How fast do pgbench scripts run on each database?", "pgbench");
    let _ = writeln!(text, "  {:<12} A workload of your own", "-f FILE.toml");
    let found = kurabe_testbed::available();
    let (here, missing): (Vec<_>, Vec<_>) = found.iter().partition(|(_, found)| found.is_ok());
    let names = |engines: &[&(&str, _)]| {
        engines.iter().map(|(name, _)| format!("up:{name}")).collect::<Vec<_>>().join(" ")
    };
    let urls: Vec<&str> = DRIVERS.iter().map(|driver| driver.schemes[0]).collect();
    let _ = writeln!(text, "Targets:\n  a URL        {}:", urls.join(": "));
    let _ = writeln!(text, "  throwaway    {}", names(&here));
    if !missing.is_empty() {
        let _ =
            writeln!(text, "  missing      {} ('kurabe list --all' says what to install)", names(&missing));
    }
    text + "'kurabe list --all' has the axes, operations and options.\n"
}

/// All experiments with their axes and operations.
fn experiments() -> String {
    let mut text = String::from("Experiments (kurabe run NAME [TARGET…])\n");
    for experiment in EXPERIMENTS {
        let info = experiment.info;
        let _ = writeln!(text, "\n  {}: {}", info.name, info.question);
        let _ = writeln!(text, "    measures");
        for operation in info.operations {
            let n = units::count(operation.requests);
            let _ = writeln!(text, "      {:<12} {} ({n} requests)", operation.name, operation.about);
        }
        let _ = writeln!(text, "    varies");
        for axis in info.axes {
            let _ = writeln!(text, "      --{:<12} {} [{}]", axis.name, axis.help, axis.default.join(","));
            for (word, help) in axis.kind.words.iter().filter(|_| axis.kind.numbers.is_none()) {
                let _ = writeln!(text, "          {word:<12} {help}");
            }
        }
    }
    text.push_str(
        "\n  a custom workload: kurabe run -f FILE.toml; scripts of pgbench: kurabe run pgbench -f FILE.sql\n",
    );
    text
}

/// All kinds of targets, and the throwaway servers that can be started here.
fn targets() -> String {
    let mut text = String::from("Targets\n");
    for driver in DRIVERS {
        let _ = writeln!(text, "\n  {}\n    {}: {}", driver.url, driver.engine, driver.about);
        for option in driver.options {
            let _ = writeln!(text, "      ?{:<16} {}", format!("{}=", option.name), option.help);
        }
    }
    text.push_str("\nThrowaway servers (started for a run and removed afterwards)\n\n");
    for (engine, found) in kurabe_testbed::available() {
        let _ = match found {
            Ok(installed) => writeln!(text, "  up:{engine:<12} {}", installed.version),
            Err(missing) => {
                writeln!(text, "  up:{engine:<12} not available: {}; {}", missing.what, missing.how())
            }
        };
    }
    text
}

/// What this build leaves out, and how to build it in; empty for a full build.
fn left_out() -> String {
    let parts = [(cfg!(feature = "fleet"), "--fleet with agent")];
    let parts = parts.into_iter().filter(|(built_in, _)| !built_in).map(|(_, name)| name.to_owned());
    let engines = LEFT_OUT.iter().map(|schemes| format!("{}:", schemes[0]));
    let all: Vec<String> = engines.chain(parts).collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("\nNot built in: {}\n  {FULL_BUILD}\n", all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_listed_with_the_build_that_has_it() {
        let text = left_out();
        assert_eq!(text.is_empty(), cfg!(feature = "full"), "{text}");
        assert_eq!(text.contains(FULL_BUILD), !cfg!(feature = "full"), "{text}");
        for (left_out, name) in [
            (cfg!(not(feature = "mongodb")), "mongodb:"),
            (cfg!(not(feature = "sqlite")), "sqlite:"),
            (cfg!(not(feature = "fleet")), "--fleet"),
        ] {
            assert_eq!(text.contains(name), left_out, "{name}: {text}");
        }
    }
}
