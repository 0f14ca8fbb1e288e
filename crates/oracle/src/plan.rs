//! What an operation becomes on Oracle: which statements, with which parameters, committed by whom.

use super::dialect;
use crate::prelude::*;
use crate::sql::Template;
use crate::sql::{self, Dialect, Shape};

/// Why a user's own statements are not sent: the types of their parameters and columns are to be declared to this server,
/// and without one nothing of it could be tried.
pub(crate) const NO_RAW: &str = "statements of a workload's own are not yet sent to Oracle";

/// What an operation was prepared into.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) steps: Steps,
}

/// What is sent, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// The protocol's own ping.
    Ping,
    /// Nothing: a transaction begins by itself. From here to the end, changes are not committed one by one.
    Begin,
    /// The protocol's own commit.
    Commit,
    /// The protocol's own rollback.
    Rollback,
    /// A query.
    Query(String),
    /// One change.
    Change(String),
    /// One statement with many sets of parameters, in one request. Rows before the one that fails stay until they are
    /// rolled back.
    Array {
        sql: String,
        /// Parameters of each set.
        width: usize,
    },
    /// Adds or replaces a row of a table that has LOBs. A MERGE cannot: it takes no value of more than 4,000 bytes
    /// (ORA-01461). Most rows are there already in what is measured, so the UPDATE comes first.
    UpdateOrInsert {
        update: String,
        /// Which of the operation's parameters are the UPDATE's, in its order.
        order: Vec<usize>,
        insert: String,
    },
}

/// An operation whose values stand in its text.
#[derive(Debug)]
pub(crate) struct LiteralPlan {
    pub(crate) template: Template,
    /// Whether it changes rows, and is committed.
    pub(crate) changes: bool,
}

/// Plans an operation whose values stand in its text.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) for one that is not one statement of one row; or as for [`plan`].
pub(crate) fn literal_plan(d: &Dialect, operation: &Operation) -> Result<LiteralPlan> {
    let made = plan(&sql::with_gaps(d), operation)?;
    let (text, changes) = match &made.steps {
        Steps::Query(sql) => (sql, false),
        Steps::Change(sql) => (sql, true),
        _ => {
            return Err(Error::unsupported(format!(
                "Oracle's {} binds its values: it is more than one statement of one row",
                made.name
            )));
        }
    };
    let template = Template::of(text, made.shape, made.name, d.literals)?;
    Ok(LiteralPlan { template, changes })
}

/// Plans an operation.
///
/// # Errors
/// Internal, where the operation names what its collection has not.
pub(crate) fn plan(d: &Dialect, operation: &Operation) -> Result<Plan> {
    let text = || sql::text(d, operation);
    let steps = match operation {
        Operation::Ping => Steps::Ping,
        Operation::Begin => Steps::Begin,
        Operation::Commit => Steps::Commit,
        Operation::Rollback => Steps::Rollback,
        Operation::Get { .. }
        | Operation::FindEqual { .. }
        | Operation::FindRange { .. }
        | Operation::Count { .. }
        | Operation::Page { .. } => Steps::Query(text()?),
        Operation::Insert { .. } | Operation::Update { .. } | Operation::Delete { .. } => {
            Steps::Change(text()?)
        }
        Operation::InsertMany { collection, .. } | Operation::InsertEach { collection, .. } => {
            Steps::Array { sql: text()?, width: collection.fields.len() }
        }
        Operation::Put { collection } if !dialect::lobs(d, collection).is_empty() => {
            let fields = collection.rest();
            let order = fields.iter().chain(&collection.key).copied().collect();
            let update = Operation::Update { collection: collection.clone(), fields };
            let insert = Operation::Insert { collection: collection.clone() };
            Steps::UpdateOrInsert { update: sql::text(d, &update)?, order, insert: sql::text(d, &insert)? }
        }
        Operation::Put { .. } => Steps::Change(text()?),
        Operation::Raw { .. } => return Err(Error::unsupported(NO_RAW)),
    };
    Ok(Plan { name: operation.name(), shape: sql::shape(operation)?, steps })
}
