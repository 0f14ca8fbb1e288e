//! `kurabe selftest`.

use super::arguments::{flag, option};
use clap::{Arg, Command};

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
            option("kind", "KIND", "Causes to plant [default: all]").value_delimiter(','),
        )
        .arg(
            option("rounds", "N", "How often each cause is planted on each engine; with --differences: rounds of each comparison [16]").default_value("3"),
        )
        .arg(option("differences", "N", "Makes N comparisons with a planted difference and N without, over all engines, and counts correct verdicts; \
             200 take about 15 minutes").conflicts_with("kind"))
        .arg(
            option("interleave", "TIME", "Interleaves the trials of --differences in slices of this length, as 'kurabe run --interleave' does; 'off': separate trials").num_args(0..=1).require_equals(true).default_value("10ms").default_missing_value("10ms"),
        )
        .arg(
            option("clients", "N", "Numbers of clients").default_value("1").value_delimiter(','),
        )
        .arg(
            flag("separate", "Starts two servers for each comparison and restarts them, as a run of two 'up:' targets with default \
                     options does; about 80 s each").requires("differences").conflicts_with_all(["rounds", "duration"]),
        )
        .arg(
            option("records", "N", "Number of records in each store [default: 500; with --separate that of the experiment]").requires("differences"),
        )
        .arg(
            flag("writes", "Compares writes, one per transaction, instead of reads").requires("differences"),
        )
        .arg(
            option("effect", "PERCENT", "The planted difference").default_value("5%"),
        )
        .arg(
            option("duration", "TIME", "Time of each trial's measured phase").default_value("2s"),
        )
}
