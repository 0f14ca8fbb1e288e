//! `kurabe up stack NAME`: runs an application stack before a database until Ctrl-C.

use crate::exit::{self, Exit};
use crate::options::{options, parsed};
use crate::output::Output;
use crate::{clock, signals, timeout};
use anyhow::Result;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_targets::{OpenOptions, Opened, SERVED_BY_STACKS, STACK, StackData, start_error};

options! {
    /// The options of `kurabe up stack`.
    StackOptions {
        stack: Option<String>,
        db: Option<String>,
        variant: Option<String>,
        workers: Option<String>,
        records: Option<String>,
        seed: Option<String>,
        timeout: Option<String>,
    }
}

pub(super) fn stack(options: &StackOptions, output: &Output) -> Result<Exit> {
    let count = |name: &str, text: &Option<String>| -> kurabe_core::Result<Option<u64>> {
        match parsed(name, text.as_ref(), units::parse_count)? {
            Some(0) => Err(Error::usage(format!("--{name} 0 is out of range"))),
            n => Ok(n),
        }
    };
    let mut url = format!("{STACK}:{}", options.stack.as_deref().unwrap_or_default());
    if let Some(variant) = &options.variant {
        url = format!("{url}/{variant}");
    }
    if let Some(workers) = count("workers", &options.workers)? {
        url = format!("{url}?workers={workers}");
    }
    let url = kurabe_targets::with_database(&url, options.db.as_deref().unwrap_or_default())?;
    timeout::set(options.timeout.as_deref())?;
    let clock = clock::since_1970().as_nanos() as u64;
    let stack_data = StackData {
        experiments: SERVED_BY_STACKS.iter().map(|name| (*name).to_owned()).collect(),
        seed: count("seed", &options.seed)?.unwrap_or(clock % 1_000_000_000),
        records: count("records", &options.records)?,
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
