//! Words that users try, each with the word that there is. They are refused with that word, and do nothing.

use super::pgbench::{self, PGBENCH};
use kurabe_core::Error;

/// Commands: what users write, and how its work is asked for.
const COMMANDS: &[(&str, &str)] = &[
    ("show", "'kurabe report' shows a run, 'kurabe runs ls' lists all"),
    ("rerun", "write 'kurabe run --again'"),
    ("resume", "write 'kurabe run --resume'"),
    ("app", "write 'kurabe up app'"),
    ("stack", "write 'kurabe up stack'"),
    ("listen", "write 'kurabe up tcp'"),
];

/// Options that users try: the command, the name, and what is written.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("run", "json", "--export-json"),
    ("run", "markdown", "--export-markdown"),
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

/// What is written for the word for which a command line was refused; `None` if it is none of these.
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
    if (command, below) == ("run", PGBENCH) || command == "gate" {
        return pgbench::refused(&words);
    }
    let (_, old, now) = OPTIONS.iter().find(|(of, old, _)| is_of(of) && given(old))?;
    Some(Error::usage(format!("there is no option --{old}: write {now}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    /// The command of a path such as `runs ls`.
    fn of(path: &str) -> clap::Command {
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
}
