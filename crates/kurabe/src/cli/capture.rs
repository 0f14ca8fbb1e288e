//! `kurabe wire`, `kurabe capture` and `kurabe advise`.

use super::arguments::{choice, export, file, file_word, flag, option, secret, target};
use clap::{Arg, Command};
use std::ffi::OsString;

pub(super) fn capture() -> Command {
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
        .args(relay())
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
            choice(
                "values",
                "WHAT",
                "keep: as they are; hash: others of the same length, equal for equal values; drop: none. Of statements, \
                 parameters and bulk data (which hash drops)",
                ["keep", "hash", "drop"],
            )
            .hide_possible_values(true),
        )
        .arg(
            choice(
                "tls",
                "WHAT",
                "refuse: clients connect without TLS, if they agree; terminate: TLS ends at the relay, on both sides, with a \
                 certificate that is made for this capture, and with the server as TARGET's URL says",
                ["refuse", "terminate"],
            )
            .hide_possible_values(true)
            .conflicts_with("from"),
        )
        .subcommand(
            Command::new("show")
                .about("Shows a capture: statements, units of work with their loops, connections")
                .arg(file_word("file", "FILE", "The capture"))
                .arg(choice("report", "FORMAT", "Format of the result", ["text", "json"]))
                .arg(export(
                    "export-html",
                    "Writes a page there, with all statements, units of work and the course of time",
                )),
        )
        .subcommand(
            Command::new("model")
                .about("Describes a capture as a custom workload: transactions, draws of values, loops, pauses")
                .arg(file_word("file", "FILE", "The capture"))
                .arg(output("File of the workload, for 'kurabe run -f'; it must not exist"))
                .arg(flag(
                    "made",
                    "Makes tables like those of the application for each run, on any engine; without, its own are used",
                )),
        )
}

fn output(help: &'static str) -> Arg {
    file("output", "FILE", help).short('o').required(true)
}

pub(super) fn wire() -> Command {
    let protocols = kurabe_wire::registry::schemes().collect::<Vec<_>>().join(", ");
    Command::new("wire")
        .about("Shows what any client sends to a database: round trips, bytes and statements of its connections")
        .long_about(format!(
            "Shows what any client sends to a database: round trips, bytes and statements of its connections. It \
             relays connections to the server, and decodes a copy of what passes ({protocols}). It runs COMMAND \
             with the relay's address in its environment: KURABE_HOST, KURABE_PORT, KURABE_URL, and the variables \
             of the protocol's own programs (PGHOST, MYSQL_TCP_PORT, …). Without COMMAND it relays until Ctrl-C. \
             The output of COMMAND goes to standard error. TLS is refused, since encrypted statements cannot be \
             read; bind parameters and stored values are not shown, nor statements that may contain passwords.",
        ))
        .args(relay())
        .arg(option(
            "first",
            "TEXT",
            "The application's first own statement is the first that contains this text [default: the first that \
             does not set up the connection or ask about the server]",
        ))
        .arg(
            choice(
                "tls",
                "WHAT",
                "refuse: clients connect without TLS, if they agree; pass: no byte is changed",
                ["refuse", "pass"],
            )
            .hide_possible_values(true),
        )
        .arg(choice("format", "FORMAT", "Format of the result", ["text", "json", "md"]))
}

/// The server, the command that connects to it, and the relay between them.
pub(super) fn relay() -> [Arg; 5] {
    [
        target(Arg::new("target"))
            .required(true)
            .value_name("TARGET")
            .help("The server: a URL, - for the next line of standard input, or up:ENGINE for a throwaway server"),
        Arg::new("command")
            .value_name("COMMAND")
            .last(true)
            .num_args(1..)
            .value_parser(clap::value_parser!(OsString))
            .help("The program to run, with its arguments, behind '--'"),
        option(
            "listen",
            "ADDRESS:PORT",
            "Address to listen on; port 0 chooses a free port. Or unix:PATH, a Unix socket that only your account may use",
        )
            .default_value("127.0.0.1:0"),
        flag("allow-remote", "Allow an address that other machines can reach"),
        flag(
            "allow-other-users",
            "Allow clients of other accounts of this machine: they have the relay's rights at the server, by its socket or \
             certificate",
        ),
    ]
}

pub(super) fn advise() -> Command {
    let kinds: Vec<&str> = kurabe_advise::KINDS.iter().map(|(name, _)| *name).collect();
    Command::new("advise")
        .about("Says what would make a captured application faster: tries indexes, settings, pools and caches on throwaway servers, and confirms what gains")
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
            option("try", "LIST", "What is tried, with commas: indexes, settings; pool, prepared: connections kept and statements prepared, where the capture has \
                 neither; cache: one of reads; durability: settings that change what an acknowledged write survives")
                .value_delimiter(',')
                .value_parser(kinds)
                .action(clap::ArgAction::Append)
                .default_value("indexes,settings,pool,prepared,cache")
                .hide_possible_values(true),
        )
        .arg(option("budget", "TIME", "How long it may take, about").default_value("10m"))
        .arg(file("output", "FILE", "Writes the statements and settings that gain there; it must not exist").short('o'))
        .arg(file("export-html", "FILE", "Writes the result as a page there; it must not exist"))
        .arg(choice("report", "FORMAT", "Format of the result", ["text", "json"]))
}
