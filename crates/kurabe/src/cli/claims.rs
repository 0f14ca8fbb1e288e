//! `kurabe claims`.

use super::arguments::{export, export_json, file, flag, no_html, option};
use clap::{Arg, Command};

pub(super) fn command() -> Command {
    Command::new("claims")
        .about("Tests claims about databases: those that ship, or your own")
        .long_about(
            "Tests claims about databases. Each claim compares cells of an experiment; a run of it ends as soon as the claim is \
             decided. The answer is: holds, does not hold, undecided, or not testable here.\n\nWithout -f these are the \
             claims that ship: what five authors concluded between 2002 and 2015.",
        )
        .arg(
            Arg::new("word")
                .value_name("ID|TARGET")
                .num_args(0..)
                .help("Names of claims [default: all]; and targets in place of throwaway servers (mysql://user@host/db)"),
        )
        .arg(file("file", "FILE.toml", "A file of claims").short('f'))
        .arg(option("budget", "TIME", "Time limit of each claim's run [default: that of the claim, or 60s]"))
        .arg(flag("recorded", "Answers from the newest complete run of each claim, and measures nothing"))
        .arg(flag("dry-run", "Prints what would be run and how long it takes, and measures nothing"))
        .arg(export("export-html", "The page with a card for each claim [default: claims.html in the folder of runs]"))
        .arg(export_json())
        .arg(no_html())
        .args(super::measurement::record())
        .args(super::measurement::own())
}
