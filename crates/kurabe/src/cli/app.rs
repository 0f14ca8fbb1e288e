//! `kurabe up app`.

use super::arguments::{flag, option, target, timeout};
use clap::{Arg, ArgAction, Command, builder::PossibleValuesParser};
use kurabe_experiments::registry::EXPERIMENTS;

fn arg(name: &'static str, value: &'static str, default: &'static str, help: &'static str) -> Arg {
    option(name, value, help).default_value(default)
}

pub(super) fn command() -> Command {
    Command::new("app")
        .about("Serves the transactions of experiments over HTTP for any load generator, until Ctrl-C")
        .arg(target(Arg::new("target")).required(true).value_name("TARGET").help(
            "The database: a URL, - for the next line of standard input, or up:ENGINE for a throwaway server",
        ))
        .arg(timeout())
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
        .arg(option("pool", "N", "Size of the connection pool [default: half the number of workers]"))
        .arg(arg("workers", "N", "16", "Number of worker threads, each with one request at a time"))
        .arg(arg(
            "queue",
            "N",
            "1000",
            "Requests that may wait for a worker; further ones are answered with 503",
        ))
        .arg(
            option("experiment", "NAMES", "Experiments to serve [default: all that the target supports]")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(EXPERIMENTS.iter().map(|e| e.info.name)))
                .hide_possible_values(true),
        )
        .arg(arg(
            "part",
            "K/N",
            "1/1",
            "Number of this application among N that share a database; the first loads the data",
        ))
        .arg(option("join", "URL", "URL of the first application, for the others (--part 2/2)"))
        .arg(
            option(
                "set",
                "EXPERIMENT.AXIS=VALUE",
                "Value of an axis, such as session.payload=10k [default: the axis's first value]",
            )
            .action(ArgAction::Append),
        )
        .arg(option("records", "N", "Number of records in each store [default: depends on the experiment]"))
        .arg(option("seed", "N", "Seed of data and random inputs [default: from the clock]"))
        .arg(option("durability", "CLASS", "Durability class of writes [default: unchanged]"))
}

/// Which clients are served, and within which time limits.
fn clients() -> [Arg; 7] {
    [
        arg("listen", "ADDRESS:PORT", "127.0.0.1:8080", "Address to listen on; port 0 chooses a free port"),
        flag("allow-remote", "Allow an address that other machines can reach; there is no authentication"),
        flag(
            "allow-other-users",
            "Serve clients of other accounts of this machine; there is no authentication",
        ),
        option(
            "host",
            "NAMES",
            "Host names by which clients may address it, besides IP addresses and localhost",
        )
        .value_delimiter(','),
        flag(
            "allow-get-writes",
            "Serve pages that change the database by GET too, for load generators that cannot POST",
        ),
        arg("header-time", "TIME", "10s", "Time limit for the head of a request; answered with 408 after it"),
        arg("idle-time", "TIME", "60s", "Time after which an idle connection is closed"),
    ]
}
