//! Options that say how a run measures, and what is recorded and written of it.

use super::arguments::{
    export_html, export_json, export_markdown, flag, log_format, no_html, option, secret, timeout,
};
use super::up;
use clap::{Arg, ArgAction, Command};
use kurabe_core::load::Arrivals;

/// A command with the options that every run has, and with `more` among them.
pub(super) fn added_to(command: Command, more: impl IntoIterator<Item = Arg>) -> Command {
    let common =
        record().into_iter().chain(question()).chain([export_json(), export_markdown(), export_html()]);
    command.args(common.chain(more)).args(how())
}

/// Options of custom workloads.
pub(super) fn own() -> [Arg; 3] {
    let heading = "Custom workloads";
    [
        option("define", "NAME=VALUE", "Sets a variable; may be given several times")
            .short('D')
            .action(ArgAction::Append)
            .help_heading(heading),
        flag("write", "Allows statements to change existing tables").help_heading(heading),
        secret(option(
            "setup",
            "FILE|copy:URL",
            "Loads a schema and data into the throwaway servers: SQL, a dump of pg_dump or mysqldump, or a copy of another \
             database; restored at each of their restarts. The engine's own program executes the file",
        ))
        .help_heading(heading),
    ]
}

/// What a run compares, and how long it may take.
fn question() -> [Arg; 2] {
    let heading = "Measurement";
    [
        option(
            "compare",
            "LIST",
            "What is compared, at each value of the other axes that are named: targets, or axes by name [default: targets, \
             or the axes that are named if there is one]",
        )
        .help_heading(heading),
        flag("yes", "Starts a run that is expected to take more than an hour").short('y').help_heading(heading),
    ]
}

/// Options of the record and of its progress.
pub(super) fn record() -> [Arg; 2] {
    [
        option(
            "label",
            "LABEL",
            "A label of the run, such as main, by which --against and 'kurabe runs ls' find it; may be given several \
             times",
        )
        .action(ArgAction::Append),
        log_format(),
    ]
}

/// The machines that run the clients.
pub(super) fn fleet() -> [Arg; 4] {
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        option(name, value, help).help_heading("Measurement")
    };
    [
        secret(arg(
            "fleet",
            "URL",
            "Runs the clients on other machines: nats://HOST for agents on a NATS broker ('kurabe agent --broker'), \
             ssh:HOST,HOST for agents that ssh starts",
        )),
        arg("agents", "N", "With --fleet: number of agents [default: all that answer]"),
        arg("agent-label", "NAME=VALUE,…", "With --fleet: labels that each agent must have"),
        arg(
            "on-lost-agent",
            "fail|continue",
            "With --fleet: what follows if an agent ends, hangs or cannot be reached. Its trial fails in any case. fail: \
             further trials fail too. continue: the round's trials are repeated on the remaining agents, and the run goes on \
             with them [default: fail]",
        ),
    ]
}

#[allow(clippy::too_many_lines, reason = "a list of options")]
fn how() -> [Arg; 23] {
    let heading = "Measurement";
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        option(name, value, help).help_heading(heading)
    };
    [
        secret(Arg::new("more-targets"))
            .short('t')
            .long("target")
            .value_name("TARGET")
            .action(ArgAction::Append)
            .help("An additional target"),
        arg(
            "via",
            "URL",
            "An application as a target, such as kurabe up app: http://host:port. URL,URL are several \
             applications of one database; clients are assigned to them in turn. stack:php/mysqli is an application \
             that is started for the run, before the database of --db ('kurabe up stack --help' lists them)",
        )
        .action(ArgAction::Append),
        up::db().help_heading(heading),
        arg(
            "requests",
            "N",
            "Requests per trial, over all clients: 5000, or write=1000,read=10000 [default: depends on the \
             experiment]",
        ),
        arg(
            "duration",
            "TIME",
            "Duration of each trial's measured phase; with --requests, whichever ends first",
        ),
        arg(
            "budget",
            "TIME",
            "Approximate duration of the whole run, without --requests and --duration; 5 is 5 seconds [default: 20s per \
             target, or more where one trial takes long]",
        ),
        arg(
            "rounds",
            "N",
            "How often to measure each combination, in random order [default: 6; up to 16 if trials would exceed 1s]",
        ),
        arg(
            "until",
            "WHEN",
            "conclusive: add rounds until each comparison is faster, slower, or equal to within --margin",
        )
        .value_parser(["conclusive"])
        .hide_possible_values(true),
        arg("margin", "PERCENT", "With --until: smallest relevant difference; 5 is 5% [default: 5%]"),
        arg(
            "max-rounds",
            "N",
            "With --until: maximum number of rounds; --budget ends the run too [default: 100]",
        ),
        arg(
            "interleave",
            "TIME",
            "Interleaves compared trials in slices of this length, with clients and throwaway servers on \
             separate processors; detects smaller differences. 'off' runs trials separately [default: 10ms; \
             off with --rate or fewer than 3 rounds]",
        )
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("10ms"),
        arg(
            "restarts",
            "N",
            "How often to restart throwaway servers, between blocks of rounds of equal length; intervals \
             then include differences between starts [default: 8 if there is time, 0 with --rounds, --duration or \
             --until]",
        ),
        arg(
            "threads",
            "N|per-client",
            "Threads that share the clients of a trial, where Kurabe's own client speaks to the target (MySQL, MariaDB, \
             PostgreSQL, memcached, Redis, applications); per-client: each client has a thread [default: one for each of \
             the clients' processors if there are more clients, per-client elsewhere]",
        ),
        arg("seed", "N", "Seed of data, order and random inputs [default: from the clock; it is recorded]"),
        arg(
            "records",
            "N",
            "Number of records in the store before it is read [default: depends on the experiment]",
        ),
        arg(
            "arrivals",
            "HOW",
            "Distribution of arrivals with --rate: even, or poisson for independent users",
        )
        .value_parser(Arrivals::ALL.map(Arrivals::name))
        .hide_possible_values(true),
        timeout().help_heading(heading),
        arg(
            "wait-quiet",
            "TIME",
            "Before the run, wait until other processes use less than a tenth of this machine's CPU for 2s, but no longer \
             than this time",
        ),
        arg("slo", "TIME", "Limit of the p99 response time: results pass or fail; the one of --rate max [default: 10ms]"),
        arg(
            "durability",
            "CLASS",
            "Durability class of writes on every target: memory, os-cache, periodic-sync, synced or \
             replicated; targets that cannot provide it are not measured [default: unchanged]",
        ),
        flag(
            "allow-eviction",
            "Run although the data does not fit into the free memory of a cache, which then evicts values of others",
        )
        .help_heading(heading),
        flag("dry-run", "Print what would be measured and compared, and the expected time").help_heading(heading),
        no_html(),
    ]
}
