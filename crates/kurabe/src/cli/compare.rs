//! `kurabe compare`, and the options of gates.

use super::arguments::{export, export_html, export_json, export_markdown, flag, option, view};
use super::complete;
use clap::{Arg, Command};

/// The hidden option by which a run of one target is judged against the run before it.
pub(crate) const PREVIOUS: &str = "previous";

pub(super) fn command() -> Command {
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
