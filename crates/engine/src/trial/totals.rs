//! The results of all clients of a trial.

use crate::clients::client::Outcome;
use crate::trial::recorded::Recorded;
use kurabe_core::experiment::ClientSummary;
use kurabe_core::{Error, ErrorKind};

/// What all clients recorded, and what the check after the trial needs of each.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) recorded: Recorded,
    pub(crate) clients_done: Vec<ClientSummary>,
    pub(crate) mismatches: u64,
    pub(crate) error: Option<Error>,
}

impl Totals {
    /// Adds up the results. A mismatch takes precedence over other errors, since later connection errors only follow
    /// from it.
    pub(crate) fn of(outcomes: Vec<Outcome>) -> Self {
        let mut sum = Self::default();
        for outcome in outcomes {
            sum.clients_done.push(outcome.done);
            sum.recorded.merge(outcome.recorded);
            if let Some(error) = outcome.error {
                sum.mismatches += u64::from(error.kind() == ErrorKind::Mismatch);
                // Statements of others are ended when one client has failed.
                let follows = error.kind() == ErrorKind::Interrupted && sum.error.is_some();
                if !follows && sum.error.as_ref().is_none_or(|e| e.kind() != ErrorKind::Mismatch) {
                    sum.error = Some(error);
                }
            }
        }
        sum
    }
}
