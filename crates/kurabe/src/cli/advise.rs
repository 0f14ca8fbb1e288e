//! `kurabe advise`.

use super::arguments::{file, file_word, option, secret};
use clap::{Arg, Command};

pub(super) fn command() -> Command {
    let kinds: Vec<&str> = kurabe_advise::KINDS.iter().map(|(name, _)| *name).collect();
    Command::new("advise")
        .about("Says what would make a captured application faster: tries indexes and settings on throwaway servers, and confirms what gains")
        .long_about(
            "Says what would make an application faster whose requests 'kurabe capture' recorded. Each proposal is tried on a throwaway \
             server of its own: the whole capture is replayed there and beside it on the unchanged server, and every answer is compared. \
             The best are confirmed on servers that did not choose them. Nothing of yours is changed.",
        )
        .arg(file_word("capture", "CAPTURE", "The capture, of PostgreSQL, MySQL or MariaDB"))
        .arg(
            secret(Arg::new("target")).required(true).value_name("TARGET").help(
                "The unchanged server: up:postgres, up:mysql or up:mariadb, with the settings that yours has, such as \
                 up:postgres?shared_buffers=2GB",
            ),
        )
        .arg(
            secret(option("data", "FILE|copy:URL", "Schema and data as they were when the capture began: SQL, a dump, or copy:URL, which only reads"))
                .visible_alias("setup"),
        )
        .arg(
            option("try", "LIST", "What is tried, with commas: indexes, settings; durability: settings that change what an acknowledged write survives")
                .value_delimiter(',')
                .value_parser(kinds)
                .action(clap::ArgAction::Append)
                .default_value("indexes,settings")
                .hide_possible_values(true),
        )
        .arg(option("budget", "TIME", "How long it may take, about").default_value("10m"))
        .arg(file("output", "FILE", "Writes the statements and settings that gain there; it must not exist").short('o'))
        .arg(option("report", "FORMAT", "Format of the result").value_parser(["text", "json"]).default_value("text"))
}
