//! Continues an interrupted run.

use super::execute::on_targets;
use super::session::Session;
use super::{fleet, report, scale};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::{signals, timeout};
use anyhow::Result;
use kurabe_core::Error;
use kurabe_core::run::Setup;
use kurabe_engine::plan::Plan;
use kurabe_engine::{RestOfRun, prolongs};
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
    let Resumed { run, writer, .. } = resumed;
    let further = prolongs(&run, max_rounds)?;
    if run.is_complete() && !further {
        output.note(&format!("{} is complete; there is nothing to resume", run.header.run));
        output.result(&report::terminal(&report::analyse(&run, output), output))?;
        return Ok(exit::DONE);
    }
    let cancel = signals::watch(exit::INTERRUPTED, output)?;
    let experiment = registry::of(&run.header.spec)?;
    if run.header.kurabe != env!("CARGO_PKG_VERSION") {
        output.warning(&format!("this run was started with kurabe {}", run.header.kurabe));
    }
    // The URL is the recorded one; a password for it comes from the environment.
    let (spec, applications) = (&run.header.spec, kurabe_targets::applications(urls)?);
    spec.setup.iter().chain(&spec.target_setups).try_for_each(Setup::check)?;
    let plan = Plan::of_recorded(experiment, spec, &run.header.cells, &applications)?;
    let open_options = OpenOptions::of(&plan, spec.cache.as_deref(), spec.remote.as_deref());
    timeout::of_run(&plan);
    let agents = fleet::join(spec, None, false, output)?;
    let mut rest = RestOfRun { run, plan, max_rounds, machine: kurabe_observe::machine_facts() };
    on_targets(urls, &open_options, agents, &cancel, output, |opened, conditions, watch, _| {
        scale::count(&mut rest.plan, &opened.targets, output)?;
        if rest.plan.spec != rest.run.header.spec {
            let error = Error::usage("the scale of pgbench's tables has changed since the run started");
            return Err(error.hint("start a new run: kurabe run --again").into());
        }
        let mut session = Session::of_rest(Some(writer), html, &rest.plan, opened, watch, output);
        let ended = kurabe_engine::resume(rest, &mut opened.targets, conditions, &mut session);
        session.finish(ended.map(Some)).2
    })
}
