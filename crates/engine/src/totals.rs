//! Totals over all clients of a trial.

use crate::client::{Outcome, Tally};
use crate::open::Paced;
use crate::timeline::Timeline;
use kurabe_core::experiment::ClientSummary;
use kurabe_core::{Error, ErrorKind};

/// The sum of the clients' results.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) clients_done: Vec<ClientSummary>,
    pub(crate) tally: Tally,
    pub(crate) mismatches: u64,
    /// Each client's timeline with its end; empty in an open loop.
    pub(crate) clients: Vec<(Timeline, (u64, u64))>,
    pub(crate) paced: Paced,
    pub(crate) error: Option<Error>,
}

impl Totals {
    /// Adds up the results. A mismatch takes precedence over other errors, since later connection errors only follow
    /// from it.
    pub(crate) fn of(outcomes: Vec<Outcome>) -> Self {
        let mut sum = Self::default();
        for outcome in outcomes {
            sum.clients_done.push(outcome.done);
            sum.tally.merge(&outcome.tally);
            if outcome.paced.is_none() {
                let end = (outcome.elapsed.as_nanos() as u64, outcome.tally.completed);
                sum.clients.push((outcome.timeline, end));
            }
            if let Some(paced) = outcome.paced {
                sum.paced.merge(&paced);
            }
            if let Some(error) = outcome.error {
                sum.mismatches += u64::from(error.kind() == ErrorKind::Mismatch);
                if sum.error.as_ref().is_none_or(|e| e.kind() != ErrorKind::Mismatch) {
                    sum.error = Some(error);
                }
            }
        }
        sum
    }
}
