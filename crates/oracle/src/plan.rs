//! Plans of operations on Oracle: statements, their parameters, and how they commit.

use super::dialect;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::Template;
use kurabe_driver_common::sql::{self, Dialect, Shape};

/// The reason why custom statements are not supported: this server needs declared types of parameters and columns,
/// which could not be tested without a server.
pub(crate) const NO_RAW: &str = "custom statements are not yet supported on Oracle";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) steps: Steps,
}

/// The requests of an operation, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    Ping,
    /// Nothing is sent, because a transaction begins implicitly. Until it ends, changes are not committed individually.
    Begin,
    Commit,
    Rollback,
    Query(String),
    Change(String),
    /// One statement with many sets of parameters, in one request. Rows before a failing one remain until they are
    /// rolled back.
    Array {
        sql: String,
        /// Parameters of each set.
        width: usize,
    },
    /// Adds or replaces a row of a table with LOBs. MERGE accepts no value of more than 4,000 bytes (ORA-01461). The
    /// UPDATE comes first because most measured rows already exist.
    UpdateOrInsert {
        update: String,
        /// Positions of the UPDATE's parameters in the operation's, in the UPDATE's order.
        order: Vec<usize>,
        insert: String,
    },
}

/// An operation with literals in its text.
#[derive(Debug)]
pub(crate) struct LiteralPlan {
    pub(crate) template: Template,
    /// Whether the statement changes rows, and needs a commit.
    pub(crate) changes: bool,
}

/// Plans an operation with literals in its text.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) unless the operation is one statement of one row; or as for
/// [`plan`].
pub(crate) fn literal_plan(d: &Dialect, operation: &Operation) -> Result<LiteralPlan> {
    let made = plan(&sql::with_gaps(d), operation)?;
    let (text, changes) = match &made.steps {
        Steps::Query(sql) => (sql, false),
        Steps::Change(sql) => (sql, true),
        _ => {
            return Err(Error::unsupported(format!(
                "Oracle's {} always binds its values, because it is more than one statement of one row",
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
/// `Internal` if the operation uses fields that its collection does not have.
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
        Operation::Insert { .. }
        | Operation::Update { .. }
        | Operation::Delete { .. }
        | Operation::Purge { .. }
        | Operation::Put { .. } => Steps::Change(text()?),
        Operation::Raw { .. } => return Err(Error::unsupported(NO_RAW)),
        Operation::Flow(_) => return Err(Error::unsupported(NO_FLOW)),
    };
    Ok(Plan { name: operation.name(), shape: sql::shape(operation)?, steps })
}
