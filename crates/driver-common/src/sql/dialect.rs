//! Differences between SQL engines in the statements that Kurabe uses, as data.

use super::literal::Literals;
use crate::prelude::*;
use std::borrow::Cow;

/// An engine's SQL. Each driver defines its dialect; if options change the SQL, the driver changes a copy.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// The engine's name, for messages.
    pub engine: &'static str,
    /// The engine's names in a user's custom statements: its schemes.
    pub words: &'static [&'static str],
    /// The quote character of identifiers.
    pub quote: char,
    /// The schema that is named before each table; `None` where the session's own path finds it.
    pub schema: Option<String>,
    /// The operator that compares a field of this type with a parameter, for `=`, `<` or `>=`, with its schema where another
    /// role's operator could be taken instead.
    pub operator: fn(FieldType, &'static str) -> Cow<'static, str>,
    /// The placeholder of a parameter; the first is number 1.
    pub parameter: fn(number: usize) -> String,
    /// How values are written as literals.
    pub literals: Literals,
    /// The column type of a field, including a collation that compares text by bytes. `in_key` is true for fields of
    /// the primary key or an index, for engines whose long types cannot be indexed.
    pub column_type: fn(kind: FieldType, in_key: bool) -> Cow<'static, str>,
    /// The statement that adds or replaces a row.
    pub put: fn(&Dialect, &Collection) -> Result<String>,
    /// The clause after `CREATE TABLE … (…)`, with a leading space (` ENGINE=InnoDB`), or empty.
    pub create_tail: Cow<'static, str>,
    /// The statement that clears a table, up to its name: `TRUNCATE TABLE`, `DELETE FROM`.
    pub clear: &'static str,
    /// The statement that gathers planner statistics of a table, up to its name; `None` to leave this to the server.
    pub analyse: Option<&'static str>,
    /// The smallest request, as SQL; unused if the protocol has a ping.
    pub ping: &'static str,
    /// Starts a transaction.
    pub begin: &'static str,
    /// Ends a transaction and keeps its work.
    pub commit: &'static str,
    /// Ends a transaction and undoes its work.
    pub rollback: &'static str,
    /// Statements of this engine that differ entirely, if any.
    pub own: Option<OwnStatements>,
    /// How linked collections are read that are no tables of this engine, if there are such links.
    pub linked: Option<LinkedStatements>,
}

/// How collections are read that are linked from a remote server and are no tables.
#[derive(Clone, Copy, Debug)]
pub struct LinkedStatements {
    /// The statement that a connection executes before it prepares the operation; `None` if it needs none.
    pub before: fn(&Operation) -> Option<String>,
    /// The text of the operation; `None` if it is that of a table with the collection's name.
    pub text: fn(&Dialect, &Operation) -> Result<Option<String>>,
}

/// The types to which the values of so many rows are cast, one for each field.
pub type Casts = fn(&Collection, rows: usize) -> Vec<Cow<'static, str>>;

/// Statements that one engine writes differently from all others.
#[derive(Clone, Copy, Debug)]
pub struct OwnStatements {
    /// Removes a table with its indexes, if it exists.
    pub drop_table: fn(&Dialect, &str) -> String,
    /// A further clause after [`Dialect::create_tail`], with a leading space.
    pub create_tail: fn(&Dialect, &Collection) -> String,
    /// Whether several rows are inserted by a single-row `INSERT` with many sets of parameters (array DML), instead of
    /// one `INSERT` that lists them.
    pub rows_by_array: bool,
    /// If `VALUES` accepts only one row: how several rows are selected instead. The `FROM` clause, with a leading space,
    /// and the types of the values.
    pub rows_by_select: Option<(&'static str, Casts)>,
    /// The maximum length of an identifier in bytes.
    pub longest_name: usize,
}

/// The operator without a schema.
pub fn plain_operator(_: FieldType, operator: &'static str) -> Cow<'static, str> {
    operator.into()
}

impl Dialect {
    /// The identifier of a table or an index. If the name is too long, its end is replaced by a hash of it.
    pub fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let longest = self.own.map_or(usize::MAX, |own| own.longest_name);
        if name.len() <= longest {
            return name.into();
        }
        // FNV-1a. A later version of Kurabe must find the same tables.
        let hash = name
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        format!("{}_{hash:08x}", name.get(..longest.saturating_sub(9)).unwrap_or_default()).into()
    }

    /// The statement that a connection executes before it prepares an operation on a linked collection, if it needs
    /// one.
    pub fn before_linked(&self, operation: &Operation) -> Option<String> {
        operation.collection()?.link()?;
        (self.linked?.before)(operation)
    }

    /// The quoted name of a table, after its schema if the dialect names one.
    pub fn table(&self, name: &str) -> String {
        let table = self.quoted(name);
        self.schema.as_ref().map_or(table.clone(), |schema| format!("{}.{table}", self.quoted(schema)))
    }

    /// A quoted identifier. Names are checked earlier (lower case letters, digits, underscores); a quote is doubled
    /// nevertheless.
    pub fn quoted(&self, name: &str) -> String {
        let quote = self.quote;
        format!("{quote}{}{quote}", self.name(name).replace(quote, &format!("{quote}{quote}")))
    }
}
