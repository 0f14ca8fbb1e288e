//! `kurabe observe`.

use clap::{Arg, Command};
use kurabe_observe::PORT;
use std::path::PathBuf;

pub(super) fn command() -> Command {
    Command::new("observe")
        .about(
            "Reports this host's server metrics to remote runs whose target URL has ?observe, until \
                Ctrl-C",
        )
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS[:PORT]")
                .default_value("127.0.0.1")
                .help(format!("Address to listen on [default port: {PORT}; 0 chooses a free port]")),
        )
        .arg(
            Arg::new("token-file")
                .long("token-file")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help(
                    "File with the shared token [default: $KURABE_OBSERVE_TOKEN_FILE, or the token in \
                     $KURABE_OBSERVE_TOKEN]",
                ),
        )
}
