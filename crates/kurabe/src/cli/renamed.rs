//! Words of earlier versions, each with the word that took its place. They are refused with that word, and do nothing.

use crate::settings;
use clap::{Arg, Command};
use kurabe_core::{Error, Result};
use kurabe_experiments::registry::EXPERIMENTS;

const QUEUE: &str = "cron, CI or a queue of NATS starts 'kurabe run -f suite.toml' now (docs/fleet.md)";

/// Commands: the old one, and how its work is asked for now.
const COMMANDS: &[(&str, &str)] = &[
    ("show", "'kurabe report' shows a run, 'kurabe runs ls' lists all"),
    ("rerun", "write 'kurabe run --again'"),
    ("resume", "write 'kurabe run --resume'"),
    ("app", "write 'kurabe up app'"),
    ("stack", "write 'kurabe up stack'"),
    ("listen", "write 'kurabe up tcp'"),
    ("submit", QUEUE),
    ("runs fetch", QUEUE),
    ("runs cancel", QUEUE),
];

/// Options of earlier versions, or that users try: the command, the name, and what is written now.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("run", "json", "--export-json"),
    ("run", "markdown", "--export-markdown"),
    ("run", "export-html", "'kurabe report last --format html -o FILE'"),
    ("run", "json-progress", "--log-format json"),
    ("claims", "json", "--export-json"),
    ("claims", "html", "--export-html"),
    ("claims", "json-progress", "--log-format json"),
    ("compare", "json", "--export-json"),
    ("compare", "markdown", "--export-markdown"),
    ("compare", "junit", "--export-junit"),
    ("runs ls", "json", "--format json"),
    ("agent", "nats", "--broker"),
    ("agent", "label", "--agent-label"),
    ("copy", "restart", "--no-resume"),
    ("wire", "until", "--first"),
    ("doctor", "wire", "--messages"),
    ("run", "compression", "--wire-compression"),
];

/// What took the place of the word for which a command line was refused; `None` if it is none of an earlier version.
/// `words` are those behind the program's name.
pub(crate) fn renamed(words: &[String]) -> Option<Error> {
    let words: Vec<&str> = words.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    // Options of all commands may precede a command; two of them have values.
    let takes_value = |at: usize| at > 0 && matches!(words[at - 1], "--runs-dir" | "--color");
    let mut plain = (0..words.len()).filter(|at| !words[*at].starts_with('-') && !takes_value(*at));
    let mut command = words[plain.next()?];
    if command == "help" {
        command = words[plain.next()?];
    }
    let below = plain.next().map_or("", |at| words[at]);
    let is_of = |of: &str| of == command || of.split_once(' ') == Some((command, below));
    if let Some((old, now)) = COMMANDS.iter().find(|(old, _)| is_of(old)) {
        return Some(Error::usage(format!("there is no command '{old}' any more: {now}")));
    }
    let given = |old: &str| {
        words
            .iter()
            .filter_map(|word| word.strip_prefix("--"))
            .any(|word| word.split('=').next() == Some(old))
    };
    let (_, old, now) = OPTIONS.iter().find(|(of, old, _)| is_of(of) && given(old))?;
    Some(Error::usage(format!("there is no option --{old}: write {now}")))
}

/// What took the place of a key of the settings file, such as `run.json` or `gate`.
pub(crate) fn renamed_setting(key: &str) -> Option<&'static str> {
    let is_of = |of: &str| {
        let (place, _) = key.rsplit_once('.').unwrap_or_default();
        let of = of.replace(' ', ".");
        // A table of an experiment has the options of `run` too.
        place == of || place.rsplit_once('.').is_some_and(|(above, _)| above == of)
    };
    let option = OPTIONS.iter().find(|(of, old, _)| key.rsplit('.').next() == Some(old) && is_of(of));
    option
        .map(|(.., now)| *now)
        .or_else(|| COMMANDS.iter().find(|(old, _)| old.replace(' ', ".") == key).map(|(_, now)| *now))
}

/// Refuses environment variables of old options and commands: nothing would read them.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the variable and what took its place.
pub(crate) fn refuse_old_settings(variables: impl Iterator<Item = (String, String)>) -> Result<()> {
    let ours = variables.filter(|(name, value)| name.starts_with("KURABE_") && !value.is_empty());
    for (name, _) in ours {
        let is_option = |(of, old, _): &&(&str, &str, &str)| {
            let names: Vec<&str> = of.split(' ').collect();
            let own = |below: &str| settings::variable(&[&names[..], &[below]].concat(), old) == name;
            settings::variable(&names, old) == name
                || *of == "run" && EXPERIMENTS.iter().any(|one| own(one.info().name))
        };
        // Kubernetes makes variables of services: KURABE_APP_PORT is none of ours.
        let is_command = |(old, _): &&(&str, &str)| {
            let option = name.strip_prefix(&format!("{}_", settings::variable(&[], &old.replace(' ', "-"))));
            option.is_some_and(|option| has_option(&super::command(), option))
        };
        let now = OPTIONS.iter().find(is_option).map(|(.., now)| *now);
        if let Some(now) = now.or_else(|| COMMANDS.iter().find(is_command).map(|(_, now)| *now)) {
            return Err(Error::usage(format!("the variable {name} is of an earlier version: {now}")));
        }
    }
    Ok(())
}

/// Whether a command, or one below it, has an option whose variable ends like this, or had it.
fn has_option(command: &Command, end: &str) -> bool {
    let is_it = |long: &str| settings::variable(&[], long).strip_prefix("KURABE_") == Some(end);
    command.get_arguments().filter_map(Arg::get_long).any(is_it)
        || OPTIONS.iter().any(|(_, old, _)| is_it(old))
        || command.get_subcommands().any(|below| has_option(below, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    /// The command of a path such as `runs ls`.
    fn of(path: &str) -> Command {
        path.split(' ').fold(crate::cli::command(), |command, name| {
            command.find_subcommand(name).unwrap_or_else(|| panic!("{path}")).clone()
        })
    }

    #[test]
    fn every_old_word_is_refused_with_a_word_that_there_is() {
        for (old, now) in COMMANDS {
            assert!(crate::cli::command().find_subcommand(old).is_none(), "{old}");
            let said = renamed(&words(&format!("--runs-dir x {old} --json y"))).unwrap().to_string();
            assert!(said.contains(now) && !said.contains('\n'), "{said}");
            assert_eq!(renamed(&words(&format!("help {old}"))).map(|help| help.to_string()), Some(said));
            // Each command that is named there can be parsed.
            for line in now.split('\'').skip(1).step_by(2) {
                let error = crate::cli::command().try_get_matches_from(line.split(' ')).err();
                let kind = error.map(|error| error.kind());
                let known = [None, Some(clap::error::ErrorKind::MissingRequiredArgument)];
                assert!(known.contains(&kind), "{line}: {kind:?}");
            }
        }
        for (path, old, now) in OPTIONS {
            let command = of(path);
            let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
            let new = now.trim_start_matches("--").split(' ').next().unwrap();
            let parses = |line: &str| crate::cli::command().try_get_matches_from(line.split(' ')).is_ok();
            assert!((has(new) || parses(now.trim_matches('\''))) && !has(old), "{path}: {old} → {now}");
            for line in [format!("{path} x --{old} y"), format!("{path} --{old}=y")] {
                let said = renamed(&words(&line)).unwrap().to_string();
                assert!(said.contains(now) && !said.contains('\n'), "{said}");
            }
        }
    }

    #[test]
    fn word_of_another_command_or_of_a_program_is_no_old_word() {
        for line in
            ["run session show", "report --json", "wire up:redis -- curl --until x", "runs rm --json", "-q"]
        {
            assert!(renamed(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn old_setting_and_old_variable_are_refused_with_the_new_word() {
        assert_eq!(renamed_setting("runs.ls.json"), Some("--format json"));
        assert_eq!(renamed_setting("run.bulk.compression"), Some("--wire-compression"));
        assert!(renamed_setting("app").is_some() && renamed_setting("run.rounds").is_none());
        assert!(renamed_setting("runs.json").is_none() && renamed_setting("json").is_none());
        let set = |name: &str, value: &str| {
            refuse_old_settings(std::iter::once((name.to_owned(), value.to_owned())))
        };
        for (name, now) in [
            ("KURABE_AGENT_NATS", "--broker"),
            ("KURABE_RUN_JSON_PROGRESS", "--log-format json"),
            ("KURABE_RUN_BULK_COMPRESSION", "--wire-compression"),
            ("KURABE_RUN_POINT_READ_JSON", "--export-json"),
            ("KURABE_APP_LISTEN", "kurabe up app"),
            ("KURABE_RUNS_FETCH_BROKER", "cron"),
        ] {
            let said = set(name, "x").unwrap_err().to_string();
            assert!(said.contains(name) && said.contains(now), "{said}");
            set(name, "").unwrap();
        }
        let other = ["KURABE_AGENT_BROKER", "KURABE_APPS", "KURABE_UP_APP_LISTEN", "KURABE_RUNS"];
        // Of a service "kurabe-app" in Kubernetes.
        let service = ["KURABE_APP_SERVICE_HOST", "KURABE_APP_PORT", "KURABE_APP_PORT_8080_TCP_ADDR"];
        for name in other.into_iter().chain(service) {
            set(name, "x").unwrap();
        }
    }
}
