//! `kurabe agent`.

use super::flag;
use clap::Command;

pub(super) fn command() -> Command {
    Command::new("agent")
        .about("Observes servers of this host for a run on another host, whose target URL has ?observe")
        .long_about(
            "Observes servers of this host for a run on another host. The run starts it there, with ssh or with the \
             command in $KURABE_RSH, if a target's URL has ?observe or ?observe=DESTINATION.",
        )
        .arg(
            flag("stdio", "Read requests from standard input and write answers to standard output, until it ends").required(true),
        )
}
