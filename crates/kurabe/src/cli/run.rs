//! `kurabe run`: one subcommand per experiment, with its axes as options.

use super::arguments::{file, file_word, flag, option, secret, targets};
use super::measurement::{self, own};
use super::{complete, pgbench, runs};
use crate::run_options::{common_axes, suite_axes};
use clap::{Arg, ArgAction, Command, builder::PossibleValuesParser};
use kurabe_core::axis::{AxisInfo, FreeText};
use kurabe_core::compression::COMPRESSION;
use kurabe_core::cpus::CPUS;
use kurabe_core::experiment::Experiment;
use kurabe_core::load::RATE;
use kurabe_experiments::registry::EXPERIMENTS;

/// The heading of axes, which fits forty columns.
const AXES: &str = "Axes: lists; each combination is run";

pub(super) fn command() -> Command {
    let command = Command::new("run")
        .about("Runs an experiment or a suite file and prints the report; or a recorded run again, or to its end")
        .subcommand_value_name("EXPERIMENT")
        .subcommand_help_heading("Experiments")
        .args_conflicts_with_subcommands(true)
        .arg_required_else_help(true)
        .arg(
            file("suite", "FILE.toml", "A suite file or a custom workload; options on the command line override it")
                .short('f')
                .long("file"),
        )
        .arg(targets(false))
        .args(own())
        .args(axes_of_suites())
        .args(recorded());
    let more = [only()].into_iter().chain(runs::gate()).chain(measurement::fleet());
    EXPERIMENTS
        .iter()
        .fold(measurement::added_to(command, more), |command, experiment| {
            command.subcommand(of_experiment(experiment))
        })
        .subcommand(pgbench::command())
        .subcommand(query())
        .subcommand(replay())
}

/// The name of the experiment that compares queries.
pub(crate) const QUERY: &str = kurabe_experiments::query::QUERY;

fn query() -> Command {
    let [_, write, setup] = own();
    let command = Command::new(QUERY)
        .about("Which query is faster, with the same answer?")
        .long_about(
            "Which query is faster, with the same answer? Executes each query again and again, prepared and as text, and compares \
             their answers: as multisets of rows or, where all have ORDER BY, in order. The report has the plan of each. One \
             query is compared on several targets: other schemas ('up:postgres?setup=main.sql up:postgres?setup=branch.sql'), \
             other settings ('up:postgres up:postgres?work_mem=64MB'), other engines.",
        )
        .arg(
            targets(false)
                .value_name("TARGET|FILE.sql")
                .help("Targets, and the files of the queries; see 'kurabe list' for targets"),
        )
        .arg(
            option("query", "SQL", "A query; may be given several times")
                .long("command")
                .short('c')
                .action(ArgAction::Append),
        )
        .args([write, setup.visible_alias("data")])
        .args(kurabe_experiments::query::axes().iter().chain(common_axes(kurabe_experiments::query::axes())).map(axis));
    measurement::added_to(command, runs::gate())
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

/// The name of the experiment that replays captures.
pub(crate) const REPLAY: &str = "replay";

fn replay() -> Command {
    let [_, write, setup] = own();
    let command = Command::new(REPLAY)
        .about("How fast is each database with recorded traffic?")
        .long_about(
            "Sends what 'kurabe capture' recorded again, on one or several servers of the same protocol: each connection its \
             requests in order, and none before the commits that were answered before it. Each answer is compared with the \
             recorded one. A trial is one replay of the whole capture.",
        )
        .arg(file_word("capture", "CAPTURE", "A file of 'kurabe capture'"))
        .arg(targets(false))
        .args([write, setup.visible_alias("data")])
        .args(kurabe_experiments::replay::axes().iter().map(axis))
        .arg(cache())
        // A replay has no rate of its own.
        .args(common_axes(&[]).map(|info| axis(info).hide(true)));
    measurement::added_to(command, runs::gate())
}

fn of_experiment(experiment: &'static Experiment) -> Command {
    let info = experiment.info;
    let operations: Vec<&str> = info.operations.iter().map(|operation| operation.name).collect();
    let operation = option("operation", "NAMES", "Operations to measure [default: all]")
        .value_delimiter(',')
        .value_parser(PossibleValuesParser::new(operations))
        .help_heading(AXES);
    // Operations that read and write are directions of the data.
    let has_directions = info.axes.iter().all(|axis| axis.name != "direction");
    let operation = if has_directions { operation.alias("direction") } else { operation };
    let cache = experiment.takes_cache.then(cache);
    let remote = experiment.takes_remote.then(|| {
        secret(option(
            "remote",
            "TARGET",
            "A second server: a URL that clients and every target reach, or up:postgres",
        ))
    });
    let command = Command::new(info.name)
        .about(info.question)
        .long_about(format!("{}\n\n{}", info.question, info.about))
        .arg(targets(false))
        .args(info.axes.iter().chain(common_axes(info.axes)).map(axis))
        .arg(operation)
        .args(cache)
        .args(remote);
    measurement::added_to(command, measurement::fleet())
}

fn cache() -> Arg {
    secret(option("cache", "TARGET", "A cache in front of every target: up:memcached, up:redis, or a URL"))
}

pub(super) fn axis(axis: &'static AxisInfo) -> Arg {
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
        .help_heading(AXES)
        .help(format!("{help} [default: {default}]"))
}

/// Options of suites with several runs.
fn only() -> Arg {
    option("only", "NAMES", "Makes only the runs with these names, in the order of a suite of several runs")
        .value_delimiter(',')
}

const RECORDED: &str = "Recorded runs, by name, a prefix of it, or a path [default: the newest]";

/// What is done with a recorded run, instead of a new one of other settings.
fn recorded() -> [Arg; 3] {
    let arg = |name: &'static str, help: &'static str| {
        option(name, "RUN", help)
            .num_args(0..=1)
            .default_missing_value("last")
            .add(complete::runs())
            .help_heading(RECORDED)
    };
    [
        arg("again", "Repeats a run with its own settings, as a new run. Targets may follow, the same in the same order, with \
                      passwords, which a run file does not contain"),
        arg("resume", "Continues an interrupted run at its next trial, likewise; --max-rounds N allows a run with --until more rounds")
            .conflicts_with("again"),
        flag(
            "trust",
            "With --again and --resume of a run that was not made here: uses the targets, files, programs and statements that \
             its file names. Read it first",
        )
        .help_heading(RECORDED),
    ]
}
