//! `kurabe capture`.

use super::arguments::{export, file, file_word, flag, option};
use clap::{Arg, Command};

pub(super) fn command() -> Command {
    let protocols = kurabe_wire::registry::schemes().collect::<Vec<_>>().join(", ");
    Command::new("capture")
        .about("Records what an application asks of a database, with values; shows it, and describes it as a workload")
        .long_about(format!(
            "Records what an application asks of a database: of each request the time, statement, parameters, bulk \
             data and transaction, and of its answer the time, rows, error and a checksum ({protocols}). Clients \
             connect to a relay, which COMMAND finds in its environment as that of 'kurabe wire'. Without COMMAND \
             it records until Ctrl-C; with --from it reads packets that were captured, or a server's log. Values beside which a statement, a field or a table names a secret are not recorded. TLS is refused, since encrypted statements \
             cannot be read, unless --tls terminate ends it at the relay.",
        ))
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .args(super::wire::relay())
        .arg(output("File of the capture; it must not exist"))
        .arg(
            file(
                "from",
                "FILE",
                "Reads this file in place of relaying: packets of tcpdump or Wireshark (pcap, pcapng) of TARGET's port, and of its \
                 address if it is one; or a log, of TARGET's database, of PostgreSQL, MySQL or MariaDB (slow or \
                 general query log)",
            )
            .conflicts_with_all(["command", "listen", "allow-remote", "allow-other-users"]),
        )
        .arg(
            option(
                "values",
                "WHAT",
                "keep: as they are; hash: others of the same length, equal for equal values; drop: none. Of statements, \
                 parameters and bulk data (which hash drops)",
            )
            .value_parser(["keep", "hash", "drop"])
            .default_value("keep")
            .hide_possible_values(true),
        )
        .arg(
            option(
                "tls",
                "WHAT",
                "refuse: clients connect without TLS, if they agree; terminate: TLS ends at the relay, on both sides, with a \
                 certificate that is made for this capture, and with the server as TARGET's URL says",
            )
            .value_parser(["refuse", "terminate"])
            .default_value("refuse")
            .hide_possible_values(true)
            .conflicts_with("from"),
        )
        .subcommand(
            Command::new("show")
                .about("Shows a capture: statements, units of work with their loops, connections")
                .arg(capture())
                .arg(
                    option("report", "FORMAT", "Format of the result")
                        .value_parser(["text", "json"])
                        .default_value("text"),
                )
                .arg(export(
                    "export-html",
                    "Writes a page there, with all statements, units of work and the course of time",
                )),
        )
        .subcommand(
            Command::new("model")
                .about("Describes a capture as a custom workload: transactions, draws of values, loops, pauses")
                .arg(capture())
                .arg(output("File of the workload, for 'kurabe run -f'; it must not exist"))
                .arg(flag(
                    "made",
                    "Makes tables like those of the application for each run, on any engine; without, its own are used",
                )),
        )
}

fn capture() -> Arg {
    file_word("file", "FILE", "The capture")
}

fn output(help: &'static str) -> Arg {
    file("output", "FILE", help).short('o').required(true)
}
