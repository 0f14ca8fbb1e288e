//! The door of the engine: a run, from its draft to its end.
//!
//! [`run`] and [`resume`] own the order of the steps: plan, fit the budget, enlarge stores, check, measure the tool's own
//! cost, prepare the targets, make the rounds. Whoever measures calls one of them, and gets all of it.

mod group;
pub(crate) mod listener;
pub(crate) mod runner;

use crate::clients::cpu_partition::CpuPartition;
use crate::fleet::Fleet;
use crate::plan::Plan;
use crate::plan::budget::{self, Fit, Free};
use crate::prepare::fixture::Fixture;
use crate::prepare::slowness::slowness;
use crate::prepare::target::Target;
use crate::prepare::{eviction, latency, overhead, preflight};
use crate::run::listener::{Event, Listener, RunLog, Start, StoppingRule};
use crate::run::runner::Runner;
use jiff::Timestamp;
use kurabe_core::fleet::AgentRecord;
use kurabe_core::observation::Observer;
use kurabe_core::origin::Origin;
use kurabe_core::run::{CellRecord, MachineFacts, Measurement, Resumption, Run, RunEnd, RunHeader};
use kurabe_core::{Error, ErrorKind, Result, units};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A run to make.
pub struct NewRun<'a> {
    /// What it measures: a draft, by which its targets were opened. A plan that is complete is measured as it is.
    pub plan: Plan,
    /// Which values the user did not set. The budget may change them.
    pub free: Free,
    /// The time that it keeps to, as far as the user did not set its values; `None`: its times are fixed, as those of a
    /// recorded run.
    pub budget: Option<Duration>,
    /// The target that answers at once, on which the tool's own cost is measured; `None`: it is not measured.
    pub null: Option<&'a Target>,
    /// Who makes it, and where.
    pub provenance: Provenance,
}

impl NewRun<'_> {
    /// A run of a plan within its budget, if it has one, whose values the user has set.
    pub fn new(plan: Plan) -> Self {
        let budget = plan.spec.budget_ns.map(Duration::from_nanos);
        Self { plan, free: Free::default(), budget, null: None, provenance: Provenance::default() }
    }
}

/// Who makes a run, and where.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// The command line, without passwords.
    pub command: Vec<String>,
    pub machine: MachineFacts,
    pub origin: Origin,
    /// The agents that run the clients.
    pub agents: Vec<AgentRecord>,
}

/// A recorded run to continue.
pub struct RestOfRun {
    pub run: Run,
    /// Its plan: [`Plan::of_recorded`].
    pub plan: Plan,
    /// The new maximum number of rounds; `None`: unchanged.
    pub max_rounds: Option<u32>,
    /// The machine now.
    pub machine: MachineFacts,
}

/// An error that ended a run, with what was measured before it.
#[derive(Debug)]
pub struct RunError {
    pub error: Error,
    /// `None` if nothing was recorded.
    pub partial: Option<Box<Run>>,
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        Self { error, partial: None }
    }
}

impl From<RunError> for Error {
    fn from(ended: RunError) -> Self {
        ended.error
    }
}

/// Makes a run on open targets. `None` if the listener wanted the plan alone.
///
/// # Errors
/// If nothing can be measured, a target cannot be prepared, the listener fails (a full disk), or a throwaway server does
/// not restart. Other errors of targets are outcomes of trials.
pub fn run(
    new: NewRun<'_>,
    targets: &mut [Target],
    conditions: &Conditions<'_>,
    listener: &mut dyn Listener,
) -> Result<Option<Run>, RunError> {
    let NewRun { mut plan, free, budget, null, provenance } = new;
    let Provenance { command, machine, origin, agents } = provenance;
    preflight::refuse_unobserved(&plan, targets, conditions.observer);
    let fit = if plan.is_complete() { None } else { complete(&mut plan, targets, &free, budget, listener)? };
    listener.event(Event::Planned { plan: &plan, fit: fit.as_ref(), targets })?;
    if plan.trials() == 0 {
        let why = plan.cells.iter().find_map(|cell| cell.record.unavailable.as_deref()).unwrap_or("no cell");
        return Err(Error::unsupported(format!("nothing can be measured: {why}")).into());
    }
    preflight::check(&mut plan, targets, machine.memory_bytes)?;
    let Start::Measure { warnings } = listener.start(&mut plan, fit.as_ref(), targets)? else {
        return Ok(None);
    };
    if conditions.cancel.load(Ordering::Relaxed) {
        return Err(Error::new(ErrorKind::Interrupted, "stopped by the user").into());
    }
    listener.event(Event::MeasuringOverhead)?;
    let overhead = null.map_or(Ok(Vec::new()), |null| overhead::measure(&plan, null, conditions.cancel))?;
    let began = since_1970();
    let mut header = RunHeader {
        run: format!("{}-{}", stamp(began), plan.spec.experiment),
        began,
        kurabe: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        spec: plan.spec.clone(),
        machine,
        targets: targets.iter().map(Target::record).collect(),
        cells: plan.records(),
        overhead,
        warnings,
        origin,
        agents,
    };
    let mut fixtures = prepare(&mut plan, targets, &header.run, listener)?;
    for unknown in preflight::unanalysed(&plan, targets, &mut fixtures) {
        listener.event(Event::Warning { text: &unknown })?;
        header.warnings.push(unknown);
    }
    header.run = listener.begins(&header)?;
    let is_free = free.rounds && free.restarts && plan.spec.until.is_none();
    let budget = budget.filter(|_| is_free);
    measure(&plan, targets, fixtures, conditions, budget, Run::new(header), listener).map(Some)
}

/// Continues a recorded run on targets that were opened anew.
///
/// # Errors
/// As for [`run`]; or if a target cannot be measured any more.
pub fn resume(
    rest: RestOfRun,
    targets: &mut [Target],
    conditions: &Conditions<'_>,
    listener: &mut dyn Listener,
) -> Result<Run, RunError> {
    let RestOfRun { mut run, mut plan, max_rounds, machine } = rest;
    preflight::refuse_unobserved(&plan, targets, conditions.observer);
    for (index, target) in targets.iter().enumerate() {
        let measured = |cell: &CellRecord| cell.target == index && cell.unavailable.is_none();
        if let Some(why) = &target.skip_reason
            && run.header.cells.iter().any(measured)
        {
            return Err(Error::unsupported(why.clone()).context(&target.name).into());
        }
    }
    for (then, now) in run.header.targets.iter().zip(&*targets) {
        if then.facts.version != now.facts.version
            || then.facts.durability_settings != now.facts.durability_settings
        {
            let text = format!(
                "{} has changed since the run started: {} {} then, {} {} now; settings may differ too",
                now.name, then.facts.engine, then.facts.version, now.facts.engine, now.facts.version
            );
            listener.event(Event::Warning { text: &text })?;
        }
    }
    plan.limit_connections(targets);
    preflight::check(&mut plan, targets, machine.memory_bytes)?;
    let fixtures = prepare(&mut plan, targets, &run.header.run, listener)?;
    let resumption = Resumption {
        began: since_1970(),
        trials_before: run.trials.len() as u64,
        max_rounds,
        kurabe: env!("CARGO_PKG_VERSION").to_owned(),
        machine,
        targets: targets.iter().map(Target::record).collect(),
    };
    listener.event(Event::Resumed { header: &run.header, resumption: &resumption })?;
    run.resumptions.push(resumption);
    measure(&plan, targets, fixtures, conditions, None, run, listener)
}

/// Completes a draft on its open targets, within the budget.
fn complete(
    plan: &mut Plan,
    targets: &[Target],
    free: &Free,
    budget: Option<Duration>,
    listener: &mut dyn Listener,
) -> Result<Option<Fit>> {
    plan.compare(targets);
    for text in latency::fit(plan, targets)? {
        listener.event(Event::Note { text: &text })?;
    }
    let fit = budget.map(|budget| budget::fit(plan, targets, free, budget, slowness(plan, targets)));
    if let Some(records) = plan.enlarge_stores(targets)? {
        let records = units::count(records);
        let text = format!("loading {records} records, so that each trial changes each record at most once");
        listener.event(Event::Note { text: &text })?;
    }
    plan.leave_out_unconnectable(targets, &free.axes);
    eviction::leave_out_largest(plan, targets, &free.axes)?;
    plan.complete(targets)?;
    plan.spec.control_distance = plan.spec.sparse_controls();
    Ok(fit)
}

/// Claims and clears the targets' namespaces, and protects the values of others.
fn prepare(
    plan: &mut Plan,
    targets: &[Target],
    run: &str,
    listener: &mut dyn Listener,
) -> Result<Vec<Option<Fixture>>> {
    listener.event(Event::Preparing)?;
    let mut fixtures = Fixture::open_all(plan, targets, run)?;
    preflight::clear(plan, targets, &mut fixtures)?;
    eviction::check(plan, targets)?;
    Ok(fixtures)
}

/// Makes the rounds that are left, and ends the record.
fn measure(
    plan: &Plan,
    targets: &[Target],
    fixtures: Vec<Option<Fixture>>,
    conditions: &Conditions<'_>,
    budget: Option<Duration>,
    mut run: Run,
    listener: &mut dyn Listener,
) -> Result<Run, RunError> {
    // The clock of a resumed run continues.
    let earlier = run.trials.last().map_or(0, |trial| trial.at_ms);
    let began = Instant::now().checked_sub(Duration::from_millis(earlier)).unwrap_or_else(Instant::now);
    let clock = if run.trials.is_empty() { since(run.header.began) } else { began };
    let (name, rule) = (run.header.run.clone(), StoppingRule::new(&run, began));
    let runner = Runner { plan, name: &name, targets, began: clock, conditions: *conditions, budget };
    let mut log = RunLog::new(&mut run, listener);
    let ended = runner.run(fixtures, &rule, &mut log);
    let ended =
        ended.and_then(|complete| log.end(RunEnd { at_ms: clock.elapsed().as_millis() as u64, complete }));
    match ended {
        Ok(()) => Ok(run),
        Err(error) => Err(RunError { error, partial: Some(Box::new(run)) }),
    }
}

/// Seconds since 1970-01-01 UTC.
fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The instant of a second since 1970. Times of trials are since the second in which their run began, so that others can
/// place them beside their own.
fn since(second: u64) -> Instant {
    let past = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_secs(second)).unwrap_or_default();
    Instant::now().checked_sub(past).unwrap_or_else(Instant::now)
}

/// A timestamp such as `20261120-101744` in UTC, from seconds since 1970.
fn stamp(seconds: u64) -> String {
    let time = Timestamp::from_second(i64::try_from(seconds).unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX);
    time.strftime("%Y%m%d-%H%M%S").to_string()
}

/// Checks a trial for interference; returns the reason, as a clause, if it should not be relied on.
pub type InterferenceCheck = fn(&Measurement) -> Option<String>;

/// Cancellation flag used when nothing can be cancelled.
static NEVER: AtomicBool = AtomicBool::new(false);
/// Progress counter used when there is no progress display.
static UNWATCHED: AtomicU64 = AtomicU64::new(0);

/// The conditions under which trials are made.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// Set by the user's Ctrl-C.
    pub cancel: &'a AtomicBool,
    /// Completed transactions of the current trial.
    pub progress: &'a AtomicU64,
    /// Observes machine, client and server during each trial.
    pub observer: Option<&'a dyn Observer>,
    /// Checks each trial for interference by other processes. A disturbed trial is repeated once at the end of its
    /// round; the repetition counts in any case. `None`: no check. A trial in which Kurabe itself stood still is
    /// always repeated.
    pub interference_check: Option<InterferenceCheck>,
    /// Separate processors for clients and servers; `None`: no pinning.
    pub cpu_partition: Option<&'a CpuPartition>,
    /// The machines that run the clients; `None`: this process runs them.
    pub fleet: Option<&'a dyn Fleet>,
}

/// No cancellation, progress, observation, interference check, pinning and fleet.
impl Default for Conditions<'_> {
    fn default() -> Self {
        Self {
            cancel: &NEVER,
            progress: &UNWATCHED,
            observer: None,
            interference_check: None,
            cpu_partition: None,
            fleet: None,
        }
    }
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
