//! Executes a run: opens the targets, plans, measures, records, reports.

use super::fleet::{self, Agents};
use super::measure::{RunContext, measure};
use super::planned::{left_out, long, planned, too_long, unavailable};
use super::scale;
use super::stopping_rule::StopRule;
use super::warnings::{own_caches, refuse_unseen, scattered, unleased, warnings};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::suite::{Companions, Request};
use crate::{clock, git, signals, standard_input, timeout};
use anyhow::Result;
use jiff::Timestamp;
use kurabe_core::origin::Origin;
use kurabe_core::run::{CellRecord, Run, RunHeader, RunSpec};
use kurabe_core::{Error, ErrorKind, units};
use kurabe_engine::plan::Plan;
use kurabe_engine::plan::budget::{self, Free};
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::prepare::{eviction, latency, overhead, preflight};
use kurabe_experiments::registry;
use kurabe_record::Store;
use kurabe_targets::{OpenOptions, Opened, SharedServers};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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

/// What is known of a run so far, also if it ends with an error.
#[derive(Default)]
pub(super) struct PartialRun {
    /// The positions of the URLs that could not be opened, with the reasons. The run's targets are the others.
    pub(super) unopened: Vec<(usize, Error)>,
    /// The cells as planned, on the run's targets.
    pub(super) cells: Vec<CellRecord>,
    /// The run, once it was recorded.
    pub(super) run: Option<Run>,
}

/// Executes a new run. Returns the run too, if anything was to be measured.
pub(super) fn execute(job: &Job<'_>, output: &Output) -> Result<(Exit, Option<Run>)> {
    let mut partial = PartialRun::default();
    let exit = execute_with(job, &mut partial, output)?;
    Ok((exit, partial.run))
}

/// The same, and what is known so far is kept if the run ends with an error.
pub(super) fn execute_with(job: &Job<'_>, partial: &mut PartialRun, output: &Output) -> Result<Exit> {
    let cancel = signals::watch(exit::INTERRUPTED, output)?;
    if !job.dry {
        kurabe_observe::check()?;
    }
    let experiment = registry::of(&job.spec)?;
    let mut plan = Plan::draft(experiment, job.spec.clone(), &kurabe_targets::applications(&job.urls)?)?;
    let open_options = OpenOptions {
        dry: job.dry,
        tolerant: job.in_suite.is_some() || job.urls.len() > 1,
        setup: job.companions.setup.clone(),
        shared: job.in_suite.as_ref().and_then(|suite| suite.shared.clone()),
        ..OpenOptions::of(&plan, job.companions.cache.as_deref(), job.companions.remote.as_deref())
    };
    timeout::of_run(&plan);
    let agents = fleet::join(&job.spec, job.companions.fleet.as_deref(), job.dry, output)?;
    let mut opened = kurabe_targets::open(&job.urls, &open_options, output)?;
    partial.unopened = std::mem::take(&mut opened.unopened);
    if job.in_suite.is_none()
        && let Err(error) = leave_out(job, &partial.unopened, output)
    {
        opened.close(output);
        return Err(error.into());
    }
    let made = without(&mut plan, job, &partial.unopened).and_then(|()| {
        refuse_unseen(&plan, &mut opened);
        scale::count(&mut plan, &opened, output)?;
        let agents = agents.map(|agents| fleet::reach(agents, &mut opened, output));
        plan_and_run(job, plan, &opened, agents.as_ref(), &cancel, partial, output)
    });
    signals::wait_for("the servers to end");
    opened.warn_of_ended_stacks(output);
    opened.close(output);
    made
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

fn plan_and_run(
    job: &Job<'_>,
    mut plan: Plan,
    opened: &Opened,
    agents: Option<&Agents>,
    cancel: &AtomicBool,
    partial: &mut PartialRun,
    output: &Output,
) -> Result<Exit> {
    let print = job.print;
    let machine = kurabe_observe::machine_facts();
    let targets = &opened.targets;
    plan.compare(targets);
    for line in latency::fit(&mut plan, targets)? {
        output.note(&line);
    }
    let budget = plan.spec.budget_ns.map(Duration::from_nanos);
    let fit =
        budget.filter(|_| !job.is_fitted).map(|budget| budget::fit(&mut plan, targets, &job.free, budget));
    if let Some(records) = plan.enlarge_stores(targets)? {
        let records = units::count(records);
        output
            .note(&format!("loading {records} records, so that each trial changes each record at most once"));
    }
    plan.leave_out_unconnectable(targets, &job.free.axes);
    plan.complete(targets)?;
    partial.cells = plan.records();
    if plan.trials() == 0 {
        let reasons = unavailable(&plan, targets);
        let error = Error::new(ErrorKind::Unsupported, "nothing can be measured:");
        return Err(error.log(reasons.iter().map(String::as_str)).into());
    }
    let text = planned(&plan, targets, fit.as_ref(), job.dry, job.stop_rule);
    let left_out = fit.as_ref().zip(budget).and_then(|(fit, budget)| left_out(fit, plan.spec.rounds, budget));
    let text = [Some(text), left_out].into_iter().flatten().collect::<Vec<_>>().join("\n");
    if job.dry && print {
        output.result(&text)?;
    } else {
        output.note(&text);
    }
    if let Some(late) = fit.as_ref().zip(budget).and_then(|(fit, budget)| too_long(fit, budget)) {
        output.warning(&late);
    }
    preflight::check(&mut plan, targets, machine.memory_bytes)?;
    if let Some(expected) = long(&plan, fit.as_ref()).filter(|_| !job.may_be_long && !job.dry) {
        output.confirm(&format!("the run is expected to take {}", units::time(expected)))?;
    }
    if job.dry {
        note_not_started(targets, output);
        return Ok(exit::DONE);
    }
    let mut found = kurabe_observe::disturbances(&std::env::temp_dir());
    found.extend(warnings(&plan, opened));
    for warning in &found {
        output.warning(warning);
    }
    for line in
        scattered(opened).into_iter().chain(unleased(&plan, targets)).chain(own_caches(&plan, targets))
    {
        output.note(&line);
    }
    signals::check()?;
    signals::wait_for("the overhead measurement");
    let null = kurabe_targets::null()?;
    let overhead = overhead::measure(&plan, &null, cancel)?;
    let began = clock::since_1970().as_secs();
    let mut header = RunHeader {
        run: format!("{}-{}", stamp(began), plan.spec.experiment),
        began,
        kurabe: env!("CARGO_PKG_VERSION").to_owned(),
        command: kurabe_targets::without_passwords(standard_input::words().into_iter()),
        spec: plan.spec.clone(),
        machine,
        targets: opened.records.clone(),
        cells: plan.records(),
        overhead,
        warnings: found,
        origin: Origin { git: git::commit(), ..job.origin.clone() },
        agents: agents.map_or_else(Vec::new, Agents::records),
    };
    let is_free = job.free.rounds && job.free.restarts && plan.spec.until.is_none();
    signals::wait_for("the targets to be prepared");
    let mut fixtures = Fixture::open_all(&plan, targets, &header.run)?;
    preflight::clear(&plan, targets, &mut fixtures)?;
    eviction::check(&mut plan, targets)?;
    let unanalysed = preflight::unanalysed(&plan, targets, &mut fixtures);
    for unknown in &unanalysed {
        output.warning(unknown);
    }
    header.warnings.extend(unanalysed);
    let writer = job.store.create(&header)?;
    writer.name().clone_into(&mut header.run);
    let run = partial.run.insert(Run::new(header));
    let (html, stop_rule) = (job.html, job.stop_rule);
    let context = RunContext {
        plan: &plan,
        opened,
        agents,
        fixtures,
        writer,
        cancel,
        announced: fit.map(|fit| fit.expected),
        budget: budget.filter(|_| is_free),
        html,
        stop_rule,
        print,
        output,
    };
    measure(context, run)
}

/// Names the throwaway servers that a plan alone does not start.
fn note_not_started(targets: &[kurabe_engine::prepare::target::Target], output: &Output) {
    let unknown = targets.iter().filter(|target| !target.is_described());
    let unknown: Vec<&str> = unknown.map(|target| target.name.as_str()).collect();
    if !unknown.is_empty() {
        output.note(&format!("not started, so that its limits are not checked: {}", unknown.join(", ")));
    }
}

/// A timestamp such as `20261120-101744` in UTC, from seconds since 1970.
fn stamp(seconds: u64) -> String {
    let time = Timestamp::from_second(i64::try_from(seconds).unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX);
    time.strftime("%Y%m%d-%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_name_contains_time_in_utc() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_827_696), "20000229-123456");
        assert_eq!(stamp(1_795_169_864), "20261120-101744");
    }
}
