//! A program that measures with the engine's one door: point reads in SQLite, prepared once and per request.
//!
//! `cargo run -p kurabe-engine --example one_run`
#![allow(clippy::print_stdout, reason = "a program prints")]

use kurabe_core::Result;
use kurabe_core::axis::AxisValue;
use kurabe_core::run::RunSpec;
use kurabe_core::target::TargetUrl;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, Event, Listener, NewRun};
use std::collections::BTreeMap;

/// Prints each trial when it ends.
struct Printer;

impl Listener for Printer {
    fn event(&mut self, event: Event<'_>) -> Result<()> {
        if let Event::TrialEnds { record } = event {
            println!("round {}, cell {}: {}", record.round + 1, record.cell, record.operation);
        }
        Ok(())
    }
}

pub(crate) fn main() -> Result<()> {
    let experiment = kurabe_experiments::registry::find("point-read")?;
    let mut axes = experiment.info.baseline(&[("clients", "2")])?.alone();
    let ways = ["once", "per-request"].map(|way| AxisValue::Word(way.to_owned()));
    axes.insert("statement".to_owned(), ways.into());
    let spec = RunSpec {
        axes,
        operations: experiment.info.operation_names(),
        requests: BTreeMap::from([("read".to_owned(), 2_000)]),
        rounds: 4,
        records: Some(1_000),
        ..RunSpec::new("point-read", ["sqlite:"])
    };
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse("sqlite:")?)?;
    let facts = driver.describe()?;
    let mut targets = [Target::new("sqlite", driver, facts)];
    let plan = Plan::draft(experiment, spec, &[false])?;
    let run = kurabe_engine::run(NewRun::new(plan), &mut targets, &Conditions::default(), &mut Printer)?;
    for (trial, measured) in run.iter().flat_map(kurabe_core::run::Run::figures) {
        println!("cell {}: {:.0} reads per second, all verified", trial.cell, measured.ops_per_second());
    }
    Ok(())
}
