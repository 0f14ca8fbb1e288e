//! Values of options, also of those that are not on the command line: environment variables and the settings file.
//!
//! Each option has a variable: `KURABE_`, the names of its command, and its own name, in capitals:
//! `KURABE_RUN_ROUNDS`, `KURABE_RUN_SESSION_PAYLOAD`. The settings file has the same structure: a table for each command,
//! a key for each option. Command line, environment, suite file and settings file take precedence in this order.

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};
use kurabe_core::{Error, Result, units};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The variable that names the settings file; an empty value: none.
const FILE: &str = "KURABE_CONFIG";
/// The prefix of the variables of options.
const PREFIX: &str = "KURABE";

/// The text for `--help`.
pub(crate) const HELP: &str = "Options can also be set by environment variables, which are named by command and option \
(KURABE_RUN_ROUNDS=8), and in ~/.config/kurabe/config.toml ([run], rounds = 8).";

/// The command line with the values of environment and settings file.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with file and key if the settings file is invalid.
pub(crate) fn configured(command: Command) -> Result<Command> {
    let Some((file, required)) = file() else { return Ok(apply(command, &[], &[&Table::new()])) };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => String::new(),
        Err(error) => {
            let message = format!("the settings file {} cannot be read: {error}", file.display());
            return Err(Error::usage(message).hint(format!("check it, or set {FILE} to another file")));
        }
    };
    let table = read(&command, &text).map_err(|error| error.context(file.display()))?;
    Ok(apply(command, &[], &[&table]))
}

/// The settings file, and whether the user named it: the default one need not exist.
fn file() -> Option<(PathBuf, bool)> {
    if let Some(named) = std::env::var_os(FILE) {
        return (!named.is_empty()).then(|| (PathBuf::from(named), true));
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some((folder.join(Path::new("kurabe/config.toml")), false))
}

/// Reads the settings file and checks it against the commands.
fn read(command: &Command, text: &str) -> Result<Table> {
    let table = crate::document::table(text)?;
    check(command, &table, "")?;
    Ok(table)
}

/// Checks each key and value of a command's table; `place` is its name in messages.
fn check(command: &Command, table: &Table, place: &str) -> Result<()> {
    for (key, value) in table {
        let name = format!("{place}{key}");
        if let Some(below) = command.find_subcommand(key)
            && let Value::Table(table) = value
        {
            check(below, table, &format!("{name}."))?;
            continue;
        }
        // An option of all experiments may stand in the table of `run`.
        let all = [command].into_iter().chain(command.get_subcommands());
        let found: Vec<&Arg> = all.flat_map(options).filter(|arg| arg.get_long() == Some(key)).collect();
        if found.is_empty() {
            let commands = command.get_subcommands().map(Command::get_name);
            let known: Vec<&str> = options(command).filter_map(Arg::get_long).chain(commands).collect();
            let error = Error::usage(format!("there is no option '{name}'"));
            return Err(error.hint(units::suggestion(key, &known, "there are")));
        }
        for arg in found {
            values(arg, value).map_err(|error| error.context(&name))?;
        }
    }
    Ok(())
}

/// The options of a command, without its positional arguments.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| arg.get_long().is_some())
}

fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// The values of an option in the settings file, as text.
fn values(arg: &Arg, value: &Value) -> Result<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err(Error::usage("it is neither a string nor a number")),
    };
    let several = matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some();
    let found = match value {
        Value::Boolean(on) if is_flag(arg) => return Ok(vec![on.to_string()]),
        _ if is_flag(arg) => return Err(Error::usage("it is neither true nor false")),
        Value::Array(values) if several => values.iter().map(text).collect::<Result<Vec<_>>>()?,
        Value::Array(_) => return Err(Error::usage("it takes one value")),
        value => vec![text(value)?],
    };
    // The program's own check of the value, before it becomes a default.
    let one = Arg::new("value").value_parser(arg.get_value_parser().clone()).num_args(1..);
    let one = one.allow_hyphen_values(true);
    let parts = found.iter().flat_map(|value| match arg.get_value_delimiter() {
        Some(delimiter) => value.split(delimiter).map(str::to_owned).collect(),
        None => vec![value.clone()],
    });
    if let Err(error) = Command::new("settings").no_binary_name(true).arg(one).try_get_matches_from(parts) {
        let text = error.to_string();
        let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let reason = reason.split(" for '").next().unwrap_or_default().to_owned();
        let allowed: Vec<String> =
            arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let error = Error::usage(reason);
        return Err(if allowed.is_empty() {
            error
        } else {
            error.hint(format!("one of: {}", allowed.join(", ")))
        });
    }
    Ok(found)
}

/// Gives the options of a command, and of those below it, the values of environment and settings file. `names` are the
/// names of the command, `tables` the tables that hold for it, the most specific one first.
fn apply(command: Command, names: &[&str], tables: &[&Table]) -> Command {
    let command = command.mut_args(|arg| configured_option(arg, names, tables));
    command.mut_subcommands(|below| {
        let name = below.get_name().to_owned();
        let names: Vec<&str> = names.iter().copied().chain([name.as_str()]).collect();
        let own = tables.first().and_then(|table| table.get(&name)).and_then(Value::as_table);
        // The settings of `kurabe` itself are global options, which are those of the first command only.
        let above = if names.len() > 1 { tables } else { &[] };
        let tables: Vec<&Table> = own.into_iter().chain(above.iter().copied()).collect();
        apply(below, &names, &tables)
    })
}

fn configured_option(arg: Arg, names: &[&str], tables: &[&Table]) -> Arg {
    let Some(long) = arg.get_long().map(str::to_owned) else { return arg };
    let default = tables.iter().find_map(|table| table.get(&long));
    // It has been checked.
    let default = default.and_then(|value| values(&arg, value).ok());
    let arg = if is_flag(&arg) { arg.value_parser(BoolishValueParser::new()) } else { arg };
    let arg = match default {
        Some(values) => arg.default_values(values),
        None => arg,
    };
    // `run session` takes the variables of `run` too.
    let variables = (names.len().min(1)..=names.len()).rev().map(|count| variable(&names[..count], &long));
    let set = |name: &String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match variables.into_iter().find(set) {
        Some(name) => arg.env(name).hide_env(true),
        None => arg,
    }
}

/// `KURABE_RUN_NO_HTML`.
fn variable(names: &[&str], long: &str) -> String {
    let parts: Vec<&str> = [PREFIX].into_iter().chain(names.iter().copied()).chain([long]).collect();
    parts.join("_").replace('-', "_").to_uppercase()
}

/// The value of a setting, if it is set; an error names the setting.
pub(crate) fn parsed<T>(
    prefix: &str,
    name: &str,
    text: Option<String>,
    parse: impl Fn(&str) -> Result<T>,
) -> Result<Option<T>> {
    text.map(|text| parse(&text).map_err(|error| error.context(format!("{prefix}{name}")))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, words: &[&str]) -> Vec<String> {
        let table = read(&crate::cli::command(), text).unwrap();
        let command = apply(crate::cli::command(), &[], &[&table]);
        let matches = command.try_get_matches_from([&["kurabe"], words].concat()).unwrap();
        let (mut last, mut names) = (&matches, Vec::new());
        while let Some((name, below)) = last.subcommand() {
            (last, names) = (below, [names, vec![name]].concat());
        }
        ["rounds", "payload", "color"]
            .iter()
            .flat_map(|name| last.try_get_many::<String>(name).ok().flatten().into_iter().flatten().cloned())
            .collect()
    }

    #[test]
    fn settings_are_defaults_of_their_command_and_those_below_it() {
        let text = "color = 'never'\n[run]\nrounds = 8\n[run.session]\npayload = ['1k', '10k']\nrounds = 9";
        assert_eq!(found(text, &["run", "kv"]), ["8", "never"]);
        assert_eq!(found(text, &["run", "session"]), ["9", "1k", "10k", "never"]);
        assert_eq!(
            found(text, &["run", "session", "--rounds", "3", "--payload", "4k"]),
            ["3", "4k", "never"]
        );
        assert_eq!(found(text, &["--color", "always", "selftest"]), ["3", "always"]);
    }

    #[test]
    fn flag_in_settings_is_set() {
        let table = read(&crate::cli::command(), "quiet = true\n[run]\nno-html = true").unwrap();
        let command = apply(crate::cli::command(), &[], &[&table]);
        let matches = command.try_get_matches_from(["kurabe", "run", "kv"]).unwrap();
        let kv = matches.subcommand().unwrap().1.subcommand().unwrap().1;
        assert!(matches.get_flag("quiet") && kv.get_flag("no-html") && !kv.get_flag("dry-run"));
    }

    #[test]
    fn wrong_setting_is_refused_with_its_place() {
        for (text, parts) in [
            ("[run]\nround = 3", ["run.round", "'rounds'"]),
            ("[runn]\nrounds = 3", ["runn", "'run'"]),
            ("a = = 3", ["line 1", ""]),
            ("color = 'pink'", ["color", "one of: auto, always, never"]),
            ("[run]\nno-html = 3", ["run.no-html", "neither true nor false"]),
            ("[run]\nrounds = [3, 4]", ["run.rounds", "one value"]),
            ("[run]\nuntil = 'dawn'", ["run.until", "conclusive"]),
            ("[run.session]\nscale = 3", ["run.session.scale", "no option"]),
        ] {
            let error = read(&crate::cli::command(), text).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }

    #[test]
    fn variables_are_named_by_command_and_option() {
        assert_eq!(variable(&[], "runs-dir"), "KURABE_RUNS_DIR");
        assert_eq!(variable(&["run", "cache-aside"], "no-html"), "KURABE_RUN_CACHE_ASIDE_NO_HTML");
    }
}
