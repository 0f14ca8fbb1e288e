//! `kurabe copy`.

use super::arguments::{choice, flag, option, target};
use clap::{Arg, ArgAction, Command};
use kurabe_copy::issue::IssueKind;
use std::fmt::Write as _;

const TIMEOUT: &str =
    "Time limit of connecting to a server; its work, such as on an index, has none [default: 30s]";

const ACCEPT: &str = "Differences to accept: kinds, or KIND:TABLE, or KIND:TABLE.COLUMN. zero-date, date-range, time-range \
                      and nul-character can have a choice: =VALUE, or =refuse for the file of --reject";
const EXITS: &str = "Exit codes:
  0    everything was copied, and every value is the same; or the dry run was shown
  2    the command line is wrong; source and target are the same
  3    a difference was not accepted, a table exists, a server failed or refused something, or a value is not the same
  4    everything was copied and verified but the rows in the file of --reject
  5    a file could not be read or written, or this machine lacks something
  130  stopped by the user; the same command continues";

pub(super) fn command() -> Command {
    let side = |name: &'static str, value: &'static str, help: &'static str| {
        target(Arg::new(name)).required_unless_present("casts").value_name(value).help(help)
    };
    let many = |name: &'static str, value: &'static str, help: &'static str| {
        option(name, value, help).action(ArgAction::Append)
    };
    let list = |name, value, help| many(name, value, help).value_delimiter(',');
    let file = |name, help| option(name, "FILE", help).value_hint(clap::ValueHint::FilePath);
    Command::new("copy")
        .about("Copies tables of an SQL database to another, with keys and indexes, and verifies every value")
        .arg(side(
            "source",
            "SOURCE",
            "The database to copy from: a URL, or - to read it from the next line of standard input. It is only read",
        ))
        .arg(side("into", "TARGET", "The database to copy to: a URL, or -. Only new tables are made"))
        .arg(list("tables", "NAMES", "The tables to copy: names, or patterns with * and ? [default: all]"))
        .arg(list("exclude", "NAMES", "Tables that are not copied: names or patterns"))
        .arg(list("rename", "OLD=NEW", "Another name for a table on the target"))
        .arg(many(
            "where",
            "TABLE:CONDITION",
            "Copies the rows of a table for which this holds, in the source's SQL",
        ))
        .arg(flag("schema-only", "Makes the tables, and copies no rows"))
        .arg(
            flag("data-only", "Copies rows into tables that exist and are empty")
                .conflicts_with("schema-only"),
        )
        .arg(
            flag("truncate-target", "Empties the tables first, if 'kurabe copy' made them")
                .requires("data-only"),
        )
        .arg(flag("keep-record", "Keeps the record of the tables that were made, for --truncate-target"))
        .arg(list("accept", "KINDS", ACCEPT))
        .arg(many("cast", "FROM=TYPE", "Another type: 'tinyint(1)=boolean', 'orders.total=numeric(12,2)'"))
        .arg(file("cast-file", "A file of such types, in the form that --casts prints"))
        .arg(flag("casts", "Prints what types become, for SOURCE and TARGET or for all engines, and ends"))
        .arg(
            list("leave-out", "NAMES", "Objects that are not made: NAME or TABLE.NAME").requires("leftovers"),
        )
        .arg(file(
            "leftovers",
            "Writes the text of what is not made there: left out, views, triggers, routines, …",
        ))
        .arg(file("reject", "Writes rows there that the target refuses, with the reason; the rest goes on"))
        .arg(
            option("jobs", "N", "Sessions of each side: tables, and ranges of one table, at the same time")
                .value_parser(clap::value_parser!(u16).range(1..=256))
                .default_value("1"),
        )
        .arg(choice("report", "FORMAT", "The result as text or json", ["text", "json"]))
        .arg(file("export-html", "Writes a page there, with one row a table"))
        .arg(flag("dry-run", "Shows what would be made and what does not map, and copies nothing"))
        .arg(flag("no-resume", "Removes what an unfinished copy made, and begins again"))
        .arg(option("timeout", "TIME", TIMEOUT))
        .after_help(format!("{}\n{EXITS}", kinds()))
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
