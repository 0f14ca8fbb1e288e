//! What SQL engines differ in, one file an engine: the tables of types, the catalogue, and how values are read and
//! written as text.

mod firebird;
mod mysql;
mod postgres;
mod sqlite;

use crate::catalog::{Catalog, Collation, Column, Index, Table};
use crate::issue::IssueKind;
use crate::sql::Side;
use crate::types::{Class, Declared, Kind, Mapped, Rule};
use kurabe_core::{Error, Result};

/// All engines.
pub static ALL: &[&dyn Engine] = &[&sqlite::Sqlite, &postgres::Postgres, &mysql::Mysql, &firebird::Firebird];

/// The engine of a URL's scheme.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) with the schemes that can be copied.
pub fn of_scheme(scheme: &str) -> Result<&'static dyn Engine> {
    ALL.iter().copied().find(|engine| engine.schemes().contains(&scheme)).ok_or_else(|| {
        let known: Vec<String> =
            ALL.iter().flat_map(|engine| engine.schemes()).map(|scheme| format!("{scheme}:")).collect();
        Error::unsupported(format!("tables of '{scheme}:' cannot be copied"))
            .hint(format!("source and target are one of: {}", known.join(", ")))
    })
}

/// How rows without a key are read in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyless {
    /// By a hidden whole number that is unique and ordered.
    Hidden(&'static str),
    /// By a cursor of the transaction.
    Cursor,
    /// By counting rows, which come in the same order in one transaction.
    Offset,
}

/// An SQL engine.
pub trait Engine: Sync {
    /// Its name. Engines of one name have the same types.
    fn name(&self) -> &'static str;

    /// The schemes of its targets.
    fn schemes(&self) -> &'static [&'static str];

    /// The quote of identifiers.
    fn quote(&self) -> char {
        '"'
    }

    /// The maximum length of a name in bytes.
    fn longest_name(&self) -> usize;

    /// Statements that prepare a session which reads.
    fn reading(&self) -> &'static [&'static str];

    /// The statement that begins a transaction which reads; `None`: the driver's own.
    fn begin_reading(&self) -> Option<&'static str> {
        None
    }

    /// Statements that prepare a session which writes.
    fn writing(&self) -> &'static [&'static str];

    /// The classes of its types, by the words of a declared type.
    fn types(&self) -> &'static [(&'static str, Class)];

    /// The class of a type that is not in the table.
    fn class_of_unknown(&self, declared: &Declared) -> Class {
        let _ = declared;
        Class::Native
    }

    /// Digits of a second if the type does not say.
    fn default_fraction(&self) -> u32;

    /// Digits of a decimal number, and those after the point, if the type does not say.
    fn default_decimal(&self) -> (u32, u32);

    /// Its table of new columns.
    fn rules(&self) -> &'static [Rule];

    /// Reads the schema of the session's database.
    fn catalog(&self, side: &mut Side) -> Result<Catalog>;

    /// The expression that reads a column.
    fn read(&self, kind: &Kind, column: &str) -> String;

    /// The expression of a value in an insert; [`GAP`](crate::sql::GAP) is the parameter.
    fn write(&self, stored: &Kind) -> String {
        let _ = stored;
        crate::sql::GAP.to_string()
    }

    /// The expression of a value that is compared with a key.
    fn compared(&self, stored: &Kind) -> String {
        self.write(stored)
    }

    /// Whether bytes are read and written as `\x` and hexadecimal digits.
    fn bytes_as_hex(&self) -> bool {
        false
    }

    /// The kinds of values of a class that a target cannot hold.
    fn cannot_hold(&self, stored: &Kind) -> &'static [IssueKind];

    /// The condition that a column of the source has such a value; `None` if it never has.
    fn has_unfit(&self, kind: &Kind, unfit: IssueKind, column: &str) -> Option<String>;

    /// Conditions that a value is not of its column's class, and the class that the column then has; for engines whose
    /// columns hold values of any type. The first that holds for some value decides.
    fn other_classes(&self, kind: &Kind, column: &str) -> Vec<(String, Class)> {
        let _ = (kind, column);
        Vec::new()
    }

    /// The length of a value in bytes.
    fn octets(&self, column: &str) -> String;

    /// The length of a text in characters.
    fn characters(&self, column: &str) -> String {
        format!("CHAR_LENGTH({column})")
    }

    /// A query with a maximum number of rows, after leaving out the first ones.
    fn limited(&self, query: &str, rows: usize, offset: u64) -> String {
        let offset = if offset == 0 { String::new() } else { format!(" OFFSET {offset}") };
        format!("{query} LIMIT {rows}{offset}")
    }

    /// How rows without a key are read.
    fn keyless(&self) -> Keyless;

    /// Whether `(a, b) > (1, 2)` uses an index.
    fn compares_rows(&self) -> bool;

    /// The maximum numbers of rows and parameters of an insert.
    fn insert_limits(&self) -> (usize, usize);

    /// The statement that takes rows as text ([`Session::load_text`](kurabe_core::driver::Session::load_text)), for a quoted
    /// table and its quoted columns; `None` if the engine has none. The text is that of PostgreSQL's `COPY`.
    fn load_text(&self, table: &str, columns: &str) -> Option<String> {
        let _ = (table, columns);
        None
    }

    /// What follows the type of a text column that compares by its bytes, or by the rules of that name on the same engine.
    ///
    /// `same`: the source is of the same engine.
    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String;

    /// What follows the columns of a query that has one row, and needs no table.
    fn one_row(&self) -> &'static str {
        ""
    }

    /// What follows the column list of a table.
    fn table_options(&self, target: &TargetFacts) -> String {
        let _ = target;
        String::new()
    }

    /// What the target's server says of itself that decides what is made.
    fn facts(&self, side: &mut Side) -> Result<TargetFacts> {
        let _ = side;
        Ok(TargetFacts::default())
    }

    /// How a column of this new type is declared whose numbers the server gives. `None` if it cannot be one.
    fn identity(&self, table: &Table, column: &Column, mapped: &Mapped) -> Option<Identity>;

    /// The clause of a column that can be null, with a leading space.
    fn nullable(&self) -> &'static str {
        ""
    }

    /// Whether a column of this type can have a literal default.
    fn has_literal_default(&self, mapped: &Mapped) -> bool {
        let _ = mapped;
        true
    }

    /// Whether foreign keys can have this action.
    fn has_action(&self, action: &str) -> bool {
        let _ = action;
        true
    }

    /// The statement after which the server gives numbers from `next` on; `None` if it needs none.
    fn restart_identity(&self, table: &str, column: &str, next: i128) -> Option<String>;

    /// The default `CURRENT_TIMESTAMP` of a column.
    fn now(&self, stored: &Kind) -> String;

    /// Whether a date and time is stored as text, and the current time can be its default.
    fn stores_times_as_text(&self) -> bool {
        false
    }

    /// Whether foreign keys are written in `CREATE TABLE`, since the engine cannot add them.
    fn foreign_keys_inline(&self) -> bool {
        false
    }

    /// Whether indexes of two tables cannot have one name.
    fn index_names_are_shared(&self) -> bool {
        true
    }

    /// The maximum length of an unlimited text or of bytes in an index; `None` if it may be indexed as it is.
    fn longest_key(&self) -> Option<u32> {
        None
    }

    /// The statement that makes an index of a quoted name on a quoted table.
    fn create_index(&self, index: &Index, name: &str, table: &str, columns: &str) -> String {
        let unique = if index.unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX {name} ON {table} ({columns})")
    }

    /// Statements after all tables are filled, which check what the session did not check before; rows are violations.
    fn final_check(&self) -> Option<&'static str> {
        None
    }
}

/// The declaration of a column whose numbers the server gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity {
    /// Its type, if it must be a certain one.
    pub type_name: Option<&'static str>,
    /// What precedes `NOT NULL`, with a leading space.
    pub before: &'static str,
    /// What follows `NOT NULL`, with a leading space.
    pub after: &'static str,
}

/// Facts of a target's server.
#[derive(Clone, Debug, Default)]
pub struct TargetFacts {
    /// The collation that compares text by bytes.
    pub by_bytes: String,
    /// The names of all collations.
    pub collations: Vec<String>,
}

/// All kinds of values that depend on the value, not on the type.
pub const OF_VALUES: &[IssueKind] = &[
    IssueKind::ZeroDate,
    IssueKind::DateRange,
    IssueKind::TimeRange,
    IssueKind::NotANumber,
    IssueKind::NulCharacter,
    IssueKind::Fraction,
];
