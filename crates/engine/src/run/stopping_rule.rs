//! `--until conclusive`: whether a run continues after its planned rounds.

use crate::run::listener::{Event, RunLog};
use kurabe_core::run::Run;
use kurabe_core::{Error, Result};
use kurabe_stats::interim::Analyses;
use std::time::{Duration, Instant};

/// Decides after each interim analysis whether a run continues.
pub(crate) struct StoppingRule {
    /// `None`: the number of rounds is fixed.
    analyses: Option<Analyses>,
    /// The maximum number of rounds.
    most: u32,
    /// The time limit of the whole run.
    budget: Option<Duration>,
    /// The start of the whole run.
    began: Instant,
    /// The number of trials that were recorded before this session of the program.
    recorded: usize,
}

impl StoppingRule {
    /// A rule for a run that continues from here.
    pub(crate) fn new(run: &Run, began: Instant) -> Self {
        let ends = run.max_rounds();
        // A user who allows more rounds later also allows the time for them.
        let budget = run.header.spec.until.and_then(|until| until.budget_ns).filter(|_| ends.len() == 1);
        Self {
            analyses: run.analyses(),
            most: ends.last().copied().unwrap_or(0),
            budget: budget.map(Duration::from_nanos),
            began,
            recorded: run.trials.len(),
        }
    }

    /// The number of rounds that follow after these.
    pub(crate) fn further(&self, rounds: u32, log: &mut RunLog<'_>) -> Result<u32> {
        let Some(analyses) = &self.analyses else { return Ok(0) };
        let further = analyses.after(rounds).min(self.most).saturating_sub(rounds);
        // A round that was interrupted must be completed before the analysis.
        if log.trials()[..self.recorded].iter().any(|trial| trial.round >= rounds) {
            return Ok(further);
        }
        if log.is_decided() {
            return Ok(0);
        }
        let spent = self.began.elapsed();
        let more = spent / rounds.max(1) * further;
        let why = if further == 0 {
            format!("stopped after {rounds} rounds, the allowed maximum")
        } else if self.budget.is_some_and(|budget| spent + more > budget) {
            format!("stopped after {rounds} rounds: the next analysis would exceed the budget")
        } else {
            return Ok(further);
        };
        log.emit(Event::Undecided { why: &why })?;
        Ok(0)
    }
}

/// Whether a resumed run gets rounds that were not allowed when it started.
///
/// # Errors
/// If the number of rounds is fixed: its verdicts have used up the 5 % error probability.
pub fn prolongs(run: &Run, max_rounds: Option<u32>) -> Result<bool> {
    let Some(most) = max_rounds else { return Ok(false) };
    if run.header.spec.until.is_none() {
        return Err(Error::usage("this run has a fixed number of rounds; no rounds can be added").hint(
            "repeated analyses would find false differences more often; start a run with --until conclusive",
        ));
    }
    let made = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
    Ok(made < most)
}
