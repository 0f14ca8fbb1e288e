//! Parameter types and result types of operations.

use crate::prelude::*;

/// The types of an operation's parameters and of the fields of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// One for each parameter.
    pub takes: Vec<FieldType>,
    /// One for each field of a row; empty if there are no rows.
    pub gives: Vec<FieldType>,
}

/// The shape of an operation.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if the operation names a field that its collection does not have.
pub fn shape(operation: &Operation) -> Result<Shape> {
    let none = Vec::new;
    let (takes, gives) = match operation {
        Operation::Ping | Operation::Begin | Operation::Commit | Operation::Rollback => (none(), none()),
        Operation::Get { collection, fields } => {
            (kinds(collection, &collection.key)?, kinds(collection, fields)?)
        }
        Operation::Insert { collection } | Operation::Put { collection } => (all(collection), none()),
        Operation::InsertMany { collection, rows } | Operation::InsertEach { collection, rows } => {
            (all(collection).repeat(*rows), none())
        }
        Operation::Update { collection, fields } => {
            ([kinds(collection, fields)?, kinds(collection, &collection.key)?].concat(), none())
        }
        Operation::Purge { collection } => {
            (kinds(collection, &[super::statement::expires(collection)?])?, none())
        }
        Operation::Delete { collection } => (kinds(collection, &collection.key)?, none()),
        Operation::FindEqual { collection, by, fields } => {
            (kinds(collection, by)?, kinds(collection, fields)?)
        }
        Operation::FindRange { collection, by, fields } => {
            (kinds(collection, &[*by, *by])?, kinds(collection, fields)?)
        }
        Operation::Count { .. } => (none(), vec![FieldType::Int]),
        // Result types are unknown, and values are sent with their own types.
        Operation::Raw { statement } => (vec![FieldType::LongText; statement.parameters], none()),
        Operation::Page { .. } => return Err(Error::unsupported(super::raw::NO_PAGES)),
        Operation::Flow(_) => return Err(Error::unsupported(NO_FLOW)),
    };
    Ok(Shape { takes, gives })
}

fn all(collection: &Collection) -> Vec<FieldType> {
    collection.fields.iter().map(|field| field.kind).collect()
}

pub(super) fn kinds(collection: &Collection, fields: &[usize]) -> Result<Vec<FieldType>> {
    let kind = |&position: &usize| {
        collection.fields.get(position).map(|field| field.kind).ok_or_else(|| {
            Error::new(ErrorKind::Internal, format!("collection {} has no field {position}", collection.name))
        })
    };
    fields.iter().map(kind).collect()
}
