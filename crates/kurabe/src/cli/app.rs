//! `kurabe app`.

use clap::{Arg, ArgAction, Command, builder::PossibleValuesParser};
use kurabe_experiments::registry::EXPERIMENTS;

fn arg(name: &'static str, value: &'static str, default: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).default_value(default).help(help)
}

pub(super) fn command() -> Command {
    Command::new("app")
        .about("Serves the transactions of experiments over HTTP for any load generator, until Ctrl-C")
        .arg(
            Arg::new("target")
                .required(true)
                .value_name("TARGET")
                .add(super::complete::targets())
                .help("The database: a URL, or up:ENGINE for a throwaway server"),
        )
        .arg(crate::timeout::option())
        .args(clients())
        .arg(
            arg(
                "connection",
                "HOW",
                "kept",
                "Database connections: per-request, kept (one per worker), or pool",
            )
            .value_parser(["per-request", "kept", "pool"])
            .hide_possible_values(true),
        )
        .arg(
            Arg::new("pool")
                .long("pool")
                .value_name("N")
                .help("Size of the connection pool [default: half the number of workers]"),
        )
        .arg(arg("workers", "N", "16", "Number of worker threads, each with one request at a time"))
        .arg(arg(
            "queue",
            "N",
            "1000",
            "Requests that may wait for a worker; further ones are answered with 503",
        ))
        .arg(
            Arg::new("experiment")
                .long("experiment")
                .value_name("NAMES")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(EXPERIMENTS.iter().map(|e| e.info().name)))
                .hide_possible_values(true)
                .help("Experiments to serve [default: all that the target supports]"),
        )
        .arg(arg(
            "part",
            "K/N",
            "1/1",
            "Number of this application among N that share a database; the first loads the data",
        ))
        .arg(
            Arg::new("join")
                .long("join")
                .value_name("URL")
                .help("URL of the first application, for the others (--part 2/2)"),
        )
        .arg(
            Arg::new("set")
                .long("set")
                .value_name("EXPERIMENT.AXIS=VALUE")
                .action(ArgAction::Append)
                .help("Value of an axis, such as session.payload=10k [default: the axis's first value]"),
        )
        .arg(
            Arg::new("records")
                .long("records")
                .value_name("N")
                .help("Number of records in each store [default: depends on the experiment]"),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("N")
                .help("Seed of data and random inputs [default: from the clock]"),
        )
        .arg(
            Arg::new("durability")
                .long("durability")
                .value_name("CLASS")
                .help("Durability class of writes [default: unchanged]"),
        )
}

/// Which clients are served, and within which time limits.
fn clients() -> [Arg; 6] {
    [
        arg("listen", "ADDRESS:PORT", "127.0.0.1:8080", "Address to listen on; port 0 chooses a free port"),
        Arg::new("allow-remote")
            .long("allow-remote")
            .action(ArgAction::SetTrue)
            .help("Allow an address that other machines can reach; there is no authentication"),
        Arg::new("host")
            .long("host")
            .value_name("NAMES")
            .value_delimiter(',')
            .help("Host names by which clients may address it, besides IP addresses and localhost"),
        Arg::new("allow-get-writes")
            .long("allow-get-writes")
            .action(ArgAction::SetTrue)
            .help("Serve pages that change the database by GET too, for load generators that cannot POST"),
        arg("header-time", "TIME", "10s", "Time limit for the head of a request; answered with 408 after it"),
        arg("idle-time", "TIME", "60s", "Time after which an idle connection is closed"),
    ]
}
