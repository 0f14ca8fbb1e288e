//! An engine's own programs that dump a table into a file and restore it from there: `mariadb-dump` and `mariadb`,
//! `pg_dump` and `psql`.

use crate::collection::Collection;
use crate::error::Result;

/// The order of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// By the primary key.
    Key,
    /// By the collection's first further index.
    Index,
    /// None: each row is at a random place.
    Random,
}

/// Dumps tables of one target, and restores them.
///
/// `progress` is called every few milliseconds, with the bytes that were dumped or restored so far. If it fails, the
/// program is killed, and its error is returned. The dump is in a file without a name, so that nothing is left behind
/// however this process ends.
pub trait DumpTool: Send {
    /// The programs and their versions.
    fn programs(&self) -> &str;

    /// Dumps a table with its definition and its indexes. Returns the size of the dump, in bytes.
    ///
    /// `order` is that of the rows in the dump if the program can choose one. If not, they are dumped in the order in
    /// which they are stored.
    ///
    /// # Errors
    /// The program's own error; [`Environment`](crate::ErrorKind::Environment) if the program cannot be run, or its
    /// dump is not complete, as on a full disk.
    fn dump(
        &mut self,
        table: &Collection,
        order: RowOrder,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64>;

    /// Replaces the table of the last dump by what was dumped.
    ///
    /// # Errors
    /// As for [`DumpTool::dump`]. The table may be missing, or have a part of its rows.
    fn restore(&mut self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()>;

    /// The size of the table with its indexes, in bytes, as the server reports it; `None` if it does not.
    fn stored_bytes(&mut self, table: &Collection) -> Result<Option<u64>>;
}
