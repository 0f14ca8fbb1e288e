//! `--until settled`: whether a run that has made its rounds goes on.

use anyhow::Result;
use kurabe_core::Error;
use kurabe_core::experiment::Experiment;
use kurabe_core::run::{Run, TrialRecord, Until};
use kurabe_experiments::registry;
use kurabe_report::analyse;
use kurabe_stats::settle::Looks;
use std::time::{Duration, Instant};

/// Decides after each look whether a run goes on.
pub(super) struct Ending {
    until: Option<Until>,
    /// The run as it was when this sitting began.
    run: Run,
    began: Instant,
    /// Why it went on no longer, where a reader should know.
    why: Option<String>,
}

impl Ending {
    /// For a run that goes on from here; `began` is when the run as a whole did.
    pub(super) fn new(run: &Run, began: Instant) -> Self {
        Self { until: run.header.spec.until, run: run.clone(), began, why: None }
    }

    /// How many rounds are wanted beyond those made; `made` are the trials of this sitting.
    pub(super) fn further(&mut self, rounds: u32, made: &[TrialRecord]) -> u32 {
        let Some(until) = self.until else { return 0 };
        let spec = &self.run.header.spec;
        let looks = Looks::after(spec.rounds);
        let next = looks.rounds(looks.number(rounds) + u32::from(rounds >= looks.rounds(1)));
        let further = next.min(until.max_rounds).saturating_sub(rounds);
        let earlier = &self.run.trials;
        // What an earlier sitting began must be ended before it is looked at.
        if earlier.iter().any(|trial| trial.round >= rounds) {
            return further;
        }
        let trials = earlier.iter().chain(made).cloned().collect();
        let run = Run { trials, ..Run::new(self.run.header.clone()) };
        let info = registry::of(spec).ok().map(Experiment::info);
        let open = analyse(&run, info).verdicts.iter().filter(|verdict| !verdict.settled).count();
        let spent = self.began.elapsed();
        let more = spent / rounds.max(1) * further;
        self.why = match until.budget_ns.map(Duration::from_nanos) {
            _ if open == 0 => return 0,
            _ if further == 0 => Some(format!("stopped after {rounds} rounds, the most that were allowed")),
            Some(budget) if spent + more > budget => {
                Some(format!("stopped after {rounds} rounds: the next look would be beyond the budget"))
            }
            _ => return further,
        };
        0
    }

    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

/// Lets a resumed run make more rounds than was said when it began. Gives whether it has any to make.
///
/// # Errors
/// Where the run's rounds were fixed: its verdicts have spent all of the 5 % that they may err in.
pub(super) fn extend(run: &mut Run, max_rounds: Option<u32>) -> Result<bool> {
    let Some(most) = max_rounds else { return Ok(false) };
    let Some(until) = &mut run.header.spec.until else {
        return Err(Error::usage("the rounds of this run were fixed when it began, so that none can follow")
            .hint("looking twice would call equals different more often; begin a run with --until settled")
            .into());
    };
    until.max_rounds = most;
    until.budget_ns = None;
    let made = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
    Ok(made < most)
}
