//! Rounds that a run gives up to keep to its budget.

use crate::plan::budget::{LATE, fewer_blocks};
use crate::run::listener::Event;
use crate::run::run_state::RunState;
use crate::run::runner::Runner;
use kurabe_core::run::Replanned;
use std::time::Duration;

impl Runner<'_> {
    /// The expected time of so many rounds since the start of the run.
    fn time_of(&self, rounds: u32, state: &RunState) -> Option<Duration> {
        Some(self.began.elapsed() + state.progress(self.plan, rounds).left?)
    }

    /// Gives up rounds that the budget does not allow. Only time decides, so this does not favour a result. If it does not
    /// allow the blocks that a verdict of any start needs, servers are not restarted.
    pub(super) fn replanned(
        &self,
        made: u32,
        rounds: &mut u32,
        state: &mut RunState,
    ) -> Option<Event<'static>> {
        // What an interleaved round takes is known after the first one.
        let is_known = made > u32::from(state.spec.slice_ns.is_some());
        let late = self.budget.filter(|_| is_known)?.mul_f64(LATE);
        let (planned, restarts) = (*rounds, state.spec.restarts);
        let expected = self.time_of(planned, state)?;
        while self.time_of(*rounds, state).is_some_and(|time| time > late) {
            match fewer_blocks(&state.spec, *rounds).filter(|fewer| *fewer >= made) {
                Some(fewer) => *rounds = fewer,
                None if state.spec.restarts > 0 && state.block.unwrap_or_default() == 0 => {
                    (state.spec.restarts, *rounds) = (0, planned);
                }
                None => break,
            }
        }
        if (*rounds, state.spec.restarts) == (planned, restarts) {
            return None;
        }
        if state.spec.restarts > 0 {
            state.spec.restarts = *rounds / state.spec.block_length() - 1;
        }
        state.spec.rounds = *rounds;
        let plan = Replanned { rounds: *rounds, restarts: state.spec.restarts };
        Some(Event::Replanned { plan, planned, expected })
    }
}
