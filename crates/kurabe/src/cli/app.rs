//! `kurabe app`.

use clap::{Arg, ArgAction, Command, builder::PossibleValuesParser};
use kurabe_experiments::registry::EXPERIMENTS;

pub(super) fn command() -> Command {
    let arg = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).default_value(default).help(help)
    };
    Command::new("app")
        .about(
            "Serves each experiment's transaction over HTTP, so that any load tool drives it; until Ctrl-C",
        )
        .arg(
            Arg::new("target")
                .required(true)
                .value_name("TARGET")
                .help("The database behind it: a URL, or up:ENGINE for a throwaway server"),
        )
        .arg(crate::timeout::option())
        .arg(arg("listen", "ADDRESS:PORT", "127.0.0.1:8080", "Where it listens; port 0 is any that is free"))
        .arg(
            Arg::new("allow-remote")
                .long("allow-remote")
                .action(ArgAction::SetTrue)
                .help("Lets it listen where other machines reach it: it serves whoever asks"),
        )
        .arg(
            arg(
                "connection",
                "HOW",
                "kept",
                "Database connections: per-request, kept (one for each worker), or pool",
            )
            .value_parser(["per-request", "kept", "pool"])
            .hide_possible_values(true),
        )
        .arg(
            Arg::new("pool")
                .long("pool")
                .value_name("N")
                .help("Connections in the pool, which workers share [default: half as many as workers]"),
        )
        .arg(arg("workers", "N", "16", "Requests that ask the database at once, each in a thread"))
        .arg(arg("queue", "N", "1000", "Requests that may wait for a worker; more get 503"))
        .arg(
            Arg::new("experiment")
                .long("experiment")
                .value_name("NAMES")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(EXPERIMENTS.iter().map(|e| e.info().name)))
                .hide_possible_values(true)
                .help("What is served [default: every experiment that the target can do]"),
        )
        .arg(arg(
            "part",
            "K/N",
            "1/1",
            "Which of N applications before one database it is; the first loads the data",
        ))
        .arg(
            Arg::new("join")
                .long("join")
                .value_name("URL")
                .help("The first application, whose data it serves, with --part 2/2 and the like"),
        )
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("EXPERIMENT.AXIS=VALUE")
                .action(ArgAction::Append)
                .help("A value of an axis, such as session.payload=10k [default: each axis's first]"),
        )
        .arg(
            Arg::new("records")
                .long("records")
                .value_name("N")
                .help("Records in each store [default: the experiment's own rule]"),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("N")
                .help("Seed of data and draws [default: from the clock]"),
        )
        .arg(
            Arg::new("durability")
                .long("durability")
                .value_name("CLASS")
                .help("What an acknowledged write must survive [default: as it is]"),
        )
        .arg(arg("header-time", "TIME", "10s", "How long the head of a request may take; 408 after it"))
        .arg(arg("idle-time", "TIME", "60s", "How long a connection may be open without a request"))
}
