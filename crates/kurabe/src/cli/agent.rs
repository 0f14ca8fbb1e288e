//! `kurabe agent`.

use super::arguments::{flag, option, secret};
use clap::{ArgAction, ArgGroup, Command};

pub(super) fn command() -> Command {
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
