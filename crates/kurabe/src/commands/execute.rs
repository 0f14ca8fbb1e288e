//! Executes a run: opens the targets, plans, measures, records, reports.

use super::fleet;
use super::scale;
use super::session::{Session, StopRule, Watch};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::suite::{Companions, Request};
use crate::{git, signals, standard_input, timeout};
use anyhow::Result;
use kurabe_core::origin::Origin;
use kurabe_core::run::{CellRecord, Run, RunSpec};
use kurabe_core::{Error, ErrorKind};
use kurabe_engine::fleet::Fleet;
use kurabe_engine::plan::Plan;
use kurabe_engine::plan::budget::Free;
use kurabe_engine::{Conditions, NewRun, Provenance};
use kurabe_experiments::registry;
use kurabe_record::Store;
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
    timeout::of_run(&plan);
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
    scale::count(&mut plan, &opened.targets, output)?;
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
