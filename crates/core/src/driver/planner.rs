//! The planner of a database: its estimates and its statistics.

use crate::collection::Collection;
use crate::error::Result;
use crate::operation::Operation;
use crate::value::Value;
use std::time::Duration;

/// A session whose optimizer tells its estimates.
pub trait Planner {
    /// Asks the optimizer how many rows an operation with these parameters would return. The operation is planned and
    /// not executed.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the plan has no such estimate; the server's error.
    fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate>;
}

/// The optimizer's estimate of an operation's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowEstimate {
    /// The number of rows that the optimizer expects the operation to return.
    pub rows: f64,
    /// How long planning took, as the server reports it; `None` if it does not.
    pub planning: Option<Duration>,
}

/// The statistics by which a server plans.
pub trait TableStatistics {
    /// Updates the statistics of a collection that was just filled (`ANALYZE`), so that no trial runs with missing or
    /// changing statistics.
    fn analyse(&mut self, collection: &Collection) -> Result<()>;

    /// Stops the server from updating the statistics of a collection by itself. Only [`TableStatistics::analyse`]
    /// updates them from then on. Does nothing on databases that never do so.
    fn hold(&mut self, collection: &Collection) -> Result<()>;

    /// Which statistics of a table the planner lacks, and what to do, as a sentence. `None` if they are complete, or
    /// there is no such table. Changes nothing.
    fn missing(&mut self, table: &str) -> Result<Option<String>>;
}
