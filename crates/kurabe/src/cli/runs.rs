//! The commands on recorded runs: `kurabe runs`, `report`, `compare` with the options of gates, and `serve`.

use super::arguments::{
    choice, export, export_html, export_json, export_markdown, file, file_word, flag, one_run, option,
    secret, view,
};
use super::complete;
use super::pgbench::PGBENCH;
use clap::{Arg, ArgAction, Command, ValueHint};
use std::ffi::OsString;
use std::path::Path;

pub(super) fn runs() -> Command {
    Command::new("runs")
        .about("Lists, removes and annotates recorded runs, and copies them from and to other machines")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("ls")
                .about("Lists runs, the newest first, with labels, commit, verdict and note")
                .arg(option("label", "LABEL", "Only runs with this label"))
                .arg(option(
                    "suite",
                    "NAME",
                    "Only runs of this suite, by its file name without the extension",
                ))
                .arg(
                    choice(
                        "format",
                        "FORMAT",
                        "text, or a JSON object for each run, one per line",
                        ["text", "json"],
                    )
                    .hide_possible_values(true),
                ),
        )
        .subcommand(
            Command::new("rm").about("Removes runs and their reports").arg(several("The runs to remove")),
        )
        .subcommand(
            Command::new("note")
                .about("Shows or replaces the note of a run; an empty text removes it")
                .arg(Arg::new("run").required(true).value_name("RUN").add(complete::runs()).help("The run"))
                .arg(Arg::new("text").value_name("TEXT").help("The new note")),
        )
        .subcommand(
            Command::new("export")
                .about("Writes runs with their notes into one tar archive")
                .arg(several("The runs to export"))
                .arg(
                    file("output", "FILE", "The archive; it is compressed if its name ends with .gz or .tgz")
                        .short('o')
                        .required(true),
                ),
        )
        .subcommand(
            Command::new("import").about("Reads runs from archives, folders of runs, or run files").arg(
                file_word("file", "FILE", "What 'kurabe runs export' made, a run's folder, or a run file")
                    .num_args(1..)
                    .value_hint(ValueHint::AnyPath),
            ),
        )
}

fn several(help: &'static str) -> Arg {
    Arg::new("run")
        .required(true)
        .num_args(1..)
        .action(ArgAction::Append)
        .value_name("RUN")
        .add(complete::runs())
        .help(help)
}

pub(super) fn report() -> Command {
    Command::new("report")
        .about("Shows a run in the terminal, or writes its report in another format")
        .arg(
            one_run("Name of the run or a prefix of it, or a path [default: the newest]").required(false).default_value("last").hide_default_value(true),
        )
        .arg(
            option("format", "FORMAT", "Format: text for the terminal, HTML with charts, Markdown, CSV, JSON, HdrHistogram's percentiles, OpenMetrics (for Prometheus), or the raw windows of all trials as CSV (windows) [default: as the name of --output ends, else text]").value_parser(["text", "html", "md", "csv", "json", "hgrm", "openmetrics", "windows"]),
        )
        .arg(
            file("output", "FILE", "Output file ('-': standard output) [default: html in the run's folder, other formats to \
                     standard output]").short('o'),
        )
        .arg(
            flag("published", "Shows published results in the charts (html)").conflicts_with("anonymise"),
        )
        .arg(export_html().conflicts_with("format"))
        .args(view())
}

/// The hidden option by which a run of one target is judged against the run before it.
pub(crate) const PREVIOUS: &str = "previous";

pub(super) fn compare() -> Command {
    Command::new("compare")
        .about("Compares two runs, result by result; with --fail-on, says by the exit code whether the second is slower")
        .arg(Arg::new("a").required(true).value_name("BASE").add(complete::runs()).help("The first run"))
        .arg(Arg::new("b").required(true).value_name("NEW").add(complete::runs()).help("The second run"))
        .args([fail_on(), export_json(), export_markdown(), export_html(), junit()])
        .args(view())
}

/// The options of a run that is judged.
pub(super) fn gate() -> [Arg; 4] {
    let against = option(
        "against",
        "BASE",
        "Compares the run with an earlier one: its name, path or 'last'; or a label or a git branch, which mean the \
         newest complete run of this suite that has it. Implies --fail-on slower",
    );
    [against.add(complete::runs()).help_heading("Gate"), fail_on(), junit(), flag(PREVIOUS, "").hide(true)]
}

fn fail_on() -> Arg {
    option(
        "fail-on",
        "slower[:PERCENT]|p99[:PERCENT]",
        "Exit with 6 if a primary metric or the mean time of a kind of transaction is worse by more than this, or the 99th \
         percentile of times by more than that of p99 (20 % unless it is named); with 7 if that is undecided. 'slower' is \
         slower:5%; several with commas. A run of two targets is judged by itself: the second against the first",
    )
    .help_heading("Gate")
}

fn junit() -> Arg {
    export("export-junit", "Writes the gate's judgements as JUnit XML; requires --fail-on or --against")
        .help_heading("Gate")
}

pub(super) fn serve() -> Command {
    Command::new("serve")
        .about("Serves a web page of this machine's runs: live trials, reports, comparisons, history and a form for new runs")
        .long_about(
            "Serves a web page of this machine's runs: live trials, reports, comparisons, history and a form for new runs. \
             It prints its URL, which has a token. With the token, one can start and stop runs as the user of this program. Runs that were \
             started from the page go on when it ends, and it finds them again. /metrics has the newest results of \
             running runs for Prometheus. Ctrl-C ends the page.\n\nForms may name the targets that are given here, throwaway \
             servers, and SQLite files in the folder of runs.",
        )
        .arg(
            secret(Arg::new("target"))
                .num_args(0..)
                .value_name("TARGET")
                .help("Database URLs that forms may name, besides up:ENGINE and sqlite:; '-' is the next line of standard input"),
        )
        .arg(flag(
            "allow-any-target",
            "Allow forms any target, and any file that an option of an experiment names; and runs that are resumed all that \
             their files name",
        ))
        .arg(
            option("listen", "ADDRESS:PORT", "Where to listen; port 0: any free one")
                .default_value("127.0.0.1:8096"),
        )
        .arg(
            option("host", "NAME[:PORT]", "Another name by which browsers reach the page; may be given several times")
                .action(ArgAction::Append),
        )
        .arg(secret(option(
            "token",
            "TOKEN",
            "What a user must know, at least 8 letters or digits; none: everybody who reaches the address may do \
             everything; -: the next line of standard input [default: a random one]",
        )))
}

/// The name of the command that judges.
const GATE: &str = "gate";

/// `kurabe gate FILE… TARGET…`: a short form of `kurabe run … --fail-on slower`, whose options it takes.
pub(super) fn gate_command() -> Command {
    let help = "Pgbench scripts (browse.sql, or browse.sql@3 with a weight), or a suite file or custom workload (shop.toml); \
                then one target or two, and options of 'kurabe run pgbench' or of 'kurabe run -f'";
    Command::new(GATE)
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
             Exit codes: 0 passed, 6 slower, 7 undecided. --fail-on says what is judged [default: slower, which is slower:5%].\n\
             --export-html FILE writes the page, --export-junit FILE the results for CI; 'kurabe run --help --all' shows all options.",
        )
}

/// The command line with `gate` in the words of `run`, if it names files; otherwise as it is. `all`: all commands.
pub(crate) fn as_run(words: Vec<OsString>, all: &Command) -> Vec<OsString> {
    let plain: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let takes_value = |word: &str| matches!(word, "--runs-dir" | "--color");
    let is_command = |at: &usize| !plain[*at].starts_with('-') && !takes_value(plain[at - 1]);
    let asks_for_help = plain.iter().any(|word| matches!(*word, "-h" | "--help"));
    let Some(at) = (1..plain.len()).find(is_command).filter(|at| plain[*at] == GATE) else { return words };
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
