//! `kurabe copy`.

use super::{flag, option};
use clap::{Arg, ArgAction, Command};
use kurabe_copy::issue::IssueKind;
use std::fmt::Write as _;

const TIMEOUT: &str =
    "Time limit of connecting to a server; its work, such as on an index, has none [default: 30s]";

pub(super) fn command() -> Command {
    let side = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).required(true).value_name(value).add(super::complete::targets()).help(help)
    };
    Command::new("copy")
        .about("Copies tables of an SQL database to another, with keys and indexes, and compares every value")
        .arg(side("source", "SOURCE", "The database to copy from: a URL. It is only read"))
        .arg(side("into", "TARGET", "The database to copy to: a URL. Only new tables are made"))
        .arg(
            option("tables", "NAMES", "The tables to copy [default: all of the database or schema]")
                .value_delimiter(',')
                .action(ArgAction::Append),
        )
        .arg(
            option("accept", "KINDS", "Differences to accept: kinds, or KIND:TABLE, or KIND:TABLE.COLUMN")
                .value_delimiter(',')
                .action(ArgAction::Append),
        )
        .arg(flag("dry-run", "Shows what would be made and what does not map, and copies nothing"))
        .arg(flag("no-resume", "Removes what an unfinished copy made, and begins again"))
        .arg(option("timeout", "TIME", TIMEOUT))
        .after_help(kinds())
}

/// What can be accepted.
fn kinds() -> String {
    let mut text = "Differences, refused unless accepted:\n".to_owned();
    for kind in IssueKind::ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:<18}{}", kind.name(), kind.about());
    }
    text
}
