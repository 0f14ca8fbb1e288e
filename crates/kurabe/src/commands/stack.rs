//! `kurabe up stack NAME`: runs an application stack before a database until Ctrl-C.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::targets::{self, OpenOptions, Opened, SERVED_BY_STACKS, STACK, StackData, start_error};
use crate::{clock, signals, timeout};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::{Error, ErrorKind, units};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) fn stack(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let count = |name: &str| -> kurabe_core::Result<Option<u64>> {
        let Some(text) = text(name) else { return Ok(None) };
        let n = units::parse_count(&text).map_err(|error| error.context(format!("--{name}")))?;
        if n == 0 { Err(Error::usage(format!("--{name} 0 is out of range"))) } else { Ok(Some(n)) }
    };
    let mut url = format!("{STACK}:{}", text("stack").unwrap_or_default());
    if let Some(variant) = text("variant") {
        url = format!("{url}/{variant}");
    }
    if let Some(workers) = count("workers")? {
        url = format!("{url}?workers={workers}");
    }
    let url = targets::with_database(&url, &text("db").unwrap_or_default())?;
    timeout::of(matches)?;
    let clock = clock::since_1970().as_nanos() as u64;
    let stack_data = StackData {
        experiments: SERVED_BY_STACKS.iter().map(|name| (*name).to_owned()).collect(),
        seed: count("seed")?.unwrap_or(clock % 1_000_000_000),
        records: count("records")?,
    };
    let stop = signals::watch(exit::DONE, output)?;
    let opened = targets::open(&[url], &OpenOptions { stack_data, ..OpenOptions::default() }, output)?;
    signals::wait_for("the stack to end");
    let ended = announce(&opened, output).and_then(|()| wait(&opened, &stop));
    opened.close(output);
    ended?;
    Ok(exit::DONE)
}

fn announce(opened: &Opened, output: &Output) -> kurabe_core::Result<()> {
    for (target, reached) in opened.targets.iter().zip(&opened.reached) {
        output.result(&reached.to_string())?;
        output.note(&format!("{}: {} {}", target.name, target.facts.engine, target.facts.version));
        for setting in &target.facts.settings {
            output.note(&format!("  {} = {}", setting.name, setting.value));
        }
    }
    output.note("Ctrl-C stops and removes the stack and its tables");
    Ok(())
}

/// Waits for the user, or for the end of a part.
fn wait(opened: &Opened, stop: &AtomicBool) -> kurabe_core::Result<()> {
    while !stop.load(Ordering::SeqCst) {
        if let Some(why) = opened.died() {
            return Err(start_error(ErrorKind::ConnectionLost, &why));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
