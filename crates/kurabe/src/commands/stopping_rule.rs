//! `--until conclusive`: decides whether a run continues after its planned rounds.

use anyhow::Result;
use kurabe_core::Error;
use kurabe_core::run::{Run, RunEnd, TrialRecord};
use kurabe_experiments::registry;
use kurabe_report::analyse;
use kurabe_stats::interim::Analyses;
use std::time::{Duration, Instant};

/// What a run is for: it says when a run with a stopping rule may end, and what is printed of it.
#[derive(Clone, Copy, Default)]
pub(super) enum StopRule<'a> {
    /// The run's own report: it ends when all comparisons are conclusive.
    #[default]
    Report,
    /// A claim, whose answer others print: it ends when this function says that the claim is decided.
    Claim(&'a dyn Fn(&Run) -> bool),
}

impl StopRule<'_> {
    /// Until when rounds are added, as a clause; `margin` is that of the stopping rule.
    pub(super) fn end(self, margin: f64) -> String {
        match self {
            Self::Report => {
                format!("until all comparisons are conclusive at ±{} %", (margin * 1e4).round() / 100.0)
            }
            Self::Claim(_) => "until the claim is decided".to_owned(),
        }
    }
}

/// Decides after each interim analysis whether a run continues.
pub(super) struct StoppingRule<'a> {
    /// The recorded run at the start of this session of the program.
    run: Run,
    /// `None`: the number of rounds is fixed.
    analyses: Option<Analyses>,
    /// The maximum number of rounds.
    most: u32,
    /// The time limit of the whole run.
    budget: Option<Duration>,
    began: Instant,
    /// What decides whether the run may end.
    stop_rule: StopRule<'a>,
    /// Why the run stopped, if the user should know.
    why: Option<String>,
}

impl<'a> StoppingRule<'a> {
    /// A rule for a run that continues from here; `began` is the start of the whole run.
    pub(super) fn new(run: &Run, began: Instant, stop_rule: StopRule<'a>) -> Self {
        let ends = run.max_rounds();
        let spec = &run.header.spec;
        // A user who allows more rounds later also allows the time for them.
        let budget = spec.until.and_then(|until| until.budget_ns).filter(|_| ends.len() == 1);
        Self {
            run: run.clone(),
            most: ends.last().copied().unwrap_or(0),
            analyses: run.analyses(),
            budget: budget.map(Duration::from_nanos),
            began,
            stop_rule,
            why: None,
        }
    }

    /// The number of additional rounds; `made` are the trials made so far since the program started.
    pub(super) fn further(&mut self, rounds: u32, made: &[TrialRecord]) -> u32 {
        let Some(analyses) = &self.analyses else { return 0 };
        let further = analyses.after(rounds).min(self.most).saturating_sub(rounds);
        let earlier = &self.run.trials;
        // A round that was interrupted must be completed before the analysis.
        if earlier.iter().any(|trial| trial.round >= rounds) {
            return further;
        }
        let end = Some(RunEnd { at_ms: 0, complete: true });
        let trials = earlier.iter().chain(made).cloned().collect();
        let resumptions = self.run.resumptions.clone();
        let run = Run { header: self.run.header.clone(), trials, resumptions, end };
        let is_decided = match self.stop_rule {
            StopRule::Report => is_conclusive(&run),
            StopRule::Claim(is_decided) => is_decided(&run),
        };
        let spent = self.began.elapsed();
        let more = spent / rounds.max(1) * further;
        self.why = match self.budget {
            _ if is_decided => return 0,
            _ if further == 0 => Some(format!("stopped after {rounds} rounds, the allowed maximum")),
            Some(budget) if spent + more > budget => {
                Some(format!("stopped after {rounds} rounds: the next analysis would exceed the budget"))
            }
            _ => return further,
        };
        0
    }

    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

/// Whether all comparisons of primary metrics are conclusive.
fn is_conclusive(run: &Run) -> bool {
    let info = registry::of(&run.header.spec).ok().map(|experiment| experiment.info);
    let verdicts = analyse(run, info).verdicts;
    verdicts.iter().all(|verdict| !verdict.primary || verdict.conclusive)
}

/// Whether a resumed run gets rounds that were not allowed when it started.
///
/// # Errors
/// If the number of rounds is fixed: its verdicts have used up the 5 % error probability.
pub(super) fn prolongs(run: &Run, max_rounds: Option<u32>) -> Result<bool> {
    let Some(most) = max_rounds else { return Ok(false) };
    if run.header.spec.until.is_none() {
        return Err(Error::usage("this run has a fixed number of rounds; no rounds can be added")
            .hint(
                "repeated analyses would find false differences more often; start a run with --until conclusive",
            )
            .into());
    }
    let made = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
    Ok(made < most)
}
