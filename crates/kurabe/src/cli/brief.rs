//! What help shows first: the commands and options that most people need. `--all` after `--help` shows the others.

use super::pgbench::PGBENCH;
use super::run::{QUERY, REPLAY};
use clap::{Arg, ArgAction, Command};
use kurabe_core::axis::AxisInfo;
use kurabe_core::{Error, units};
use kurabe_experiments::registry::EXPERIMENTS;
use std::ffi::OsString;

/// The word behind `--help` or `help` that has all shown.
const ALL: &str = "--all";

/// The commands that `kurabe --help` shows, by task: measure, judge a change, look into an application, read runs.
const COMMANDS: [&str; 14] = [
    "run", "list", "up", "doctor", "gate", "compare", "claims", "capture", "advise", "wire", "copy",
    "report", "runs", "serve",
];

/// The options of `run` that help shows, besides the axes of an experiment that it varies by itself.
const OPTIONS: [&str; 10] = [
    "clients", "operation", "rate", "compare", "budget", "duration", "rounds", "slo", "durability", "dry-run",
];

/// The options of `run` without an experiment that help shows besides.
const OF_RUN: [&str; 6] = ["suite", "again", "resume", "against", "fail-on", "label"];

/// The command line without the word for all help; and whether it was there.
pub(crate) fn without_all(words: Vec<OsString>) -> (Vec<OsString>, bool) {
    let asks = words.iter().any(|word| word == "--help" || word == "-h")
        || words.get(1).is_some_and(|word| word == "help");
    let all = asks && words.iter().any(|word| word == ALL);
    let kept = words.into_iter().filter(|word| !all || word != ALL);
    (kept.collect(), all)
}

/// The commands with what most people do not need hidden from help.
pub(crate) fn brief(command: Command) -> Command {
    command
        .disable_help_flag(true)
        // Without its own flag no command below has one either.
        .arg(help().global(true))
        .mut_args(|arg| if arg.get_id() == "verbose" { keep(arg, |_| true) } else { arg.hide(true) })
        .after_help("'kurabe help --all' shows all commands, exit codes and settings; 'kurabe run session --help' an experiment.")
        .mut_subcommands(|sub| {
            let place = COMMANDS.iter().position(|name| *name == sub.get_name());
            let (hidden, sub) = (place.is_none(), sub.display_order(place.unwrap_or(COMMANDS.len())));
            let about = sub.get_about().map(|about| line(&about.to_string())).unwrap_or_default();
            let sub = sub.about(about).hide(hidden);
            if sub.get_name() == "run" { sub } else { with_help(sub) }
        })
        .mut_subcommand("run", |run| {
            let all = "'kurabe run --help --all' shows all options, 'kurabe run EXPERIMENT --help' those of an experiment.";
            run.disable_help_flag(true).arg(help()).mut_args(|arg| keep(arg, |name| OF_RUN.contains(&name) || OPTIONS.contains(&name)))
                .after_help(all)
                .mut_subcommands(experiment)
        })
}

fn experiment(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let axes = EXPERIMENTS.iter().map(|experiment| experiment.info).find(|info| info.name == name);
    let varies = |axis: &&AxisInfo| axis.default.len() > 1;
    let mut own: Vec<&str> =
        axes.map_or(&[][..], |info| info.axes).iter().filter(varies).map(|axis| axis.name).collect();
    if name == REPLAY {
        own.extend(["speed", "setup", "write"]);
    }
    if name == QUERY {
        own.extend(["query", "statement", "setup", "write"]);
    }
    let scripts = name == PGBENCH;
    command
        .disable_help_flag(true)
        .arg(help())
        .mut_args(|arg| {
            let script = scripts && arg.get_help_heading() == Some("Scripts");
            if script { arg } else { keep(arg, |name| own.contains(&name) || OPTIONS.contains(&name)) }
        })
        .after_help(format!(
            "'kurabe run {name} --help --all' shows all options, and what the experiment does."
        ))
}

/// The option, with a line of help, if it is kept; positional arguments always are.
fn keep(arg: Arg, kept: impl Fn(&str) -> bool) -> Arg {
    let hidden = arg.get_long().is_some() && !kept(arg.get_id().as_str());
    let hidden = hidden || arg.is_hide_set();
    let help = arg.get_help().map(|help| line(&help.to_string())).unwrap_or_default();
    let takes_values = arg.get_action().takes_values();
    arg.hide(hidden).help(help).hide_possible_values(takes_values)
}

/// The first clause of a help text, with the default value.
fn line(help: &str) -> String {
    let (text, default) =
        help.split_once(" [").map_or((help, String::new()), |(text, rest)| (text, format!(" [{rest}")));
    let ends = [": ", "; ", ". ", " (", ", besides", ", whether", ", without"]
        .iter()
        .filter_map(|end| text.find(end));
    let first = ends.min().map_or(text, |end| &text[..end]);
    let default = default.split([';', '(']).next().unwrap_or_default().trim_end_matches(']').to_owned();
    if default.is_empty() { first.to_owned() } else { format!("{first}{default}]") }
}

/// The command and those below it with the usual help, which a command loses if the one above it has another.
fn with_help(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Print help");
    command.arg(help).mut_subcommands(with_help)
}

/// `--help` as one line for each option.
fn help() -> Arg {
    Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help").hide(true)
}

pub(crate) fn meant(command: &Command, words: &[String]) -> Option<Error> {
    let word = words.iter().find(|word| !word.starts_with('-') && *word != "help")?;
    if command.find_subcommand(word).is_some() {
        return None;
    }
    let unknown = |hint: String| Some(Error::usage(format!("there is no command '{word}'")).hint(hint));
    if EXPERIMENTS.iter().any(|experiment| experiment.info.name == *word)
        || [PGBENCH, QUERY, REPLAY].contains(&word.as_str())
    {
        return unknown(format!("{word} is an experiment: write 'kurabe run {word}'"));
    }
    // A URL may hold a password.
    if word.contains(':') {
        return Some(Error::usage("a target is no command").hint("write 'kurabe run session TARGET'"));
    }
    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    // A transposition of two letters is nearer than a letter that is missing.
    unknown(units::suggestion(word, &known, "there are"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(words: &[&str]) -> String {
        let mut command = brief(super::super::command().term_width(100));
        command.try_get_matches_from_mut([&["kurabe"], words].concat()).unwrap_err().render().to_string()
    }

    #[test]
    fn help_shows_commands_by_task_and_twelve_options() {
        let root = help(&["--help"]);
        let commands = root.lines().filter(|line| line.starts_with("  ") && !line.trim().starts_with('-'));
        assert_eq!(
            commands.filter(|line| COMMANDS.iter().any(|name| line.trim().starts_with(name))).count(),
            COMMANDS.len(),
            "{root}"
        );
        assert!(!root.contains("selftest"), "{root}");
        for words in [
            &["copy", "--help"][..],
            &["runs", "ls", "-h"],
            &["claims", "s6", "--help"],
            &["up", "app", "--help"],
        ] {
            assert!(help(words).contains("Print help"), "{words:?}");
        }
        let session = help(&["run", "session", "--help"]);
        let options = session.lines().filter(|line| line.trim().starts_with("--")).count();
        assert_eq!(options, 12, "{session}");
        for text in [root, session] {
            assert!(text.lines().count() <= 30, "{}", text);
        }
    }

    #[test]
    fn all_is_a_word_of_help_only() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            without_all(words("kurabe run session --help --all")),
            (words("kurabe run session --help"), true)
        );
        assert_eq!(without_all(words("kurabe help --all")), (words("kurabe help"), true));
        assert_eq!(without_all(words("kurabe runs --all")), (words("kurabe runs --all"), false));
    }
}
