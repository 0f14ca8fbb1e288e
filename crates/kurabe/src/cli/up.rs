//! `kurabe up`, and what it starts besides servers.

use super::arguments::{flag, option, target, timeout};
use super::complete;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command};
use kurabe_experiments::registry::EXPERIMENTS;

/// What runs until Ctrl-C, and prints its URL.
pub(super) fn command() -> Command {
    let engines: Vec<&str> = kurabe_testbed::engines().filter(|engine| *engine != TCP).collect();
    Command::new("up")
        .about(
            "Starts a throwaway server, an application or a listener, and prints its URL; Ctrl-C removes it",
        )
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .subcommand_help_heading("Besides servers")
        .arg(
            Arg::new("engine")
                .required(true)
                .value_name("ENGINE")
                .add(complete::engines())
                .help(format!("The database engine: {}", engines.join(", "))),
        )
        .arg(
            Arg::new("setting")
                .value_name("NAME=VALUE")
                .num_args(0..)
                .help("Settings of the server, as in its documentation"),
        )
        .subcommand(app())
        .subcommand(stack())
        .subcommand(listen())
}

fn arg(name: &'static str, value: &'static str, default: &'static str, help: &'static str) -> Arg {
    option(name, value, help).default_value(default)
}

fn app() -> Command {
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

fn stack() -> Command {
    let stacks: Vec<&str> = kurabe_testbed::stacks().collect();
    let variants = kurabe_testbed::stacks().flat_map(|stack| {
        let variants = kurabe_testbed::variants(stack).unwrap_or_default().iter();
        variants.map(move |variant| format!("  {stack}/{:<18} {}", variant.name, variant.about))
    });
    let variants = variants.collect::<Vec<_>>().join("\n");
    Command::new("stack")
        .about("Starts an application stack before a database and prints its URL; Ctrl-C removes it")
        .after_help(format!("Variants:\n{variants}"))
        .arg(
            Arg::new("stack")
                .required(true)
                .value_name("STACK")
                .value_parser(PossibleValuesParser::new(stacks))
                .help("The stack"),
        )
        .arg(db().required(true))
        .arg(option(
            "variant",
            "NAME",
            "Variant of the stack [default: the first one that can use the database]",
        ))
        .arg(option("workers", "N", "Requests that are processed at once [default: 16]"))
        .arg(option("records", "N", "Number of records in each store [default: depends on the experiment]"))
        .arg(option("seed", "N", "Seed of the data [default: from the clock]"))
        .arg(timeout())
}

/// The database of stacks.
pub(super) fn db() -> Arg {
    target(option(
        "db",
        "TARGET",
        "The database that application stacks use: up:mysql, or a URL of MySQL, MariaDB or PostgreSQL",
    ))
}

/// The engine of this listener among throwaway servers: `up:tcp`.
const TCP: &str = "tcp";
/// This host only, at the port that targets without one name.
const DEFAULT_ADDRESS: &str = "127.0.0.1:7007";

fn listen() -> Command {
    Command::new(TCP)
        .about("Listens for experiment net of another host, and prints the URL to name it by; Ctrl-C ends it")
        .long_about(
            "Listens for experiment net of another host, and prints the URL to name it by; Ctrl-C ends it. It \
             receives bytes, compares them with what they should be, and sends messages back. It has two ports: that \
             of the address, and one that the system chooses for connections with fixed socket buffers. Whoever may \
             connect occupies up to 8 MB for each of 512 connections; nothing that arrives is kept. On this machine, your \
             account and root may connect. An address that other machines can reach needs --allow-remote, and is open to \
             everybody there.",
        )
        .arg(
            Arg::new("address")
                .value_name("ADDRESS[:PORT]")
                .default_value(DEFAULT_ADDRESS)
                .help("The address of this host at which others reach it; an IPv6 address in brackets if a port follows; port 0: any free one"),
        )
        .arg(flag("allow-remote", "Allow an address that other machines can reach; there is no authentication"))
        .arg(flag("allow-other-users", "Let clients of other accounts of this machine connect"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn default_address_has_the_default_port() {
        let port = super::DEFAULT_ADDRESS.rsplit_once(':').map(|(_, port)| port.to_owned());
        assert_eq!(port, Some(kurabe_tcp::protocol::PORT.to_string()));
    }
}
