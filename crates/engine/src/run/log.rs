//! The record of a run while it goes on: one value, and its listener.

use crate::run::listener::{Event, Listener};
use kurabe_core::Result;
use kurabe_core::run::{Run, RunEnd, TrialRecord};

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
