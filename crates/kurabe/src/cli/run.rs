//! `kurabe run`: one subcommand per experiment, with its axes as options.

use super::{
    compare, complete, export_json, export_markdown, flag, log_format, no_html, option, otlp, stack, targets,
};
use clap::{Arg, ArgAction, Command, ValueHint, builder::PossibleValuesParser};
use kurabe_core::axis::{AxisInfo, FreeText};
use kurabe_core::compression::COMPRESSION;
use kurabe_core::cpus::CPUS;
use kurabe_core::experiment::Experiment;
use kurabe_core::load::{Arrivals, RATE};
use kurabe_experiments::registry::EXPERIMENTS;
use std::path::PathBuf;

pub(super) fn command() -> Command {
    let command = Command::new("run")
        .about("Runs an experiment or a suite file and prints the report; or a recorded run again, or to its end")
        .subcommand_value_name("EXPERIMENT")
        .subcommand_help_heading("Experiments")
        .args_conflicts_with_subcommands(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("suite")
                .short('f')
                .long("file")
                .value_name("FILE.toml")
                .value_hint(ValueHint::FilePath)
                .value_parser(clap::value_parser!(PathBuf))
                .help("A suite file or a custom workload; options on the command line override it"),
        )
        .arg(targets(false))
        .args(own())
        .args(axes_of_suites())
        .args(recorded())
        .args(record())
        .args(question())
        .args([export_json(), export_markdown()])
        .arg(only())
        .args(compare::gate())
        .args(fleet())
        .args(how());
    EXPERIMENTS
        .iter()
        .fold(command, |command, experiment| command.subcommand(of_experiment(*experiment)))
        .subcommand(pgbench())
        .subcommand(replay())
}

/// The axes of all experiments, each name once, by which options override a suite.
pub(crate) fn suite_axes() -> Vec<&'static AxisInfo> {
    let built_in = EXPERIMENTS.iter().flat_map(|experiment| experiment.info.axes);
    let mut all: Vec<&AxisInfo> = Vec::new();
    for axis in
        kurabe_experiments::custom::axes().iter().chain(crate::suite::common_axes(&[])).chain(built_in)
    {
        if !all.iter().any(|known| known.name == axis.name) {
            all.push(axis);
        }
    }
    all
}

/// Options for [`suite_axes`]. Help shows those that nearly every experiment has.
pub(super) fn axes_of_suites() -> impl Iterator<Item = Arg> {
    suite_axes().into_iter().map(|info| {
        let shown = [kurabe_experiments::custom::axes()[0].name, RATE.name].contains(&info.name);
        axis(info)
            .hide(!shown)
            .help_heading("Axes, which each experiment has besides its own: 'kurabe run EXPERIMENT --help'")
    })
}

/// The name of the experiment that runs pgbench scripts.
pub(crate) const PGBENCH: &str = "pgbench";

fn pgbench() -> Command {
    let heading = "Scripts";
    let arg = |name: &'static str, short: char, value: &'static str, help: &'static str| {
        option(name, value, help).short(short).help_heading(heading)
    };
    Command::new(PGBENCH)
        .about("How fast do pgbench scripts run on each database?")
        .arg(targets(false))
        .arg(
            arg("script", 'f', "FILE[@WEIGHT]", "A pgbench script; several scripts are chosen by weight")
                .long("file")
                .action(ArgAction::Append)
                .value_hint(ValueHint::FilePath),
        )
        .arg(
            arg(
                "builtin",
                'b',
                "NAME[@WEIGHT]",
                "A built-in script of pgbench: tpcb-like, simple-update, select-only [default: tpcb-like \
                 without -f]",
            )
            .action(ArgAction::Append),
        )
        .arg(arg(
            "scale",
            's',
            "N",
            "Value of :scale; with --init, the size of the tables [default: 1; the number of rows of \
                 pgbench_branches for built-in scripts on existing tables]",
        ))
        .arg(
            flag("init", "Creates pgbench's tables for the run, on any SQL engine; scripts use these tables")
                .short('i')
                .help_heading(heading),
        )
        .args([
            arg("client", 'c', "N", "Clients, as --clients"),
            arg("jobs", 'j', "N", "Threads that share the clients, as --threads"),
            arg("time", 'T', "SECONDS", "Duration of each trial's measured phase, as --duration"),
            arg(
                "transactions",
                't',
                "N",
                "Transactions of each client in a trial; --requests is the number of all clients",
            ),
            arg(
                "rate-limit",
                'R',
                "N",
                "Transactions due per second, with Poisson arrivals, as --rate N --arrivals poisson",
            ),
            arg(
                "protocol",
                'M',
                "HOW",
                "prepared: as --statement once; extended: per-request; simple: literal",
            )
            .value_parser(["simple", "extended", "prepared"]),
            option(
                "max-tries",
                "N",
                "How often a transaction is tried if it was not serializable or met a deadlock [default: 1]",
            )
            .help_heading(heading),
        ])
        .args(own())
        .args(kurabe_experiments::custom::axes().iter().chain(crate::suite::common_axes(&[])).map(axis))
        .args(record())
        .args(question())
        .args([export_json(), export_markdown()])
        .args(compare::gate())
        .args(fleet())
        .args(how())
        // pgbench's -t is a number of transactions.
        .mut_arg("more-targets", |target| target.short(None))
}

/// The name of the experiment that replays captures.
pub(crate) const REPLAY: &str = "replay";

fn replay() -> Command {
    let [_, write, setup] = own();
    Command::new(REPLAY)
        .about("How fast is each database with recorded traffic?")
        .long_about(
            "Sends what 'kurabe capture' recorded again, on one or several servers of the same protocol: each connection its \
             requests in order, and none before the commits that were answered before it. Each answer is compared with the \
             recorded one. A trial is one replay of the whole capture.",
        )
        .arg(
            Arg::new("capture")
                .required(true)
                .value_name("CAPTURE")
                .value_hint(ValueHint::FilePath)
                .value_parser(clap::value_parser!(PathBuf))
                .help("A file of 'kurabe capture'"),
        )
        .arg(targets(false))
        .args([write, setup.visible_alias("data")])
        .args(kurabe_experiments::replay::axes().iter().map(axis))
        .arg(cache())
        // A replay has no rate of its own.
        .args(crate::suite::common_axes(&[]).map(|info| axis(info).hide(true)))
        .args(record())
        .args(question())
        .args([export_json(), export_markdown()])
        .args(compare::gate())
        .args(how())
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
        option(
            "setup",
            "FILE|copy:URL",
            "Loads a schema and data into the throwaway servers: SQL, a dump of pg_dump or mysqldump, or a copy of another \
             database; restored at each of their restarts",
        )
        .help_heading(heading),
    ]
}

fn of_experiment(experiment: &'static Experiment) -> Command {
    let info = experiment.info;
    let operations: Vec<&str> = info.operations.iter().map(|operation| operation.name).collect();
    let operation = option("operation", "NAMES", "Operations to measure [default: all]")
        .value_delimiter(',')
        .value_parser(PossibleValuesParser::new(operations))
        .help_heading("Axes: each takes a comma-separated list; all combinations are measured");
    // Operations that read and write are directions of the data.
    let has_directions = info.axes.iter().all(|axis| axis.name != "direction");
    let operation = if has_directions { operation.alias("direction") } else { operation };
    let cache = experiment.takes_cache.then(cache);
    let remote = experiment.takes_remote.then(|| {
        option(
            "remote",
            "TARGET",
            "A second server: a URL that clients and every target reach, or up:postgres",
        )
    });
    Command::new(info.name)
        .about(info.question)
        .long_about(format!("{}\n\n{}", info.question, info.about))
        .arg(targets(false))
        .args(info.axes.iter().chain(crate::suite::common_axes(info.axes)).map(axis))
        .arg(operation)
        .args(cache)
        .args(remote)
        .args(record())
        .args(question())
        .args([export_json(), export_markdown()])
        .args(fleet())
        .args(how())
}

fn cache() -> Arg {
    option("cache", "TARGET", "A cache in front of every target: up:memcached, up:redis, or a URL")
}

fn axis(axis: &'static AxisInfo) -> Arg {
    let words =
        |each: fn(&(&str, &str)) -> String| axis.kind.words.iter().map(each).collect::<Vec<_>>().join(", ");
    let choices = || words(|(word, help)| format!("{word} ({help})"));
    let help = match (axis.kind.numbers, axis.kind.text) {
        (_, Some(FreeText::File(file))) => {
            format!("{} ({file}); or {}", axis.help, words(|(word, help)| format!("{word}: {help}")))
        }
        (_, Some(FreeText::Phrase(text))) => format!("{}: {}, or \"{text}\"", axis.help, choices()),
        (None, None) => format!("{}: {}", axis.help, choices()),
        (Some(_), None) if axis.kind.words.is_empty() => axis.help.to_owned(),
        (Some(_), None) => format!("{}, {}", axis.help, words(|(word, help)| format!("or {word}: {help}"))),
    };
    let default = match axis.default {
        [] if axis.name == CPUS.name => "no restriction".to_owned(),
        [] if axis.name == COMPRESSION.name => "as the URL says".to_owned(),
        [] => "a closed loop".to_owned(),
        values => values.join(","),
    };
    Arg::new(axis.name)
        .long(axis.name)
        .value_name("LIST")
        .allow_negative_numbers(true)
        .action(ArgAction::Append)
        .help_heading("Axes: each takes a comma-separated list; all combinations are measured")
        .help(format!("{help} [default: {default}]"))
}

/// Options of suites with several runs.
fn only() -> Arg {
    option("only", "NAMES", "Makes only the runs with these names, in the order of a suite of several runs")
        .value_delimiter(',')
}

/// What is done with a recorded run, instead of a new one of other settings.
fn recorded() -> [Arg; 2] {
    let arg = |name: &'static str, help: &'static str| {
        option(name, "RUN", help)
            .num_args(0..=1)
            .default_missing_value("last")
            .add(complete::runs())
            .help_heading("Recorded runs, by name, a prefix of it, or a path [default: the newest]")
    };
    [
        arg("again", "Repeats a run with its own settings, as a new run. Targets may follow, the same in the same order, with \
                      passwords, which a run file does not contain"),
        arg("resume", "Continues an interrupted run at its next trial, likewise; --max-rounds N allows a run with --until more rounds")
            .conflicts_with("again"),
    ]
}

/// What a run compares, and how long it may take.
pub(super) fn question() -> [Arg; 2] {
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
        arg(
            "fleet",
            "URL",
            "Runs the clients on other machines: nats://HOST for agents on a NATS broker ('kurabe agent --broker'), \
             ssh:HOST,HOST for agents that ssh starts",
        ),
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
pub(super) fn how() -> [Arg; 24] {
    let heading = "Measurement";
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        option(name, value, help).help_heading(heading)
    };
    [
        Arg::new("more-targets")
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
        stack::db().help_heading(heading),
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
        crate::timeout::option().help_heading(heading),
        crate::quiet::option().help_heading(heading),
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
        otlp(),
    ]
}
