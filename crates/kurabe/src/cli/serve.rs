//! `kurabe serve`.

use super::arguments::{flag, option, secret};
use clap::{Arg, ArgAction, Command};

pub(super) fn command() -> Command {
    Command::new("serve")
        .about("Serves a web page of this machine's runs: live trials, reports, comparisons, history and a form for new runs")
        .long_about(
            "Serves a web page of this machine's runs: live trials, reports, comparisons, history and a form for new runs. \
             It prints its URL, which has a token. With the token, one can start and stop runs as the user of this program. Runs that were \
             started from the page go on when it ends, and it finds them again. /metrics has the newest results of \
             running runs for Prometheus. Ctrl-C ends the page.\n\nForms may name the targets that are given here, throwaway \
             servers, and SQLite files in the folder of runs.",
        )
        .arg(
            secret(Arg::new("target"))
                .num_args(0..)
                .value_name("TARGET")
                .help("Database URLs that forms may name, besides up:ENGINE and sqlite:; '-' is the next line of standard input"),
        )
        .arg(flag(
            "allow-any-target",
            "Allow forms any target, and any file that an option of an experiment names; and runs that are resumed all that \
             their files name",
        ))
        .arg(
            option("listen", "ADDRESS:PORT", "Where to listen; port 0: any free one")
                .default_value("127.0.0.1:8096"),
        )
        .arg(
            option("host", "NAME[:PORT]", "Another name by which browsers reach the page; may be given several times")
                .action(ArgAction::Append),
        )
        .arg(secret(option(
            "token",
            "TOKEN",
            "What a user must know, at least 8 letters or digits; none: everybody who reaches the address may do \
             everything; -: the next line of standard input [default: a random one]",
        )))
}
