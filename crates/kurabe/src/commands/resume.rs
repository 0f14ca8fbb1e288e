//! Continues an interrupted run.

use super::measure::{RunContext, measure};
use super::stopping_rule::{StopRule, prolongs};
use super::warnings::refuse_unseen;
use super::{fleet, report, scale};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::{clock, signals, timeout};
use anyhow::Result;
use kurabe_core::Error;
use kurabe_core::run::{CellRecord, Resumption, Setup};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::prepare::{eviction, preflight};
use kurabe_experiments::registry;
use kurabe_record::Resumed;
use kurabe_targets::OpenOptions;

/// Continues an interrupted run.
pub(super) fn resume(
    resumed: Resumed,
    urls: &[String],
    max_rounds: Option<u32>,
    html: bool,
    output: &Output,
) -> Result<Exit> {
    kurabe_observe::check()?;
    let Resumed { mut run, mut writer, .. } = resumed;
    let further = prolongs(&run, max_rounds)?;
    if run.is_complete() && !further {
        output.note(&format!("{} is complete; there is nothing to resume", run.header.run));
        output.result(&report::terminal(&run, output))?;
        return Ok(exit::DONE);
    }
    let cancel = signals::watch(exit::INTERRUPTED, output)?;
    let experiment = registry::of(&run.header.spec)?;
    if run.header.kurabe != env!("CARGO_PKG_VERSION") {
        output.warning(&format!("this run was started with kurabe {}", run.header.kurabe));
    }
    // The URL is the recorded one; a password for it comes from the environment.
    let (spec, applications) = (&run.header.spec, kurabe_targets::applications(urls)?);
    spec.setup.as_ref().map_or(Ok(()), Setup::check)?;
    let mut plan = Plan::of_recorded(experiment, spec, &run.header.cells, &applications)?;
    let open_options = OpenOptions::of(&plan, spec.cache.as_deref(), spec.remote.as_deref());
    timeout::of_run(&plan);
    let agents = fleet::join(spec, None, false, output)?;
    let mut opened = kurabe_targets::open(urls, &open_options, output)?;
    refuse_unseen(&plan, &mut opened);
    let agents = agents.map(|agents| fleet::reach(agents, &mut opened, output));
    for (index, target) in opened.targets.iter().enumerate() {
        let measured = |cell: &CellRecord| cell.target == index && cell.unavailable.is_none();
        if let Some(why) = &target.skip_reason
            && run.header.cells.iter().any(measured)
        {
            let error = Error::unsupported(why.clone()).context(&target.name);
            opened.close(output);
            return Err(error.into());
        }
    }
    for (then, now) in run.header.targets.iter().zip(&opened.records) {
        if then.facts.version != now.facts.version
            || then.facts.durability_settings != now.facts.durability_settings
        {
            output.warning(&format!(
                "{} has changed since the run started: {} {} then, {} {} now; settings may differ too",
                now.name, then.facts.engine, then.facts.version, now.facts.engine, now.facts.version
            ));
        }
    }
    scale::count(&mut plan, &opened, output)?;
    if plan.spec != run.header.spec {
        let error = Error::usage("the scale of pgbench's tables has changed since the run started");
        return Err(error.hint("start a new run: kurabe run --again").into());
    }
    let machine = kurabe_observe::machine_facts();
    plan.limit_connections(&opened.targets);
    preflight::check(&mut plan, &opened.targets, machine.memory_bytes)?;
    signals::wait_for("the targets to be prepared");
    let mut fixtures = Fixture::open_all(&plan, &opened.targets, &run.header.run)?;
    preflight::clear(&plan, &opened.targets, &mut fixtures)?;
    eviction::check(&mut plan, &opened.targets)?;
    let resumption = Resumption {
        began: clock::since_1970().as_secs(),
        trials_before: run.trials.len() as u64,
        max_rounds,
        kurabe: env!("CARGO_PKG_VERSION").to_owned(),
        machine,
        targets: opened.records.clone(),
    };
    writer.resumed(&resumption)?;
    run.resumptions.push(resumption);
    let (cancel, stop_rule) = (&cancel, StopRule::Report);
    let (plan, opened_now, agents) = (&plan, &opened, agents.as_ref());
    let context = RunContext {
        plan,
        opened: opened_now,
        agents,
        fixtures,
        writer,
        cancel,
        announced: None,
        budget: None,
        html,
        stop_rule,
        print: true,
        output,
    };
    let made = measure(context, &mut run);
    signals::wait_for("the servers to end");
    opened.warn_of_ended_stacks(output);
    opened.close(output);
    made
}
