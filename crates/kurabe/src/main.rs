//! The program: reads the command line, connects the crates, prints, and exits with a documented code.

mod claims;
mod cli;
mod commands;
mod document;
mod exit;
mod git;
mod options;
mod output;
mod places;
mod progress;
mod run_options;
mod settings;
mod signals;
mod standard_input;
mod suite;
mod time;
mod words;

// What a build may leave out has a stand-in that refuses. Tests of every build test that.
#[cfg(any(test, not(feature = "fleet")))]
#[allow(dead_code, reason = "a build uses what it lacks; tests of other builds use none of it")]
mod left_out;

use clap::Command;
use clap::error::ErrorKind;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The supervisor must not depend on anything that a user's options could change.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == "supervisor") {
        return kurabe_testbed::supervisor::run(args);
    }
    exit::end_the_program();
    kurabe_testbed::reset_interrupts_for_programs();
    cli::answer_shell(cli::command);
    let command = match settings::configured(cli::command()) {
        Ok(command) => command,
        Err(error) => {
            output::refuse_settings(&error);
            return exit::USAGE.into();
        }
    };
    let (words, all) = cli::without_all(cli::as_run(std::env::args_os().collect(), &command));
    let parse = |command: Command| {
        let width = output::width().map(|width| width.clamp(32, cli::WIDTH));
        let mut command = width.into_iter().fold(command, Command::term_width);
        let parsed = command.try_get_matches_from_mut(&words);
        (command, parsed)
    };
    let whole = parse(command);
    // Only help and errors show what is shortened, which takes longer than all else before a command runs.
    let (command, parsed) = match whole {
        (_, Err(_)) if !all => {
            parse(cli::brief(settings::configured(cli::command()).unwrap_or_else(|_| cli::command())))
        }
        whole => whole,
    };
    let matches = match parsed {
        Ok(matches) => matches,
        Err(error) => {
            let words: Vec<String> =
                std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            let meant = || {
                (error.kind() == ErrorKind::InvalidSubcommand).then(|| cli::meant(&command, &words)).flatten()
            };
            let meant = || error.use_stderr().then(meant).flatten();
            if let Some(refused) = cli::refused(&words, !error.use_stderr()).or_else(meant) {
                output::refuse_settings(&refused);
                return exit::USAGE.into();
            }
            // Help and version are not errors; clap chooses their output stream.
            output::refuse(&error);
            return if error.use_stderr() { exit::USAGE } else { exit::DONE }.into();
        }
    };
    let output = output::Output::new(&matches);
    let done = commands::dispatch(&matches, &output);
    kurabe_core::statements::wait_until_ended(signals::ENDS);
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.error(&error);
            // An error after connections were shut down is not the target's fault.
            if signals::stopped() { exit::INTERRUPTED } else { exit::of(&error) }.into()
        }
    }
}
