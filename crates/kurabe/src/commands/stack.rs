//! `kurabe up stack NAME`: runs an application stack before a database until Ctrl-C.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::settings::option_of;
use crate::{clock, signals, timeout};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_targets::{OpenOptions, Opened, SERVED_BY_STACKS, STACK, StackData, start_error};

pub(super) fn stack(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let count = |name: &str| -> kurabe_core::Result<Option<u64>> {
        match option_of(matches, name, units::parse_count)? {
            Some(0) => Err(Error::usage(format!("--{name} 0 is out of range"))),
            n => Ok(n),
        }
    };
    let mut url = format!("{STACK}:{}", text("stack").unwrap_or_default());
    if let Some(variant) = text("variant") {
        url = format!("{url}/{variant}");
    }
    if let Some(workers) = count("workers")? {
        url = format!("{url}?workers={workers}");
    }
    let url = kurabe_targets::with_database(&url, &text("db").unwrap_or_default())?;
    timeout::of(matches)?;
    let clock = clock::since_1970().as_nanos() as u64;
    let stack_data = StackData {
        experiments: SERVED_BY_STACKS.iter().map(|name| (*name).to_owned()).collect(),
        seed: count("seed")?.unwrap_or(clock % 1_000_000_000),
        records: count("records")?,
    };
    let stop = signals::watch(exit::DONE, output)?;
    let opened = kurabe_targets::open(&[url], &OpenOptions { stack_data, ..OpenOptions::default() }, output)?;
    signals::wait_for("the stack to end");
    let ended = announce(&opened, output).and_then(|()| {
        signals::until_stopped(&stop, || {
            let lost = opened.died().map(|why| start_error(ErrorKind::ConnectionLost, &why));
            lost.map_or(Ok(()), Err)
        })
    });
    opened.close(output);
    ended?;
    Ok(exit::DONE)
}

fn announce(opened: &Opened, output: &Output) -> kurabe_core::Result<()> {
    for (target, reached) in opened.targets.iter().zip(&opened.reached) {
        output.result(&reached.exposed())?;
        output.note(&format!("{}: {} {}", target.name, target.facts.engine, target.facts.version));
        for setting in &target.facts.settings {
            output.note(&format!("  {} = {}", setting.name, setting.value));
        }
    }
    output.note("Ctrl-C stops and removes the stack and its tables");
    Ok(())
}
