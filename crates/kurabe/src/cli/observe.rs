//! `kurabe observe`.

use clap::{Arg, Command};
use kurabe_observe::PORT;
use std::path::PathBuf;

pub(super) fn command() -> Command {
    Command::new("observe")
        .about("Looks at the servers of this host for runs on others, which name it in a target: …?observe; until Ctrl-C")
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS[:PORT]")
                .default_value("127.0.0.1")
                .help(format!("Where it listens; the port is {PORT} unless one is named, and 0 is any that is free")),
        )
        .arg(
            Arg::new("token-file")
                .long("token-file")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help(
                    "The file with the token that runs must have too [default: $KURABE_OBSERVE_TOKEN_FILE, or the text of \
                     $KURABE_OBSERVE_TOKEN]",
                ),
        )
}
