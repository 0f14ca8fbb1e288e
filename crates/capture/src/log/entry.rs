//! What logs of all formats say.

use crate::file::Known;
use kurabe_core::Result;
use kurabe_wire::view::Exchange;

/// The maximum size of a statement, or of the values of an execution, that is kept, in bytes.
pub(super) const KEPT: usize = 1 << 20;
/// What is left out.
pub(super) const UNREAD: &str = "lines that cannot be read";

/// What one line, or a few, say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The session, by the log's own name of it.
    pub(super) session: String,
    pub(super) user: String,
    pub(super) database: String,
    /// When it was written, in nanoseconds since 1970: a request was over then.
    pub(super) at: u64,
    /// How long the request took, in nanoseconds.
    pub(super) time: u64,
    pub(super) what: What,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum What {
    /// A request, without its times.
    Asked(Box<Exchange>),
    #[default]
    Ended,
}

pub(super) trait Log {
    /// The next entry; `None` at the end.
    fn next(&mut self) -> Result<Option<Entry>>;

    /// What it says beside requests, once an entry was read.
    fn known(&self) -> Known;

    /// What is left out, and how many of it.
    fn left_out(&self) -> Vec<(&'static str, u64)>;

    /// The settings that make the server write what is missing.
    fn hint(&self) -> &'static str;
}
