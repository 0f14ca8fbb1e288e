//! What a run tells its caller, and what it asks: also whether it continues after its planned rounds (`--until conclusive`).

use crate::plan::Plan;
use crate::plan::budget::Fit;
use crate::prepare::target::Target;
use kurabe_core::run::{CellRecord, Replanned, Resumption, Run, RunEnd, RunHeader, TrialRecord};
use kurabe_core::{Error, Result};
use kurabe_stats::interim::Analyses;
use std::time::{Duration, Instant};

/// The caller of a run: it shows and records what happens, and answers what a run asks.
pub trait Listener {
    /// Shows or records what happens. A trial, a change of the plan, a resumption and the end are recorded before this
    /// returns.
    ///
    /// # Errors
    /// Any error ends the run.
    fn event(&mut self, event: Event<'_>) -> Result<()>;

    /// Decides whether a planned run is made. It may take cells out of the plan.
    ///
    /// # Errors
    /// Any error ends the run.
    fn start(&mut self, plan: &mut Plan, fit: Option<&Fit>, targets: &[Target]) -> Result<Start> {
        let _ = (plan, fit, targets);
        Ok(Start::Measure { warnings: Vec::new() })
    }

    /// Begins the record of a run. Returns the run's name there: that of the header, unless there was such a run.
    ///
    /// # Errors
    /// Any error ends the run.
    fn begins(&mut self, header: &RunHeader) -> Result<String> {
        Ok(header.run.clone())
    }

    /// Whether a run that may add rounds needs no more: its question is answered.
    fn is_decided(&mut self, run: &Run) -> bool {
        let _ = run;
        false
    }
}

/// Shows and records nothing.
impl Listener for () {
    fn event(&mut self, _: Event<'_>) -> Result<()> {
        Ok(())
    }
}

/// Whether a planned run is made.
pub enum Start {
    /// Nothing is measured: only the plan was asked for.
    PlanOnly,
    /// The run is made, and recorded with these warnings.
    Measure { warnings: Vec<String> },
}

/// What happens in a run, in this order; trials repeat.
pub enum Event<'a> {
    /// What the run does for its targets, a sentence.
    Note { text: &'a str },
    /// A condition that could distort the results, a sentence.
    Warning { text: &'a str },
    /// The plan is complete; nothing was measured yet.
    Planned { plan: &'a Plan, fit: Option<&'a Fit>, targets: &'a [Target] },
    /// The tool's own cost is being measured.
    MeasuringOverhead,
    /// The targets are being claimed and cleared.
    Preparing,
    /// A recorded run goes on.
    Resumed { header: &'a RunHeader, resumption: &'a Resumption },
    /// Data is being loaded, before the first trial that needs it.
    Loading { cell: &'a CellRecord },
    /// Throwaway servers are being restarted, between two blocks of rounds.
    Restarting,
    /// A trial starts.
    TrialBegins {
        /// Its round, from 0.
        round: u32,
        cell: &'a CellRecord,
        operation: &'a str,
        /// Trials that have ended, including those recorded before a resume.
        ended: usize,
        /// The total number of planned trials.
        planned: usize,
        /// The estimated remaining time; `None` before the first trial has ended.
        left: Option<Duration>,
    },
    /// A trial ended, successfully or not.
    TrialEnds { record: &'a TrialRecord },
    /// The run goes on without an agent of its fleet.
    AgentLost {
        /// Its name, and the reason, as a clause.
        why: &'a str,
    },
    /// Some rounds will not be made, so that the run keeps to its budget.
    Replanned {
        plan: Replanned,
        /// The number of rounds before.
        planned: u32,
        /// The time that those would have taken, since the start of the run.
        expected: Duration,
    },
    /// A run that may add rounds ends undecided.
    Undecided {
        /// The reason, a sentence.
        why: &'a str,
    },
    /// The run ended: as planned, or stopped by the user.
    RunEnds { end: &'a RunEnd },
}

/// A run while it goes on. The listener gets each of its records before the run has it.
pub(crate) struct RunLog<'a> {
    run: &'a mut Run,
    listener: &'a mut dyn Listener,
}

impl<'a> RunLog<'a> {
    pub(crate) fn new(run: &'a mut Run, listener: &'a mut dyn Listener) -> Self {
        Self { run, listener }
    }

    /// The trials so far.
    pub(crate) fn trials(&self) -> &[TrialRecord] {
        &self.run.trials
    }

    /// Tells the listener what happens. A change of the plan changes the run.
    pub(crate) fn emit(&mut self, event: Event<'_>) -> Result<()> {
        let replanned = if let Event::Replanned { plan, .. } = &event { Some(*plan) } else { None };
        self.listener.event(event)?;
        if let Some(plan) = replanned {
            self.run.replan(plan);
        }
        Ok(())
    }

    /// Records a trial.
    pub(crate) fn trial(&mut self, record: TrialRecord) -> Result<()> {
        self.listener.event(Event::TrialEnds { record: &record })?;
        self.run.trials.push(record);
        Ok(())
    }

    /// Records the end.
    pub(crate) fn end(&mut self, end: RunEnd) -> Result<()> {
        self.listener.event(Event::RunEnds { end: &end })?;
        self.run.end = Some(end);
        Ok(())
    }

    /// Whether the run needs no more rounds. Only complete runs are judged, and it is one if it ends here.
    pub(crate) fn is_decided(&mut self) -> bool {
        self.run.end = Some(RunEnd { at_ms: 0, complete: true });
        let is_decided = self.listener.is_decided(self.run);
        self.run.end = None;
        is_decided
    }
}

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
