//! The text of `kurabe list`: experiments and targets, from the registries.

use kurabe_core::axis::AxisKind;
use kurabe_core::units;
use kurabe_drivers::registry::DRIVERS;
use kurabe_experiments::registry::EXPERIMENTS;
use std::fmt::Write;

/// All experiments with their axes and operations.
pub(crate) fn experiments() -> String {
    let mut text = String::from("Experiments (kurabe run NAME [TARGET…])\n");
    for experiment in EXPERIMENTS {
        let info = experiment.info();
        let _ = writeln!(text, "\n  {}: {}", info.name, info.question);
        let _ = writeln!(text, "    measures");
        for operation in info.operations {
            let n = units::count(operation.requests);
            let _ = writeln!(text, "      {:<12} {} ({n} requests)", operation.name, operation.about);
        }
        let _ = writeln!(text, "    varies");
        for axis in info.axes {
            let _ = writeln!(text, "      --{:<12} {} [{}]", axis.name, axis.help, axis.default.join(","));
            if let AxisKind::Choice(choices) | AxisKind::ChoiceOrText { words: choices, .. } = axis.kind {
                for (word, help) in choices {
                    let _ = writeln!(text, "          {word:<12} {help}");
                }
            }
        }
    }
    text.push_str(
        "\n  a custom workload: kurabe run -f FILE.toml; scripts of pgbench: kurabe run pgbench -f FILE.sql\n",
    );
    text
}

/// All kinds of targets, and the throwaway servers that can be started here.
pub(crate) fn targets() -> String {
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
                writeln!(text, "  up:{engine:<12} not available: {}; {}", missing.what, missing.how)
            }
        };
    }
    text
}
