//! The work of a loop, what it is given before and after a trial, and the state of its data.

use super::{Client, ClientSummary, Transaction};
use crate::driver::{Namespace, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::metric::MetricValue;
use crate::query_plan::QueryPlan;
use crate::verification::Verification;
use std::any::Any;

/// The work of a loop: each client repeats its transaction. It is immutable: the state of the data is a
/// [`DatasetState`] that the engine keeps and lends.
pub trait Workload: Send + Sync {
    /// Creates the collections and fills them. It is deterministic, and called once per run for each
    /// [`PlannedCell::dataset`](crate::planned::PlannedCell::dataset).
    ///
    /// # Errors
    /// The server's error, or [`Mismatch`](ErrorKind::Mismatch) if the server's row count differs.
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        let _ = (namespace, session);
        Ok(DatasetState::default())
    }

    /// Prepares one trial of an operation, for example empties the collection that it writes to. Not measured.
    fn before(&self, trial: Before<'_>) -> Result<()> {
        let _ = trial;
        Ok(())
    }

    /// The transaction of one client: of an operation, or of another [page](crate::page::ServedPages).
    ///
    /// # Errors
    /// If the client's buffers cannot be allocated.
    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>>;

    /// Verifies the clients' results on the server after a trial: reads back their writes, and compares the server's
    /// row count if it has one. Not measured.
    ///
    /// # Errors
    /// [`Mismatch`](crate::ErrorKind::Mismatch) if anything differs; or the server's error.
    fn after(&self, trial: After<'_>) -> Result<Checked> {
        let _ = trial;
        Ok(Checked::default())
    }
}

/// The context of a trial that is about to start.
pub struct Before<'a> {
    /// The operation that is measured.
    pub operation: &'a str,
    /// The state of its data.
    pub state: &'a mut DatasetState,
    /// Creates and empties collections.
    pub namespace: &'a mut dyn Namespace,
    /// A session that no client uses.
    pub session: &'a mut dyn Session,
}

/// The context of a trial that has ended.
pub struct After<'a> {
    /// The operation that was measured.
    pub operation: &'a str,
    /// The state of its data.
    pub state: &'a DatasetState,
    /// A session that no client uses.
    pub session: &'a mut dyn Session,
    /// The results of each client, warm-up included.
    pub clients: &'a [ClientSummary],
}

/// The result of the check after a trial, from [`Workload::after`] or [`Job::verify`](crate::job::Job::verify).
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// How answers and writes were verified.
    pub verification: Verification,
    /// The trial's values of the experiment's own metrics.
    pub metrics: Vec<MetricValue>,
    /// How the server executed the trial's statements, where the experiment asks for it.
    pub plans: Vec<QueryPlan>,
}

impl From<Verification> for Checked {
    fn from(verification: Verification) -> Self {
        Self { verification, metrics: Vec::new(), plans: Vec::new() }
    }
}

/// What an experiment knows of a dataset beyond its name. The engine keeps it with the data that [`Workload::load`]
/// created, and lends it to each trial on that data.
pub struct DatasetState(Box<dyn Any + Send + Sync>);

impl DatasetState {
    /// The state of a dataset.
    pub fn new<T: Any + Send + Sync>(state: T) -> Self {
        Self(Box::new(state))
    }

    /// The state, as its original type.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if it has another type.
    pub fn get<T: Any>(&self) -> Result<&T> {
        self.0.downcast_ref().ok_or_else(other_state)
    }

    /// The state, mutable, as its original type.
    pub fn get_mut<T: Any>(&mut self) -> Result<&mut T> {
        self.0.downcast_mut().ok_or_else(other_state)
    }
}

impl Default for DatasetState {
    /// An empty state.
    fn default() -> Self {
        Self::new(())
    }
}

fn other_state() -> Error {
    Error::new(ErrorKind::Internal, "the state of the dataset belongs to another experiment")
}
