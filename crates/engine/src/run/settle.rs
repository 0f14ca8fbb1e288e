//! What becomes of a trial that has ended: its outcome, what disturbed it, and whether the run goes on.

use crate::plan::cell::RunCell;
use crate::run::group::LOADING;
use crate::run::listener::Event;
use crate::run::log::RunLog;
use crate::run::runner::Runner;
use crate::trial::Failure;
use kurabe_core::planned::PlannedCell;
use kurabe_core::run::{Measurement, Outcome};
use kurabe_core::text::printable;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The maximum number of reruns of a trial in which Kurabe itself stood still.
const MAX_STALL_RERUNS: u32 = 5;

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
}

/// A disturbance of a trial, which causes a rerun.
#[derive(Clone, Debug)]
pub(crate) struct Disturbance {
    /// The reason, as a clause.
    pub(crate) why: String,
    pub(crate) kind: DisturbanceKind,
}

/// What disturbed a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisturbanceKind {
    /// Other load: the result is noisy.
    Interference,
    /// Kurabe itself stood still: the result is wrong.
    Standstill,
    /// An agent was lost: there is no result, or it is one of more agents than other trials of its round have.
    LostAgent,
}

impl DisturbanceKind {
    /// Whether the result never counts, so that the trial is rerun whatever time that takes.
    pub(crate) fn is_void(self) -> bool {
        self != Self::Interference
    }
}

/// A rerun of a disturbed trial.
#[derive(Clone, Debug)]
pub(crate) struct Rerun {
    /// What disturbed the previous one, as a clause.
    pub(crate) why: String,
    /// Its number, from 1.
    pub(crate) number: u32,
}

/// Says how long Kurabe itself stood still, as a clause.
pub(crate) fn standstill(time: Duration) -> String {
    format!("kurabe itself stood still for {}", units::time(time))
}
