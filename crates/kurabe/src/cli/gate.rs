//! `kurabe gate FILE… TARGET…`: a short form of `kurabe run … --fail-on slower`, whose options it takes.

use super::pgbench::PGBENCH;
use super::runs::PREVIOUS;
use clap::{Arg, Command};
use std::ffi::OsString;
use std::path::Path;

/// The name of the command.
const NAME: &str = "gate";

pub(super) fn command() -> Command {
    let help = "Pgbench scripts (browse.sql, or browse.sql@3 with a weight), or a suite file or custom workload (shop.toml); \
                then one target or two, and options of 'kurabe run pgbench' or of 'kurabe run -f'";
    Command::new(NAME)
        .about("Judges the second of two targets against the first, or one target against its last run, by the exit code")
        .arg(
            Arg::new("words")
                .value_name("FILE|TARGET")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .help(help),
        )
        .after_help(
            "kurabe gate browse.sql postgres://old/shop postgres://new/shop    two servers, schemas or builds\n\
             kurabe gate browse.sql order.sql@2 postgres://me@host/shop        against the last run of browse.sql\n\
             kurabe gate shop.toml up:postgres 'up:postgres?work_mem=64MB'     a workload of your own\n\n\
             Exit codes: 0 passed, 6 slower, 7 undecided. --fail-on says what is judged [default: slower, which is slower:5%].",
        )
}

/// The command line with `gate` in the words of `run`, if it names files; otherwise as it is. `all`: all commands.
pub(crate) fn as_run(words: Vec<OsString>, all: &Command) -> Vec<OsString> {
    let plain: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let takes_value = |word: &str| matches!(word, "--runs-dir" | "--color");
    let is_command = |at: &usize| !plain[*at].starts_with('-') && !takes_value(plain[at - 1]);
    let asks_for_help = plain.iter().any(|word| matches!(*word, "-h" | "--help"));
    let Some(at) = (1..plain.len()).find(is_command).filter(|at| plain[*at] == NAME) else { return words };
    if asks_for_help {
        return words[..=at].iter().cloned().chain(["--help".into()]).collect();
    }
    let is_file = |word: &str, ending: &str| {
        !word.contains(':') && Path::new(word).extension().is_some_and(|found| found == ending)
    };
    let is_script = |word: &str| {
        let name = word.rsplit_once('@').filter(|(_, weight)| weight.parse::<u64>().is_ok());
        is_file(name.map_or(word, |(name, _)| name), "sql")
    };
    let is_suite = |word: &str| is_file(word, "toml");
    let scripts = plain[at..].iter().any(|word| is_script(word));
    if !scripts && !plain[at..].iter().any(|word| is_suite(word)) {
        return words;
    }
    let mut out: Vec<OsString> = words[..at].to_vec();
    out.push("run".into());
    out.extend(scripts.then(|| PGBENCH.into()));
    let run = all.find_subcommand("run");
    let options: Vec<&Arg> = [Some(all), run, run.and_then(|run| run.find_subcommand(PGBENCH))]
        .into_iter()
        .flatten()
        .flat_map(Command::get_arguments)
        .collect();
    // A file after an option with a value is that option's.
    let has_value = |word: &str| {
        let Some(name) = word.strip_prefix("--").filter(|name| !name.contains('=') && *name != "file") else {
            return false;
        };
        let option = options.iter().find(|option| option.get_long() == Some(name));
        option.is_none_or(|option| option.get_action().takes_values() && !option.is_require_equals_set())
    };
    for (before, word) in plain[at..].iter().zip(&plain[at + 1..]) {
        if !has_value(before) && (if scripts { is_script(word) } else { is_suite(word) }) {
            out.push("-f".into());
        }
        if !matches!(*word, "-f" | "--file") {
            out.push(word.into());
        }
    }
    if !plain.iter().any(|word| word.starts_with("--fail-on") || word.starts_with("--against")) {
        out.extend(["--fail-on".into(), "slower".into()]);
    }
    out.push(format!("--{PREVIOUS}").into());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_is_a_run_that_is_judged() {
        let run = |line: &str| {
            let words = as_run(line.split(' ').map(OsString::from).collect(), &crate::cli::command());
            words.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        for (line, wanted) in [
            (
                "k gate a.sql postgres://h/d",
                "k run pgbench -f a.sql postgres://h/d --fail-on slower --previous",
            ),
            (
                "k -q gate a.sql@3 -f b.sql sqlite: --setup s.sql --fail-on p99",
                "k -q run pgbench -f a.sql@3 -f b.sql sqlite: --setup s.sql --fail-on p99 --previous",
            ),
            (
                "k gate --verbose b.sql --interleave c.sql --file d.sql --yes --fail-on p99 sqlite:",
                "k run pgbench --verbose -f b.sql --interleave -f c.sql -f d.sql --yes --fail-on p99 sqlite: --previous",
            ),
            (
                "k --runs-dir gate gate s.toml --against main",
                "k --runs-dir gate run -f s.toml --against main --previous",
            ),
        ] {
            assert_eq!(run(line), wanted);
            let words = wanted.split(' ').skip(1);
            let parsed = crate::cli::command().try_get_matches_from(["kurabe"].into_iter().chain(words));
            assert!(parsed.is_ok(), "{wanted}: {parsed:?}");
        }
        for line in ["k gate", "k gate --help", "k run gate.toml", "k report gate", "k gate sqlite: a:b.sql"]
        {
            assert_eq!(run(line), line);
        }
    }
}
