//! `kurabe up stack`.

use super::arguments::{option, target, timeout};
use clap::{Arg, Command, builder::PossibleValuesParser};

pub(super) fn command() -> Command {
    let stacks: Vec<&str> = kurabe_testbed::stacks().collect();
    let variants = kurabe_testbed::stacks().flat_map(|stack| {
        let variants = kurabe_testbed::variants(stack).unwrap_or_default().iter();
        variants.map(move |variant| format!("  {stack}/{:<18} {}", variant.name, variant.about))
    });
    let variants = variants.collect::<Vec<_>>().join("\n");
    Command::new("stack")
        .about("Starts an application stack before a database and prints its URL; Ctrl-C removes it")
        .after_help(format!("Variants:\n{variants}"))
        .arg(
            Arg::new("stack")
                .required(true)
                .value_name("STACK")
                .value_parser(PossibleValuesParser::new(stacks))
                .help("The stack"),
        )
        .arg(db().required(true))
        .arg(option(
            "variant",
            "NAME",
            "Variant of the stack [default: the first one that can use the database]",
        ))
        .arg(option("workers", "N", "Requests that are processed at once [default: 16]"))
        .arg(option("records", "N", "Number of records in each store [default: depends on the experiment]"))
        .arg(option("seed", "N", "Seed of the data [default: from the clock]"))
        .arg(timeout())
}

/// The database of stacks.
pub(super) fn db() -> Arg {
    target(option(
        "db",
        "TARGET",
        "The database that application stacks use: up:mysql, or a URL of MySQL, MariaDB or PostgreSQL",
    ))
}
