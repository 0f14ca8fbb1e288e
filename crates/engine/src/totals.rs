//! Totals over all clients of a trial.

use crate::client::Outcome;
use crate::connections::Connections;
use crate::open::Paced;
use crate::spans::Spans;
use crate::timeline::Timeline;
use kurabe_core::experiment::ClientSummary;
use kurabe_core::{Error, ErrorKind};
use kurabe_stats::Histogram;

/// The sum of the clients' results.
pub(crate) struct Totals {
    pub(crate) clients_done: Vec<ClientSummary>,
    pub(crate) warmup: u64,
    pub(crate) offered: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) retries: u64,
    pub(crate) mismatches: u64,
    pub(crate) service: Histogram,
    pub(crate) checks: Histogram,
    pub(crate) connections: Connections,
    /// Each client's timeline with its end; empty in an open loop.
    pub(crate) clients: Vec<(Timeline, (u64, u64))>,
    pub(crate) spans: Spans,
    pub(crate) paced: Paced,
    /// Whether a client ended the trial because it had changed each of its records.
    pub(crate) exhausted: bool,
    pub(crate) error: Option<Error>,
}

impl Totals {
    /// Adds up the results. A mismatch takes precedence over other errors, since later connection errors only follow
    /// from it.
    pub(crate) fn of(outcomes: Vec<Outcome>) -> Self {
        let mut sum = Self {
            clients_done: Vec::with_capacity(outcomes.len()),
            warmup: 0,
            offered: 0,
            completed: 0,
            failed: 0,
            retries: 0,
            mismatches: 0,
            service: Histogram::new(),
            checks: Histogram::new(),
            connections: Connections::default(),
            clients: Vec::new(),
            spans: Spans::default(),
            paced: Paced::new(),
            exhausted: false,
            error: None,
        };
        for outcome in outcomes {
            sum.clients_done.push(outcome.done);
            sum.warmup += outcome.warmup;
            sum.offered += outcome.offered;
            sum.completed += outcome.completed;
            sum.failed += outcome.failed;
            sum.retries += outcome.retries;
            sum.exhausted |= outcome.exhausted;
            sum.service.merge(&outcome.service);
            sum.checks.merge(&outcome.checks);
            sum.connections.merge(&outcome.connections);
            if outcome.paced.is_none() {
                let end = (outcome.elapsed.as_nanos() as u64, outcome.completed);
                sum.clients.push((outcome.timeline, end));
            }
            sum.spans.merge(&outcome.spans);
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
