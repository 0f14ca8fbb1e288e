//! `kurabe run pgbench`, and what becomes of each of pgbench's own options.

use super::arguments::{flag, option, targets};
use super::measurement::{self, own};
use super::run::axis;
use super::runs;
use crate::run_options::common_axes;
use clap::{ArgAction, Command, ValueHint};
use kurabe_core::Error;

/// The name of the experiment that runs pgbench scripts.
pub(crate) const PGBENCH: &str = "pgbench";

/// Options that stand for a built-in script: the long and the short name, and the help.
const BUILT_IN: [(&str, char, &str); 2] =
    [("skip-some-updates", 'N', "As -b simple-update"), ("select-only", 'S', "As -b select-only")];

/// pgbench's options (its manual, versions 11 to 18) that are refused: the long name, the short one, and what to write. It takes the
/// others, but for `-v`, and `-h` without a value, which are those of this program.
const REFUSED: [(&str, Option<char>, &str); 27] = [
    (
        "latency-limit",
        Some('L'),
        "--slo 100ms judges the 99th percentile of each result; no transaction is skipped",
    ),
    (
        "report-per-command",
        Some('r'),
        "each script has results of its own; 'kurabe capture' records statements with their times",
    ),
    (
        "report-latencies",
        None,
        "each script has results of its own; 'kurabe capture' records statements with their times",
    ),
    ("log", Some('l'), "--export-json writes all figures, 'kurabe report --format hgrm' all latencies"),
    ("log-prefix", None, "--export-json writes all figures, 'kurabe report --format hgrm' all latencies"),
    ("aggregate-interval", None, "the page has rates and latencies over the time of a trial"),
    ("sampling-rate", None, "every transaction is recorded"),
    ("progress-timestamp", None, "--log-format json has each event of a run"),
    ("random-seed", None, "write --seed N"),
    ("vacuum-all", None, "vacuum your tables before the run"),
    (
        "failures-detailed",
        None,
        "results have the number of retries; a failure ends its trial with the server's error",
    ),
    ("verbose-errors", None, "a failure ends its trial with the server's error"),
    ("exit-on-abort", None, "a failure ends its trial in any case"),
    ("show-script", None, "docs/custom-workloads.md has the built-in scripts"),
    ("debug", None, "'kurabe wire' shows what is sent"),
    ("dbname", Some('d'), URL),
    ("host", None, URL),
    ("port", Some('p'), URL),
    ("username", Some('U'), URL),
    ("init-steps", Some('I'), TABLES),
    ("fillfactor", Some('F'), TABLES),
    ("foreign-keys", None, TABLES),
    ("partitions", None, TABLES),
    ("partition-method", None, TABLES),
    ("unlogged-tables", None, TABLES),
    ("tablespace", None, TABLES),
    ("index-tablespace", None, TABLES),
];
const URL: &str = "the target is a URL: postgres://user@host:port/database";
const TABLES: &str = "--init makes the tables as 'pgbench -i' does without it; make your own tables with 'pgbench -i', and leave out --init";

/// Why an option of pgbench is refused, if `words`, those after the program's name, are of a command that runs its scripts and
/// have one that is. With `helps` the command would show its help, and only a host after `-h` is.
pub(crate) fn refused(words: &[String], helps: bool) -> Option<Error> {
    let words = || words.iter().map(String::as_str).take_while(|word| *word != "--");
    let pairs = || words().zip(words().skip(1));
    // Options of all commands may stand before and between; two of them have values.
    let is_value = |before: &str| matches!(before, "--runs-dir" | "--color");
    let mut plain = std::iter::once("").chain(words()).zip(words());
    let mut plain =
        || plain.find(|(before, word)| !word.starts_with('-') && !is_value(before)).map(|(_, word)| word);
    let (first, second) = (plain(), plain());
    let runs = (first, second) == (Some("run"), Some(PGBENCH));
    if runs && pairs().any(|(word, value)| word == "-h" && is_host(value)) {
        return Some(Error::usage("pgbench's option --host (-h) is not supported").hint(URL));
    }
    if helps || !runs && first != Some("gate") {
        return None;
    }
    let command = command();
    let takes_value = |short: char| {
        let mut all = command.get_arguments();
        all.any(|arg| arg.get_short() == Some(short) && arg.get_action().takes_values())
    };
    let found = words().find_map(|word| {
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            return REFUSED.iter().find(|(known, ..)| *known == name);
        }
        let mut letters = word.strip_prefix('-')?.chars().take_while(char::is_ascii_alphabetic);
        loop {
            let letter = letters.next()?;
            let found = REFUSED.iter().find(|(_, short, _)| *short == Some(letter));
            if found.is_some() || takes_value(letter) {
                break found;
            }
        }
    });
    found.map(|(long, short, hint)| {
        let short = short.map_or_else(String::new, |short| format!(" (-{short})"));
        Error::usage(format!("pgbench's option --{long}{short} is not supported")).hint(*hint)
    })
}

/// Whether the word after `-h` is the name, the address or the socket's directory of a server, and no option or target.
fn is_host(word: &str) -> bool {
    !word.starts_with('-') && (!word.contains(':') || word.parse::<std::net::IpAddr>().is_ok())
}

pub(super) fn command() -> Command {
    let heading = "Scripts";
    let arg = |name: &'static str, short: char, value: &'static str, help: &'static str| {
        option(name, value, help).short(short).help_heading(heading)
    };
    let command = Command::new(PGBENCH)
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
                .visible_alias("initialize")
                .help_heading(heading),
        )
        .args(
            BUILT_IN.map(|(name, short, help)| flag(name, help).short(short).help_heading(heading).hide(true)),
        )
        .args([
            flag("connect", "A connection for each transaction, as --connection per-request")
                .short('C')
                .help_heading(heading),
            flag("no-vacuum", "No effect: nothing is vacuumed").short('n').hide(true),
            arg("progress", 'P', "SECONDS", "No effect: progress is shown").hide(true),
        ])
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
                "How often a transaction is tried if it was not serializable or met a deadlock; 0: until it succeeds, or the time \
                 of --timeout is over [default: 1]",
            )
            .help_heading(heading),
        ])
        .args(own())
        .args(kurabe_experiments::custom::axes().iter().chain(common_axes(&[])).map(axis));
    let more = runs::gate().into_iter().chain(measurement::fleet());
    // pgbench's -t is a number of transactions.
    measurement::added_to(command, more).mut_arg("more-targets", |target| target.short(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of PostgreSQL 18's program, as its help lists them.
    const ALL: &str = "-i --initialize -I --init-steps -F --fillfactor -n --no-vacuum -q --quiet -s --scale --foreign-keys \
        --index-tablespace --partition-method --partitions --tablespace --unlogged-tables -b --builtin -f --file -N \
        --skip-some-updates -S --select-only -c --client -C --connect -D --define -j --jobs -l --log -L --latency-limit -M --protocol \
        -P --progress -r --report-per-command -R -t --transactions -T --time --vacuum-all --aggregate-interval --exit-on-abort \
        --failures-detailed --log-prefix --max-tries --progress-timestamp --random-seed --sampling-rate --show-script \
        --verbose-errors --debug -d --dbname --host -p --port -U --username";

    fn of_run(words: &[&str]) -> Option<Error> {
        refused(
            &[&["run", PGBENCH], words].concat().iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(),
            false,
        )
    }

    #[test]
    fn every_option_of_pgbench_is_taken_or_refused_with_what_to_write() {
        let command = command();
        let all = crate::cli::command();
        let takes = |word: &str| {
            let mut known = command.get_arguments().chain(all.get_arguments());
            match word.strip_prefix("--") {
                Some(long) => known.any(|arg| {
                    arg.get_long() == Some(long)
                        || arg.get_all_aliases().is_some_and(|names| names.contains(&long))
                }),
                None => known.any(|arg| arg.get_short() == word.chars().nth(1)),
            }
        };
        for word in ALL.split_whitespace() {
            let refused = of_run(&[word]);
            assert_ne!(takes(word), refused.is_some(), "{word}: {refused:?}");
            assert!(refused.is_none_or(|why| why.to_string().contains("pgbench's option --")), "{word}");
        }
        for (long, short, _) in REFUSED {
            assert!(
                !takes(&format!("--{long}")) && short.is_none_or(|short| !takes(&format!("-{short}"))),
                "{long}"
            );
        }
    }

    #[test]
    fn host_after_short_help_is_refused_and_help_is_not() {
        let of_help = |words: &[&str]| {
            refused(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), true).is_some()
        };
        for host in ["localhost", "db.example", "10.0.0.1", "::1", "/var/run/postgresql"] {
            assert!(of_help(&["run", PGBENCH, "-h", host, "-T", "10"]), "{host}");
        }
        for words in [
            &["-h"][..],
            &["-h", "-v"],
            &["postgres://h/d", "-h"],
            &["-h", "up:postgres"],
            &["--help", "bench"],
        ] {
            assert!(!of_help(&[&["run", PGBENCH], words].concat()), "{words:?}");
        }
        assert!(of_help(&["-q", "--runs-dir", "d", "run", "-v", PGBENCH, "-h", "localhost"]));
        assert!(!of_help(&["run", "kv", "-h", "localhost"]));
        assert!(!of_help(&["run", "kv", "--export-json", "run", PGBENCH, "-h", "localhost"]));
    }

    #[test]
    fn refused_option_is_found_among_letters_and_not_in_values() {
        for words in
            [&["-nL", "100"][..], &["-c8", "-L100"], &["--latency-limit=5"], &["-Tr"][..0], &["-rT", "5"]]
        {
            assert_eq!(of_run(words).is_some(), !words.is_empty(), "{words:?}");
        }
        for words in [&["-Mprepared"][..], &["-f", "L.sql"], &["-Dr=5"], &["-", "--"], &["-b", "-1"]] {
            assert!(of_run(words).is_none(), "{words:?}");
        }
    }
}
