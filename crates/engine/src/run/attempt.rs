//! A trial that runs alone; the data of a trial, and what becomes of its outcome.

use crate::clients::cancellable::cancellable;
use crate::clients::cpu_partition::PinGuard;
use crate::conditions::Conditions;
use crate::fleet::{CellOrder, FleetClients};
use crate::plan::cell::{RunCell, unavailable};
use crate::plan::draw_seed::DrawSeed;
use crate::prepare::fixture::Fixture;
use crate::prepare::target::Target;
use crate::run::listener::Event;
use crate::run::log::RunLog;
use crate::run::runner::{Disturbance, DisturbanceKind, Rerun, Runner, standstill};
use crate::run::throwaway::Restricted;
use crate::trial::rate_search::RateSearch;
use crate::trial::{Clients, Failure, LoadModel, Trial};
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{DatasetState, OperationInfo, Stop};
use kurabe_core::load::{DEFAULT_SLO_NS, Load};
use kurabe_core::planned::{Need, PlannedCell, Work};
use kurabe_core::run::{Measurement, Outcome};
use kurabe_core::text::printable;
use kurabe_core::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The default time of the search for the highest rate.
const HIGHEST_TIME: Duration = Duration::from_secs(10);

/// The maximum number of reruns of a trial in which Kurabe itself stood still.
const MAX_STALL_RERUNS: u32 = 5;

/// Loads the data of a cell.
pub(crate) type LoadData<'a> = dyn Fn(&mut dyn Namespace, &mut dyn Session) -> Result<DatasetState> + 'a;

/// What precedes the error of a cell whose data cannot be loaded.
const LOADING: &str = "loading data";

impl Runner<'_> {
    /// What becomes of a trial that has ended: its outcome for the run file, and what disturbed it. `None` if the user
    /// stopped it.
    pub(super) fn settle(
        &self,
        cell: &RunCell,
        trial: Result<Measurement, Failure>,
        rerun: Option<&Rerun>,
        log: &mut RunLog<'_>,
    ) -> Result<Option<(Outcome, Option<Disturbance>)>> {
        let (trial, mut disturbed) = self.judge_disturbance(trial, rerun);
        if let Some(why) = self.lost_agents(&trial) {
            log.emit(Event::AgentLost { why: &why })?;
            disturbed = Some(Disturbance { why, kind: DisturbanceKind::LostAgent });
        }
        self.check_wrong_input(cell, &trial)?;
        let Some(outcome) = self.outcome(trial) else { return Ok(None) };
        self.check_refused_write(cell, &outcome)?;
        Ok(Some((outcome, disturbed)))
    }

    /// The agents that a failed trial lost, as a clause, if the run goes on without them. A wrong reply is a result.
    fn lost_agents(&self, trial: &Result<Measurement, Failure>) -> Option<String> {
        let failure = trial.as_ref().err()?;
        let is_lost = failure.error.kind() == ErrorKind::ConnectionLost && failure.mismatches == 0;
        self.conditions
            .fleet
            .filter(|_| is_lost && !self.conditions.cancel.load(Ordering::Relaxed))?
            .go_on_without_lost()
    }

    /// The disturbance of a trial, if any. If Kurabe itself stood still, the last allowed rerun fails the trial.
    fn judge_disturbance(
        &self,
        trial: Result<Measurement, Failure>,
        rerun: Option<&Rerun>,
    ) -> (Result<Measurement, Failure>, Option<Disturbance>) {
        let stood_still = match &trial {
            Ok(measured) => Duration::from_nanos(measured.stood_still_ns),
            // Errors caused by a silent client are not the server's fault. A wrong reply is.
            Err(Failure { error, stood_still, .. })
                if matches!(
                    error.kind(),
                    ErrorKind::Timeout | ErrorKind::ConnectionLost | ErrorKind::Limit
                ) =>
            {
                stood_still.unwrap_or_default()
            }
            Err(_) => Duration::ZERO,
        };
        if stood_still.is_zero() {
            let interference_check = self.conditions.interference_check.zip(trial.as_ref().ok());
            let why =
                interference_check.and_then(|(interference_check, measured)| interference_check(measured));
            return (trial, why.map(|why| Disturbance { why, kind: DisturbanceKind::Interference }));
        }
        let why = standstill(stood_still);
        let number = rerun.map_or(0, |rerun| rerun.number);
        if number < MAX_STALL_RERUNS {
            return (trial, Some(Disturbance { why, kind: DisturbanceKind::Standstill }));
        }
        let message = format!("{why} during this trial and during {number} earlier attempts");
        let error = Error::new(ErrorKind::Environment, message)
            .hint("use a machine where the process is not stopped, frozen or paused");
        (Err(error.into()), None)
    }

    /// The outcome for the run file; `None` if the user stopped the trial.
    fn outcome(&self, trial: Result<Measurement, Failure>) -> Option<Outcome> {
        match trial {
            Ok(measured) => Some(Outcome::Measured(Box::new(measured))),
            Err(failure) if failure.error.kind() == ErrorKind::Interrupted => None,
            Err(_) if self.conditions.cancel.load(Ordering::Relaxed) => None,
            Err(failure) => Some(Outcome::Failed {
                kind: failure.error.kind(),
                reason: printable(&failure.error.to_string()).into_owned(),
                mismatches: failure.mismatches,
            }),
        }
    }

    /// Ends the run if the data of a cell was not loaded because of what the user wrote, such as a query with an error: no later
    /// trial would do better.
    fn check_wrong_input(&self, cell: &RunCell, trial: &Result<Measurement, Failure>) -> Result<()> {
        match trial {
            Err(Failure { error, .. })
                if error.kind() == ErrorKind::Usage && error.to_string().starts_with(LOADING) =>
            {
                Err(error.clone().context(&self.targets[cell.record.target].name))
            }
            _ => Ok(()),
        }
    }

    /// Ends the run if a trial failed because the server refused to write in a session that the cell wants to be
    /// read-only: nothing was changed, and no later trial would do better.
    fn check_refused_write(&self, cell: &RunCell, outcome: &Outcome) -> Result<()> {
        let reads = cell.available().is_some_and(PlannedCell::only_reads);
        match outcome {
            Outcome::Failed { kind: ErrorKind::ReadOnly, reason, .. } if reads => {
                let target = &self.targets[cell.record.target].name;
                let what = format!("{target}: this statement may change data: {reason}");
                let is_job = cell.available().is_some_and(PlannedCell::is_job);
                // A replay, or an estimate, which has no such option.
                let hint = if is_job {
                    "a replay on a throwaway server, or with --write, may change data"
                } else {
                    "allow this with --write, or 'write = true' in the file of the workload"
                };
                Err(Error::usage(what).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// The fixture of a cell's target, with the cell's data loaded.
    pub(crate) fn prepare<'f>(
        &self,
        run_cell: &RunCell,
        cell: &PlannedCell,
        load: &LoadData<'_>,
        fixture: &'f mut Option<Fixture>,
        log: &mut RunLog<'_>,
    ) -> Result<&'f mut Fixture> {
        let target = &self.targets[run_cell.record.target];
        if let (true, Some(restart)) =
            (cell.needs.contains(&Need::Restart), target.restart_of(&run_cell.record))
        {
            // A restart may lose the loaded data, and closes connections.
            *fixture = None;
            restart().map_err(|error| error.context("restarting the server"))?;
        }
        let fixture = match fixture {
            Some(fixture) => fixture,
            None => fixture.insert(self.open(run_cell.slot, target)?),
        };
        if !fixture.has(cell) {
            log.emit(Event::Loading { cell: &run_cell.record })?;
            fixture.load(cell, self.conditions.cancel, load).map_err(|error| error.context(LOADING))?;
        }
        Ok(fixture)
    }

    pub(super) fn open(&self, slot: usize, target: &Target) -> Result<Fixture> {
        let targets = self.targets.len();
        let need = self.plan.need(slot % targets);
        if slot < targets {
            // A new first fixture does not remove the collections of A/A controls.
            Fixture::for_need(target, slot, 2 * targets, self.name, need)
        } else {
            Fixture::of_aa_control(target, slot, self.name, need)
        }
    }

    /// Executes a trial that has the machine to itself.
    pub(super) fn trial(
        &self,
        round: u32,
        run_cell: &RunCell,
        operation: &'static OperationInfo,
        rerun: bool,
        fixture: &mut Option<Fixture>,
        log: &mut RunLog<'_>,
    ) -> Result<Measurement, Failure> {
        let cell = run_cell.available().ok_or_else(unavailable)?;
        if let Work::Job(job) = &cell.work {
            let load =
                |namespace: &mut dyn Namespace, session: &mut dyn Session| job.load(namespace, session);
            let fixture = self.prepare(run_cell, cell, &load, fixture, log)?;
            return self.job(run_cell, cell, operation, &**job, fixture);
        }
        let workload = cell.workload()?;
        let fixture = self.prepare(run_cell, cell, &|n, s| workload.load(n, s), fixture, log)?;
        let target = &self.targets[run_cell.record.target];
        let restricted = Restricted::of(target, run_cell, cell)?;
        // Observers and other helpers of the trial keep to the clients' processors too.
        let clients = restricted.as_ref().map(|restricted| &*restricted.partition.clients);
        let _pinned = clients.map(PinGuard::pin).transpose()?;
        let partition = restricted.as_ref().map(|restricted| &restricted.partition);
        let cpu_partition = partition.or(self.conditions.cpu_partition);
        let conditions = Conditions { cpu_partition, ..self.conditions };
        let connected = || restricted.as_ref().map_or(Ok(()), Restricted::connected);
        let seed = DrawSeed::new(self.plan.spec.seed, round, &run_cell.record, operation.name, rerun);
        let options = cell.connect_options(self.targets[run_cell.record.target].driver_of(&run_cell.record));
        let ordered = CellOrder::new(&self.plan.spec, run_cell, self.plan.largest_answer());
        let mut probes = 0;
        let stood_still = Cell::new(Duration::ZERO);
        let mut made = |load_model: LoadModel, stop: Stop| {
            let number = fixture.next_trial();
            fixture.before(cell, operation.name, conditions.cancel, |trial| workload.before(trial))?;
            let (state, session) = fixture.lend(cell)?;
            if let Some(restricted) = &restricted {
                restricted.begin()?;
            }
            let driver = target.driver_of(&run_cell.record);
            let trial = Trial {
                number,
                stop,
                load_model,
                seed: seed.of_probe(probes),
                conditions,
                threads: self.plan.spec.threads,
                connected: Some(&connected),
                clients: conditions
                    .fleet
                    .map_or(Clients::Here, |fleet| Clients::Fleet(FleetClients { fleet, cell: &ordered })),
                ..Trial::new(driver, &options, cell, &*workload, operation)
            };
            probes += 1;
            let made = trial.run(state, &mut cancellable(session, conditions.cancel));
            let meanwhile = match &made {
                Ok(measured) => Duration::from_nanos(measured.stood_still_ns),
                Err(failure) => failure.stood_still.unwrap_or_default(),
            };
            stood_still.set(stood_still.get() + meanwhile);
            made
        };
        let stop = self.plan.stop(operation);
        let arrivals = self.plan.spec.arrivals.unwrap_or_default();
        let mut measured = match Load::of(&run_cell.record.axes) {
            Load::Closed => made(LoadModel::Closed, stop)?,
            Load::Open(rate) => made(LoadModel::Open { rate: rate as f64, arrivals }, stop)?,
            Load::Highest => {
                let slo = Duration::from_nanos(self.plan.spec.slo_ns.unwrap_or(DEFAULT_SLO_NS));
                let time = stop.duration.unwrap_or(HIGHEST_TIME);
                let search = RateSearch { slo, arrivals, time };
                let found = search.find(|load_model, time| {
                    made(load_model, Stop { duration: Some(time), ..Stop::default() })
                });
                found.map_err(|failure| Failure { stood_still: Some(stood_still.get()), ..failure })?
            }
        };
        // Any disturbed trial would mislead a rate search.
        measured.stood_still_ns = stood_still.get().as_nanos() as u64;
        Ok(measured)
    }
}
