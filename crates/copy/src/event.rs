//! What a copy tells those who watch it.

use crate::plan::TablePlan;
use std::time::Duration;

/// What a copy does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Copy,
    Verify,
    Index,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A copy that was begun before is continued.
    Resumed,
    /// How far a table is.
    Progress { table: &'a TablePlan, step: Step, rows: u64 },
    /// A table is complete, but for foreign keys.
    Table(TableDone),
    /// All is copied and verified, and survives what the target's commits survive. The record of the copy still exists, so that the same command continues, and says this
    /// again, if the process ends before anyone has read it.
    Done(&'a [TableDone]),
}

/// A copied table.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct TableDone {
    pub name: String,
    /// All its rows on the target.
    pub rows: u64,
    /// Rows that the target refused, which were written to the file of such rows.
    pub rejected: u64,
    /// Rows that this process copied.
    pub copied: u64,
    /// Bytes of the values that this process copied, in canonical form.
    pub bytes: u64,
    /// Time of copying rows.
    pub copy: Duration,
    /// The key below which rows were compared while others were written, and their number.
    #[serde(skip)]
    pub proven: Option<(i64, u64)>,
    /// Whether the servers' own digests showed that all values are the same.
    pub by_servers: bool,
    /// Time of comparing values.
    pub verify: Duration,
    /// Time of making indexes.
    pub index: Duration,
}
