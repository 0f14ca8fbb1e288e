//! Totals over all clients of a trial.

use crate::clients::client::{Outcome, Tally};
use crate::clients::open::OpenTimes;
use crate::trial::timeline::Timeline;
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
    pub(crate) open_loop: OpenTimes,
    /// Whether the clients ran in an open loop.
    pub(crate) is_open: bool,
    pub(crate) error: Option<Error>,
}

impl Totals {
    /// Adds up the results. A mismatch takes precedence over other errors, since later connection errors only follow
    /// from it.
    pub(crate) fn of(outcomes: Vec<Outcome>) -> Self {
        let has_open_loop =
            |outcome: &Outcome| outcome.tally.times.as_ref().is_some_and(|times| times.open_loop.is_some());
        let mut sum = Self { is_open: outcomes.iter().any(has_open_loop), ..Self::default() };
        for outcome in outcomes {
            sum.clients_done.push(outcome.done);
            sum.tally.merge(&outcome.tally);
            if !sum.is_open {
                let end = (outcome.elapsed.as_nanos() as u64, outcome.tally.completed);
                sum.clients.push((outcome.timeline, end));
            }
            if let Some(error) = outcome.error {
                sum.mismatches += u64::from(error.kind() == ErrorKind::Mismatch);
                // Statements of others are ended when one client has failed.
                let follows = error.kind() == ErrorKind::Interrupted && sum.error.is_some();
                if !follows && sum.error.as_ref().is_none_or(|e| e.kind() != ErrorKind::Mismatch) {
                    sum.error = Some(error);
                }
            }
        }
        if let Some(open_loop) = sum.tally.times.as_mut().and_then(|times| times.open_loop.take()) {
            sum.open_loop = *open_loop;
        }
        sum
    }
}
