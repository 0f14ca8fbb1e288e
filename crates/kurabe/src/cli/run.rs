//! `kurabe run`: a subcommand an experiment, its axes as options.

use super::targets;
use clap::{Arg, ArgAction, Command, ValueHint, builder::PossibleValuesParser};
use kurabe_core::axis::{AxisInfo, AxisKind};
use kurabe_core::experiment::Experiment;
use kurabe_core::load::{Arrivals, RATE};
use kurabe_experiments::registry::EXPERIMENTS;
use std::path::PathBuf;

pub(super) fn command() -> Command {
    let command = Command::new("run")
        .about("Runs an experiment, or a suite file, and reports")
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
                .help("A suite file, or a custom workload; the options below go before what it says"),
        )
        .arg(targets(false))
        .args(own())
        .args(how());
    EXPERIMENTS
        .iter()
        .fold(command, |command, experiment| command.subcommand(of_experiment(*experiment)))
        .subcommand(pgbench())
}

/// The experiment that is made from scripts of pgbench.
pub(crate) const PGBENCH: &str = "pgbench";

fn pgbench() -> Command {
    let heading = "Scripts";
    let arg = |name: &'static str, short: char, value: &'static str, help: &'static str| {
        Arg::new(name).short(short).value_name(value).help_heading(heading).help(help)
    };
    Command::new(PGBENCH)
        .about("How fast are scripts that were written for pgbench, and where?")
        .arg(targets(false))
        .arg(
            arg("script", 'f', "FILE[@WEIGHT]", "A script; may be given several times, each chosen by its weight")
                .long("file")
                .action(ArgAction::Append)
                .value_hint(ValueHint::FilePath),
        )
        .arg(
            arg(
                "builtin",
                'b',
                "NAME[@WEIGHT]",
                "A script that pgbench brings along: tpcb-like, simple-update, select-only [default: tpcb-like, \
                 where there is no -f]",
            )
            .long("builtin")
            .action(ArgAction::Append),
        )
        .arg(arg("scale", 's', "N", "The variable :scale, and with --init the size of the tables [default: 1; for pgbench's own scripts on tables that are \
             there, the rows of pgbench_branches]").long("scale"))
        .arg(
            Arg::new("init")
                .short('i')
                .long("init")
                .action(ArgAction::SetTrue)
                .help_heading(heading)
                .help("Makes pgbench's tables for the run, on any SQL engine; the scripts' names for them mean these"),
        )
        .args(own())
        .args(kurabe_experiments::custom::axes().iter().chain([&RATE]).map(axis))
        .args(how())
}

/// Options of custom workloads.
fn own() -> [Arg; 2] {
    let heading = "Custom workloads";
    [
        Arg::new("define")
            .short('D')
            .long("define")
            .value_name("NAME=VALUE")
            .action(ArgAction::Append)
            .help_heading(heading)
            .help("Gives a variable another value; may be given several times"),
        Arg::new("write")
            .long("write")
            .action(ArgAction::SetTrue)
            .help_heading(heading)
            .help("Lets its statements change tables that were there before"),
    ]
}

fn of_experiment(experiment: &'static dyn Experiment) -> Command {
    let info = experiment.info();
    let operations: Vec<&str> = info.operations.iter().map(|operation| operation.name).collect();
    let cache = experiment.takes_cache().then(|| {
        Arg::new("cache")
            .long("cache")
            .value_name("TARGET")
            .help("The cache in front of every target: up:memcached or up:redis, or the URL of one")
    });
    Command::new(info.name)
        .about(info.question)
        .long_about(format!("{}\n\n{}", info.question, info.about))
        .arg(targets(false))
        .args(info.axes.iter().chain([&RATE]).map(axis))
        .arg(
            Arg::new("operation")
                .long("operation")
                .value_name("NAMES")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(operations))
                .help_heading("Axes: each takes a list, separated by commas; cells are their product")
                .help("What is measured [default: all]"),
        )
        .args(cache)
        .args(how())
}

fn axis(axis: &'static AxisInfo) -> Arg {
    let help = match axis.kind {
        AxisKind::Choice(choices) => {
            let choices: Vec<String> =
                choices.iter().map(|(word, help)| format!("{word} ({help})")).collect();
            format!("{}: {}", axis.help, choices.join(", "))
        }
        AxisKind::CountOr { words, .. } | AxisKind::Percent { words, .. } if !words.is_empty() => {
            let words: Vec<String> = words.iter().map(|(word, help)| format!("or {word}: {help}")).collect();
            format!("{}, {}", axis.help, words.join(", "))
        }
        AxisKind::CountOrFile { words, file, .. } => {
            let words: Vec<String> = words.iter().map(|(word, help)| format!("{word}: {help}")).collect();
            format!("{} ({file}); or {}", axis.help, words.join(", "))
        }
        _ => axis.help.to_owned(),
    };
    let default = match axis.default {
        [] => "a closed loop".to_owned(),
        values => values.join(","),
    };
    Arg::new(axis.name)
        .long(axis.name)
        .value_name("LIST")
        .value_delimiter(',')
        .action(ArgAction::Append)
        .help_heading("Axes: each takes a list, separated by commas; cells are their product")
        .help(format!("{help} [default: {default}]"))
}

fn how() -> [Arg; 19] {
    let heading = "How it is measured";
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help_heading(heading).help(help)
    };
    [
        Arg::new("more-targets")
            .short('t')
            .long("target")
            .value_name("TARGET")
            .action(ArgAction::Append)
            .help("A further target"),
        arg(
            "via",
            "URL",
            "An application to drive, such as kurabe app: http://host:port; a target like any other. URL,URL are several \
             before one database, which clients are dealt out to in turn",
        )
        .action(ArgAction::Append),
        arg(
            "requests",
            "N",
            "Requests of each trial, over all clients: 5000, or write=1000,read=10000 [default: the experiment's own]",
        ),
        arg("duration", "TIME", "Time of each trial's measured phase; with --requests, whichever ends first"),
        arg(
            "budget",
            "TIME",
            "About how long the whole run may take, where --requests and --duration are not given [default: 40s for \
             each target]",
        ),
        arg(
            "rounds",
            "N",
            "How often each cell is measured, in random order [default: 6; up to 16 where a trial would take more than 1s]",
        ),
        arg(
            "until",
            "WHEN",
            "conclusive: makes further rounds until each comparison is called, or known to be within --margin",
        )
        .value_parser(["conclusive"])
        .hide_possible_values(true),
        arg("margin", "PERCENT", "With --until: a difference that does not matter [default: 5%]"),
        arg(
            "max-rounds",
            "N",
            "With --until: no more rounds than these; --budget ends it too [default: 100]",
        ),
        arg(
            "interleave",
            "TIME",
            "Trials that are compared take turns in slices of this length, with clients and throwaway servers on processors of \
             their own, which detects smaller differences; 'off' makes separate trials [default: 10ms, or off with --rate and \
             with fewer than 3 rounds]",
        )
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("10ms"),
        arg(
            "restarts",
            "N",
            "Restarts throwaway servers so often, between blocks of rounds of equal length: intervals then hold what one start does \
             otherwise than another [default: 0]",
        ),
        arg("seed", "N", "Seed of data, order and draws [default: from the clock; it is recorded]"),
        arg("records", "N", "Records in the store before it is read [default: the experiment's own rule]"),
        arg(
            "arrivals",
            "HOW",
            "How the transactions of a --rate are spread: even, or poisson as independent users come",
        )
        .value_parser(Arrivals::NAMES)
        .hide_possible_values(true),
        crate::timeout::option().help_heading(heading),
        arg("slo", "TIME", "What the p99 of response times must stay under at --rate max [default: 10ms]"),
        arg(
            "durability",
            "CLASS",
            "What an acknowledged write must survive on every target: memory, os-cache, periodic-sync, synced or \
             replicated; a target that cannot have it is not measured [default: each as it is]",
        ),
        Arg::new("dry-run")
            .long("dry-run")
            .action(ArgAction::SetTrue)
            .help_heading(heading)
            .help("Shows cells, rounds and expected time, and measures nothing"),
        Arg::new("no-html")
            .long("no-html")
            .action(ArgAction::SetTrue)
            .help("Does not write the HTML report beside the run"),
    ]
}
