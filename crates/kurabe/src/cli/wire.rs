//! `kurabe wire`.

use super::arguments::{flag, option, target};
use clap::{Arg, Command};
use std::ffi::OsString;

pub(super) fn command() -> Command {
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
            option("tls", "WHAT", "refuse: clients connect without TLS, if they agree; pass: no byte is changed")
                .value_parser(["refuse", "pass"])
                .default_value("refuse")
                .hide_possible_values(true),
        )
        .arg(
            option("format", "FORMAT", "Format of the result")
                .value_parser(["text", "json", "md"])
                .default_value("text"),
        )
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
