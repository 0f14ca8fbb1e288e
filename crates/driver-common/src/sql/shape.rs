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
    let mut shape = Shape::default();
    match operation {
        Operation::Ping | Operation::Begin | Operation::Commit | Operation::Rollback => {}
        Operation::Get { collection, fields } => {
            shape.takes = kinds(collection, &collection.key)?;
            shape.gives = kinds(collection, fields)?;
        }
        Operation::Insert { collection } | Operation::Put { collection } => shape.takes = all(collection),
        Operation::InsertMany { collection, rows } | Operation::InsertEach { collection, rows } => {
            shape.takes = all(collection).repeat(*rows);
        }
        Operation::Update { collection, fields } => {
            shape.takes = kinds(collection, fields)?;
            shape.takes.extend(kinds(collection, &collection.key)?);
        }
        Operation::Delete { collection } => shape.takes = kinds(collection, &collection.key)?,
        Operation::FindEqual { collection, by, fields } => {
            shape.takes = kinds(collection, by)?;
            shape.gives = kinds(collection, fields)?;
        }
        Operation::FindRange { collection, by, fields } => {
            shape.takes = kinds(collection, &[*by, *by])?;
            shape.gives = kinds(collection, fields)?;
        }
        Operation::Count { .. } => shape.gives = vec![FieldType::Int],
        // Result types are unknown, and values are sent with their own types.
        Operation::Raw { statement } => shape.takes = vec![FieldType::LongText; statement.parameters],
        Operation::Page { .. } => return Err(Error::unsupported(super::raw::NO_PAGES)),
    }
    Ok(shape)
}

fn all(collection: &Collection) -> Vec<FieldType> {
    collection.fields.iter().map(|field| field.kind).collect()
}

fn kinds(collection: &Collection, fields: &[usize]) -> Result<Vec<FieldType>> {
    let kind = |&position: &usize| {
        collection.fields.get(position).map(|field| field.kind).ok_or_else(|| {
            Error::new(ErrorKind::Internal, format!("collection {} has no field {position}", collection.name))
        })
    };
    fields.iter().map(kind).collect()
}
