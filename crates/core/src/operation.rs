//! Operations: the requests of an experiment, independent of any database.

use crate::collection::Collection;
use crate::raw::RawStatement;
use std::sync::Arc;

/// One request to a database. A driver prepares it once for its database, and executes it with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The smallest request that the server answers. No parameters, no rows.
    Ping,
    /// Starts a transaction. No parameters, no rows.
    Begin,
    /// Commits the transaction since [`Operation::Begin`].
    Commit,
    /// Rolls back the transaction since [`Operation::Begin`].
    Rollback,
    /// One row by its primary key. Parameters: the key's fields. Reply: `fields` of the row, or no row.
    Get {
        collection: Arc<Collection>,
        /// The fields to return, by position.
        fields: Vec<usize>,
    },
    /// Adds one row; an error if the key exists. Parameters: every field. Reply: affected 1.
    Insert { collection: Arc<Collection> },
    /// Adds rows in one request, all or none. Parameters: every field of the first row, of the second, …
    /// Reply: affected = `rows`.
    InsertMany {
        collection: Arc<Collection>,
        /// The number of rows.
        rows: usize,
    },
    /// Adds rows in one request without atomicity: if one fails, which is an error, others may have been added.
    /// Databases without [`Operation::InsertMany`] use it to load many rows. Parameters and reply as there.
    InsertEach {
        collection: Arc<Collection>,
        /// The number of rows.
        rows: usize,
    },
    /// Adds a row or replaces the one with its key. Parameters: every field.
    Put { collection: Arc<Collection> },
    /// Changes fields of one row. Parameters: `fields`, then the key's fields. Reply: affected 1, or 0 where no
    /// row has the key.
    Update {
        collection: Arc<Collection>,
        /// The fields to change, by position.
        fields: Vec<usize>,
    },
    /// Removes one row by its key. Parameters: the key's fields. Reply: affected 1, or 0.
    Delete { collection: Arc<Collection> },
    /// Removes all rows that expire before the parameter, which is a time ([`Collection::expires`]). Databases that remove
    /// them by themselves do not support it. Reply: affected, the number of rows.
    Purge { collection: Arc<Collection> },
    /// All rows whose fields `by` equal the parameters, in the order of the primary key. Reply: `fields` of each.
    FindEqual {
        collection: Arc<Collection>,
        /// The fields to compare, by position: the first fields of the key, or of an index.
        by: Vec<usize>,
        /// The fields to return, by position.
        fields: Vec<usize>,
    },
    /// All rows whose field `by` is at least the first parameter and less than the second, in the order of that field
    /// and then of the primary key. Text is compared by its bytes. A prefix search is such a range, from the prefix
    /// to the first text after all that begin so, and every ordered index supports it. Reply: `fields` of each row.
    FindRange {
        collection: Arc<Collection>,
        /// The field to compare, by position: the first of the key, or of an index.
        by: usize,
        /// The fields to return, by position.
        fields: Vec<usize>,
    },
    /// A page of an application, which manages its own data and has no other operation. Parameters: its path. Reply:
    /// one row with the body as bytes. An error if there is no such page or record
    /// ([`NotFound`](crate::ErrorKind::NotFound)), or if the application failed, with its reason and the HTTP status
    /// as code.
    Page {
        /// Whether the page changes the application's data: it is then requested by POST instead of GET.
        writes: bool,
        /// Whether this is the last request of the connection, so that the application may close it.
        last: bool,
    },
    /// The number of rows, counted by the server. Reply: one row with one integer.
    Count { collection: Arc<Collection> },
    /// A statement written by the user, in SQL. Parameters: one per placeholder. Reply: the rows, with non-integer
    /// numbers as text, or the number of changed rows.
    Raw { statement: Arc<RawStatement> },
    /// Bytes over a TCP connection of its own, for a target that is no database. Preparing it opens the connection,
    /// and releasing it closes the connection. Parameters and reply: see its [kind](FlowKind).
    Flow(Flow),
}

/// A flow of bytes over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Which bytes flow, and where to.
    pub kind: FlowKind,
    /// The size that is asked for of each socket buffer of both ends, in bytes; 0: the kernels' own choice.
    pub socket_buffer: u64,
    /// The length of a block, in bytes. Each is one call of send, and each receive asks for the rest of one.
    pub block: u64,
}

/// Which bytes flow, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Blocks, one way. The driver makes their content, and the other end compares every byte. Parameters: how many are
    /// sent. The reply does not mean that they have arrived: one row of integers, which are the stream's token, the
    /// CPU time of the calling thread in nanoseconds, the size of its send buffer, that of the other end's receive
    /// buffer, and the largest segment (MSS), all three in bytes as the kernels report them.
    Stream,
    /// One block, which the other end sends back. Parameters: its bytes. Reply: one row with the bytes that came back.
    Echo,
    /// The result of a stream of any session, once its connection is closed. Parameters: its token. Reply: one row
    /// with the bytes that arrived, and the CPU time of the thread that received them in nanoseconds. An error
    /// ([`Mismatch`](crate::ErrorKind::Mismatch)) if a byte was wrong.
    Received,
}

/// Why a database does not support [`Operation::Flow`].
pub const NO_FLOW: &str = "a database carries no plain bytes: that takes a listener, tcp://host or up:tcp";

impl Operation {
    /// The operation's name in docs and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ping => "Ping",
            Self::Begin => "Begin",
            Self::Commit => "Commit",
            Self::Rollback => "Rollback",
            Self::Get { .. } => "Get",
            Self::Insert { .. } => "Insert",
            Self::InsertMany { .. } => "InsertMany",
            Self::InsertEach { .. } => "InsertEach",
            Self::Put { .. } => "Put",
            Self::Update { .. } => "Update",
            Self::Delete { .. } => "Delete",
            Self::Purge { .. } => "Purge",
            Self::FindEqual { .. } => "FindEqual",
            Self::FindRange { .. } => "FindRange",
            Self::Page { .. } => "Page",
            Self::Count { .. } => "Count",
            Self::Raw { .. } => "Raw",
            Self::Flow(_) => "Flow",
        }
    }

    /// Whether it only reads, on every database. A user's own statement may do anything.
    pub fn reads(&self) -> bool {
        matches!(
            self,
            Self::Ping
                | Self::Begin
                | Self::Commit
                | Self::Rollback
                | Self::Get { .. }
                | Self::FindEqual { .. }
                | Self::FindRange { .. }
                | Self::Count { .. }
        )
    }

    /// The collection that it works on; `None` for `Ping`, transactions, pages, flows, and a statement without one.
    pub fn collection(&self) -> Option<&Arc<Collection>> {
        match self {
            Self::Ping | Self::Begin | Self::Commit | Self::Rollback | Self::Page { .. } | Self::Flow(_) => {
                None
            }
            Self::Raw { statement } => statement.collection.as_ref(),
            Self::Get { collection, .. }
            | Self::Insert { collection }
            | Self::InsertMany { collection, .. }
            | Self::InsertEach { collection, .. }
            | Self::Put { collection }
            | Self::Update { collection, .. }
            | Self::Delete { collection }
            | Self::Purge { collection }
            | Self::FindEqual { collection, .. }
            | Self::FindRange { collection, .. }
            | Self::Count { collection } => Some(collection),
        }
    }

    /// The number of its parameters.
    pub fn parameters(&self) -> usize {
        match self {
            Self::Ping | Self::Begin | Self::Commit | Self::Rollback | Self::Count { .. } => 0,
            Self::Get { collection, .. } | Self::Delete { collection } => collection.key.len(),
            Self::Insert { collection } | Self::Put { collection } => collection.fields.len(),
            Self::InsertMany { collection, rows } | Self::InsertEach { collection, rows } => {
                collection.fields.len() * rows
            }
            Self::Update { collection, fields } => fields.len() + collection.key.len(),
            Self::FindEqual { by, .. } => by.len(),
            Self::FindRange { .. } => 2,
            Self::Page { .. } | Self::Flow(_) | Self::Purge { .. } => 1,
            Self::Raw { statement } => statement.parameters,
        }
    }
}
