//! The parts of statements that read or load all rows of a table.

use super::dialect::Dialect;
use super::shape::kinds;
use super::statement::{names, select};
use crate::prelude::*;

/// The texts by which all rows of a table are read or loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsText {
    /// `SELECT a, b FROM t`, in any order of rows.
    pub select: String,
    /// The table's quoted name.
    pub table: String,
    /// The columns' quoted names, separated by commas.
    pub columns: String,
    pub kinds: Vec<FieldType>,
}

impl RowsText {
    /// The texts for these fields of a collection.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if there are no fields, or the collection lacks one: a defect of the
    /// experiment.
    pub fn new(dialect: &Dialect, collection: &Collection, fields: &[usize]) -> Result<Self> {
        Ok(Self {
            select: select(dialect, collection, fields)?,
            table: dialect.table(&collection.name),
            columns: names(dialect, collection, fields)?,
            kinds: kinds(collection, fields)?,
        })
    }

    /// The texts for all fields.
    pub fn of_all(dialect: &Dialect, collection: &Collection) -> Result<Self> {
        Self::new(dialect, collection, &(0..collection.fields.len()).collect::<Vec<_>>())
    }
}
