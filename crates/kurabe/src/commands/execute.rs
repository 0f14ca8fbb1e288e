//! Executes a run: opens the targets, plans, measures, records, reports; or continues an interrupted one.

use super::session::{Session, StopRule, Watch};
use super::{fleet, report};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::suite::{Companions, Request};
use crate::{git, signals, standard_input, time};
use anyhow::Result;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::operation::Operation;
use kurabe_core::origin::Origin;
use kurabe_core::run::{CellRecord, Run, RunSpec, Setup};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind};
use kurabe_engine::fleet::Fleet;
use kurabe_engine::plan::Plan;
use kurabe_engine::plan::budget::Free;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, NewRun, Provenance, RestOfRun, prolongs};
use kurabe_experiments::custom::counts_scale;
use kurabe_experiments::registry;
use kurabe_record::{Resumed, Store};
use kurabe_report::Summary;
use kurabe_targets::{OpenOptions, Opened, SharedServers};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A run to execute.
#[allow(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(super) struct Job<'a> {
    pub(super) spec: RunSpec,
    /// Which values the user did not set.
    pub(super) free: Free,
    /// The target URLs as given, with passwords.
    pub(super) urls: Vec<String>,
    /// What it has beside them.
    pub(super) companions: Companions,
    pub(super) store: Store,
    pub(super) html: bool,
    /// Its suite and labels.
    pub(super) origin: Origin,
    /// Whether it starts without a question although it takes more than an hour.
    pub(super) may_be_long: bool,
    /// Only print the plan.
    pub(super) dry: bool,
    /// Whether its plan and its report are printed to standard output.
    pub(super) print: bool,
    /// How it belongs to a suite of several runs; `None`: it is the only one.
    pub(super) in_suite: Option<InSuite>,
    /// Whether it has the times of a recorded run, which are not fitted again.
    pub(super) is_fitted: bool,
    /// What it is for.
    pub(super) stop_rule: StopRule<'a>,
}

impl Job<'_> {
    /// A run of its own, without a question, that is measured and printed.
    pub(super) fn new(spec: RunSpec, urls: Vec<String>, store: Store) -> Self {
        Self {
            spec,
            free: Free::default(),
            urls,
            companions: Companions::default(),
            store,
            html: true,
            origin: Origin::default(),
            may_be_long: true,
            dry: false,
            print: true,
            in_suite: None,
            is_fitted: false,
            stop_rule: StopRule::Report,
        }
    }

    /// The run that is asked for; `spec`: its spec.
    pub(super) fn of(request: &Request, spec: RunSpec, store: Store) -> kurabe_core::Result<Self> {
        let (free, companions) = (request.free()?, request.companions.clone());
        Ok(Self { free, companions, ..Self::new(spec, request.target_urls(), store) })
    }
}

/// What a run of a suite of several runs does differently: a target that cannot be opened is left out.
pub(super) struct InSuite {
    /// The throwaway servers that it shares with the other runs, if it does.
    pub(super) shared: Option<Arc<SharedServers>>,
}

/// A recorded run and its analysis, in the language of the user.
pub(super) struct Made {
    pub(super) run: Run,
    pub(super) summary: Summary,
}

/// What is known of a run so far, also if it ends with an error.
#[derive(Default)]
pub(super) struct PartialRun {
    /// The positions of the URLs that could not be opened, with the reasons. The run's targets are the others.
    pub(super) unopened: Vec<(usize, Error)>,
    /// The cells as planned, on the run's targets.
    pub(super) cells: Vec<CellRecord>,
    /// The run, once it was recorded.
    pub(super) made: Option<Made>,
}

/// Executes a new run. Returns the run too, if anything was to be measured.
pub(super) fn execute(job: &Job<'_>, output: &Output) -> Result<(Exit, Option<Made>)> {
    let mut partial = PartialRun::default();
    let exit = execute_with(job, &mut partial, output)?;
    Ok((exit, partial.made))
}

/// Like [`execute`], but keeps in `partial` what is known of the run if it ends with an error.
pub(super) fn execute_with(job: &Job<'_>, partial: &mut PartialRun, output: &Output) -> Result<Exit> {
    let cancel = signals::watch(exit::INTERRUPTED, output)?;
    if !job.dry {
        kurabe_observe::check()?;
    }
    let experiment = registry::of(&job.spec)?;
    let plan = Plan::draft(experiment, job.spec.clone(), &kurabe_targets::applications(&job.urls)?)?;
    let open_options = OpenOptions {
        dry: job.dry,
        tolerant: job.in_suite.is_some() || job.urls.len() > 1,
        setup: job.companions.setup.clone(),
        shared: job.in_suite.as_ref().and_then(|suite| suite.shared.clone()),
        ..OpenOptions::of(&plan, job.companions.cache.as_deref(), job.companions.remote.as_deref())
    };
    time::set_timeout_of_run(&plan);
    let agents = fleet::join(&job.spec, job.companions.fleet.as_deref(), job.dry, output)?;
    on_targets(&job.urls, &open_options, agents, &cancel, output, |opened, conditions, watch, agents| {
        partial.unopened = std::mem::take(&mut opened.unopened);
        measure(job, plan, (opened, conditions, watch), agents, partial, output)
    })
}

/// Does something on open targets, under the conditions of runs, and closes them.
pub(super) fn on_targets<T>(
    urls: &[String],
    open_options: &OpenOptions,
    agents: Option<fleet::Agents>,
    cancel: &AtomicBool,
    output: &Output,
    work: impl FnOnce(&mut Opened, &Conditions<'_>, &Watch, Option<&fleet::Agents>) -> Result<T>,
) -> Result<T> {
    let mut opened = kurabe_targets::open(urls, open_options, output)?;
    let agents = agents.map(|agents| fleet::reach(agents, &mut opened, output));
    let (watch, cpu_partition) = (Watch::new(&opened.observers), opened.cpu_partition.clone());
    let conditions = Conditions {
        cpu_partition: cpu_partition.as_ref(),
        fleet: agents.as_ref().map(|agents| agents as &dyn Fleet),
        ..watch.conditions(cancel)
    };
    let made = work(&mut opened, &conditions, &watch, agents.as_ref());
    signals::wait_for("the servers to end");
    opened.warn_of_ended_stacks(output);
    opened.close(output);
    made
}

/// Makes the run on its open targets.
fn measure(
    job: &Job<'_>,
    mut plan: Plan,
    (opened, conditions, watch): (&mut Opened, &Conditions<'_>, &Watch),
    agents: Option<&fleet::Agents>,
    partial: &mut PartialRun,
    output: &Output,
) -> Result<Exit> {
    if job.in_suite.is_none() {
        leave_out(job, &partial.unopened, output)?;
    }
    without(&mut plan, job, &partial.unopened)?;
    count_scale(&mut plan, &opened.targets, output)?;
    let mut session = Session::new(job, &plan, opened, watch, output);
    let null = if job.dry { None } else { Some(kurabe_targets::null()?) };
    let provenance = Provenance {
        command: kurabe_targets::without_passwords(standard_input::words().into_iter()),
        machine: kurabe_observe::machine_facts(),
        origin: Origin { git: git::commit(), ..job.origin.clone() },
        agents: agents.map_or_else(Vec::new, fleet::Agents::records),
    };
    let new = NewRun::new(plan);
    let budget = new.budget.filter(|_| !job.is_fitted);
    let new = NewRun { free: job.free.clone(), budget, null: null.as_ref(), provenance, ..new };
    let ended = kurabe_engine::run(new, &mut opened.targets, conditions, &mut session);
    let exit;
    (partial.made, partial.cells, exit) = session.finish(ended);
    exit
}

/// Tells which targets the run is made without: engines that are not installed. Anything else that cannot be opened, and a
/// gate without one of its targets, is an error.
fn leave_out(job: &Job<'_>, unopened: &[(usize, Error)], output: &Output) -> kurabe_core::Result<()> {
    let missing = |error: &Error| error.kind() == ErrorKind::NotFound && job.print;
    if let Some((_, error)) = unopened.iter().find(|(_, error)| !missing(error)) {
        return Err(error.clone());
    }
    if unopened.len() < job.urls.len() {
        for (_, error) in unopened {
            output.warning(&format!("left out: {error}"));
        }
    }
    Ok(())
}

/// Plans the run without the targets that could not be opened.
fn without(plan: &mut Plan, job: &Job<'_>, unopened: &[(usize, Error)]) -> Result<()> {
    let Some((_, first)) = unopened.first() else { return Ok(()) };
    let opened = |at: &usize| unopened.iter().all(|(other, _)| other != at);
    let urls: Vec<String> = (0..job.urls.len()).filter(opened).map(|at| job.urls[at].clone()).collect();
    if urls.is_empty() {
        return Err(first.clone().into());
    }
    let names = (0..job.urls.len()).filter(opened).map(|at| job.spec.targets[at].clone()).collect();
    let spec = RunSpec { targets: names, ..job.spec.clone() };
    *plan = Plan::draft(plan.experiment, spec, &kurabe_targets::applications(&urls)?)?;
    Ok(())
}

/// The table that defines the scale.
const BRANCHES: &str = "pgbench_branches";

/// Sets the scale of pgbench's built-in scripts from the existing tables.
pub(super) fn count_scale(plan: &mut Plan, targets: &[Target], output: &Output) -> Result<()> {
    let mut spec = plan.spec.clone();
    let Some(custom) = spec.custom.as_mut().filter(|custom| counts_scale(custom)) else { return Ok(()) };
    let mut found: Option<(u64, &str)> = None;
    let can_be_asked = |target: &&Target| target.skip_reason.is_none() && target.is_described();
    for target in targets.iter().filter(can_be_asked) {
        let scale = branches(target).map_err(|error| {
            error
                .context(format!("{}: counting the rows of {BRANCHES} to find the scale", target.name))
                .hint("create the tables with 'pgbench -i' or --init, or set the scale: -D scale=10")
        })?;
        match found {
            Some((other, name)) if other != scale => {
                let what =
                    format!("pgbench's tables have scale {other} on {name} and {scale} on {}", target.name);
                return Err(Error::usage(what).hint("use the same scale on all targets").into());
            }
            _ => found = Some((scale, &target.name)),
        }
    }
    let Some((scale, _)) = found else { return Ok(()) };
    match custom.scale {
        Some(given) if given != scale => output.warning(&format!(
            "scale {given} is ignored: {BRANCHES} has {scale} rows, so that the scale is {scale}, as in \
             pgbench"
        )),
        _ => output.note(&format!("scale {scale}, the number of rows of {BRANCHES}")),
    }
    if custom.scale != Some(scale) {
        custom.scale = Some(scale);
        plan.rewrite(registry::of(&spec)?, spec)?;
    }
    Ok(())
}

fn branches(target: &Target) -> kurabe_core::Result<u64> {
    let field = Field { name: "bid", kind: FieldType::Int };
    let collection = Arc::new(Collection::new(BRANCHES.to_owned(), vec![field], vec![0]));
    let mut session = target.driver.connect(&ConnectOptions::default())?;
    let prepared = session.prepare(&Operation::Count { collection })?;
    let mut reply = Reply::new();
    session.execute(&prepared, &[], &mut reply)?;
    session.release(prepared)?;
    session.close()?;
    match reply.field(0, 0) {
        Some(Value::Int(rows @ 1..)) => Ok(rows.unsigned_abs()),
        _ => Err(Error::usage(format!("{BRANCHES} is empty"))),
    }
}

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
    time::set_timeout_of_run(&plan);
    let agents = fleet::join(spec, None, false, output)?;
    let mut rest = RestOfRun { run, plan, max_rounds, machine: kurabe_observe::machine_facts() };
    on_targets(urls, &open_options, agents, &cancel, output, |opened, conditions, watch, _| {
        count_scale(&mut rest.plan, &opened.targets, output)?;
        if rest.plan.spec != rest.run.header.spec {
            let error = Error::usage("the scale of pgbench's tables has changed since the run started");
            return Err(error.hint("start a new run: kurabe run --again").into());
        }
        let mut session = Session::of_rest(Some(writer), html, &rest.plan, opened, watch, output);
        let ended = kurabe_engine::resume(rest, &mut opened.targets, conditions, &mut session);
        session.finish(ended.map(Some)).2
    })
}
