//! `kurabe selftest`.

use clap::{Arg, ArgAction, Command};

pub(super) fn command() -> Command {
    Command::new("selftest")
        .about("Tests Kurabe itself: plants known causes on throwaway servers, and counts how many it names correctly")
        .arg(
            Arg::new("engine")
                .value_name("ENGINE")
                .num_args(0..)
                .help("Engines, with settings if needed: mariadb?innodb_buffer_pool_size=16M [default: all that are installed]"),
        )
        .arg(
            Arg::new("kind")
                .long("kind")
                .value_name("KIND")
                .value_delimiter(',')
                .help("Causes to plant [default: all]"),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .value_name("N")
                .default_value("3")
                .help("How often each cause is planted on each engine; with --differences: rounds of each comparison [16]"),
        )
        .arg(Arg::new("differences").long("differences").value_name("N").conflicts_with("kind").help(
            "Makes N comparisons with a planted difference and N without, over all engines, and counts correct verdicts; \
             200 take about 15 minutes",
        ))
        .arg(
            Arg::new("interleave")
                .long("interleave")
                .value_name("TIME")
                .num_args(0..=1)
                .require_equals(true)
                .default_value("10ms")
                .default_missing_value("10ms")
                .help("Interleaves the trials of --differences in slices of this length, as 'kurabe run --interleave' does; 'off': separate trials"),
        )
        .arg(
            Arg::new("clients")
                .long("clients")
                .value_name("N")
                .default_value("1")
                .value_delimiter(',')
                .help("Numbers of clients"),
        )
        .arg(
            Arg::new("separate")
                .long("separate")
                .requires("differences")
                .conflicts_with_all(["rounds", "duration"])
                .action(ArgAction::SetTrue)
                .help(
                    "Starts two servers for each comparison and restarts them, as a run of two 'up:' targets with default \
                     options does; about 80 s each",
                ),
        )
        .arg(
            Arg::new("records")
                .long("records")
                .value_name("N")
                .requires("differences")
                .help("Number of records in each store [default: 500; with --separate that of the experiment]"),
        )
        .arg(
            Arg::new("writes")
                .long("writes")
                .requires("differences")
                .action(ArgAction::SetTrue)
                .help("Compares writes, one per transaction, instead of reads"),
        )
        .arg(
            Arg::new("effect")
                .long("effect")
                .value_name("PERCENT")
                .default_value("5%")
                .help("The planted difference"),
        )
        .arg(
            Arg::new("duration")
                .long("duration")
                .value_name("TIME")
                .default_value("2s")
                .help("Time of each trial's measured phase"),
        )
}
