//! The part of a database that Kurabe may change.

use super::TableStatistics;
use crate::collection::Collection;
use crate::error::Result;

/// The part of a database that Kurabe created and may change: collections whose name starts with
/// [`NAMESPACE_PREFIX`](crate::collection::NAMESPACE_PREFIX) and that are listed in Kurabe's ownership table.
pub trait Namespace: Send {
    /// Acquires the lease of the namespace for one run. It ends when this value is dropped or the connection
    /// closes.
    ///
    /// # Errors
    /// [`InUse`](crate::ErrorKind::InUse) if another run holds the lease, with its name if known.
    fn claim(&mut self, run: &str) -> Result<()>;

    /// Creates the collection, empty, and enters it in the ownership table. Replaces one that Kurabe created
    /// before.
    ///
    /// # Errors
    /// [`NotOurs`](crate::ErrorKind::NotOurs) if something of that name exists that is not in the ownership
    /// table.
    fn create(&mut self, collection: &Collection) -> Result<()>;

    /// Empties a collection that Kurabe created.
    fn clear(&mut self, collection: &Collection) -> Result<()>;

    /// Whether rows stay in the order in which they were inserted; if not, they are stored in the order of their key,
    /// whatever order they come in.
    fn keeps_insertion_order(&self) -> bool;

    /// The text before the key of each row of a collection that was just created or cleared, where rows have keys in one
    /// name space of the server: other programs read the rows by it. `None` where a collection has a place of its own.
    fn key_prefix(&mut self, collection: &Collection) -> Result<Option<String>>;

    /// The statistics of its planner; `None` on databases without such statistics.
    fn statistics(&mut self) -> Option<&mut dyn TableStatistics>;

    /// Removes a collection that Kurabe created, and its entry in the ownership table.
    fn remove(&mut self, name: &str) -> Result<()>;

    /// The names of all collections in the ownership table, including those of earlier runs that did not clean
    /// up.
    fn list(&mut self) -> Result<Vec<String>>;

    /// Removes the ownership table; called when it is empty.
    fn finish(&mut self) -> Result<()>;
}

/// Methods of [`TableStatistics`] that do nothing where there are none.
impl dyn Namespace + '_ {
    /// As [`TableStatistics::analyse`].
    pub fn analyse(&mut self, collection: &Collection) -> Result<()> {
        self.statistics().map_or(Ok(()), |statistics| statistics.analyse(collection))
    }

    /// As [`TableStatistics::hold`].
    pub fn hold_statistics(&mut self, collection: &Collection) -> Result<()> {
        self.statistics().map_or(Ok(()), |statistics| statistics.hold(collection))
    }

    /// As [`TableStatistics::missing`].
    pub fn unanalysed(&mut self, table: &str) -> Result<Option<String>> {
        self.statistics().map_or(Ok(None), |statistics| statistics.missing(table))
    }
}
