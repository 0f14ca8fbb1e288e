//! `kurabe submit`, and the options of `kurabe runs` for submitted runs.

use super::{option, run};
use clap::{Arg, Command, ValueHint};
use std::path::PathBuf;

pub(super) fn submit() -> Command {
    Command::new("submit")
        .about("Puts a suite into the queue of a fleet, where a worker executes it")
        .long_about(
            "Puts a suite into the queue of a fleet, and prints its name there. A worker ('kurabe agent --role run') executes \
             it as 'kurabe run -f' does, on the agents of the fleet. Runs that share a server's host are executed one after \
             the other. 'kurabe runs ls --broker URL' shows their states, and 'kurabe runs fetch' gets run file and page.\n\n\
             The suite and the files that it names are sent, without passwords: a URL with a password is refused. The worker \
             takes passwords from its own environment and files (PGPASSWORD, ~/.pgpass, MYSQL_PWD, …).",
        )
        .arg(
            Arg::new("suite")
                .required(true)
                .value_name("FILE.toml")
                .value_hint(ValueHint::FilePath)
                .value_parser(clap::value_parser!(PathBuf))
                .help("A suite file or a custom workload, as for 'kurabe run -f'"),
        )
        .args(run::own())
        .arg(broker().required(true))
        .args(run::fleet().into_iter().skip(1))
        .mut_arg("agents", |agents| {
            agents.help("Number of agents; 0: the worker runs the clients itself [default: all that answer]")
        })
}

/// The broker of a queue.
pub(super) fn broker() -> Arg {
    option("broker", "URL", "The NATS broker with the queue: nats://HOST:4222; it needs JetStream")
}

/// Submitted runs, by name.
fn submitted(help: &'static str) -> Arg {
    Arg::new("run").required(true).num_args(1..).value_name("RUN").help(help)
}

pub(super) fn fetch() -> Command {
    Command::new("fetch")
        .about("Copies the run files and pages of submitted runs that have ended to this machine")
        .arg(submitted("The submitted runs, by the names that 'kurabe submit' printed, or prefixes of them"))
        .arg(broker().required(true))
}

pub(super) fn cancel() -> Command {
    Command::new("cancel")
        .about("Takes submitted runs out of the queue; one that runs is stopped")
        .arg(submitted("The submitted runs, by the names that 'kurabe submit' printed, or prefixes of them"))
        .arg(broker().required(true))
}
