//! The program: reads the command line, joins the crates, prints, and ends with a documented exit code.

mod catalogue;
mod cli;
mod commands;
mod custom;
mod exit;
mod machine;
mod observers;
mod output;
mod places;
mod progress;
mod relay;
mod signals;
mod suite;
mod targets;
mod timeout;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A guard must not go through anything that a user's options could change.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == "guard") {
        return kurabe_testbed::guard::run(args);
    }
    let matches = match cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are no errors; clap says where each goes.
            output::refuse(&error);
            return if error.use_stderr() { exit::USAGE } else { exit::DONE }.into();
        }
    };
    let output = output::Output::new(&matches);
    match commands::dispatch(&matches, &output) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.error(&error);
            // What fails once connections were shut down is no fault of a target's.
            if signals::stopped() { exit::INTERRUPTED } else { exit::of(&error) }.into()
        }
    }
}
