//! The command line, made from the registries: an experiment's axes are its options.

mod arguments;
mod brief;
mod capture;
mod complete;
mod copy;
mod measurement;
mod pgbench;
mod run;
mod runs;
mod up;

pub(crate) use brief::{brief, meant, without_all};
pub(crate) use complete::{answer_shell, script};
pub(crate) use pgbench::{PGBENCH, refused};
pub(crate) use run::{QUERY, REPLAY};
pub(crate) use runs::as_run;

use crate::{exit, settings};
use arguments::{choice, export, export_json, file, flag, no_html, option, secret, targets, timeout};
use clap::{Arg, ArgAction, ArgGroup, Command, ValueHint};
use kurabe_report::Language;
use std::path::PathBuf;

/// The greatest width of help, in columns.
pub(crate) const WIDTH: usize = 100;

/// The command line of the program.
pub(crate) fn command() -> Command {
    Command::new("kurabe")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Compares how an application's way of using a database performs, on which database, and why")
        .after_help(format!("{}\n\n{}", exit::HELP, settings::HELP))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(WIDTH)
        .args(everywhere())
        .subcommand(run::command())
        .subcommand(
            Command::new("list").about("Lists experiments and kinds of targets, one line each").arg(flag(
                "all",
                "Lists the axes and operations of experiments, and the options of targets too",
            )),
        )
        .subcommand(
            Command::new("doctor")
                .about("Checks targets: version, durability, limits and available experiments")
                .arg(targets(false))
                .arg(flag(
                    "runs",
                    "Checks every line of every recorded run, and reports truncated and damaged files and \
                     other versions",
                ))
                .arg(
                    option("clients", "N", "Number of clients to check against the server's limits")
                        .default_value("1"),
                )
                .arg(timeout())
                .arg(
                    option(
                        "via",
                        "URL",
                        "Checks an application for conformance with docs/app.openapi.yaml; it adds records",
                    )
                    .action(ArgAction::Append),
                )
                .arg(up::db())
                .arg(flag(
                    "messages",
                    "Counts the messages of connecting and of the first request, with a relay on this \
                     machine",
                )),
        )
        .subcommand(up::command())
        .subcommand(copy::command())
        .subcommand(agent())
        .subcommand(claims())
        .subcommand(capture::wire())
        .subcommand(capture::capture())
        .subcommand(capture::advise())
        .subcommand(selftest())
        .subcommand(runs::serve())
        .subcommand(runs::report())
        .subcommand(runs::compare())
        .subcommand(runs::gate_command())
        .subcommand(runs::runs())
        .subcommand(complete::completions())
        .subcommand(complete::man())
}

fn everywhere() -> [Arg; 5] {
    [
        option(
            "runs-dir",
            "DIR",
            "Folder of the runs [default: $KURABE_RUNS, or kurabe/runs in the user's data folder]",
        )
        .global(true)
        .value_hint(ValueHint::DirPath)
        .value_parser(clap::value_parser!(PathBuf)),
        choice("color", "WHEN", "Whether to colour the output", ["auto", "always", "never"]).global(true),
        option("lang", "LANGUAGE", "Language of reports on the terminal and as pages [default: that of $LC_ALL, $LC_MESSAGES or $LANG]")
            .global(true)
            .value_parser(Language::NAMES),
        flag("quiet", "Do not show progress").short('q').global(true),
        flag(
            "verbose",
            "Shows all figures in reports on the terminal: all results, the servers' counters, each comparison, and the basis",
        )
        .short('v')
        .global(true),
    ]
}

fn claims() -> Command {
    Command::new("claims")
        .about("Tests claims about databases: those that ship, or your own")
        .long_about(
            "Tests claims about databases. Each claim compares cells of an experiment; a run of it ends as soon as the claim is \
             decided. The answer is: holds, does not hold, undecided, or not testable here.\n\nWithout -f these are the \
             claims that ship: what five authors concluded between 2002 and 2015.",
        )
        .arg(
            Arg::new("word")
                .value_name("ID|TARGET")
                .num_args(0..)
                .help("Names of claims [default: all]; and targets in place of throwaway servers (mysql://user@host/db)"),
        )
        .arg(file("file", "FILE.toml", "A file of claims").short('f'))
        .arg(option("budget", "TIME", "Time limit of each claim's run [default: that of the claim, or 60s]"))
        .arg(flag("recorded", "Answers from the newest complete run of each claim, and measures nothing"))
        .arg(flag("dry-run", "Prints what would be run and how long it takes, and measures nothing"))
        .arg(export("export-html", "The page with a card for each claim [default: claims.html in the folder of runs]"))
        .arg(export_json())
        .arg(no_html())
        .args(measurement::record())
        .args(measurement::own())
}

fn selftest() -> Command {
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
            option("budget", "TIME", "Approximate time of each comparison of --separate [default: that of a run of two targets]; with more, servers are restarted, and verdicts are of any start").requires("separate"),
        )
        .arg(
            option("clients", "N", "Numbers of clients").default_value("1").value_delimiter(','),
        )
        .arg(
            flag("separate", "Starts two servers for each comparison, as a run of two 'up:' targets with default options does; some \
                     45 s each").requires("differences").conflicts_with_all(["rounds", "duration"]),
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

fn agent() -> Command {
    Command::new("agent")
        .about("Runs clients, and observes servers of this host, for a run on another host")
        .long_about(
            "Runs clients for a run on another host, whose --fleet names this agent's broker or this host. With \
             --role observe it observes servers of this host, of runs with a --fleet on its broker. With --stdio it \
             does both: a run starts it there, with ssh or with the command in $KURABE_RSH, if --fleet names this \
             host, or if a target's URL has ?observe or ?observe=DESTINATION.\n\nThe agent connects to targets by \
             itself. Passwords are not sent to it, except those of throwaway servers: it takes them from its own environment \
             and files, as a run does (PGPASSWORD, MYSQL_PWD, …). An agent on a broker connects to the hosts that --allow \
             names, and to servers on its loopback interface, to these without its own passwords.",
        )
        .arg(flag(
            "stdio",
            "Read requests from standard input and write answers to standard output, until it ends",
        ))
        .arg(secret(option(
            "broker",
            "URL",
            "Wait for runs on this NATS broker, as in nats://HOST:4222, until Ctrl-C; $KURABE_NATS_CREDENTIALS and \
             $KURABE_NATS_CA name files with credentials and with certificates of authorities",
        )))
        .group(ArgGroup::new("transport").args(["stdio", "broker"]).required(true).multiple(true))
        .arg(option(
            "role",
            "ROLES",
            "With --broker: load (runs clients), observe (observes servers of this host), or load,observe [default: load]",
        ).requires("broker"))
        .arg(
            option(
                "allow",
                "HOST[:PORT]",
                "A host that runs may have it connect to, with its own passwords and certificates; may be given several \
                 times, or with commas [default: none with --broker, any with --stdio]",
            )
            .value_delimiter(',')
            .action(ArgAction::Append),
        )
        .arg(option("name", "NAME", "Name of the agent in messages and reports [default: the host's name]"))
        .arg(
            option("agent-label", "NAME=VALUE", "A label of the agent, by which --agent-label of a run selects it; may be given several times")
                .action(ArgAction::Append),
        )
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_valid() {
        super::command().debug_assert();
    }
}
